"""What must sometimes happen in a campaign: a law that was never put to the test was not shown."""

from __future__ import annotations

from enum import StrEnum


class Mark(StrEnum):
    """One rare event each, in the words in which reports count it."""

    SUSPECT_RENEWED = "a suspect was renewed before its window ended"
    LEASE_REVIVED = "a lease past its deadline revived"
    WINDOW_RESTARTED = "a gap restarted a window"
    LOCKED_FORGOTTEN = "a locked suspect was forgotten"
    HEARTBEAT_WON = "a heartbeat or completion won the race against a sweep"
    SWEPT_ONCE = "two sweepers swept the same job, once"
    DEAD_SWEPT = "a dead owner's job was swept"
    OWN_FAULT_SWEPT = "a silent owner's job was swept, by its own fault"
    DELAYED = "process evidence delayed a sweep"
    HEALED = "an orphan healed"
    LEARNED_ORPHANED = "an owner learned that its job was orphaned"
    HOLD_BUSY = "a hold was busy"
    HOLD_ENDED = "a hold was answered absent, fenced or terminal"
    WRITE_FENCED = "a write under an old epoch was fenced"
    START_REFUSED = "a start was refused"
    STOPPED_IN_TIME = "work stopped at its local deadline"
    CANCEL_HEARD = "a cancel reached the owner by its heartbeat"
    JOINED = "an admit joined its twin"
    ADMIT_REPEATED = "a repeated admit got the first reply"
    COMPLETE_REPEATED = "a repeated completion changed nothing"
    CLAIM_REPEATED = "a repeated claim got the same jobs"
    WITHDRAWN = "an admit was given up and withdrawn"
    RELEASED = "claimed work was released"
    NOT_ADMITTED = "an admission was refused: the instance may not admit"
    SATURATED = "an admission was refused: saturated"
    WAITED_TOO_LONG = "a job waited too long for a slot"
    ANSWER_TOO_LATE = "a beat's answer came too late"
    QUIESCED = "an instance was quiesced after three failed beats"
    REGISTERED_ANEW = "a quiesced instance registered anew"
    READMITTED = "an instance was readmitted after three good beats"
    DRAINED = "an instance drained under load"
    HOUSEKEPT = "housekeeping acted on what it saw twice"
