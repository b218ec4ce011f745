"""A law that was broken, and how: what every search ends with, if it finds one."""

from __future__ import annotations

from attrs import frozen


@frozen
class Offence:
    """A law that a step broke, or a state does."""

    law: str
    sentence: str
