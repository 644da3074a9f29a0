"""What a session's process does to it: the `RunOwner` of a session.

Owns how the news of a process become inputs of the session's machine. Each is taken under the
session's lock, and journalled before it has an effect (`shell`). Lines come in batches: each line
is decided with its own facts, and a batch is journalled in one append.
"""

from __future__ import annotations

import logging
import time

from msgspec import Raw

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, Forbidden, LaunchError, NotFound, UsageError
from quarterdeck.hub.decisions import inputs as on
from quarterdeck.hub.decisions.lines import LineResult, questions
from quarterdeck.hub.lines import read_line
from quarterdeck.hub.ports import RunEnd
from quarterdeck.hub.run import Run
from quarterdeck.hub.session import Session
from quarterdeck.hub.session_requests import check_answerer, submit
from quarterdeck.hub.shell import GREETING_SECONDS, carry_out, commit, decide, handle, record
from quarterdeck.protocol.commands import AnswerAsk, RawAnswer
from quarterdeck.protocol.events import TurnEnded
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.runner_frames import Connection, ProgramAct
from quarterdeck.protocol.sandbox import SandboxReport
from quarterdeck.protocol.views import Deltas, merge_deltas
from quarterdeck.runtime.off_loop import LARGE, large_turn, off_loop
from quarterdeck.wire.exchange import Ending
from quarterdeck.wire.messages import StreamEvent

log = logging.getLogger(__name__)


