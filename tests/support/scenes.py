"""Props for the tests of real CLIs: tool calls, programs that leave traces, people who decide.

Above it are the tests in `tests/real_cli`, below it `seats`. It knows what a test needs to stage a
scene, and nothing of what a version does there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from quarterdeck import Agent, Allow, Decision
from quarterdeck.agent.asks import AnyAsk
from quarterdeck.testing import ToolUse, play
from quarterdeck.testing.script import Said
from quarterdeck.wire.base import Message
from quarterdeck.wire.content import ToolResultBlock
from quarterdeck.wire.messages import FromCli, Result, User
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.system import Init
from support.bounds import SECONDS
from support.seats import Seat

INPUT_ENDS_WHILE_ASKING = "The end of its input while a question is open"
INPUT_ENDS_WHILE_SPEAKING = "The end of its input while the model speaks"
"""Rows of the compatibility page to which two modules contribute."""


def bash(command: str) -> ToolUse:
    """A call of Bash."""
    return ToolUse("Bash", {"command": command, "description": "a probe"})


def write(path: Path, content: str = "text\n") -> ToolUse:
    """A call of Write."""
    return ToolUse("Write", {"file_path": str(path), "content": content})


def read(path: Path) -> ToolUse:
    """A call of Read."""
    return ToolUse("Read", {"file_path": str(path)})


class Probe:
    """A program in the agent's folder that writes down each run: nobody knows it, so it is asked
    about in every version.
    """

    def __init__(self, seat: Seat, name: str = "probe") -> None:
        self._log = seat.cwd / f"{name}.log"
        self.program = f"./{name}.sh"
        path = seat.cwd / f"{name}.sh"
        path.write_text(f'#!/bin/sh\necho "$@" >> {self._log}\necho ran "$@"\n')
        path.chmod(0o755)

    def call(self, *arguments: str) -> ToolUse:
        """The tool call that runs it."""
        return bash(" ".join((self.program, *arguments)))

    @property
    def runs(self) -> list[str]:
        """The arguments of each run so far."""
        return self._log.read_text().splitlines() if self._log.exists() else []


class Decider:
    """Decides as it was told, in turn, and allows what comes after; keeps what was asked."""

    def __init__(self, *decisions: Decision | Callable[[AnyAsk], Decision]) -> None:
        self.asks: list[AnyAsk] = []
        self._next = list(decisions)
        self._person: Person | None = None

    def will(self, *decisions: Decision | Callable[[AnyAsk], Decision]) -> None:
        """Decide so the next times."""
        self._next.extend(decisions)

    def ask_instead(self, person: Person | None) -> None:
        """Let somebody else decide from now on; None decides here again."""
        self._person = person

    async def __call__(self, ask: AnyAsk) -> Decision:
        if self._person is not None:
            return await self._person(ask)
        self.asks.append(ask)
        if not self._next:
            return Allow()
        decision = self._next.pop(0)
        return decision(ask) if callable(decision) else decision

    def asked(self) -> int:
        """How often it was asked since this was called last."""
        count = len(self.asks)
        self.asks.clear()
        return count


class Person:
    """Takes time to decide: each question waits until the test answers it."""

    def __init__(self) -> None:
        self.asks: list[AnyAsk] = []
        self.withdrawn: list[AnyAsk] = []
        self._answers: dict[str, tuple[anyio.Event, list[Decision]]] = {}
        self._news = anyio.Event()

    async def __call__(self, ask: AnyAsk) -> Decision:
        answered, decision = anyio.Event(), list[Decision]()
        self._answers[ask.request_id] = answered, decision
        self.asks.append(ask)
        self._news.set()
        self._news = anyio.Event()
        try:
            await answered.wait()
        except BaseException:
            self.withdrawn.append(ask)
            raise
        return decision[0]

    async def wait_for(self, count: int) -> list[AnyAsk]:
        """All questions so far, once there are `count` of them."""
        with anyio.fail_after(SECONDS):
            while len(self.asks) < count:
                await self._news.wait()
        return list(self.asks)

    def answer(self, ask: AnyAsk, decision: Decision | None = None) -> None:
        """Answer a question; by default, allow."""
        answered, made = self._answers[ask.request_id]
        made.append(decision or Allow())
        answered.set()


def running(words: str) -> list[int]:
    """The processes of this machine that have these words on their command line."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if words.encode() in line:
            found.append(int(folder.name))
    return found


async def turn(agent: Agent, *replies: Said) -> list[FromCli]:
    """One prompt that carries its script: all messages to the end of its turn."""
    with anyio.fail_after(SECONDS):
        return [message async for message in agent.query(play(*replies))]


async def mode_shown(agent: Agent) -> PermissionMode:
    """The mode that the next turn begins with."""
    messages = await turn(agent, "look")
    (init,) = [message for message in messages if isinstance(message, Init)]
    return init.permission_mode


def tool_results(messages: Sequence[Message]) -> list[ToolResultBlock]:
    """What the tools gave."""
    return [
        block
        for message in messages
        if isinstance(message, User)
        for block in message.message.blocks
        if isinstance(block, ToolResultBlock)
    ]


def result_of(messages: Sequence[Message]) -> Result:
    """The result of a turn, which is its last message."""
    last = messages[-1]
    assert isinstance(last, Result)
    return last
