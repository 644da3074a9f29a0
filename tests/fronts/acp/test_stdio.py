"""Stdin and stdout as a pipe: large lines, the end, files, and an editor that is gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from quarterdeck.domain.errors import LinkClosed
from quarterdeck.fronts.acp.stdio import StdioPipe
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio


class Ends:
    """The two ends of a pipe; each is closed once."""

    def __init__(self) -> None:
        self.source, self.sink = os.pipe()
        self._open = {self.source, self.sink}

    def close(self, descriptor: int) -> None:
        self._open.remove(descriptor)
        os.close(descriptor)

    def close_all(self) -> None:
        for descriptor in list(self._open):
            self.close(descriptor)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close_all()


async def test_ten_megabytes_pass_through_a_pipe(ends: Ends) -> None:
    pipe = StdioPipe(ends.source, ends.sink)
    data = os.urandom(1 << 20) * 10
    got = bytearray()
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pipe.send, data)
            while len(got) < len(data):
                got += await pipe.receive()
        assert bytes(got) == data
        ends.close(ends.sink)
        assert await pipe.receive() == b""


async def test_an_editor_that_does_not_read_any_more_is_told_apart(ends: Ends) -> None:
    ends.close(ends.source)
    with pytest.raises(LinkClosed, match="does not read any more"):
        await StdioPipe(ends.source, ends.sink).send(b"x")


async def test_files_will_do(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"line\n")
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as sink:
        pipe = StdioPipe(source.fileno(), sink.fileno())
        assert await pipe.receive() == b"line\n"
        assert await pipe.receive() == b""
        await pipe.send(b"answer\n")
    assert (tmp_path / "out").read_bytes() == b"answer\n"
