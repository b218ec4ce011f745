"""Process jobs: what they are given, what is kept of them, and each way in which they end."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from tests.adapters.gateway.helpers import eventually, open_store, policy, run, sh
from unswept.adapters.gateway import (
    Answer,
    CallWork,
    Gateway,
    Output,
    ProcessWork,
    Snapshot,
    exit_watch,
    silence,
)
from unswept.adapters.gateway.live_job import LiveJob
from unswept.adapters.gateway.work import Work
from unswept.core.errors import MisuseError
from unswept.core.lease import Status
from unswept.core.units import Ms


def outcome(folder: Path, work: ProcessWork) -> tuple[Snapshot, Output]:
    """How one job ends, and what it wrote."""
    seen: list[tuple[Snapshot, Output]] = []

    async def scenario() -> None:
        with open_store(folder) as store:
            async with Gateway(store, policy=policy()) as gateway:
                job = await gateway.submit(work, provider="shell")
                seen.append((await job.wait(), await job.output()))

    run(scenario)
    return seen[0]


def test_a_process_gets_its_input_environment_and_folder(tmp_path: Path) -> None:
    """Standard input, environment and working folder are the job's, and nothing leaks in."""
    work = sh(
        "cat; echo $WORD; pwd; echo warned >&2; env | wc -l",
        stdin="grüße\n".encode(),
        env={"WORD": "word", "PATH": os.environ["PATH"]},
        cwd=str(tmp_path),
    )
    snapshot, output = outcome(tmp_path, work)
    assert (snapshot.status, snapshot.exit_code) == (Status.COMPLETED, 0)
    lines = output.stdout.split()
    assert lines[:3] == ["grüße", "word", str(tmp_path)]
    assert int(lines[3]) <= 6  # the shell adds a few of its own
    assert output.stderr == "warned\n"


@pytest.mark.parametrize("size", [0, 1_000, 5_000_000])
def test_an_input_of_any_size_arrives_or_is_left(tmp_path: Path, size: int) -> None:
    """Whether the pipe takes it at once or not, and whether or not anybody reads it."""
    counted, output = outcome(tmp_path, sh("wc -c", stdin=b"x" * size))
    assert (counted.status, int(output.stdout)) == (Status.COMPLETED, size)
    left, _ = outcome(tmp_path, sh("exec <&-; sleep 0.1; exit 3", stdin=b"x" * size))
    assert left.exit_code == 3


def test_an_end_is_noticed_where_no_descriptor_tells_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a thread, as on systems other than Linux."""
    monkeypatch.setattr(exit_watch, "_pidfd", lambda pid: None)
    snapshot, output = outcome(tmp_path, sh("echo done; exit 3"))
    assert (snapshot.exit_code, output.stdout) == (3, "done\n")


def test_a_job_that_is_over_leaves_nothing_to_the_garbage_collector(tmp_path: Path) -> None:
    """Its parts in a circle would lie about until a collection, which costs every job its time."""
    left: list[object] = []

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                gc.collect()
                gc.disable()
                try:
                    job = await gateway.submit(sh("echo done"), provider="shell")
                    await job.wait()
                    await eventually(lambda: gateway.health().held == 0)
                    left.extend(each for each in gc.get_objects() if isinstance(each, LiveJob))
                finally:
                    gc.enable()

    run(scenario)
    assert not left


def test_the_end_that_is_waited_for_is_the_one_that_is_stored(tmp_path: Path) -> None:
    """It comes from the store's replies; reading it anew brings nothing else."""

    async def answer() -> Answer:
        return Answer(b"body", 404)

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                works: list[Work] = [sh(script) for script in ("true", "exit 3", "kill -9 $$")]
                for work in (*works, CallWork(call=answer)):
                    job = await gateway.submit(work, provider="any", correlation_id="it")
                    ended = await job.wait()
                    assert ended == await job.snapshot()
                    assert (ended.correlation_id, ended.over) == ("it", True)

    run(scenario)


