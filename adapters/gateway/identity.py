"""Who this instance is: an id made anew at every boot, never from a host name or a pid."""

from __future__ import annotations

import os
import socket
import uuid

from attrs import field, frozen


def _new_id() -> str:
    return f"gateway-{uuid.uuid4().hex}"


def _host() -> str:
    return "".join(ch for ch in socket.gethostname() if ch.isprintable())[:200]


@frozen
class Identity:
    """One run of a gateway. Host and pid are for people; no decision reads them."""

    instance: str = field(factory=_new_id)
    host: str = field(factory=_host)
    pid: int = field(factory=os.getpid)