class ProcessEvents:
    """The owner of a run: takes what its process does, for one session. It has no state."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def tick(self) -> None:
        """Handle timeouts: called about once a second."""
        session = self.session
        async with session.in_order():
            ran = session.run is not None
            await carry_out(session, on.Tick())
            run = session.run
            if run is None or session.port is None or not ran:
                return
            if session.gap.is_unanswered(run.run):
                await self._ask_for_gap(run)
            if run.idle:
                await session.store_snapshot()
            if session.greet_by is not None and time.monotonic() >= session.greet_by:
                session.greet_by = None
                late = on.NotGreeted(run=run.run, seconds=GREETING_SECONDS)
                await carry_out(session, late)

    async def run_started(
        self,
        run: str,
        pid: int | None,
        version: str | None,
        directory: str | None,
        sandbox: SandboxReport | None = None,
    ) -> None:
        """Its process runs. Reported again after each reconnect."""
        started = on.Started(
            run=run, pid=pid, version=version, directory=directory, sandbox=sandbox
        )
        await handle(self.session, started)

    async def run_connected(self, run: str, connection: Connection) -> None:
        """Its CLI used the network: journalled like a line, and only then acknowledged."""
        await self._handle_numbered(on.Connected(run=run, connection=connection), connection.number)

    async def run_acted(self, run: str, act: ProgramAct, by: str) -> None:
        """Its program has done something to it: journalled like a line, then acknowledged."""
        await self._handle_numbered(on.Acted(run=run, act=act, by=by), act.number)

    async def _handle_numbered(self, input_: on.Connected | on.Acted, number: int) -> None:
        session = self.session
        async with session.in_order():
            mine = session.run
            if mine is None or mine.run != input_.run:
                return
            mine.said = max(mine.said, number)
            await carry_out(session, input_)

    # --- its lines -----------------------------------------------------------------------------

    async def run_said(self, run: str, first: int, lines: list[bytes]) -> None:
        """Its CLI wrote lines: journal them with their meaning, and only then acknowledge them."""
        session = self.session
        async with session.in_order():
            mine = session.run
            if mine is None or mine.run != run:
                return
            deltas: list[Deltas] = []
            endings: list[tuple[str, Ending]] = []
            turns: list[TurnEnded] = []
            now = session.supervisor.now
            for number, line in enumerate(lines, first):
                if (pieces := mine.receive_piece(number, line, now)) is not None:
                    deltas += pieces
                    self._pass_piece(mine, number, line)
                    continue
                if number <= mine.said:
                    continue
                result = await self._take_line(mine, number, line, now, deltas)
                if result is not None:
                    endings += result.endings
                    turns += result.turns
            await commit(session)
            for delta in merge_deltas(deltas):
                session.live.add(delta)
            if session.port is not None:
                session.port.acknowledge(mine.said)
            session.waiters.settle(endings)
            if turns:
                await carry_out(session, on.CheckTurns(ended=tuple(turns)))
            if mine.state.meter.version != mine.state.meter.checked or session.view.account.alarms:
                await carry_out(session, on.CheckSpending())
            if mine.idle and session.view.unsent:
                await carry_out(session, on.SendNext())
            if turns:
                await self._ask_for_gap(mine)

    async def _take_line(
        self, run: Run, number: int, line: bytes, now: int, deltas: list[Deltas]
    ) -> LineResult | None:
        """Decide about a line, with the facts that it needs. Adds its text to the deltas."""
        session = self.session
        large = len(line) >= LARGE
        read = await off_loop(len(line), read_line, line) if large else read_line(line)
        if isinstance(read.message, StreamEvent):
            run.said = number
            if (pieces := run.receive_stream(read.message, now)) is not None:
                deltas += pieces
                self._pass_piece(run, number, line)
            return None
        rulings = {
            request: await session.rule(question, run.spec)
            for request, question in questions(run.state, read, now).items()
        }
        if large:
            await large_turn(len(line))
        run.said = number
        said = on.Line(run=run.run, number=number, read=read)
        facts = on.LineFacts(now=now, rulings=rulings)
        result: LineResult = decide(session, said, facts)
        if result.whole:
            deltas.clear()
            session.live.supersede(session.id)
        return result

    def _pass_piece(self, run: Run, number: int, line: bytes) -> None:
        """Give a line that is not journalled to those who want to have all lines.

        Before the journalled ones of its batch: who reads those then has the pieces between them.
        """
        live = self.session.live
        if live.pieces_wanted:
            live.add_piece(self.session.id, run.run, number, run.state.said, line)

    # --- its end -------------------------------------------------------------------------------

    async def run_ended(self, run: str, ending: RunEnd) -> None:
        """Its process is gone: open questions are withdrawn, and the session can be resumed."""
        async with self.session.in_order():
            await self._end(on.Ended(run=run, end=ending))

    async def run_transcript(
        self, run: str, cli_session: str | None, lines: list[bytes], *, last: bool
    ) -> None:
        """Messages of its transcript: journal the unknown ones, and after the last its end."""
        session = self.session
        async with session.in_order():
            unheard = session.unheard
            if session.run is None or unheard is None or unheard.run != run:
                return
            read = on.TranscriptRead(run=run, cli_session=cli_session, lines=tuple(lines))
            await carry_out(session, read)
            if last:
                await self._end(on.Ended(run=run, end=unheard.end, transcript_read=True))

    async def _end(self, ended: on.Ended) -> None:
        try:
            await carry_out(self.session, ended)
        except (NotFound, LaunchError) as error:  # its machine cannot; that is journalled
            log.warning("session %s does not begin afresh: %s", self.session.id, error)

    async def _ask_for_gap(self, run: Run) -> None:
        """After a turn: ask for what its CLI wrote about a turn that was cut off before it."""
        session, view = self.session, self.session.view
        if session.port is not None and session.run is run:
            wanted = await session.gap.next_query(
                session.journal, session.id, run.run, view.run_began, view.cli_session
            )
            if wanted is not None:
                session.port.read_transcript(wanted)

    async def run_earlier(self, run: str, lines: list[bytes]) -> None:
        """Messages that its transcript has between the run before and its first prompt."""
        session = self.session
        async with session.in_order():
            await carry_out(session, on.EarlierRead(run=run, lines=tuple(lines)))

    # --- its link ------------------------------------------------------------------------------

    def said_at_root(self, run: str, uuid: str) -> bool:
        """Whether the CLI of this run connected to the hub at `/`, and said this message."""
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
            await check_answerer(session, answer)
            await submit(session, answer)
        except (Conflict, NotFound) as error:
            log.debug("session %s: another answer came first: %s", session.id, error)
        except (Forbidden, UsageError) as error:
            coded = CodedText(code=TextCode.ANSWER_IGNORED, name=by, detail=str(error))
            await record(session, on.Note(level="warning", coded=coded))
        return True

    async def run_lost(self, run: str, why: CodedText) -> None:
        """Its machine cannot be reached."""
        await handle(self.session, on.LinkBroken(run=run, why=why))

    async def run_found(self, run: str) -> None:
        """Its machine is connected again."""
        await handle(self.session, on.LinkBack(run=run))

    async def run_resumed(self, run: str, last: str | None) -> None:
        """Its CLI connected again, and messages may be lost."""
        await handle(self.session, on.InboundReconnected(run=run, last=last))