def test_an_exit_code_other_than_0_is_a_failure(tmp_path: Path) -> None:
    """The code is kept as it came."""
    snapshot, _ = outcome(tmp_path, sh("exit 3"))
    assert (snapshot.status, snapshot.exit_code, snapshot.error) == (Status.FAILED, 3, None)


def test_a_death_by_signal_is_a_failure(tmp_path: Path) -> None:
    """A process that was killed has no exit code, which must not pass for success. (F-24)"""
    snapshot, output = outcome(tmp_path, sh("echo partly; kill -9 $$"))
    assert (snapshot.status, snapshot.exit_code) == (Status.FAILED, 1)
    assert snapshot.error == "Process was killed by signal 9"
    assert output.stdout == "partly\n"


def test_a_command_that_is_not_there_fails_with_127(tmp_path: Path) -> None:
    """As a shell would say it; and nothing crashes on it. (W-28)"""
    snapshot, _ = outcome(tmp_path, ProcessWork(argv=("no-such-command-at-all",)))
    assert (snapshot.status, snapshot.exit_code) == (Status.FAILED, 127)
    assert snapshot.error is not None
    assert "no-such-command-at-all" in snapshot.error


def test_a_command_that_cannot_be_run_fails_with_126(tmp_path: Path) -> None:
    """A file without the right to run it, and a NUL that no command can have."""
    plain = tmp_path / "plain"
    plain.write_text("no program")
    assert outcome(tmp_path, ProcessWork(argv=(str(plain),)))[0].exit_code == 126
    assert outcome(tmp_path, ProcessWork(argv=("echo", "a\0b")))[0].exit_code == 126


def test_a_folder_that_is_not_there_is_told_from_a_command_that_is_not(tmp_path: Path) -> None:
    """126, and the message names the folder."""
    snapshot, _ = outcome(tmp_path, ProcessWork(argv=("true",), cwd=tmp_path / "nowhere"))
    assert snapshot.exit_code == 126
    assert snapshot.error is not None
    assert str(tmp_path / "nowhere") in snapshot.error


def test_silence_longer_than_the_idle_timeout_kills(tmp_path: Path) -> None:
    """Output puts the timeout off; silence ends the process with 125."""
    script = "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done; sleep 100"
    snapshot, output = outcome(tmp_path, sh(script, idle_timeout_ms=Ms(1_000)))
    assert (snapshot.status, snapshot.exit_code) == (Status.FAILED, 125)
    assert snapshot.error == "Process killed after 1000ms of inactivity"
    assert output.stdout.split() == ["1", "2", "3", "4", "5"]


def test_a_process_may_run_no_longer_than_its_wall_timeout(tmp_path: Path) -> None:
    """However much it writes; and what it wrote is kept."""
    script = "while true; do echo x; sleep 0.05; done"
    snapshot, output = outcome(tmp_path, sh(script, wall_timeout_ms=Ms(500)))
    assert (snapshot.status, snapshot.exit_code) == (Status.FAILED, 124)
    assert output.stdout.startswith("x\nx\n")


def test_output_above_the_cap_kills_and_keeps_what_came_before(tmp_path: Path) -> None:
    """Only the piece that crosses the cap, and what follows it, is dropped."""
    work = sh("echo first; sleep 0.5; yes | head -c 1000000; sleep 100", max_output_bytes=1_000)
    snapshot, output = outcome(tmp_path, work)
    assert (snapshot.status, snapshot.exit_code) == (Status.FAILED, 126)
    assert snapshot.error == "Output exceeded maximum size (1000 bytes)"
    assert output.stdout.startswith("first\n")


def test_the_whole_group_ends_with_its_leader(tmp_path: Path) -> None:
    """A child that is left behind neither holds the job open nor outlives it. (F-30)"""
    snapshot, output = outcome(tmp_path, sh("sleep 1000 & echo $!"))
    assert snapshot.status is Status.COMPLETED
    left_behind = int(output.stdout)

    async def gone() -> None:
        await eventually(lambda: not is_alive(left_behind))

    run(gone)


