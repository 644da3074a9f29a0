"""One run of a session: between the CLI's words and ours. No I/O.

Owns the `wire.Peer` of one CLI process, and is the one place that knows both languages: lines of
the CLI become our events, what people and policy decide becomes lines. Above it `session` journals
the events and moves the lines; below it is `wire`.

Nothing here is lost with the hub: `restore` makes a run what it was, from the journal alone.

The module is long because a live run and a restored one must end in the same state, and both paths
change the same peer, cards and counters: to part them would part what must agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, QuarterdeckError
from quarterdeck.domain.structs import Value
from quarterdeck.hub.api import Deltas
from quarterdeck.hub.deltas import DeltaReader
from quarterdeck.hub.holdings import Holdings
from quarterdeck.hub.lines import is_greeting, kept, mended
from quarterdeck.hub.lost_turns import LostTurn
from quarterdeck.hub.permissions.answers import Reply, reply_to
from quarterdeck.hub.permissions.context import NO_RULING, CallQuestion, Ruling
from quarterdeck.hub.permissions.edits import Edit, edited_call
from quarterdeck.hub.permissions.gate import PermissionGate, as_hook
from quarterdeck.hub.permissions.open_asks import PLAN, OpenAsks
from quarterdeck.hub.status import StatusTracker
from quarterdeck.hub.supervision.meter import Meter
from quarterdeck.hub.supervision.watchdog import Watch
from quarterdeck.hub.switches import Switches
from quarterdeck.hub.turns import NO_RESULT, Turns
from quarterdeck.policy.decide import Behavior, Verdict
from quarterdeck.protocol.commands import Answer
from quarterdeck.protocol.events import (
    AskAnswered,
    AskOpened,
    CliSession,
    Decided,
    Event,
    LeftToCli,
    LinkFound,
    Metered,
    Noted,
    PromptSent,
    RateLimited,
    Recalled,
    RunStarted,
    RunStarting,
    Said,
    SaidBroken,
    Sent,
    SpecChanged,
    StateChanged,
    Switched,
    TurnEnded,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire import codec
from quarterdeck.wire.answers import AllowResult
from quarterdeck.wire.base import Message
from quarterdeck.wire.commands import (
    Command,
    GetPlan,
    Initialize,
    Interrupt,
    PlanAnswer,
    decode_or_none,
)
from quarterdeck.wire.control import ControlRequest
from quarterdeck.wire.exchange import Answered, Ending
from quarterdeck.wire.hook_outputs import SyncOutput
from quarterdeck.wire.hooks import HookEvent, HookMatcher
from quarterdeck.wire.messages import Assistant, Result, StreamEvent, User
from quarterdeck.wire.outbound import Prompt, PromptBody
from quarterdeck.wire.peer import Asked, Peer, Recovered, RequestEnded, Withdrawn
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

_ASKING = (b"can_use_tool", b"hook_callback")
"""What is in every line that raises a question to the rules."""

DECIDED_BEFORE = Verdict(behavior=Behavior.ALLOW, reasons=("it was decided before",))
PLAN_MS = 3000
"""For so long a plan's card waits for the plan's text."""


class LineResult(Value):
    """What a line of the CLI means."""

    events: tuple[Event, ...] = ()
    deltas: tuple[Deltas, ...] = ()
    whole: bool = False
    """A message is whole: the deltas before it are superseded."""
    endings: tuple[tuple[str, Ending], ...] = ()


class Run:
    """The protocol's side of one CLI process of a session."""

    def __init__(
        self,
        session: str,
        run: str,
        spec: SessionSpec,
        version: str | None = None,
        *,
        adopted: bool = False,
    ) -> None:
        self.session = session
        self.run = run
        self.said = 0
        self.sent = 0
        self.greeting = False
        """Whether `initialize` has been sent. It need not be the first line: people are fast."""
        self._spec = spec
        self._peer = Peer(
            version=Version.parse(version) if version else None,
            bypass_allowed=spec.skip_permissions,
            resumable=True,
        )
        self._open_asks = OpenAsks(session, run)
        self._status = StatusTracker()
        self._switches = Switches(spec)
        self._turns = Turns(run)
        self._reader = DeltaReader(session)
        self._now = 0
        self._rulings: Mapping[str, Ruling] = {}
        self._planless: dict[str, tuple[int, CanUseTool, Raw]] = {}
        self._adopted = adopted
        self._repeats = adopted
        self._lost_turn = LostTurn()
        self._gate = PermissionGate(spec)
        self.holdings = Holdings()
        """What holds in the session; whoever makes a run sets it to what the view has."""
        self.meter = Meter()
        self.watch = Watch()
        self.at_root = False
        """Whether its CLI dialled the hub at `/`."""
        self.stopped_at = 0
        """When the open turn was interrupted for a budget, in ms; 0: it was not."""

    # --- what it is ----------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether a prompt would begin at once."""
        return self.greeted and self._peer.state is State.READY and not self._peer.turns.busy

    @property
    def steerable(self) -> bool:
        """Whether a turn is open that a prompt could be sent into."""
        return self.greeted and self._peer.turns.busy and self._peer.state is not State.DOWN

    @property
    def greeted(self) -> bool:
        """Whether `initialize` has been answered."""
        return self._peer.initialized

    @property
    def busy(self) -> bool:
        """Whether a turn is open or a question waits."""
        return self._peer.turns.busy or self._peer.state is State.WAITING

    @property
    def link_down(self) -> bool:
        """Whether its CLI cannot be reached just now."""
        return self._peer.state is State.DOWN

    def has_said(self, uuid: str) -> bool:
        """Whether a message with this uuid was heard."""
        return self._peer.has_seen(uuid)

    @property
    def version(self) -> Version | None:
        """The CLI's version, once it is known."""
        return self._peer.version

    @version.setter
    def version(self, version: Version | None) -> None:
        self._peer.version = version or self._peer.version

    @property
    def spec(self) -> SessionSpec:
        """The session's spec, as the run knows it."""
        return self._spec

    def change(self, spec: SessionSpec) -> None:
        """What holds for the session has changed."""
        self._spec = spec
        self._gate.change(spec)

    # --- from the journal ----------------------------------------------------------------------

    def restore(self, events: Iterable[tuple[int, Event]]) -> None:
        """Become what the events of this run say, in their order, each with its time."""
        cards: dict[str, AskOpened] = {}
        for at, event in events:
            match event:
                case Said(run=self.run, number=number, line=line):
                    self.said = max(self.said, number)
                    self._recall(bytes(line), at)
                case SaidBroken(run=self.run, number=number, text=text):
                    self.said = max(self.said, number)
                    self._recall(text.encode(), at)
                case PromptSent():
                    self._turns.restore(event)
                case Sent(run=self.run, number=number, line=line):
                    self.sent = max(self.sent, number)
                    self.greeting = self.greeting or is_greeting(bytes(line))
                    self._peer.restore_sent(bytes(line))
                    self._switches.restore_sent(bytes(line), event.by)
                case RunStarting(run=self.run, mode=mode, skip_permissions=leave):
                    self.at_root = event.at_root
                    self._gate.started_with_bypass = leave
                    self._switches = Switches(
                        msgspec.structs.replace(self._spec, mode=mode, skip_permissions=leave)
                    )
                case Switched():
                    self._switches.restore(event)
                case RunStarted(run=self.run, directory=str()):
                    self._adopted = False
                case AskOpened(run=self.run):
                    cards[event.ask] = event
                    self._open_asks.restore(event)
                    self._gate.ask_opened(event)
                    self.watch.asked(event)
                case Decided():
                    self._gate.decided(event, at)
                case LeftToCli():
                    self._gate.left_to_cli(event)
                case AskAnswered(ask=ask_id, answer=answer, allowed=allowed):
                    if (card := cards.get(ask_id)) is not None and self._is_held(card):
                        self._recall_answer(card, event)
                    self._gate.answered(answer, at)
                    self.watch.answered(ask_id, at, allowed=allowed)
                case Metered(run=self.run):
                    self.meter.restore(event)
                case SpecChanged(spec=spec):
                    self.change(spec)
                case TurnEnded(outcome=outcome) if outcome == NO_RESULT:
                    self._peer.turn_lost()  # no line says so
                case StateChanged() | CliSession() | RateLimited():
                    self._status.restore(event)
                case Recalled(run=self.run, line=line):
                    for heard in self._peer.receive_data(bytes(line) + b"\n"):
                        if isinstance(heard, Message):
                            self.meter.hear(heard)
                case _:
                    pass
        self._peer.data_to_send()
        self._open_asks.keep_only(each.request_id for each in self._peer.unanswered)
        for ask in self._peer.asks:
            if isinstance(ask.request, CanUseTool) and not self._open_asks.has(ask.request_id):
                self._planless[ask.request_id] = (0, ask.request, ask.request_json)

    def _recall_answer(self, opened: AskOpened, answered: AskAnswered) -> None:
        """A hook was answered: the CLI may ask the same once more, and gets the same answer."""
        with suppress(QuarterdeckError, msgspec.DecodeError):  # then the person is asked again
            given: Answer = msgspec.json.decode(answered.answer, type=Answer)
            call = edited_call(opened, given)
            edit = None
            if call is not None:
                edit = Edit(input=answered.input or call.input, verdict=DECIDED_BEFORE)
            self._gate.held_answered(opened, self.reply_to(opened, given, edit).body)

    def _recall(self, line: bytes, at: int) -> None:
        """Take a line again. Nothing is decided again: who decided what is in the journal."""
        for event in self._peer.receive_data(line + b"\n"):
            match event:
                case Asked(request=ControlRequest(request=CanUseTool() as request)):
                    self._switches.call_asked(request.tool_use_id)
                    self._gate.call_asked(request)
                case Asked(request=ControlRequest(request=HookCallback() as request)):
                    self._switches.hook_shown(request.hook_input)
                    mode = self._switches.mode_in_hook(request.hook_input)
                    self._gate.hook_shown(request.hook_input, mode)
                case RequestEnded():
                    self._introduced_by(event)
                case Message():
                    self._switches.hear(event, self._spec)
                    self._open_asks.hear(event)
                    self._status.hear(event)
                    self._gate.results(event, self._mode)
                    self.watch.hear(event, at)
                    self.meter.hear(event)
                case _:
                    pass

    # --- what comes ----------------------------------------------------------------------------

    def hear_piece(self, number: int, line: bytes, at: int) -> tuple[Deltas, ...] | None:
        """Take a line that is a piece of text in the midst of a turn; None if it is to be heard.

        Such a line changes nothing but the screen, and there are a hundred for each other one.
        """
        peer = self._peer
        if self._repeats or number <= self.said or peer.state is not State.WORKING:
            return None
        if not peer.turns.in_turn or (deltas := self._reader.read_piece(line)) is None:
            return None
        self.said = number
        self.watch.lives(at)
        return deltas

    def questions(self, number: int, line: bytes, at: int) -> dict[str, CallQuestion]:
        """The questions to the rules that a line raises, by the ids of the CLI's requests.

        `hear` wants the rulings on them. It is called with the line before any later one.
        """
        if number <= self.said or not any(sign in line for sign in _ASKING):
            return {}
        found: dict[str, CallQuestion] = {}
        for request in self._peer.new_requests(codec.from_cli(mended(line)[0])):
            question = self._question(request, at)
            if question is not None:
                found[request.request_id] = question
        return found

    def _question(self, message: ControlRequest, at: int) -> CallQuestion | None:
        match message.request:
            case CanUseTool() as request:
                mode = self._switches.mode_of_call(request.tool_use_id)
                return self._gate.ask_question(request, mode, at)
            case HookCallback(callback_id=callback_id) as request if callback_id == WATCHING_HOOK:
                mode = self._switches.mode_in_hook(request.hook_input)
                return self._gate.hook_question(request.hook_input, mode, at, self.version)
            case _:
                return None

    def hear(
        self, number: int, line: bytes, at: int, rulings: Mapping[str, Ruling] | None = None
    ) -> LineResult:
        """Take a line of the CLI, at a time in ms. One that came before is nothing.

        `rulings` are the answers to the line's `questions`.
        """
        if number <= self.said:
            return LineResult()
        self._rulings = rulings or {}
        self._now = at
        self.said = number
        line, flaw = mended(line)
        if self._is_old_piece(line):
            return LineResult()
        peer_events = self._peer.receive_data(line + b"\n")
        message = peer_events[0] if peer_events else None
        if not isinstance(message, Message):
            return self._heard_before(number, line, flaw)
        self.watch.hear(message, at)
        if isinstance(message, StreamEvent):
            self._lost_turn.settled()
            self.meter.hear(message)
            return LineResult(deltas=self._reader.read(message))
        events: list[Event] = [kept(self.run, number, line, message, flaw)]
        endings: list[tuple[str, Ending]] = []
        self._open_asks.hear(message)
        self._lost_turn.hear(message)
        events += self._switched(self._switches.hear(message, self._spec))
        for event in peer_events:
            if isinstance(event, RequestEnded):
                endings.append((event.request_id, event.ending))
                events += self._introduced_by(event)
                if isinstance(event.ending, Answered):
                    events += self.holdings.answered(event.subtype, event.ending.json, at)
                if event.subtype == Interrupt().subtype and isinstance(event.ending, Answered):
                    self._lost_turn.interrupted(at)
                if event.subtype == GetPlan().subtype:
                    events += self._open_plans(at, _plan_in(event.ending))
            elif not isinstance(event, Message):
                events += self._translate(event)
        if isinstance(message, Init):
            events += self._introduced(message)
        events += self._gate.results(message, self._mode)
        events += self._status.hear(message)
        events += self.holdings.receive(message, at)
        self.meter.hear(message)
        if isinstance(message, Result):
            self.stopped_at = 0
        return LineResult(
            events=(*events, *self._changes(message)),
            endings=tuple(endings),
            whole=isinstance(message, Assistant | Result),
        )

    def _is_old_piece(self, line: bytes) -> bool:
        """Whether it is a piece of text of a turn that is over.

        2.1.120 repeats all that it said when it dials again. Pieces are in no journal, so
        a hub that was restarted does not know them; but no turn begins with one.
        """
        if not self._repeats or self._peer.turns.busy:
            return False
        return isinstance(codec.from_cli(line), StreamEvent)

    def _heard_before(self, number: int, line: bytes, flaw: str | None) -> LineResult:
        """The same message by its uuid: repeated after a dial, or (numbered) really said twice."""
        message = codec.from_cli(line)
        if self._repeats or isinstance(message, StreamEvent):
            return LineResult()
        return LineResult(events=(kept(self.run, number, line, message, flaw),))

    def recall(self, lines: Iterable[bytes]) -> list[Event]:
        """Take messages that nobody heard, from the CLI's transcript. A known one is nothing."""
        events: list[Event] = []
        for line in lines:
            _, flaw = mended(line)
            for event in self._peer.receive_data(line + b"\n") if flaw is None else ():
                match event:
                    case User(uuid=str(uuid)) | Assistant(uuid=str(uuid)):
                        events.append(Recalled(run=self.run, uuid=uuid, line=Raw(line)))
                        self.meter.hear(event)
                    case WireTaken():
                        events += self._turns.mean(event)
                    case _:
                        pass
        return events

    def tick(self, now: int) -> list[Event]:
        """What time brings, in ms: a plan without its text, the end of a limit."""
        events = self._open_plans(now - PLAN_MS, None)
        until = self._status.limited_until
        if until is not None and until <= now:
            self._status.limit_over()
            events += self._changes(None)
        if self._lost_turn.is_over(now):
            self._lost_turn.settled()
            text = "the end of the turn was lost while the CLI was away; it is idle now"
            events.append(Noted(level="warning", text=text))
            for event in self._peer.turn_lost():
                events += self._translate(event)
            events += self._changes(None)
        return events

    def link_lost(self) -> list[Event]:
        """The machine cannot be reached."""
        self._peer.link_lost()
        return self._changes(None)

    def link_found(self) -> list[Event]:
        """The machine is there again, and nothing was lost: runs are numbered."""
        if self._peer.state is State.DOWN:
            self._peer.link_back()
        return self._changes(None)

    def link_resumed(self, last: str | None) -> list[Event]:
        """The CLI has dialled again: ask it for what it still wants to know."""
        lost = False
        events: list[Event] = []
        for event in self._peer.link_resumed(last):
            match event:
                case Recovered(complete=complete):
                    lost = not complete
                    self._lost_turn.link_resumed(lost=lost, busy=self._peer.turns.busy)
                case _ if not isinstance(event, Message):
                    events += self._translate(event)
        return [LinkFound(run=self.run, lost=lost), *events, *self._changes(None)]

    def ended(self, reason: str) -> tuple[list[Event], list[tuple[str, Ending]]]:
        """The process is gone: so is all that was open."""
        events = self._switched(self._switches.ended(self._spec))
        endings: list[tuple[str, Ending]] = []
        for event in self._peer.link_closed(reason):
            match event:
                case RequestEnded(request_id=request_id, ending=ending):
                    endings.append((request_id, ending))
                case Withdrawn(request_id=request_id, reason=why):
                    events += self._open_asks.withdrawn(request_id, why)
                case _:
                    pass
        return [*events, *self._changes(None)], endings

    # --- what we do ----------------------------------------------------------------------------

    def greet(self) -> str:
        """Send `initialize`, with a hook that shows us every tool call; returns its id."""
        self.greeting = True
        watch = HookMatcher(hook_callback_ids=(WATCHING_HOOK,), timeout=WATCHING_SECONDS)
        return self._peer.request(Initialize(hooks={HookEvent.PRE_TOOL_USE.value: (watch,)}))

    def prompt(
        self, prompt: str, content: Raw, *, again: bool = False, steered: bool = False
    ) -> list[Event]:
        """Send a prompt; `again`: it was given to an earlier run, which ended before it took it."""
        uuid, sent = self._turns.send(prompt, again=again, steered=steered)
        self._peer.prompt(Prompt(message=PromptBody(content=content), uuid=uuid))
        return [sent, *self._changes(None)]

    def request(self, command: Command[object], by: str = "") -> str:
        """Send a control request on behalf of somebody; returns its id."""
        self.watch.asked_to(command.subtype)
        request_id = self._peer.request(command)
        self._switches.sent(request_id, command, by)
        return request_id

    def switch_with(self, reply: Reply, by: str) -> list[Event]:
        """What an answer that was just sent switches for the session."""
        return self._switched(self._switches.chosen(reply.body, self._spec, by))

    def give_up(self, request_id: str) -> None:
        """Nobody waits for this answer any more."""
        self._peer.give_up(request_id, "nobody waits any more")

    def answer(self, opened: AskOpened, reply: Reply, by: str, answer: Raw, at: int) -> list[Event]:
        """Answer a question, at a time in ms. Raises `Conflict` if it is not open any more."""
        held = self._is_held(opened)
        body = as_hook(reply.body) if held else reply.body
        if not self._peer.answer(opened.request_id, body):
            raise Conflict("not_open", "the question is not open any more")
        if held:
            self._gate.held_answered(opened, reply.body)
        self._gate.answered(answer, at)
        self.watch.settled(opened.request_id, opened.tool, at, allowed=reply.allowed)
        return [*self._open_asks.answered(opened, reply, by, answer), *self._changes(None)]

    def original(self, opened: AskOpened) -> AskOpened:
        """A card as it was opened, before the journal masked what is in it."""
        return self._open_asks.original(opened)

    def _is_held(self, opened: AskOpened) -> bool:
        """Whether a hook of the CLI waits for the answer, and not a permission request."""
        return any(
            each.request_id == opened.request_id and isinstance(each.request, HookCallback)
            for each in self._peer.unanswered
        )

    def repeat_answer(self, request_id: str | None) -> None:
        """Say an answer again that the CLI has not reacted to."""
        if request_id is not None:
            self._peer.repeat_answer(request_id)

    def edit_question(self, call: CanUseTool, opened: AskOpened, at: int) -> CallQuestion:
        """The question to the rules about the call that a person wants instead of a card's."""
        from_hook = self._is_held(opened)
        return self._gate.edit_question(call, self._mode, at, from_hook=from_hook)

    def reply_to(self, opened: AskOpened, answer: Answer, edit: Edit | None = None) -> Reply:
        """What the CLI of this version takes for a person's answer."""
        return reply_to(
            opened,
            answer,
            version=self._peer.version,
            bypass_allowed=self._spec.skip_permissions,
            edit=edit,
        )

    def take_sent(self) -> list[Sent]:
        """The lines that must go to the CLI now, numbered. Each is given once."""
        sent: list[Sent] = []
        for line in self._peer.data_to_send().split(b"\n")[:-1]:
            self.sent += 1
            by = self._switches.sender_of(line)
            sent.append(Sent(run=self.run, number=self.sent, line=Raw(line), by=by))
        return sent

    # --- inside --------------------------------------------------------------------------------

    def _translate(self, event: PeerEvent) -> list[Event]:
        match event:
            case Asked(request=message):
                match message.request:
                    case CanUseTool() as request:
                        return self._asked(message.request_id, request, message.request_json)
                    case HookCallback(callback_id=callback_id) as request if (
                        callback_id == WATCHING_HOOK
                    ):
                        return self._watched(message.request_id, request)
                    case Elicitation() as request:
                        json = message.request_json
                        return [self._open_asks.elicitation(message.request_id, request, json)]
                    case request:
                        self._peer.refuse(
                            message.request_id, f"the hub does not do {type(request).__name__}"
                        )
                        return []
            case Withdrawn(request_id=request_id, reason=reason):
                self._planless.pop(request_id, None)
                return self._open_asks.withdrawn(request_id, reason)
            case WireTaken() | WireEnded():
                meant = self._turns.mean(event, self.meter.tool_calls)
                for one in meant:
                    self.holdings.evolve(one, self._now)
                return meant
            case _:
                return []

    def _asked(self, request_id: str, request: CanUseTool, json: Raw) -> list[Event]:
        self._switches.call_asked(request.tool_use_id)
        earlier = self._gate.call_asked(request)
        ruling = self._rulings.get(request_id, NO_RULING)
        judgement = self._gate.decide_ask(request, earlier, ruling, self._now)
        for event in judgement.events:
            if isinstance(event, Decided):
                self._gate.decided(event, self._now)
        if judgement.body is not None:
            self._peer.answer(request_id, judgement.body)
            allowed = isinstance(judgement.body, AllowResult)
            self.watch.settled(request_id, request.tool_name, self._now, allowed=allowed)
            return [*judgement.events]
        if (
            request.tool_name == PLAN
            and not self._open_asks.plan_of(request)
            and self._may_ask_plan
        ):
            self._planless[request_id] = (self._now, request, json)
            self._peer.request(GetPlan())
            return []
        card = self._open_asks.tool(request_id, judgement.shown(request), json=json)
        return [judgement.with_policy(card)]

    @property
    def _may_ask_plan(self) -> bool:
        return permits(self._peer.version, GetPlan)

    def _open_plans(self, before: int, plan: str | None) -> list[Event]:
        """The cards of plans whose text was asked for, before or at a time in ms."""
        due = [id_ for id_, (at, _, _) in self._planless.items() if at <= before]
        cards: list[Event] = []
        for id_ in due:
            _, request, json = self._planless.pop(id_)
            cards.append(self._open_asks.tool(id_, request, json=json, plan=plan))
        return cards

    def _watched(self, request_id: str, request: HookCallback) -> list[Event]:
        """The CLI is about to run a tool, or to ask about it: policy speaks first."""
        seen = request.hook_input
        mode = self._switches.mode_in_hook(seen)
        self._switches.hook_shown(seen)
        self._gate.hook_shown(seen, mode)
        ruling = self._rulings.get(request_id, NO_RULING)
        judgement = self._gate.decide_hook(seen, mode, ruling, self.version)
        for event in judgement.events:
            match event:
                case Decided():
                    self._gate.decided(event, self._now)
                case LeftToCli():
                    self._gate.left_to_cli(event)
        if judgement.held is not None:
            card = judgement.with_policy(self._open_asks.tool(request_id, judgement.held))
            self._gate.ask_opened(card)
            return [card]
        self._peer.answer(request_id, judgement.body or SyncOutput())
        return [*judgement.events]

    def _introduced(self, init: Init) -> list[Event]:
        """A CLI that nobody here started tells where it works: there it is resumed, and forked."""
        if not self._adopted or not init.cwd.startswith("/"):
            return []
        self._adopted = False
        version = init.claude_code_version or None
        started = RunStarted(run=self.run, version=version, directory=init.cwd)
        if init.cwd == self._spec.directory:
            return [started]
        self._spec = msgspec.structs.replace(self._spec, directory=init.cwd)
        return [started, SpecChanged(spec=self._spec, by="cli")]

    @property
    def _mode(self) -> str:
        return self._switches.mode

    def _introduced_by(self, ended: RequestEnded) -> list[Event]:
        """What the answer to `initialize` tells of mode and model."""
        if ended.subtype != Initialize().subtype or not isinstance(ended.ending, Answered):
            return []
        return self._switched(self._switches.introduced(ended.ending.json))

    def _switched(self, events: list[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, SpecChanged):
                self.change(event.spec)
        return events

    def _changes(self, message: Message | None) -> list[Event]:
        """What has changed about the session as a whole."""
        return self._status.changes(self._peer, message)


def _plan_in(ending: Ending) -> str | None:
    """The text in the answer to `get_plan`, if there is one."""
    if isinstance(ending, Answered) and ending.json is not None:
        answer = decode_or_none(ending.json, PlanAnswer)
        return answer.content if answer is not None else None
    return None
