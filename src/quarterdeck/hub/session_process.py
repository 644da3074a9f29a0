"""What a session's process does to it: the `RunOwner` of a session.

Owns how the news of a process become events, and what follows from them: it is greeted, its lines
are taken, its transcript is read for messages that the hub did not receive, and with its end
everything ends that was open. Each method takes the session's lock. The session journals each
thing before it has an effect.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress

from msgspec import Raw

from quarterdeck.domain.errors import Conflict, Forbidden, LaunchError, NotFound, UsageError
from quarterdeck.hub import session_answers
from quarterdeck.hub.api import Deltas
from quarterdeck.hub.deltas import merged
from quarterdeck.hub.lines import read_line
from quarterdeck.hub.ports import RunEnd
from quarterdeck.hub.run import Run
from quarterdeck.hub.session import Session, UnheardEnd
from quarterdeck.hub.supervision.crashes import nothing_to_resume, restart_note
from quarterdeck.protocol.commands import AnswerAsk, RawAnswer
from quarterdeck.protocol.events import (
    CliSession,
    Event,
    Noted,
    RunEnded,
    RunStarted,
)
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.runner_frames import Connection
from quarterdeck.protocol.sandbox import SandboxReport
from quarterdeck.protocol.sessions import Origin
from quarterdeck.runtime.off_loop import large_turn, off_loop
from quarterdeck.wire.exchange import Ending

log = logging.getLogger(__name__)

GREETING_SECONDS = 90.0
"""How long a CLI may take to answer `initialize` before it is ended."""


class ProcessEvents:
    """The owner of a run: takes what its process does, for one session. It has no state."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def tick(self) -> None:
        """Handle timeouts: called about once a second."""
        session = self.session
        async with session.in_order():
            run, port = session.run, session.port
            if not session.known:
                return
            freed = session.supervisor.freed(session.view, run)
            await session.apply(freed)
            if run is None or port is None:
                if session.supervisor.restart_due(session.view):
                    with suppress(Conflict):  # not now; the clock ticks on
                        origin = Origin(cli_session=session.view.cli_session)
                        await session.start(origin, restart_note(session.view))
                return
            run.tick(session.supervisor.now)
            if run.has_recorded:
                await session.append()
                await session.send_next()
            await session.apply(session.supervisor.check_spending(session.view, run, again=True))
            await session.apply(session.supervisor.ticked(session.view, run))
            if session.gap.unanswered(run.run):
                await self._ask_for_gap(run)
            if freed:
                await session.send_next()
            if run.idle:
                await session.store_snapshot()
            if run.greeted or session.greet_by is None or time.monotonic() < session.greet_by:
                return
            # One that does not answer this will not answer anything else.
            session.greet_by = None
            text = f"the CLI has not answered within {GREETING_SECONDS:g} s, and is ended"
            await session.append([Noted(level="error", text=text)])
            port.stop(force=True)

    async def run_started(
        self,
        run: str,
        pid: int | None,
        version: str | None,
        directory: str | None,
        sandbox: SandboxReport | None = None,
    ) -> None:
        """Its process runs: send `initialize`. Reported again after each reconnect."""
        session = self.session
        async with session.in_order():
            if session.run is None or session.run.run != run:
                return
            if not session.run.greeted:
                session.greet_by = time.monotonic() + GREETING_SECONDS
            now = session.supervisor.now
            if session.view.link_lost is not None:
                # The link was lost before the start was reported.
                session.run.link_found(now, journalled_lost=True)
            if pid is None or session.view.pid != pid:
                started = RunStarted(run=run, pid=pid, version=version, directory=directory)
                session.run.started(started, now, sandbox)
            await session.append()

    async def run_connected(self, run: str, connection: Connection) -> None:
        """Its CLI used the network: journal that like a line, and only then acknowledge it."""
        session = self.session
        async with session.in_order():
            mine = session.run
            if mine is None or mine.run != run:
                return
            mine.connected(connection, session.supervisor.now)
            await session.append()
            if session.port is not None:
                session.port.acknowledge(mine.said)

    async def run_said(self, run: str, first: int, lines: list[bytes]) -> None:
        """Its CLI wrote lines: journal them with their meaning, and only then acknowledge them."""
        session = self.session
        async with session.in_order():
            mine = session.run
            if mine is None or mine.run != run:
                return
            deltas: list[Deltas] = []
            endings: list[tuple[str, Ending]] = []
            now = session.supervisor.now
            for number, line in enumerate(lines, first):
                if (pieces := mine.receive_piece(number, line, now)) is not None:
                    deltas += pieces
                    self._pass_piece(mine, number, line)
                    continue
                read = await off_loop(len(line), read_line, line)
                rulings = {
                    request: await session.rule(question, mine.spec)
                    for request, question in mine.questions(number, line, now, read).items()
                }
                await large_turn(len(line))
                result = mine.receive_line(number, line, now, rulings, read)
                if result.whole:
                    deltas.clear()
                    session.live.superseded(session.id)
                if result.piece:
                    self._pass_piece(mine, number, line)
                deltas += result.deltas
                endings += result.endings
            ended = mine.recorded_turns
            await session.append()
            for delta in merged(deltas):
                session.live.add(delta)
            if session.port is not None:
                session.port.acknowledge(mine.said)
            session.waiters.settle(endings)
            await session.apply(session.supervisor.check_turns(session.view, mine, ended))
            await session.apply(session.supervisor.check_spending(session.view, mine))
            await session.send_next()
            if ended:
                await self._ask_for_gap(mine)

    def _pass_piece(self, run: Run, number: int, line: bytes) -> None:
        """Give a line that is not journalled to those who want to have all lines.

        Before the journalled ones of its batch: who reads those then has the pieces between them.
        """
        live = self.session.live
        if live.pieces_wanted:
            live.add_piece(self.session.id, run.run, number, run.state.said, line)

    # --- its end -------------------------------------------------------------------------------

    async def run_ended(self, run: str, ending: RunEnd) -> None:
        """Its process is gone: open questions are withdrawn, and the session can be resumed.

        If it may have written messages that the hub did not receive, its transcript is read first.
        Until these are journalled its machine keeps the end, and reports it again on reconnect.
        """
        session = self.session
        async with session.in_order():
            if session.run is None or session.run.run != run:
                return
            if ending.unheard and session.port is not None:
                wanted = session.run.recall(session.view.cli_session)
                if wanted.known or wanted.prompts:
                    session.unheard = UnheardEnd(run=run, end=ending)
                    session.port.read_transcript(wanted)
                    return
            await self._end(session.run, ending)

    async def run_transcript(
        self, run: str, cli_session: str | None, lines: list[bytes], *, last: bool
    ) -> None:
        """Messages of its transcript: journal the unknown ones, and after the last its end."""
        session = self.session
        async with session.in_order():
            mine, unheard = session.run, session.unheard
            if mine is None or mine.run != run or unheard is None or unheard.run != run:
                return
            mine.import_transcript(lines, session.supervisor.now)
            events: list[Event] = []
            if cli_session is not None and session.view.cli_session is None:
                events.append(CliSession(cli_session=cli_session))
            await session.append(events)
            if last:
                await self._end(mine, unheard.end)

    async def _ask_for_gap(self, run: Run) -> None:
        """After a turn: ask for what its CLI wrote about a turn that was cut off before it."""
        session, view = self.session, self.session.view
        if session.port is not None and session.run is run:
            wanted = await session.gap.wanted(
                session.journal, session.id, run.run, view.run_began, view.cli_session
            )
            if wanted is not None:
                session.port.read_transcript(wanted)

    async def run_earlier(self, run: str, lines: list[bytes]) -> None:
        """Messages that its transcript has between the run before and its first prompt."""
        session = self.session
        async with session.in_order():
            mine = session.run
            if mine is not None and mine.run == run:
                await session.append(session.gap.events(run, lines, mine.state.peer.has_seen))

    async def _end(self, run: Run, ending: RunEnd) -> None:
        session = self.session
        now = session.supervisor.now
        cut_off = run.busy
        endings = run.ended(ending.reason, now)
        ended = RunEnded(
            run=run.run,
            reason=ending.reason,
            clean=ending.clean,
            exit_code=ending.exit_code,
            signal=ending.signal,
            stderr=ending.stderr,
            fault=ending.fault,
            cut_off=cut_off,
            written=run.state.gate.written,
        )
        empty = nothing_to_resume(session.view, ended, run.watch)
        if not empty:
            run.record(session.supervisor.ended(session.view, run, ended), now)
        events = run.take_recorded()
        port, afresh = session.port, session.view.afresh or empty
        session.run = session.unheard = None
        try:
            if afresh:
                # In one append: a hub that is killed here has ended the one and begun the other.
                await session.start(Origin(), *events, ended)
            else:
                await session.append([*events, ended])
                session.port = session.run_held = None
        except (NotFound, LaunchError) as error:  # its machine cannot; that is journalled
            log.warning("session %s does not begin afresh: %s", session.id, error)
        except Conflict as error:
            text = f"the new conversation does not begin yet: {error}"
            await session.append([*events, ended, Noted(level="warning", text=text)])
            session.port = session.run_held = None
        session.live.superseded(session.id)
        if port is not None:
            if ending.number is not None:
                port.acknowledge(ending.number)
            port.forget()
        session.waiters.settle(endings)
        if after := session.supervisor.after_end(session.view):
            await session.append(after)

    # --- its link ------------------------------------------------------------------------------

    def said_at_root(self, run: str, uuid: str) -> bool:
        """Whether the CLI of this run dialled the hub at `/`, and said this message."""
        mine = self.session.run
        return mine is not None and mine.run == run and mine.said_at_root(uuid)

    async def run_answered(self, run: str, request_id: str, response: Raw, by: str) -> bool:
        """Its program has answered a permission request. False: nobody is asked yet.

        It is an answer as that of a person: the first one wins, and rules say whose count.
        """
        session = self.session
        async with session.in_order():
            mine = session.run
            if mine is None or mine.run != run:
                return True
            ask = mine.state.asks.ask_of(request_id)
            waits = any(each.request_id == request_id for each in mine.state.peer.asks)
        if ask is None:
            return not waits
        answer = AnswerAsk(ask=ask, answer=RawAnswer(body=response), by=by, role=Role.PROGRAM)
        try:
            await session_answers.check_answerer(session, answer)
            await session_answers.answer(session, answer)
        except (Conflict, NotFound) as error:
            log.debug("session %s: somebody else has answered: %s", session.id, error)
        except (Forbidden, UsageError) as error:
            text = f"{by} has answered, and that does not count: {error}"
            await session.record(Noted(level="warning", text=text))
        return True

    async def run_lost(self, run: str, reason: str) -> None:
        """Its machine cannot be reached."""
        session = self.session
        async with session.in_order():
            if session.run is not None and session.run.run == run:
                session.run.link_lost(reason, session.supervisor.now)
                await session.append()

    async def run_found(self, run: str) -> None:
        """Its machine is connected again."""
        session = self.session
        async with session.in_order():
            if session.run is not None and session.run.run == run:
                journalled_lost = session.view.link_lost is not None
                session.run.link_found(session.supervisor.now, journalled_lost=journalled_lost)
                await session.append()
                await session.send_next()

    async def run_resumed(self, run: str, last: str | None) -> None:
        """Its CLI dialled again, and messages may be lost."""
        session = self.session
        async with session.in_order():
            if session.run is not None and session.run.run == run:
                session.run.link_resumed(last, session.supervisor.now)
                await session.append()
                await session.send_next()
