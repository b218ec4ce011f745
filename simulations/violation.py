"""A law that a simulated run broke."""

from __future__ import annotations


class Violation(Exception):  # noqa: N818 - it is a finding, not an error of the simulator
    """Ends the run that found it; `law` is the law's id, or LOCKSTEP for two stores that differ."""

    def __init__(self, law: str, offence: str, verb: str = "") -> None:
        """What was broken, and how, in one sentence; where two stores differ, on which command."""
        super().__init__(f"{law}: {offence}")
        self.law = law
        self.offence = offence
        self.verb = verb