def test_one_who_has_left_the_group_does_not_hold_the_job_open(tmp_path: Path) -> None:
    """The pipes are closed a while after the process ended, whoever still holds them."""
    work = sh("setsid sleep 20 & echo done")
    snapshot, output = outcome(tmp_path, work)
    assert (snapshot.status, output.stdout) == (Status.COMPLETED, "done\n")


def test_a_character_that_comes_in_two_pieces_is_one_character(tmp_path: Path) -> None:
    """Bytes are stored as they came, whatever the pieces. (W-30)"""
    work = sh(r"printf '\303'; sleep 1.5; printf '\274'; printf '\377end'")
    _, output = outcome(tmp_path, work)
    assert output.stdout == "ü\ufffdend"


def test_output_can_be_read_while_the_job_runs(tmp_path: Path) -> None:
    """By any reader of the store, about a second after it was written."""

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                job = await gateway.submit(sh("echo early; sleep 100"), provider="shell")

                async def arrived() -> bool:
                    return (await job.output()).stdout == "early\n"

                await eventually(arrived)
                assert not (await job.snapshot()).over

    run(scenario)


def test_much_output_comes_whole(tmp_path: Path) -> None:
    """Several chunks on both streams, read back in order and cut to the end where asked."""
    script = "seq 1 200000; seq 1 1000 >&2"

    async def scenario() -> None:
        with open_store(tmp_path) as store:
            async with Gateway(store, policy=policy()) as gateway:
                job = await gateway.submit(sh(script), provider="shell")
                assert (await job.wait()).status is Status.COMPLETED
                output = await job.output(max_chars=10_000_000)
                assert output.stdout.split() == [str(number) for number in range(1, 200_001)]
                assert output.stderr.split() == [str(number) for number in range(1, 1_001)]
                end = await job.output(max_chars=7)
                assert (end.stdout, end.truncated) == ("200000\n", True)

    run(scenario)


def test_a_long_silence_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once per mark; what is written to the standard error alone is silence still."""
    monkeypatch.setattr(silence, "MARKS_S", (0.2, 0.4, 30.0))
    outcome(tmp_path, sh("echo working >&2; sleep 0.8; echo done"))
    outcome(tmp_path, sh("echo at once; sleep 0.8"))
    told = [record.message for record in caplog.records if record.name == silence.__name__]
    assert [message.partition(" has ")[2] for message in told] == [
        "written nothing for 0.2 s",
        "written nothing for 0.4 s",
    ]


def test_nonsense_is_refused_before_anything_is_written() -> None:
    """An empty command, a timeout of 0, a cap above what a store can keep."""
    with pytest.raises(MisuseError, match="argv"):
        ProcessWork(argv=())
    with pytest.raises(MisuseError, match="argv"):
        ProcessWork(argv="echo hello")
    with pytest.raises(MisuseError, match="idle_timeout_ms"):
        ProcessWork(argv=("true",), idle_timeout_ms=Ms(0))
    with pytest.raises(MisuseError, match="max_output_bytes"):
        ProcessWork(argv=("true",), max_output_bytes=2**40)
    with pytest.raises(MisuseError, match="stdin must be bytes or None, got 'text'"):
        ProcessWork(argv=("true",), stdin="text")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="cwd must be a path or None, got 99"):
        ProcessWork(argv=("true",), cwd=99)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="env must map strings to strings") as refused:
        ProcessWork(argv=("true",), env={"TOKEN": b"secret"})  # type: ignore[dict-item]
    assert "secret" not in str(refused.value)


def test_a_gateway_refuses_a_cap_that_no_job_could_have(tmp_path: Path) -> None:
    """When it is made, not when the first job comes."""

    async def scenario() -> None:
        with open_store(tmp_path) as store, pytest.raises(MisuseError, match="max_output_bytes"):
            Gateway(store, max_output_bytes=0)

    run(scenario)


def is_alive(pid: int) -> bool:
    """Also where nobody has asked for its exit code yet, it is dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
