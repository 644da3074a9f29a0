"""What a session's process does to it: the `RunOwner` side of a session.

Owns how the news of a process become events, and what follows from them: it is greeted, its lines
are taken, its transcript is read for what nobody heard, and with its end all ends that was open.
`session` stands above it, with what people wish; below it is `core`, which journals each thing
before it has an effect outside.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress

from quarterdeck.domain.errors import Conflict, NotFound
from quarterdeck.domain.structs import Value
from quarterdeck.hub.api import Deltas
from quarterdeck.hub.core import SessionCore
from quarterdeck.hub.deltas import merged
from quarterdeck.hub.lines import uuid_of
from quarterdeck.hub.live import Live
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.ports import Machines, RunEnd
from quarterdeck.hub.run import Run
from quarterdeck.hub.supervision.supervisor import Actions, Supervisor
from quarterdeck.hub.waiters import Waiters
from quarterdeck.journal.base import Journal
from quarterdeck.journal.views import SessionView
from quarterdeck.protocol.events import (
    CliSession,
    Event,
    Noted,
    PromptSent,
    Recalled,
    RunEnded,
    RunStarted,
    Said,
)
from quarterdeck.protocol.sessions import Origin
from quarterdeck.wire.exchange import Ending

log = logging.getLogger(__name__)

GREETING_SECONDS = 90.0
"""How long a CLI may take to answer `initialize` before it is ended."""


class _Unheard(Value):
    """A run that has ended, and whose transcript is being read. Its machine keeps the end."""

    run: str
    end: RunEnd


class SessionLife(SessionCore):
    """A session, as its process sees it."""

    def __init__(
        self,
        id_: str,
        journal: Journal,
        machines: Machines,
        live: Live,
        view: SessionView | None = None,
        supervisor: Supervisor | None = None,
        policies: Policies | None = None,
    ) -> None:
        super().__init__(id_, journal, machines, live, view, supervisor, policies)
        self._waiters = Waiters()
        self._greet_by: float | None = None
        self._unheard: _Unheard | None = None

    async def tick(self) -> None:
        """What time brings: each second, or so."""
        async with self._in_order():
            run, port = self._run, self._port
            if not self.known:
                return
            freed = self._supervisor.freed(self.view, run)
            await self._apply(freed)
            if run is None or port is None:
                if self._supervisor.restart_due(self.view):
                    with suppress(Conflict):  # not now; the clock ticks on
                        await self._start(Origin(cli_session=self.view.cli_session))
                return
            run.tick(self._supervisor.now)
            if run.has_recorded:
                await self._append()
                await self._send_next()
            await self._apply(self._supervisor.heard(self.view, run, again=True))
            await self._apply(self._supervisor.ticked(self.view, run))
            if freed:
                await self._send_next()
            if run.greeted or self._greet_by is None or time.monotonic() < self._greet_by:
                return
            # One that does not answer this will not answer anything else.
            self._greet_by = None
            text = f"the CLI has not answered within {GREETING_SECONDS:g} s, and is ended"
            await self._append([Noted(level="error", text=text)])
            port.stop(force=True)

    async def run_started(
        self, run: str, pid: int | None, version: str | None, directory: str | None
    ) -> None:
        """It runs: greet it. Told again after each reconnect, which is nothing new."""
        async with self._in_order():
            if self._run is None or self._run.run != run:
                return
            if not self._run.greeted:
                self._greet_by = time.monotonic() + GREETING_SECONDS
            now = self._supervisor.now
            if self.view.link_lost is not None:
                # Whoever was there before was not it, or not for long.
                self._run.link_found(now, told_lost=True)
            if pid is None or self.view.pid != pid:
                started = RunStarted(run=run, pid=pid, version=version, directory=directory)
                self._run.started(started, now)
            await self._append()

    async def run_said(self, run: str, first: int, lines: list[bytes]) -> None:
        """It said something: journal it with all that it means, and only then acknowledge it."""
        async with self._in_order():
            mine = self._run
            if mine is None or mine.run != run:
                return
            deltas: list[Deltas] = []
            endings: list[tuple[str, Ending]] = []
            now = self._supervisor.now
            for number, line in enumerate(lines, first):
                if (pieces := mine.receive_piece(number, line, now)) is not None:
                    deltas += pieces
                    continue
                rulings = {
                    request: await self._rule(question, mine.spec)
                    for request, question in mine.questions(number, line, now).items()
                }
                result = mine.receive_line(number, line, now, rulings)
                if result.whole:
                    deltas.clear()
                    self._live.superseded(self.id)
                deltas += result.deltas
                endings += result.endings
            ended = mine.recorded_turns
            await self._append()
            for delta in merged(deltas):
                self._live.add(delta)
            if self._port is not None:
                self._port.have(mine.said)
            self._waiters.settle(endings)
            await self._apply(self._supervisor.turned(self.view, mine, ended))
            await self._apply(self._supervisor.heard(self.view, mine))
            await self._send_next()

    async def _apply(self, orders: Actions) -> None:
        """Do what the supervisor wants done: journal it first."""
        if orders.events or (self._run is not None and self._run.has_recorded):
            await self._append(orders.events)
        if self._port is not None and (orders.end or orders.kill):
            self._port.stop(force=orders.kill)

    # --- its end -------------------------------------------------------------------------------

    async def run_ended(self, run: str, ending: RunEnd) -> None:
        """It is gone: what was open is withdrawn, and the session waits to be resumed.

        Where it may have said what nobody heard, its transcript is read first. Until that is
        journalled its machine keeps the end, and tells it again to whoever asks.
        """
        async with self._in_order():
            if self._run is None or self._run.run != run:
                return
            if ending.unheard and self._port is not None:
                known, prompts = await self._heard(run)
                if known or prompts:
                    self._unheard = _Unheard(run=run, end=ending)
                    self._port.recall(self.view.cli_session, known, prompts)
                    return
            await self._end(self._run, ending)

    async def run_recalled(
        self, run: str, cli_session: str | None, lines: list[bytes], *, last: bool
    ) -> None:
        """Its transcript has been read, so far: what is news is journalled, and then its end."""
        async with self._in_order():
            mine, unheard = self._run, self._unheard
            if mine is None or mine.run != run or unheard is None or unheard.run != run:
                return
            mine.import_transcript(lines, self._supervisor.now)
            events: list[Event] = []
            if cli_session is not None and self.view.cli_session is None:
                events.append(CliSession(cli_session=cli_session))
            await self._append(events)
            if last:
                await self._end(mine, unheard.end)

    async def _heard(self, run: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The uuids of the messages that the journal has of a run, and of prompts given to it."""
        known: dict[str, None] = {}
        prompts: dict[str, None] = {}
        for _, event in await self._events_after(self.view.run_began - 1):
            match event:
                case Said(run=of, line=line) if of == run and (uuid := uuid_of(line)):
                    known[uuid] = None
                case Recalled(run=of, uuid=uuid) if of == run:
                    known[uuid] = None
                case PromptSent(run=of, prompt=prompt, uuid=given) if of == run:
                    prompts[given or prompt] = None
                case _:
                    pass
        return tuple(known), tuple(prompts)

    async def _end(self, run: Run, ending: RunEnd) -> None:
        now = self._supervisor.now
        endings = run.ended(ending.reason, now)
        ended = RunEnded(
            run=run.run,
            reason=ending.reason,
            clean=ending.clean,
            exit_code=ending.exit_code,
            signal=ending.signal,
            stderr=ending.stderr,
            fault=ending.fault,
        )
        run.record(self._supervisor.ended(self.view, run, ended), now)
        events = run.take_recorded()
        port, afresh = self._port, self.view.afresh
        self._run = self._unheard = None
        try:
            if afresh:
                # In one breath: a hub that is killed here has ended the one and begun the other.
                await self._start(Origin(), *events, ended)
            else:
                await self._append([*events, ended])
                self._port = self._run_held = None
        except NotFound as error:  # its machine is not there; that is journalled
            log.warning("session %s does not begin afresh: %s", self.id, error)
        except Conflict as error:
            text = f"the new conversation does not begin yet: {error}"
            await self._append([*events, ended, Noted(level="warning", text=text)])
            self._port = self._run_held = None
        self._live.superseded(self.id)
        if port is not None:
            if ending.number is not None:
                port.have(ending.number)
            port.forget()
        self._waiters.settle(endings)
        if after := self._supervisor.after_end(self.view):
            await self._append(after)

    # --- its link ------------------------------------------------------------------------------

    def said_at_root(self, run: str, uuid: str) -> bool:
        """Whether the CLI of this run dialled the hub at `/`, and said this message."""
        mine = self._run
        return mine is not None and mine.run == run and mine.said_at_root(uuid)

    async def run_lost(self, run: str, reason: str) -> None:
        """Its machine cannot be reached."""
        async with self._in_order():
            if self._run is not None and self._run.run == run:
                self._run.link_lost(reason, self._supervisor.now)
                await self._append()

    async def run_found(self, run: str) -> None:
        """Its machine is there again. To a hub that has just started, that is nothing new."""
        async with self._in_order():
            if self._run is not None and self._run.run == run:
                told_lost = self.view.link_lost is not None
                self._run.link_found(self._supervisor.now, told_lost=told_lost)
                await self._append()
                await self._send_next()

    async def run_resumed(self, run: str, last: str | None) -> None:
        """It dialled again, and something may be lost."""
        async with self._in_order():
            if self._run is not None and self._run.run == run:
                self._run.link_resumed(last, self._supervisor.now)
                await self._append()
                await self._send_next()
