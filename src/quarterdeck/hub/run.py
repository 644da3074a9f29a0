"""One run of a session: what is decided about a CLI process. No I/O.

Owns the translation between the CLI's lines and our events, in both directions: lines of the CLI
become events, and what people and policy decide becomes lines. Above it `session` journals the
events and moves the lines; below it is `run_state`, which is changed by events only.

A decision here reads the state and records events. `_record` puts each event into the state at once
and keeps it for the journal (`take_recorded`); a line for the CLI is an event too (`Sent`). If they
cannot be journalled, the run is thrown away and folded again from the journal (`restore`).

The module is long because every decision about a run reads and records the same state; the parts
that stand alone (gate, asks, switches, turns, meter) are modules of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Raw, Struct
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict
from quarterdeck.domain.structs import Value
from quarterdeck.hub import holdings
from quarterdeck.hub.api import Deltas
from quarterdeck.hub.deltas import DeltaReader
from quarterdeck.hub.lines import ReadLine, kept, mended, read_line
from quarterdeck.hub.peer_prompts import peer_prompts
from quarterdeck.hub.permissions import open_asks
from quarterdeck.hub.permissions.answers import Reply, reply_to
from quarterdeck.hub.permissions.context import NO_RULING, CallQuestion, Ruling
from quarterdeck.hub.permissions.edits import Edit
from quarterdeck.hub.permissions.gate import as_hook
from quarterdeck.hub.permissions.open_asks import PLAN, AskFactory
from quarterdeck.hub.program_prompts import program_prompts
from quarterdeck.hub.run_state import LineReport, RunState
from quarterdeck.hub.sandbox_hints import hints, refused_host
from quarterdeck.hub.supervision.meter import Meter
from quarterdeck.hub.supervision.watchdog import Watch
from quarterdeck.hub.turns import sent_prompt
from quarterdeck.protocol.commands import Answer
from quarterdeck.protocol.events import (
    AskOpened,
    AskWithdrawn,
    Event,
    LinkFound,
    LinkLost,
    Noted,
    Recalled,
    RunStarted,
    RunStarting,
    SandboxConnection,
    SandboxStarted,
    Sent,
    SpecChanged,
    TurnEnded,
)
from quarterdeck.protocol.holds import Holds
from quarterdeck.protocol.runner_frames import Connection, Recall
from quarterdeck.protocol.sandbox import SandboxReport
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire import codec
from quarterdeck.wire.base import Message
from quarterdeck.wire.commands import (
    Command,
    GetPlan,
    Initialize,
    PlanAnswer,
    decode_or_none,
)
from quarterdeck.wire.control import ControlRequest
from quarterdeck.wire.exchange import Answered, Ending
from quarterdeck.wire.hook_outputs import SyncOutput
from quarterdeck.wire.hooks import HookEvent, HookMatcher
from quarterdeck.wire.messages import Assistant, Result, StreamEvent, User
from quarterdeck.wire.outbound import CheckedBody, Prompt
from quarterdeck.wire.peer import Asked, RequestEnded, Withdrawn
from quarterdeck.wire.peer import Event as PeerEvent
from quarterdeck.wire.requests import CanUseTool, Elicitation, HookCallback
from quarterdeck.wire.states import State
from quarterdeck.wire.system import Init
from quarterdeck.wire.turns import PromptTaken as WireTaken
from quarterdeck.wire.turns import TurnEnded as WireEnded
from quarterdeck.wire.versions import Version, permits

WATCHING_HOOK = "quarterdeck-watch"
WATCHING_SECONDS = 2_000_000.0
"""How long the CLI waits for our verdict on a call: 23 days, near the most that it can count. With
a shorter time, versions up to 2.1.120 would let the call pass when the hub is away."""

PLAN_MS = 3000
"""How long the card of a plan waits for the plan's text."""

_ASKING = (b"can_use_tool", b"hook_callback")
"""What is in every line that raises a question to the rules."""


class LineResult(Value):
    """What a line of the CLI means, besides the events that are recorded."""

    deltas: tuple[Deltas, ...] = ()
    whole: bool = False
    """A message is whole: the deltas before it are superseded."""
    piece: bool = False
    """The line is a piece of a message, and not journalled."""
    endings: tuple[tuple[str, Ending], ...] = ()
    """The requests of ours that have ended."""


