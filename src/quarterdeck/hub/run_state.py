"""What is known of one run: a fold of the journal's events, and of nothing else. No I/O.

Owns the state of a run: the protocol's peer, the open questions, modes, turns, status, meter, watch
and the memory of the permission gate. `evolve` is the only way in. The live run calls it with each
event as it is made, and a hub that was restarted calls it with the same events from the journal: so
both have the same state. It decides nothing: `decisions` does, from this state.

A piece of text (a stream event) is no event of the journal, and not part of this state, with two
exceptions that are lower bounds after a restart: the numbers of the meter, and the time of the last
sign of life.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.hub.lines import is_greeting
from quarterdeck.hub.peer_prompts import REMEMBERED
from quarterdeck.hub.permissions.answers import reply_to
from quarterdeck.hub.permissions.edits import Edit, edited_call
from quarterdeck.hub.permissions.gate import Earlier, PermissionGate
from quarterdeck.hub.permissions.open_asks import OpenAsks
from quarterdeck.hub.status import StatusTracker
from quarterdeck.hub.supervision.meter import Meter
from quarterdeck.hub.supervision.watchdog import UNSTOPPABLE, Watch
from quarterdeck.hub.switches import Switches
from quarterdeck.hub.turns import NO_RESULT, LostTurn, Turns
from quarterdeck.journal.holds import evolve_holds
from quarterdeck.policy.decide import Behavior, Verdict
from quarterdeck.protocol.commands import Answer
from quarterdeck.protocol.events import (
    Alarmed,
    AskAnswered,
    AskOpened,
    AskWithdrawn,
    CliSession,
    Decided,
    Event,
    LeftToCli,
    LinkFound,
    LinkLost,
    Metered,
    PeerPrompted,
    ProgramActed,
    PromptSent,
    RateLimited,
    Recalled,
    RunStarted,
    RunStarting,
    Said,
    SaidBroken,
    SandboxConnection,
    SandboxStarted,
    Sent,
    SpecChanged,
    StateChanged,
    Switched,
    TurnEnded,
)
from quarterdeck.protocol.holds import Holds
from quarterdeck.protocol.sessions import INBOUND, PROGRAM, SessionSpec
from quarterdeck.wire import codec
from quarterdeck.wire.answers import AllowResult
from quarterdeck.wire.base import Message
from quarterdeck.wire.commands import Initialize, Interrupt
from quarterdeck.wire.control import ControlCancel, ControlRequest, ControlResponse
from quarterdeck.wire.exchange import Answered, RecentIds
from quarterdeck.wire.messages import (
    Assistant,
    RateLimitEvent,
    Result,
    StreamEvent,
    User,
)
from quarterdeck.wire.outbound import Answer as WireAnswer
from quarterdeck.wire.outbound import KeepAlive, Prompt, Request
from quarterdeck.wire.peer import Asked, Peer, RequestEnded, Withdrawn
from quarterdeck.wire.peer import Event as PeerEvent
from quarterdeck.wire.requests import CanUseTool, HookCallback
from quarterdeck.wire.states import State
from quarterdeck.wire.system import Init, Status
from quarterdeck.wire.versions import Version

BUDGET = "budget"
"""Who interrupts a turn for a budget."""
REMEMBERED_MESSAGES = 1024
"""Messages that are known when a transcript is read for those that were not received: these are at
its end."""
READ_BY_PARTS = frozenset(
    {
        Assistant,
        User,
        Result,
        Init,
        Status,
        StreamEvent,
        RateLimitEvent,
        KeepAlive,
        ControlRequest,
        ControlResponse,
        ControlCancel,
    }
)
"""The messages that some part of the state reads, besides the peer and the watch. The many others
take the short way through `_line`."""
DECIDED_BEFORE = Verdict(behavior=Behavior.ALLOW)


class LineReport(msgspec.Struct, kw_only=True, gc=False):
    """What a line has changed, for the decision that follows. A restart does not read it."""

    message: Message
    events: list[PeerEvent]
    switched: list[Event] = msgspec.field(default_factory=list)
    """The switches that the line tells."""
    by_cli: list[Event] = msgspec.field(default_factory=list)
    """The audit entries of calls that the CLI decided in the turn that ends."""
    limits: list[Event] = msgspec.field(default_factory=list)
    earlier: dict[str, Earlier] = msgspec.field(default_factory=dict)
    """What was known of the calls that the CLI asks about, by request."""
    modes: dict[str, str] = msgspec.field(default_factory=dict)
    """The modes of the calls that hooks show, by request."""
    answers: list[bytes] = msgspec.field(default_factory=list)
    """The lines with which the protocol itself answers."""
    tool_calls: int = 0
    """The tool calls of the turn before the line, if the line has events besides itself."""
    plain: bool = False
    """Whether nothing follows from the line but what `holdings` and the status tell."""


class RunState:
    """The state of one run."""

    def __init__(self, session: str, run: str, spec: SessionSpec) -> None:
        self.session = session
        self.run = run
        self.spec = spec
        self.said = 0
        """The highest number of a journalled line of the CLI."""
        self.sent = 0
        """The highest number of a line for the CLI."""
        self.greeting = False
        """Whether `initialize` has been sent. It need not be the first line: people are fast."""
        self.peer = self.new_peer(bypass_allowed=spec.skip_permissions)
        self.asks = OpenAsks()
        self.asked_at: dict[str, int] = {}
        """When the CLI asked about each call that it waits for, in ms, by request."""
        self.status = StatusTracker()
        self.switches = Switches.of(spec)
        self.turns = Turns()
        self.gate = PermissionGate.of(spec)
        self.lost_turn = LostTurn()
        self.meter = Meter()
        self.watch = Watch()
        self.received = RecentIds(REMEMBERED_MESSAGES)
        """The last messages of the conversation that the CLI said, or that were recalled."""
        self.peers = RecentIds(REMEMBERED)
        """The prompts of other sessions that are recorded."""
        self.holds = Holds()
        """What the session's view says that holds; set from there on a restart."""
        self.inbound = False
        """Whether its CLI connected to the hub: it repeats what it said when it dials again."""
        self.program = False
        """Whether a program has started its CLI, and prompts it without the hub."""
        self.unknown_place = False
        """Whether the directory of its CLI is still unknown."""
        self.at_root = False
        """Whether its CLI connected to the hub at `/`."""
        self.stopped_at = 0
        """When the open turn was interrupted for a budget, in ms; 0: it was not."""
        self.sandbox: SandboxStarted | None = None
        """Its sandbox, if that is known."""

    def new_peer(self, *, bypass_allowed: bool) -> Peer:
        """A peer of its CLI. The id of a request follows from the number of its line."""
        return Peer(
            bypass_allowed=bypass_allowed,
            resumable=True,
            new_id=lambda: f"qd-{self.run}-{self.sent + 1}",
        )

    # --- what it is ------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether a prompt would begin at once."""
        return self.greeted and self.peer.state is State.READY and not self.peer.turns.busy

    @property
    def steerable(self) -> bool:
        """Whether a turn is open that a prompt could be sent into."""
        return self.greeted and self.peer.turns.busy and not self.link_down

    @property
    def greeted(self) -> bool:
        """Whether `initialize` has been answered."""
        return self.peer.initialized

    @property
    def busy(self) -> bool:
        """Whether a turn is open or a question waits."""
        return self.peer.turns.busy or self.peer.state is State.WAITING

    @property
    def link_down(self) -> bool:
        """Whether its CLI cannot be reached just now."""
        return self.peer.state is State.DOWN

    @property
    def version(self) -> Version | None:
        """The CLI's version, once it is known."""
        return self.peer.version

    # --- the fold --------------------------------------------------------------------------------

    def evolve(self, event: Event, at: int, known: Message | None = None) -> LineReport | None:
        """Take an event, at a time in ms. For a line of the CLI: a report of what it changed.

        `known` is what the line of the event says, where that is known without decoding it.
        """
        match event:
            case Said(run=self.run, number=number, line=line):
                return self._line(number, known or codec.from_cli(bytes(line)), at)
            case SaidBroken(run=self.run, number=number, text=text):
                return self._line(number, known or codec.from_cli(text.encode()), at)
            case Recalled(run=self.run, line=line):
                return self._import_message(codec.from_cli(bytes(line)))
            case Sent(run=self.run):
                self._note_sent(event, at, known)
            case SandboxStarted(run=self.run):
                self.sandbox = event
            case (
                SandboxConnection(run=self.run, number=number)
                | ProgramActed(run=self.run, number=number)
            ):
                self.said = max(self.said, number)
            case RunStarting() | RunStarted() | LinkLost() | LinkFound() if event.run == self.run:
                self._note_process(event, at)
            case AskOpened() | AskAnswered() | AskWithdrawn() | Decided() | LeftToCli():
                self._note_ask(event, at)
            case SpecChanged(spec=spec):
                self.spec = spec
                self.gate.change(spec)
            case PromptSent(run=self.run):
                self.turns.evolve(event)
            case Switched():
                self.switches.evolve(event)
            case StateChanged() | CliSession() | RateLimited():
                self.status.evolve(event)
            case PeerPrompted(run=self.run, message=message):
                self.peers.add(message)
            case Metered(run=self.run):
                self.meter.evolve(event)
            case TurnEnded(outcome=outcome):
                self.stopped_at = 0
                self.status.turn_ended()
                if outcome == NO_RESULT:  # no line may have said so
                    self.peer.turn_lost()
                    self.lost_turn.settle()
            case Alarmed(alarm=alarm) if alarm == UNSTOPPABLE:
                self.stopped_at = 0
            case _:
                pass
        self.holds = evolve_holds(self.holds, event, at)
        return None

    # --- what the CLI says -----------------------------------------------------------------------

    def evolve_piece(self, message: StreamEvent, at: int) -> None:
        """Take a piece of a message, which is no event of the journal."""
        self.watch.receive(message, at)
        self.lost_turn.settle()
        self.meter.receive(message)

    def _line(self, number: int, message: Message, at: int) -> LineReport:
        """A line of the CLI. One whose uuid is known changes only the count."""
        self.said = max(self.said, number)
        events = self.peer.receive_message(message)
        report = LineReport(message=message, events=events)
        if not events:
            return report
        self.watch.receive(message, at)
        if len(events) == 1 and type(message) not in READ_BY_PARTS:
            self.lost_turn.settle()
            report.plain = True
            report.answers = self.peer.lines_to_send()
            return report
        report.tool_calls = self.meter.tool_calls
        self.asks.receive(message)
        self.lost_turn.receive(message)
        self._note_message(message)
        report.switched = self.switches.receive(message, self.spec)
        for event in report.events:
            match event:
                case Asked(request=request):
                    self._note_request(request, report, at)
                case Withdrawn(request_id=request_id):
                    self.asked_at.pop(request_id, None)
                case RequestEnded(subtype=subtype, ending=Answered(json=json)):
                    if subtype == Initialize().subtype:
                        report.switched += self.switches.introduction_events(json)
                    elif subtype == Interrupt().subtype:
                        self.lost_turn.note_interrupt(at)
                case _:
                    pass
        report.by_cli = self.gate.results(message, self.switches.mode)
        report.limits = self.status.receive(message)
        self.meter.receive(message)
        if isinstance(message, Result):
            self.stopped_at = 0
        report.answers = self.peer.lines_to_send()
        return report

    def _note_request(self, message: ControlRequest, report: LineReport, at: int) -> None:
        match message.request:
            case CanUseTool() as request:
                self.asked_at[message.request_id] = at
                self.switches.call_asked(request.tool_use_id)
                report.earlier[message.request_id] = self.gate.call_asked(request)
            case HookCallback(hook_input=seen):
                mode = report.modes[message.request_id] = self.switches.mode_in_hook(seen)
                self.switches.hook_shown(seen)
                self.gate.hook_shown(seen, mode)
            case _:
                pass

    def _import_message(self, message: Message) -> LineReport:
        """A message that was read from the CLI's transcript."""
        report = LineReport(message=message, events=self.peer.receive_message(message))
        if report.events:
            self._note_message(message)
            self.meter.receive(message)
        return report

    def _note_message(self, message: Message) -> None:
        if isinstance(message, User | Assistant) and message.uuid:
            self.received.add(message.uuid)

    # --- what is sent to it ----------------------------------------------------------------------

    def _note_sent(self, event: Sent, at: int, message: Message | None) -> None:
        self.sent = max(self.sent, event.number)
        line = bytes(event.line)
        asked = {each.request_id: each.request for each in self.peer.unanswered}
        match self.peer.note_sent(line, message):
            case Prompt():
                self.watch.touch(at)
            case Request(request_id=request_id, request=command):
                self.greeting = self.greeting or is_greeting(line)
                self.switches.note_sent(request_id, command, event.by)
                self.watch.asked_to(command.subtype)
                if isinstance(command, Interrupt) and self.peer.turns.busy:
                    self.status.note_interrupt()
                if isinstance(command, Interrupt) and event.by == BUDGET:
                    self.stopped_at = at
            case WireAnswer(response=response):
                request_id = response.request_id
                self.asked_at.pop(request_id, None)
                request = asked.get(request_id)
                if isinstance(request, CanUseTool) and self.watch.unheeded != request_id:
                    # No person has answered: policy has.
                    allowed = b'"behavior":"allow"' in line
                    self.watch.note_settled(request_id, request.tool_name, at, allowed=allowed)
            case _:
                pass

    # --- its process and its link ----------------------------------------------------------------

    def _note_process(
        self, event: RunStarting | RunStarted | LinkLost | LinkFound, at: int
    ) -> None:
        match event:
            case RunStarting(mode=mode, skip_permissions=skip):
                started = replace(self.spec, mode=mode, skip_permissions=skip)
                self.peer = self.new_peer(bypass_allowed=skip)
                self.switches = Switches.of(started)
                self.gate.started_with_bypass = skip
                self.gate.wrote_before(event.written)
                self.at_root = event.at_root
                self.inbound = self.unknown_place = event.machine == INBOUND
                self.program = event.machine == PROGRAM
            case RunStarted(version=version, directory=directory):
                known = Version.parse(version) if version else None
                self.peer.version = known or self.peer.version
                self.unknown_place = self.unknown_place and directory is None
            case LinkLost():
                self.peer.link_lost()
            case LinkFound(lost=lost) if self.inbound:
                self.peer.note_resumed()
                self.watch.touch(at)
                self.lost_turn.link_resumed(lost=lost, busy=self.peer.turns.busy)
            case LinkFound():
                self.watch.touch(at)
                if self.peer.state is State.DOWN:
                    self.peer.link_back()

    # --- questions -------------------------------------------------------------------------------

    def _note_ask(
        self, event: AskOpened | AskAnswered | AskWithdrawn | Decided | LeftToCli, at: int
    ) -> None:
        match event:
            case AskOpened(run=self.run):
                self.asks.add(event)
                self.asked_at.pop(event.request_id, None)
                self.gate.ask_opened(event)
                self.watch.note_ask(event)
            case AskAnswered(ask=ask, answer=answer, allowed=allowed):
                opened = self.asks.remove(ask)
                if opened is not None and self.is_held(opened):
                    self._held_answered(opened, event)
                self.gate.note_answer(answer, at)
                self.watch.note_answer(ask, at, allowed=allowed)
            case AskWithdrawn(ask=ask):
                self.asks.remove(ask)
                self.watch.withdrawn(ask)
            case Decided():
                self.gate.note_decision(event, at)
            case LeftToCli():
                self.gate.left_to_cli(event)

    def is_held(self, opened: AskOpened) -> bool:
        """Whether a hook of the CLI waits for the answer, and not a permission request."""
        return any(
            each.request_id == opened.request_id and isinstance(each.request, HookCallback)
            for each in self.peer.unanswered
        )

    def _held_answered(self, opened: AskOpened, answered: AskAnswered) -> None:
        """A hook was answered: the CLI may ask the same once more, and gets the same answer."""
        with suppress(QuarterdeckError, msgspec.DecodeError):  # then the person is asked again
            given: Answer = msgspec.json.decode(answered.answer, type=Answer)
            call = edited_call(opened, given)
            edit = None
            if call is not None:
                edit = Edit(input=answered.input or call.input, verdict=DECIDED_BEFORE)
            reply = reply_to(
                opened,
                given,
                version=self.peer.version,
                bypass_allowed=self.spec.skip_permissions,
                edit=edit,
            )
            if isinstance(reply.body, AllowResult):
                self.gate.held_answered(opened, reply.body)

    def without_card(self) -> list[tuple[str, int, CanUseTool, Raw]]:
        """The calls that the CLI asks about and that no card shows yet: plans without their text.

        Each with its request, the time when it was asked in ms, and the request as it came.
        """
        return [
            (
                each.request_id,
                self.asked_at.get(each.request_id, 0),
                each.request,
                each.request_json,
            )
            for each in self.peer.asks
            if isinstance(each.request, CanUseTool) and not self.asks.has(each.request_id)
        ]
