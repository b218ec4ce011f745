"""Tells runners that listen of new work, by NOTIFY: after the commands, never within them.

A NOTIFY within a transaction makes all such transactions of a server commit one after the other,
disk included. This one is sent afterwards, for all that has come since the last, in a transaction
that writes nothing and waits for no disk. One that is lost costs a runner no more than a look.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any, Final

import psycopg

from unswept.adapters.postgres.dialect import DEFAULT_SCHEMA
from unswept.adapters.postgres.settings import settings
from unswept.adapters.postgres.sync import connected
from unswept.core import commands as c
from unswept.core.errors import StoreError
from unswept.core.lease import Status
from unswept.core.replies import Accepted, Swept

GAP_S: Final = 0.02
"""The least time from one notification to the next."""
_AGAIN_S: Final = 1.0
"""How long nothing is tried after a failure."""
_CLOSE_S: Final = 2.0
"""How long the last notification is waited for: the server may be out of reach."""
_LONGEST_NAME: Final = 63

log: Final = logging.getLogger(__name__)


def channel_of(schema: str) -> str:
    """The channel of a schema's queue. If two share one, their runners look in vain at times."""
    return f"unswept_{schema}"[:_LONGEST_NAME]


def makes_work(command: c.Command[Any], reply: Any) -> bool:
    """May a job have come into the queue by this?"""
    if isinstance(command, (c.Enqueue, c.Release, c.Requeue)):
        queued = isinstance(reply, Accepted) and reply.standing.status is Status.QUEUED
        return queued and not reply.repeated
    if isinstance(reply, Swept):  # some policies requeue what is swept
        return any(answer.refusal is None for answer in reply.answers)
    return False


class Announcer:
    """Sends the notifications of one process, from a thread and on a connection of its own; both
    begin with the first."""

    def __init__(self, url: str, *, schema: str = DEFAULT_SCHEMA) -> None:
        """Nothing is connected yet. A pooler may stand between, whatever its mode."""
        self._settings = settings(url, schema)
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._rung = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def ring(self) -> None:
        """There is new work, and its transaction has committed. Returns at once."""
        if self._process != os.getpid():
            self._begin()  # the thread stayed with the parent
        with self._changed:
            self._rung = True
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._work, name="unswept-announce", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Send what was rung for, and nothing more."""
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify()
        if thread is not None and self._process == os.getpid():
            thread.join(_CLOSE_S)

    def _work(self) -> None:
        connection: psycopg.Connection[Any] | None = None
        while self._wait():
            try:
                connection = connection or connected(self._settings)
                # The setting ends with the transaction, which is this statement.
                connection.execute(
                    "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, '')",
                    [channel_of(self._settings.schema)],
                )
                pause_s = GAP_S
            except (StoreError, psycopg.Error) as error:
                log.info("%s: nothing is announced: %s", self._settings.where, type(error).__name__)
                if connection is not None:
                    connection.close()
                connection = None
                pause_s = _AGAIN_S
            if not self._closed:
                time.sleep(pause_s)
        if connection is not None:
            connection.close()

    def _wait(self) -> bool:
        """Is there anything to tell? False: never again."""
        with self._changed:
            while not self._rung and not self._closed:
                self._changed.wait()
            rung, self._rung = self._rung, False
            return rung
