"""A schedule of faults: what a seed does to a world, and how the world must come out of it.

A few sessions talk, ask and are prompted; meanwhile chance kills, cuts, stalls, fills the disk and
talks rubbish. In the end everything heals, all questions are answered, all sessions are stopped,
and the journal is compared with what the CLIs wrote down. The seed decides what is done, and in
which order; the machine decides at which byte.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import UUID

import anyio
import anyio.abc
from msgspec import Raw
from websockets.exceptions import WebSocketException

from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.events import AnyEvent
from quarterdeck.protocol.sandbox import SandboxMode
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionState
from support.bounds import SECONDS
from support.fault_check import find, lives, read, with_records
from support.fault_world import HubGone, Refusal, World
from support.web_sockets import connect

PAUSE = 0.25
"""Seconds between two actions at most. With half of it every fourth cut finds no link to cut."""
RUBBISH = (
    b"\x00\xff rubbish",
    b'{"t":"lines","first":1}\nno line of this run',
    b'{"t":"hello"}',
    b'{"t":"have","upto":99999}',
    b'{"t":"started","pid":"x"}',
    b"",
)


class Schedule:
    """One seed in one world."""

    def __init__(self, world: World, seed: int, sandbox: SandboxMode = "off") -> None:
        self.world = world
        self.seed = seed
        self.sandbox = sandbox
        self.chance = random.Random(seed)
        self.done: list[str] = []
        """What was done so far, for whoever has to find out why it failed."""
        self.sessions = [f"s{seed}-{n}" for n in range(self.chance.randrange(1, 4))]
        self.prompts = 0
        self.wins: dict[str, int] = {}
        self.runner_killed: set[str] = set()
        self._events: dict[str, list[AnyEvent]] = {}
        self._hands: anyio.abc.TaskGroup

    async def play(self) -> list[str]:
        """Do it all; gives what is wrong in the end."""
        async with anyio.create_task_group() as self._hands:
            for n, name in enumerate(self.sessions):
                spec = self.world.spec(name, self.seed * 10 + n, self.sandbox)
                create = cmd.CreateSession(
                    spec=spec, session=name, prompt=Raw(b'"begin"'), prompt_id=self._id(), by="test"
                )
                self._hands.start_soon(self._surely, create)
            for pause, chance, action in self._plan():
                await anyio.sleep(pause)
                self.chance = chance
                self.done.append(action.__name__.strip("_"))
                with suppress(HubGone, Refusal):
                    await action()
            await self._heal()
        return await self._settle()

    def _plan(self) -> list[tuple[float, random.Random, Callable[[], Awaitable[None]]]]:
        """All from the seed: each action has chances of its own, however many it takes."""
        actions = self._actions()
        own = random.Random(self.seed)
        return [
            (own.random() ** 2 * PAUSE, random.Random(own.random()), action)
            for action in own.choices(list(actions), list(actions.values()), k=own.randrange(5, 10))
        ]

    def _actions(self) -> dict[Callable[[], Awaitable[None]], int]:
        return {
            self._prompt: 5,
            self._answer: 6,
            self._kill_hub: 2,
            self._cut: 3,
            self._cut_at_any_byte: 2,
            self._stall: 2,
            self._rubbish_on_the_wire: 1,
            self._rubbish_from_a_stranger: 2,
            self._kill_cli: 2,
            self._kill_runner: 1,
            self._fill_disk: 2,
            self._stop_or_resume: 2,
            self._interrupt: 2,
        }

    # --- what people do ----------------------------------------------------------------------

    def _id(self) -> str:
        self.prompts += 1
        return str(UUID(int=(self.seed << 32) + self.prompts, version=4))

    async def _surely(self, command: AnyCommand) -> Outcome | None:
        """Do it again until somebody has done it: that is what the ids are for."""
        why: Exception | None = None
        with anyio.move_on_after(SECONDS):
            while True:
                try:
                    return await self.world.submit(command)
                except HubGone as gone:
                    why = gone
                except Refusal as refusal:
                    if refusal.kind not in {"JournalError", "NotFound"}:
                        return None
                    why = refusal
                await anyio.sleep(0.05)
        raise AssertionError(f"nobody did {command}: {why!r}")

    async def _prompt(self) -> None:
        prompt = cmd.SendPrompt(
            session=self.chance.choice(self.sessions),
            prompt=self._id(),
            content=Raw(b'"go on"'),
            by="test",
        )
        for _ in range(self.chance.choice((1, 1, 2))):
            self._hands.start_soon(self._surely, prompt)

    async def _answer(self) -> None:
        for name in self.sessions:
            view = await self.world.view(name)
            for ask in list(view.asks)[: self.chance.randrange(1, 4)]:
                self._hands.start_soon(self._both, ask)

    async def _both(self, ask: str) -> None:
        """Two people answer a question at once."""
        answers: tuple[cmd.Answer, cmd.Answer] = (
            cmd.AllowAnswer(),
            cmd.DenyAnswer(),
        )
        async with anyio.create_task_group() as two:
            for by, answer in zip("ab", answers, strict=True):
                two.start_soon(self._answer_one, cmd.AnswerAsk(ask=ask, answer=answer, by=by))

    async def _answer_one(self, command: cmd.AnswerAsk) -> None:
        with suppress(HubGone, Refusal):
            await self.world.submit(command)
            self.wins[command.ask] = self.wins.get(command.ask, 0) + 1

    async def _stop_or_resume(self) -> None:
        name = self.chance.choice(self.sessions)
        view = await self.world.view(name)
        command: AnyCommand = cmd.StopSession(session=name, by="test")
        if view.run is None:
            command = cmd.ResumeSession(session=name, by="test")
        self._hands.start_soon(self._try, command)

    async def _interrupt(self) -> None:
        name = self.chance.choice(self.sessions)
        self._hands.start_soon(self._try, cmd.Interrupt(session=name, by="test"))

    async def _try(self, command: AnyCommand) -> None:
        with suppress(HubGone, Refusal):
            await self.world.submit(command)

    # --- what goes wrong ---------------------------------------------------------------------

    async def _kill_hub(self) -> None:
        await self.world.kill_hub()
        await anyio.sleep(self.chance.random() * 0.1)
        await self.world.start_hub()

    async def _cut(self) -> None:
        self.world.link.cut()

    async def _cut_at_any_byte(self) -> None:
        self.world.link.chance = random.Random(self.chance.random())
        self.world.link.cut()
        await anyio.sleep(self.chance.random() * 0.5)
        self.world.link.heal()

    async def _stall(self) -> None:
        self.world.link.stall()
        await anyio.sleep(self.chance.random() * 0.3)
        if self.chance.random() < 0.5:
            self.world.link.cut()
        self.world.link.heal()

    async def _rubbish_on_the_wire(self) -> None:
        self.world.link.rubbish = self.chance.randbytes(self.chance.randrange(1, 40))

    async def _rubbish_from_a_stranger(self) -> None:
        """Somebody with the right token and no manners, at the runner's door of the hub."""
        view = await self.world.view(self.chance.choice(self.sessions))
        path = self.chance.choice(("", "/runs/none", f"/runs/{view.run}", "/x"))
        token = self.world.token_file.read_text()
        with suppress(OSError, WebSocketException):
            async with connect(
                f"ws://127.0.0.1:{self.world.link.target}/runner{path}",
                additional_headers={"Authorization": f"Bearer {token}"},
                close_timeout=0.2,
                proxy=None,
            ) as socket:
                await socket.send(self.chance.choice(RUBBISH))
                await asyncio.wait_for(socket.wait_closed(), 0.2)

    async def _kill_cli(self) -> None:
        view = await self.world.view(self.chance.choice(self.sessions))
        if view.pid:
            with suppress(ProcessLookupError):
                os.kill(view.pid, signal.SIGKILL)

    async def _kill_runner(self) -> None:
        await self.world.kill_runner()
        # Also those of a run that the hub has not heard of yet: any run that is there now.
        for name in self.sessions:
            with suppress(HubGone, Refusal):
                view = await self.world.view(name)
                self.runner_killed |= {view.run} if view.run else set()
        await self.world.start_runner()

    async def _fill_disk(self) -> None:
        await self.world.disk_full(True)
        await anyio.sleep(self.chance.random() * 0.3)
        with suppress(HubGone):
            await self.world.disk_full(False)

    # --- the end -----------------------------------------------------------------------------

    async def _heal(self) -> None:
        self.world.link.heal()

    async def _settle(self) -> list[str]:
        """Wait until all is quiet, stop everything, and compare."""
        why: list[str] = []
        try:
            with anyio.fail_after(SECONDS):
                await self._until_none(self._unrest, why)
                for name in self.sessions:
                    await self._surely(cmd.StopSession(session=name, by="test"))
                await self._until_none(self._running, why)
        except TimeoutError:
            return [f"it did not come to rest: {sentence}" for sentence in why]
        found = [f"{n} people won {ask}" for ask, n in self.wins.items() if n > 1]
        for name in self.sessions:
            rows = await self.world.events(name)
            events = [event for _, event in rows]
            if [row.seq for row, _ in rows] != list(range(1, len(rows) + 1)):
                found.append(f"{name}: the events are not numbered in a row")
            found += find(events, self.world.records(name), self.runner_killed)
        return found

    async def _until_none(self, look: Callable[[], Awaitable[list[str]]], why: list[str]) -> None:
        """Look again until there is nothing to see; `why` has what was seen last."""
        pause = 0.02
        while True:
            why[:] = await look()
            if not why:
                return
            await anyio.sleep(pause)
            pause = min(pause * 1.3, 0.25)  # a busy machine is not made busier

    async def _running(self) -> list[str]:
        views = [await self.world.view(name) for name in self.sessions]
        return [
            f"{view.session} is still {view.state}"
            for view in views
            if view.state is not SessionState.ENDED
        ]

    async def _unrest(self) -> list[str]:
        """What is still going on; questions are answered on the way."""
        found: list[str] = []
        for name in self.sessions:
            view = await self.world.view(name)
            for ask in view.asks:
                await self._both(ask)
            if view.run is not None:
                found += await self._busy(name, view)
        return found

    async def _busy(self, name: str, view: SessionView) -> list[str]:
        if view.state is not SessionState.IDLE or view.unsent:
            return [f"{name} is {view.state}, with {len(view.unsent)} prompts to go"]
        events = self._events.setdefault(name, [])
        events += [event for _, event in await self.world.events(name, len(events))]
        records = self.world.records(name)
        life = with_records(lives(events), records)[view.run or ""]
        sent = [line for _, line in life.sent]
        if life.pid is None or read(records, life.pid) != sent:
            return [f"{name}: the CLI has not read all {len(sent)} lines for it"]
        return []
