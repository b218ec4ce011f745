"""A row whose change the database refuses does not keep the other targets of a sweep from it.

A sweep is one transaction, and such a row undoes all of it. So it is carried out in halves, down to
the row that is to blame, which is answered `BROKEN`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import evolve

from unswept.core.commands import Sweep
from unswept.core.errors import RowRefusedError, StoreError
from unswept.core.refusal import Refusal
from unswept.core.replies import SweepAnswer, Swept


def in_parts(execute: Callable[[Any], Any], command: Any) -> Any:
    """The reply of a blocking store that carries out a command by `execute`."""
    try:
        return execute(command)
    except StoreError as error:
        parts = parts_of(command, error)
        if not parts:
            raise
    return together(command, [in_parts(execute, part) for part in parts])


def parts_of(command: object, error: StoreError) -> tuple[Sweep, ...]:
    """What is left to do of a command that failed so: two halves of a sweep; of a single target
    nothing, and that takes a sweep of none. Empty where the error stands."""
    if not isinstance(command, Sweep) or not isinstance(error, RowRefusedError):
        return ()
    half, targets = len(command.targets) // 2, command.targets
    if half == 0:
        return (evolve(command, targets=()),) if targets else ()
    return (evolve(command, targets=targets[:half]), evolve(command, targets=targets[half:]))


def together(command: object, parts: Iterable[Swept]) -> Swept:
    """The reply to the whole."""
    assert isinstance(command, Sweep)
    swept = list(parts)
    answers = {answer.job_id: answer for part in swept for answer in part.answers}
    return Swept(
        swept[-1].at,
        tuple(
            answers.get(target.job_id) or SweepAnswer(target.job_id, Refusal.BROKEN)
            for target in command.targets
        ),
    )
