"""What may happen in the small world, as data: in whose lane of a timeline, by which sign, and in
words."""

from __future__ import annotations

from enum import Enum, StrEnum


class Lane(StrEnum):
    """The lines of a timeline."""

    OWNER = "owner"
    HEART = "sweeper's heart"
    SWEEPER = "sweeper"
    STORE = "store"


class What(Enum):
    """One thing that may happen: lane, sign, words."""

    RENEWED = (Lane.OWNER, "R", "the owner's beat renews the lease")
    REFUSED = (Lane.OWNER, "n", "the owner's beat renews nothing")
    BUSY = (Lane.OWNER, "b", "the owner's beat is answered busy")
    OWNER_UNHEARD = (Lane.OWNER, "x", "the owner's beat reaches nobody")
    OWNER_LOST = (Lane.OWNER, "o", "the owner's beat is lost")
    OWNER_UNANSWERED = (
        Lane.OWNER,
        "r",
        "the owner's beat renews the lease, and its answer is lost",
    )

    DIES = (Lane.OWNER, "+", "the owner dies")

    ACCEPTED = (Lane.HEART, ".", "the sweeper's beat is accepted")
    HEART_UNHEARD = (Lane.HEART, "x", "the sweeper's beat reaches nobody")
    HEART_LOST = (Lane.HEART, "o", "the sweeper's beat is lost")
    HEART_UNANSWERED = (Lane.HEART, ",", "the answer to the sweeper's beat is lost")

    NO_SUSPECT = (Lane.SWEEPER, "?", "the sweeper looks and sees no suspect")
    SUSPECT = (Lane.SWEEPER, "!", "the sweeper looks and sees the job as a suspect")
    LOOK_UNHEARD = (Lane.SWEEPER, "x", "the sweeper's look reaches nobody")
    LOOK_LOST = (Lane.SWEEPER, "o", "the sweeper's look is lost")
    LOOK_UNANSWERED = (Lane.SWEEPER, ",", "the answer to the sweeper's look is lost")
    SENDS = (Lane.SWEEPER, "s", "the sweeper sends a sweep")
    SWEPT = (Lane.SWEEPER, "#", "the sweep orphans the job, whose owner lives")
    SWEEP_REFUSED = (Lane.SWEEPER, "-", "the sweep is refused")

    FORWARD = (Lane.STORE, ">", "the store clock steps forward")
    BACK = (Lane.STORE, "<", "the store clock steps back")
    DOWN = (Lane.STORE, "D", "the store goes down")
    UP = (Lane.STORE, "U", "the store is back")
    ROW_LOCKED = (Lane.STORE, "L", "a stranger locks the job's row")
    ROW_FREE = (Lane.STORE, "l", "the stranger lets the row go")
    TABLE_LOCKED = (Lane.STORE, "T", "the lease table takes no more writes")
    TABLE_FREE = (Lane.STORE, "t", "the lease table takes writes again")

    @property
    def lane(self) -> Lane:
        """The line of a timeline that it stands in."""
        return self.value[0]

    @property
    def sign(self) -> str:
        """One character, which means this in its lane."""
        return self.value[1]

    @property
    def words(self) -> str:
        """It, in words."""
        return self.value[2]
