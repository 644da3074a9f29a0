"""A runner is killed while its CLI talks into a pipe that nobody reads: the messages are recalled.

What is left to chance in the schedules is made sure of here.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios
from pathlib import Path

import anyio
import pytest
from msgspec import Raw

from quarterdeck.protocol.commands import CreateSession, SendPrompt
from quarterdeck.protocol.events import AnyEvent, PromptTaken, Recalled, RunEnded
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionState
from support.bounds import SECONDS
from support.fault_check import find, wrote
from support.fault_nursery import Nursery
from support.fault_world import World, world
from support.processes import Processes
from support.waiting import until

pytestmark = pytest.mark.anyio
SEED = 3
"""With it the CLI says something before it asks."""
PROMPT = "00000000-0000-4000-8000-000000000001"


async def until_state(one: World, session: str, state: SessionState) -> SessionView:
    with anyio.fail_after(SECONDS):
        while (view := await one.view(session)).state is not state:  # noqa: ASYNC110 (other processes)
            await anyio.sleep(0.02)
    return view


async def until_written(one: World, session: str, pid: int, text: str) -> None:
    """Wait until the CLI has written a line with this text in it."""
    with anyio.fail_after(SECONDS):
        await until(lambda: any(text in line for line in wrote(one.records(session), pid)))


def unread(pid: int) -> int:
    """How many bytes lie in the pipe that a process reads from."""
    pipe = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK)
    try:
        size = fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4)
    finally:
        os.close(pipe)
    return int.from_bytes(size, sys.byteorder)


@pytest.mark.parametrize("hub_too", [False, True])
async def test_what_lay_unread_in_the_pipe_is_in_the_journal(
    hub_too: bool, tmp_path: Path, nursery: Nursery, processes: Processes
) -> None:
    async with world(tmp_path, nursery, processes) as one:
        create = CreateSession(spec=one.spec("s", SEED), session="s", by="test")
        await one.submit(create)
        pid = (await until_state(one, "s", SessionState.IDLE)).pid
        assert pid is not None
        assert one.runner is not None
        # The CLI stands still until its runner has written the prompt, and then the runner does:
        # so it has given the prompt away, and reads nothing of what comes of it.
        os.kill(pid, signal.SIGSTOP)
        await one.submit(SendPrompt(session="s", prompt=PROMPT, content=Raw(b'"begin"'), by="test"))
        with anyio.fail_after(SECONDS):
            await until(lambda: unread(pid) > len(PROMPT))
        os.kill(one.runner.pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGCONT)
        await until_written(one, "s", pid, '"type": "assistant"')
        if hub_too:
            await one.kill_hub()
        await one.kill_runner()
        if hub_too:
            await one.start_hub()
        await one.start_runner()
        view = await until_state(one, "s", SessionState.ENDED)
        events: list[AnyEvent] = [event for _, event in await one.events("s")]
        ended = [event for event in events if isinstance(event, RunEnded)]
        assert find(events, one.records("s"), {event.run for event in ended}) == []
        assert [event for event in events if isinstance(event, Recalled)]
        assert PromptTaken(prompt=PROMPT) in events
        assert view.unsent == ()
