"""One descriptor of the loop's for all that jobs' descriptors have to say."""

from __future__ import annotations

import asyncio
import os
import select
from functools import partial

import pytest

from tests.adapters.gateway.helpers import run
from unswept.adapters.gateway import readers as watching
from unswept.adapters.gateway.readers import Readers


@pytest.fixture(params=["epoll", "loop"], autouse=True)
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what Linux has for it, and as it is where there is no such thing."""
    if request.param == "loop":
        monkeypatch.setattr(watching, "_Epoll", None)
    else:
        assert watching._Epoll is select.epoll


def test_each_is_called_for_its_own() -> None:
    """As often as there is something to read, and no more once it is removed."""

    async def scenario() -> None:
        readers = Readers()
        pipes = [os.pipe() for _ in range(3)]
        heard: list[bytes] = []

        def read(out: int) -> None:
            heard.append(os.read(out, 1))

        for out, _ in pipes:
            readers.add(out, partial(read, out))
        os.write(pipes[0][1], b"ab")
        os.write(pipes[2][1], b"c")
        while len(heard) < 3:
            await asyncio.sleep(0)
        assert sorted(heard) == [b"a", b"b", b"c"]
        readers.remove(pipes[0][0])
        readers.remove(pipes[0][0])
        os.write(pipes[0][1], b"d")
        os.write(pipes[1][1], b"e")
        while len(heard) < 4:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert heard[3:] == [b"e"]
        readers.close()
        os.write(pipes[2][1], b"f")
        await asyncio.sleep(0.01)
        assert heard[4:] == []
        for descriptor in (each for pipe in pipes for each in pipe):
            os.close(descriptor)

    run(scenario)


def test_who_is_closed_by_another_is_not_called() -> None:
    """Two have something to say at once, and the first ends both."""

    async def scenario() -> None:
        readers = Readers()
        pipes = [os.pipe() for _ in range(2)]
        called: list[int] = []

        def end_both(out: int) -> None:
            called.append(out)
            for each, _ in pipes:
                readers.remove(each)
                os.close(each)

        for out, into in pipes:
            readers.add(out, partial(end_both, out))
            os.write(into, b"x")
        await asyncio.sleep(0.05)
        assert len(called) == 1
        readers.close()
        for _, into in pipes:
            os.close(into)

    run(scenario)


def test_a_fault_of_one_keeps_nobody_else_from_being_called() -> None:
    """It reaches the loop's own handler, as it would without this."""
    told: list[BaseException] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        readers = Readers()
        pipes = [os.pipe() for _ in range(2)]
        heard: asyncio.Future[bytes] = loop.create_future()

        def fail(out: int) -> None:
            os.read(out, 1)
            raise ValueError("a fault")

        def hear(out: int) -> None:
            heard.set_result(os.read(out, 1))

        readers.add(pipes[0][0], partial(fail, pipes[0][0]))
        readers.add(pipes[1][0], partial(hear, pipes[1][0]))
        for _, into in pipes:
            os.write(into, b"x")
        assert await asyncio.wait_for(heard, 5) == b"x"
        assert [str(each) for each in told] == ["a fault"]
        readers.close()
        for descriptor in (each for pipe in pipes for each in pipe):
            os.close(descriptor)

    run(scenario)
