"""How a replay looks in the terminal: one moment after the other, each on a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from unswept.adapters.cli.job_words import row_words
from unswept.core.commands import Command
from unswept.core.job import Job
from unswept.core.units import StoreMs
from unswept.simulations.playback import Belief, Moment, described
from unswept.simulations.script import Shown, Verdict
from unswept.simulations.transcript import said
from unswept.simulations.words import command_words


def moment_lines(moment: Moment) -> Iterator[Text]:
    """A moment of a run."""
    yield Text.assemble((f"{moment.at / 1000:>11.3f}", "cyan"), f"  {moment.title}")
    yield from _rows(moment.rows, moment.store_at)
    if moment.rows or moment.verdicts:
        for belief in moment.beliefs:
            yield Text(f"{'':>13}{_believes(belief)}", "dim")
    yield from _verdicts(moment.verdicts)


def shown_title(shown: Shown, began_at: StoreMs) -> Text:
    """A step of a script in a line; its time is the store's, from the script's first step on."""
    at = f"{(shown.store_at - began_at) / 1000:>11.3f}"
    if isinstance(shown.subject, Command):
        title = f"  {shown.sender}: {command_words(shown.subject)} -> {said(shown.reply)}"
    else:
        who, what, _ = described(shown.subject)
        title = f"  {who} {what}, as it was recorded"
    return Text.assemble((at, "cyan"), title)


def shown_lines(shown: Shown, began_at: StoreMs) -> Iterator[Text]:
    """A step of a script, the rows that it changed, and which law looked."""
    yield shown_title(shown, began_at)
    yield from _rows(shown.rows, shown.store_at)
    if shown.borne_out:
        yield from _verdicts(shown.verdicts)
    else:
        law_id = shown.verdicts[0][0]
        yield Text(f"{'':>13}{law_id} cannot judge: this store does not bear it out", "yellow")


def _rows(rows: Iterable[tuple[Job | None, Job | None]], now: StoreMs) -> Iterator[Text]:
    for before, after in rows:
        job = after or before
        assert job is not None
        was, becomes = row_words(before, now), row_words(after, now)
        yield Text(f"{'':>13}{job.id} before  {', '.join(was)}")
        line = Text(f"{'':>13}{job.id} after   ")
        for number, word in enumerate(becomes):
            line.append(", " if number else "")
            line.append(word, "" if word in was else "bold")
        yield line


def _believes(belief: Belief) -> str:
    holds = ", ".join(f"{job_id}@{epoch}" for job_id, epoch in belief.holds) or "nothing"
    said_ = f"{belief.instance} is {belief.phase.value}, holds {holds}"
    if belief.stands_still:
        said_ += ", stands still"
    suspects = ", ".join(
        f"{s.job_id}@{s.epoch}/{s.beats} for {age / 1000:.1f} of {s.window_ms / 1000:.1f} s"
        for s, age in belief.suspicions
    )
    return f"{said_}, suspects {suspects}" if suspects else said_


def _verdicts(verdicts: Iterable[Verdict]) -> Iterator[Text]:
    held = [law_id for law_id, offence in verdicts if offence is None]
    if held:
        yield Text(f"{'':>13}held: {' '.join(held)}", "green")
    for law_id, offence in verdicts:
        if offence is not None:
            yield Text(f"{'':>13}{law_id} is broken: {offence}", "bold red")
