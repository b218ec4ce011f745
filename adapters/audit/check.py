"""What a judgement is: data, so that a reviewer reads the table of them from top to bottom."""

from __future__ import annotations

from attrs import frozen


@frozen
class Check:
    """One thing that a law forbids, and that history can show."""

    law: str
    looks_at: str
    """What is compared with what, in a phrase."""
    sql: str
    """Gives (job_id, the numbers of the events that show it, the offence in a sentence)."""
    needs: tuple[str, ...] = ()
    """The store's tables that it reads besides the events: a file of events has none of them."""
