"""One scenario: what went wrong in the field, and the story that must go well here."""

from __future__ import annotations

from attrs import frozen


@frozen
class Scenario:
    """A fault that somebody met, cut down to a story."""

    id: str
    """Of the fault in docs/faults.md; what stands behind a dash tells several stories apart."""
    title: str
    """What must hold, in one line."""
    field: str
    """What went wrong in the field, in one sentence."""
    story: str
    """In the words of `unswept.simulations.scenarios.language`."""