_NOTHING = LineResult()


class Run:
    """The protocol's side of one CLI process of a session."""

    def __init__(
        self,
        session: str,
        run: str,
        spec: SessionSpec,
        holds: Holds,
        *,
        state: RunState | None = None,
    ) -> None:
        """`state` is what is known of it already, from a snapshot."""
        self.state = state or RunState(session, run, spec)
        self.state.holds = holds
        self.said = self.state.said
        """The highest number of a line that was taken, pieces of text too."""
        self._ask_factory = AskFactory(session, run)
        self._reader = DeltaReader(session)
        self._recorded: list[Event] = []

    # --- what it is ------------------------------------------------------------------------------

    @property
    def run(self) -> str:
        """Its id."""
        return self.state.run

    @property
    def spec(self) -> SessionSpec:
        """The session's spec."""
        return self.state.spec

    @property
    def idle(self) -> bool:
        """Whether a prompt would begin at once."""
        peer = self.state.peer
        return self.greeted and peer.state is State.READY and not peer.turns.busy

    @property
    def steerable(self) -> bool:
        """Whether a turn is open that a prompt could be sent into."""
        return self.greeted and self.state.peer.turns.busy and not self.link_down

    @property
    def greeted(self) -> bool:
        """Whether `initialize` has been answered."""
        return self.state.peer.initialized

    @property
    def busy(self) -> bool:
        """Whether a turn is open or a question waits."""
        peer = self.state.peer
        return peer.turns.busy or peer.state is State.WAITING

    @property
    def link_down(self) -> bool:
        """Whether its CLI cannot be reached just now."""
        return self.state.peer.state is State.DOWN

    def said_at_root(self, uuid: str) -> bool:
        """Whether its CLI dialled the hub at `/`, and said a message with this uuid."""
        return self.state.at_root and self.state.peer.has_seen(uuid)

    @property
    def version(self) -> Version | None:
        """The CLI's version, once it is known."""
        return self.state.peer.version

    @property
    def meter(self) -> Meter:
        """What the open turn has used."""
        return self.state.meter

    @property
    def watch(self) -> Watch:
        """The signs of life of its CLI."""
        return self.state.watch

    @property
    def stopped_at(self) -> int:
        """When the open turn was interrupted for a budget, in ms; 0: it was not."""
        return self.state.stopped_at

    # --- events ----------------------------------------------------------------------------------

    def restore_event(self, event: Event, at: int) -> None:
        """Take the next event of this run from the journal, with its time."""
        self.state.evolve(event, at)

    def restored(self, holds: Holds) -> None:
        """All events of the journal were taken."""
        self.state.peer.lines_to_send()  # they were sent then
        self.state.holds = holds
        self.said = self.state.said

    def begin(self, starting: RunStarting, at: int) -> None:
        """Its first event has been journalled."""
        self.state.evolve(starting, at)

    def record(self, events: Iterable[Event], at: int) -> None:
        """Take events that others made, at a time in ms."""
        for event in events:
            self._record(event, at)

    def take_recorded(self) -> list[Event]:
        """The events that are to be journalled now. Each is given once."""
        recorded, self._recorded = self._recorded, []
        return recorded

    @property
    def recorded_turns(self) -> list[TurnEnded]:
        """The ends of turns that are to be journalled."""
        return [event for event in self._recorded if isinstance(event, TurnEnded)]

    @property
    def has_recorded(self) -> bool:
        """Whether there are events to be journalled."""
        return bool(self._recorded)

    def _record(self, event: Event, at: int) -> None:
        self._recorded.append(event)
        self.state.evolve(event, at)

    def _record_sent(
        self, line: bytes | None, at: int, by: str = "", message: Message | None = None
    ) -> bool:
        """Have a line sent. False if there is none. `message` is what it says, if it is known."""
        if line is None:
            return False
        event = Sent(run=self.run, number=self.state.sent + 1, line=Raw(line), by=by)
        self._recorded.append(event)
        self.state.evolve(event, at, message)
        return True

    def _record_changes(self, at: int, message: Message | None = None) -> None:
        """Record what has changed about the session as a whole."""
        self.record(self.state.status.changes(self.state.peer, message, at), at)

    # --- lines of the CLI ------------------------------------------------------------------------

    def receive_piece(self, number: int, line: bytes, at: int) -> tuple[Deltas, ...] | None:
        """Take a line that is a piece of text in a turn; None if `receive_line` is to take it.

        Such a line changes nothing but the screen, and there are a hundred for each other one.
        """
        if self.state.dialled or number <= self.said or not self.state.peer.turns.in_turn:
            return None
        if (deltas := self._reader.read_piece(line)) is None:
            return None
        self.said = number
        self.state.watch.lives(at)
        return deltas

    def questions(
        self, number: int, line: bytes, at: int, read: ReadLine | None = None
    ) -> dict[str, CallQuestion]:
        """The questions to the rules that a line raises, by the ids of the CLI's requests.

        `receive_line` wants the rulings on them. It takes the line before any later one.
        """
        if number <= self.said or (read is None and not any(sign in line for sign in _ASKING)):
            return {}
        found: dict[str, CallQuestion] = {}
        for request in self.state.peer.new_requests((read or read_line(line)).message):
            question = self._question(request, at)
            if question is not None:
                found[request.request_id] = question
        return found

    def _question(self, message: ControlRequest, at: int) -> CallQuestion | None:
        gate, switches = self.state.gate, self.state.switches
        match message.request:
            case CanUseTool() as request:
                return gate.ask_question(request, switches.mode_of_call(request.tool_use_id), at)
            case HookCallback(callback_id=callback_id, hook_input=seen) if (
                callback_id == WATCHING_HOOK
            ):
                return gate.hook_question(seen, switches.mode_in_hook(seen), at, self.version)
            case _:
                return None

    def receive_line(
        self,
        number: int,
        line: bytes,
        at: int,
        rulings: Mapping[str, Ruling] | None = None,
        read: ReadLine | None = None,
    ) -> LineResult:
        """Take a line of the CLI, at a time in ms. One that came before is nothing.

        `rulings` are the answers to the line's `questions`; `read` is the line, if it was read.
        """
        if number <= self.said:
            return _NOTHING
        self.said = number
        line, flaw, message = read or read_line(line)
        if isinstance(message, StreamEvent):
            return self._receive_stream(message, at)
        state = self.state
        uuid = getattr(message, "uuid", None)
        if state.dialled and uuid and state.peer.has_seen(uuid):
            return _NOTHING  # 2.1.120 repeats all that it said when it dials again
        said = kept(self.run, number, line, message, flaw)
        self._recorded.append(said)
        report = state.evolve_line(number, message, at)
        if not report.events:
            return _NOTHING
        endings = self._decide_line(report, rulings or {}, at)
        return LineResult(endings=tuple(endings), whole=isinstance(message, Assistant | Result))

    def _receive_stream(self, message: StreamEvent, at: int) -> LineResult:
        """Take a piece of a message. It is not journalled: it changes no state of the peer."""
        peer = self.state.peer
        # 2.1.120 repeats all that it said when it dials again. A hub that was restarted does not
        # know the pieces; but no turn begins with one.
        if self.state.dialled and not (
            peer.turns.busy and (not message.uuid or peer.remember(message.uuid))
        ):
            return _NOTHING
        self.state.watch.receive(message, at)
        self.state.lost_turn.settled()
        self.state.meter.receive(message)
        return LineResult(deltas=self._reader.read(message), piece=True)

    def _decide_line(
        self, report: LineReport, rulings: Mapping[str, Ruling], at: int
    ) -> list[tuple[str, Ending]]:
        """Record what follows from a line."""
        message = report.message
        endings: list[tuple[str, Ending]] = []
        self.record(report.switched, at)
        self._record_peers(message, at)
        if self.state.program:
            known = self.state.turns.uuids
            self.record(program_prompts(self.run, message, known, self.spec.name or ""), at)
        for event in report.events:
            match event:
                case RequestEnded(request_id=request_id, subtype=subtype, ending=ending):
                    endings.append((request_id, ending))
                    self._decide_ending(subtype, ending, at)
                case Asked(request=request):
                    self._decide_request(request, report, rulings, at)
                case _:
                    self._translate(event, report.tool_calls, at)
        if isinstance(message, Init):
            self._decide_place(message, at)
        self.record(report.by_cli, at)
        self.record(report.limits, at)
        # Before the calls of the results are gone from `holds`.
        self.record(list(hints(self.state.sandbox, self.state.holds, message)), at)
        self.record(holdings.changes(self.state.holds, message), at)
        for line in self.state.peer.lines_to_send():
            self._record_sent(line, at)
        self._record_changes(at, message)
        return endings

    def _record_peers(self, message: Message, at: int) -> None:
        """Record a prompt that another session has sent to the CLI."""
        refused = not self.spec.cross_session
        self.record(peer_prompts(self.run, message, self.state.peers, refused=refused), at)

    def _decide_ending(self, subtype: str, ending: Ending, at: int) -> None:
        """A request of ours has ended."""
        if isinstance(ending, Answered):
            changed = holdings.changes_by_answer(self.state.holds, subtype, ending.json)
            self.record(changed, at)
        if subtype == GetPlan().subtype:
            self._open_plans(at, _plan_in(ending), at)

    def _translate(self, event: PeerEvent, tool_calls: int, at: int) -> None:
        match event:
            case Withdrawn(request_id=request_id, reason=reason):
                ask = self.state.asks.ask_of(request_id)
                if ask is not None:
                    self._record(AskWithdrawn(ask=ask, reason=reason), at)
            case WireTaken() | WireEnded():
                problem = self.state.status.problem
                self._record(self.state.turns.translate(event, tool_calls, problem), at)
            case _:
                pass

    def _decide_place(self, init: Init, at: int) -> None:
        """A CLI that the hub did not start reports its directory, for resume and fork."""
        if not self.state.unknown_place or not init.cwd.startswith("/"):
            return
        version = init.claude_code_version or None
        self._record(RunStarted(run=self.run, version=version, directory=init.cwd), at)
        if init.cwd != self.spec.directory:
            spec = replace(self.spec, directory=init.cwd)
            self._record(SpecChanged(spec=spec, by="cli"), at)

    def import_transcript(self, lines: Iterable[bytes], at: int) -> None:
        """Take messages of the CLI's transcript. Those that the hub has received are ignored."""
        for line in lines:
            if mended(line)[1] is not None:
                continue
            match codec.from_cli(line):
                case User(uuid=str(uuid)) | Assistant(uuid=str(uuid)):
                    pass
                case _:
                    continue
            if self.state.peer.has_seen(uuid):
                continue
            recalled = Recalled(run=self.run, uuid=uuid, line=Raw(line))
            self._recorded.append(recalled)
            report = self.state.evolve(recalled, at)
            if report is not None and report.events:
                self._record_peers(report.message, at)
            for event in report.events if report is not None else ():
                if isinstance(event, WireTaken):
                    self._translate(event, 0, at)

    def recall(self, cli_session: str | None) -> Recall:
        """What is to be asked for of its transcript: the messages that were not received.

        They are the last ones: those of a long run that are known are the last ones too.
        """
        heard, complete = self.state.heard, self.state.heard.complete
        return Recall(
            cli_session=cli_session,
            known=heard.remembered,
            prompts=self.state.turns.uuids if complete else self.state.peer.unconfirmed,
            since=() if complete else heard.newest,
        )

    # --- requests of the CLI ---------------------------------------------------------------------

    def _decide_request(
        self, message: ControlRequest, report: LineReport, rulings: Mapping[str, Ruling], at: int
    ) -> None:
        request_id = message.request_id
        ruling = rulings.get(request_id, NO_RULING)
        match message.request:
            case CanUseTool() as request:
                self._decide_ask(message, request, report, ruling, at)
            case HookCallback(callback_id=callback_id) as request if callback_id == WATCHING_HOOK:
                self._decide_hook(request_id, request, report.modes[request_id], ruling, at)
            case Elicitation() as request:
                self._record(
                    self._ask_factory.elicitation(request_id, request, message.request_json), at
                )
            case request:
                error = f"the hub does not do {type(request).__name__}"
                self._record_sent(self.state.peer.refusal_line(request_id, error), at)

    def _decide_ask(
        self,
        message: ControlRequest,
        request: CanUseTool,
        report: LineReport,
        ruling: Ruling,
        at: int,
    ) -> None:
        """The CLI asks about a call."""
        request_id, json = message.request_id, message.request_json
        decision = self.state.gate.decide_ask(request, report.earlier[request_id], ruling, at)
        if decision.body is not None:
            self.record(decision.events, at)
            self._record_sent(self.state.peer.answer_line(request_id, decision.body), at)
            return
        plan = self.state.asks.plan_of(request)
        if request.tool_name == PLAN and not plan and permits(self.version, GetPlan):
            self._record_sent(self.state.peer.request_line(GetPlan())[1], at)
            return
        card = self._ask_factory.tool(request_id, decision.shown(request), plan, json=json)
        self._record(decision.with_policy(card), at)

    def _decide_hook(
        self, request_id: str, request: HookCallback, mode: str, ruling: Ruling, at: int
    ) -> None:
        """The CLI is about to run a tool, or to ask about it: policy speaks first."""
        seen = request.hook_input
        decision = self.state.gate.decide_hook(seen, mode, ruling, self.version)
        if decision.held is not None:
            plan = self.state.asks.plan_of(decision.held)
            card = self._ask_factory.tool(request_id, decision.held, plan)
            self._record(decision.with_policy(card), at)
            return
        self.record(decision.events, at)
        body = decision.body or SyncOutput()
        self._record_sent(self.state.peer.answer_line(request_id, body), at)

    def _open_plans(self, before: int, plan: str | None, at: int) -> None:
        """Open the cards of plans whose text was asked for, before or at a time in ms."""
        for request_id, asked_at, request, json in self.state.without_card():
            if asked_at <= before:
                text = self.state.asks.plan_of(request) or plan
                self._record(self._ask_factory.tool(request_id, request, text, json=json), at)

    # --- time, the link and the end --------------------------------------------------------------

    def tick(self, now: int) -> None:
        """What time brings, in ms: a plan without its text, the end of a limit."""
        self._open_plans(now - PLAN_MS, None, now)
        if self.state.lost_turn.is_over(now):
            text = "the end of the turn was lost while the CLI was away; it is idle now"
            self._record(Noted(level="warning", text=text), now)
            taken = self.state.peer.turns.taken
            self._record(self.state.turns.lost(taken, self.meter.tool_calls), now)
        if self.state.status.limit_is_over(now) or self._recorded:
            self._record_changes(now)

    def started(self, started: RunStarted, at: int, sandbox: SandboxReport | None = None) -> None:
        """Its process runs: greet it, once."""
        self._record(started, at)
        if sandbox is not None:
            self._record(SandboxStarted(run=self.run, state=sandbox.state, paths=sandbox.paths), at)
        if not self.state.greeting:
            watch = HookMatcher(hook_callback_ids=(WATCHING_HOOK,), timeout=WATCHING_SECONDS)
            greeting = Initialize(
                hooks={HookEvent.PRE_TOOL_USE.value: (watch,)},
                skills=self.spec.skills,
                agent_progress_summaries=self.spec.agent_progress_summaries or None,
            )
            self._record_sent(self.state.peer.request_line(greeting)[1], at)

    def connected(self, connection: Connection, at: int) -> None:
        """Its CLI used the network through the proxy. One that came before is nothing."""
        if connection.number > self.said:
            self.said = connection.number
            self._record(
                SandboxConnection(
                    run=self.run,
                    number=connection.number,
                    host=connection.host,
                    port=connection.port,
                    allowed=connection.allowed,
                    count=connection.count,
                ),
                at,
            )
            tools = self.state.holds.tools
            if not connection.allowed and tools:
                self._record(refused_host(tools[-1], connection.host), at)

    def link_lost(self, reason: str, at: int) -> None:
        """The machine cannot be reached."""
        self._record(LinkLost(run=self.run, reason=reason), at)
        self._record_changes(at)

    def link_found(self, at: int, *, journalled_lost: bool) -> None:
        """The machine is there again, and nothing was lost: runs are numbered.

        A hub that has just started may not know that the link was lost (`journalled_lost`).
        """
        if journalled_lost or self.link_down:
            self._record(LinkFound(run=self.run), at)
        self._record_changes(at)

    def link_resumed(self, last: str | None, at: int) -> None:
        """The CLI has dialled again: ask it for what it still wants to know."""
        peer = self.state.peer
        lost = last is not None and not peer.has_seen(last)
        self._record(LinkFound(run=self.run, lost=lost), at)
        for line in peer.lines_to_repeat():
            self._record_sent(line, at)
        self._record_changes(at)

    def ended(self, reason: str, at: int) -> list[tuple[str, Ending]]:
        """The process is gone: so is all that was open. Returns the requests that have ended."""
        self.record(self.state.switches.ended(self.spec), at)
        endings: list[tuple[str, Ending]] = []
        for event in self.state.peer.link_closed(reason):
            match event:
                case RequestEnded(request_id=request_id, ending=ending):
                    endings.append((request_id, ending))
                case Withdrawn():
                    self._translate(event, 0, at)
                case _:
                    pass
        self._record_changes(at)
        return endings

    # --- what we do ------------------------------------------------------------------------------

    def prompt(
        self, prompt: str, content: Raw, at: int, *, again: bool = False, steered: bool = False
    ) -> None:
        """Send a prompt, whose content is that of `content_of`.

        `again`: it was given to an earlier run, which ended before it took it.
        """
        again = again or self.state.peer.has_used(prompt)
        uuid, sent = sent_prompt(self.run, prompt, again=again, steered=steered)
        message = Prompt(message=CheckedBody(content=content), uuid=uuid)
        _, line = self.state.peer.prompt_line(message)
        self._record(sent, at)
        self._record_sent(line, at, message=message)
        self._record_changes(at)

    def request(self, command: Command[object], at: int, by: str = "") -> str:
        """Send a control request on behalf of a person; returns its id."""
        request_id, line = self.state.peer.request_line(command)
        self._record_sent(line, at, by)
        return request_id

    def give_up(self, request_id: str, at: int) -> None:
        """Cancel a request: no caller waits for its answer."""
        self._record_sent(self.state.peer.cancel_line(request_id), at)

    def answer(self, opened: AskOpened, reply: Reply, by: str, answer: Raw, at: int) -> None:
        """Answer a question, at a time in ms. Raises `Conflict` if it is not open any more."""
        body: Struct | Raw = as_hook(reply.body) if self.state.is_held(opened) else reply.body
        line = self.state.peer.answer_line(opened.request_id, body)
        if line is None:
            raise Conflict("not_open", "the question is not open any more")
        self.record(open_asks.answered(opened, reply, by, answer), at)
        self._record_sent(line, at)
        self._record_changes(at)
        self.record(self.state.switches.chosen(reply.body, self.spec, by), at)

    def original(self, opened: AskOpened) -> AskOpened:
        """A card as it was opened, before the journal masked what is in it."""
        return self.state.asks.original(opened)

    def repeat_answer(self, request_id: str | None, at: int) -> None:
        """Send an answer again that the CLI has not reacted to."""
        if request_id is not None:
            self._record_sent(self.state.peer.answered_line(request_id), at)

    def edit_question(self, call: CanUseTool, opened: AskOpened, at: int) -> CallQuestion:
        """The question to the rules about the call that a person wants instead of a card's."""
        from_hook = self.state.is_held(opened)
        mode = self.state.switches.mode
        return self.state.gate.edit_question(call, mode, at, from_hook=from_hook)

    def reply_to(self, opened: AskOpened, answer: Answer, edit: Edit | None = None) -> Reply:
        """What the CLI of this version takes for a person's answer."""
        return reply_to(
            opened,
            answer,
            version=self.version,
            bypass_allowed=self.spec.skip_permissions,
            edit=edit,
        )


def _plan_in(ending: Ending) -> str | None:
    """The text in the answer to `get_plan`, if there is one."""
    if isinstance(ending, Answered) and ending.json is not None:
        answer = decode_or_none(ending.json, PlanAnswer)
        return answer.content if answer is not None else None
    return None
