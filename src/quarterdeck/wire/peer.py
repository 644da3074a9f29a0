"""One CLI as seen from the wire: bytes in, events out; intentions in, bytes out. No I/O.

A `Peer` ties the rest of `wire` together: framing, codec, the state table, the two ledgers of
requests, and the account of turns. Above it an `Agent`, or the hub, owns a link and moves the
bytes::

    for event in peer.receive_data(await link.receive()):
        ...                                 # act on it
    if data := peer.data_to_send():         # always ask: receiving may produce answers
        await link.send(data)

Whatever is sent is valid for the version at the other end. Until the version is known, only what
every version bears is sent.

An owner that journals every line uses lines in place of bytes, and tells the peer itself which
lines were sent::

    for event in peer.receive_line(line):
        ...
    for line in peer.lines_to_send():       # what the peer answers by itself
        journal(line)
    request_id, line = peer.request_line(command)
    journal(line)
    peer.note_sent(line)

A peer that is given the same lines in the same order, received and sent, is the same.

The module is long because it has both forms of each call, with bytes and with lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

import msgspec
from msgspec import Raw, Struct, field

from quarterdeck.domain.coded import TextCode
from quarterdeck.domain.errors import UnsupportedError, UsageError
from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS, Value
from quarterdeck.wire import codec
from quarterdeck.wire.base import Message
from quarterdeck.wire.command_base import Command, decode_or_none
from quarterdeck.wire.commands import Initialize, InitializeAnswer
from quarterdeck.wire.control import ControlCancel, ControlRequest, ControlResponse
from quarterdeck.wire.exchange import (
    Abandoned,
    Answered,
    Ending,
    Lost,
    OurRequests,
    Ours,
    RecentIds,
    Refused,
    TheirRequests,
    request_ids,
)
from quarterdeck.wire.line_reader import DEFAULT_MAX_LINE, LineReader, OversizedLine
from quarterdeck.wire.messages import Assistant, StreamEvent
from quarterdeck.wire.outbound import (
    Answer,
    CancelRequest,
    KeepAlive,
    Prompt,
    Request,
    UpdateEnvironment,
)
from quarterdeck.wire.requests import CanUseTool, Elicitation, RequestUserDialog, UnknownRequest
from quarterdeck.wire.states import State, Transition, transition
from quarterdeck.wire.system import ApiRetry, Init, Status
from quarterdeck.wire.turns import OBSERVED, PromptDropped, PromptTaken, TurnEnded, TurnLedger
from quarterdeck.wire.versions import (
    Version,
    check,
    check_prompt,
    environment_reaches_tools,
    may_send_cancel,
)

_FOR_PEOPLE = (CanUseTool, Elicitation, RequestUserDialog)
_CONTROL = frozenset({ControlRequest, ControlResponse, ControlCancel})
_MOVING = frozenset({Init, StreamEvent, Assistant, Status, ApiRetry})
"""The messages that can change the state of the protocol by themselves."""
"""Requests that wait for a person. The others are between programs."""

REMEMBERED_UUIDS = 4096
"""A CLI that reconnects sends up to its last 1000 messages again; those must be known still."""


class Asked(Struct, frozen=True):
    """The CLI asks: answer with `Peer.answer` or `Peer.refuse`, or wait for `Withdrawn`."""

    request: ControlRequest


class Withdrawn(Struct, frozen=True):
    """The CLI no longer wants the answer to this request. `code` is the reason as a code."""

    request_id: str
    reason: str
    code: TextCode = TextCode.RUN_ENDED


class RequestEnded(Struct, frozen=True):
    """A request of ours has ended."""

    request_id: str
    subtype: str
    ending: Ending


class Recovered(Struct, frozen=True):
    """The link is back. `complete` is false when the CLI said things meanwhile that are lost."""

    complete: bool


Event = (
    Message | Asked | Withdrawn | RequestEnded | Recovered | PromptTaken | PromptDropped | TurnEnded
)
"""What `receive_data` gives: each message itself, then what it means, if it means more."""


class PeerState(Value):
    """All that a peer between two lines knows, for an owner that stores it."""

    state: State
    version: Version | None = None
    session_id: str | None = None
    init: Raw = ABSENT
    turns: TurnLedger
    ours: tuple[tuple[str, str, Raw], ...] = ()
    """The open requests of ours: id, subtype and line."""
    open: tuple[str, ...] = ()
    """The ids of the CLI's open requests."""
    ended: dict[str, Raw] = field(default_factory=dict)
    """Its requests that have ended, with our answers; null where that is not kept."""
    unanswered: tuple[Raw, ...] = ()
    seen: RecentIds
    unconfirmed: dict[str, Raw] = field(default_factory=dict)
    initialized: bool = False


class Peer:
    """The protocol's view of one CLI. Not thread-safe; one owner."""

    def __init__(
        self,
        *,
        version: Version | None = None,
        bypass_allowed: bool = False,
        resumable: bool = False,
        max_line: int = DEFAULT_MAX_LINE,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self.state = State.NEW
        self.version = version
        self.session_id: str | None = None
        self.init: Init | None = None
        self.turns = TurnLedger()
        self._bypass_allowed = bypass_allowed
        self._resumable = resumable
        self._max_line = max_line
        self._reader = LineReader(max_line)
        self._new_id = new_id or request_ids()
        self._ours = OurRequests()
        self._theirs = TheirRequests()
        self._unanswered: dict[str, ControlRequest] = {}
        self._seen = RecentIds(REMEMBERED_UUIDS)
        self._unconfirmed: dict[str, bytes] = {}
        self._initialized = False
        self._out: list[bytes] = []

    # --- what it knows, stored ------------------------------------------------------------

    def snapshot(self) -> PeerState:
        """What it knows now, to be encoded at once: it shares values with the peer.

        Lines that wait in `lines_to_send`, and half a line that was received, are not part of it.
        """
        return PeerState(
            state=self.state,
            version=self.version,
            session_id=self.session_id,
            init=ABSENT if self.init is None else Raw(codec.encode(self.init)),
            turns=self.turns,
            ours=tuple(
                (each.request_id, each.subtype, Raw(each.line[:-1])) for each in self._ours.open
            ),
            open=self._theirs.open,
            ended={
                request_id: Raw(b"null" if line is None else line[:-1])
                for request_id, line in self._theirs.ended.items()
            },
            unanswered=tuple(Raw(codec.encode(each)) for each in self.unanswered),
            seen=self._seen,
            unconfirmed={uuid: Raw(line[:-1]) for uuid, line in self._unconfirmed.items()},
            initialized=self._initialized,
        )

    def resume(self, known: PeerState) -> None:
        """Continue with what another peer of the same CLI knew. Raises `ValueError`."""
        self.state = known.state
        self.version = known.version
        self.session_id = known.session_id
        if known.init:
            self.init = _decode_as(known.init, Init)
        self.turns = known.turns
        for request_id, subtype, line in known.ours:
            self._ours.begin(Ours(request_id, subtype, bytes(line) + b"\n"))
        self._theirs.resume(
            known.open,
            {
                request_id: None if (answer := bytes(line)) == b"null" else answer + b"\n"
                for request_id, line in known.ended.items()
            },
        )
        requests = (_decode_as(each, ControlRequest) for each in known.unanswered)
        self._unanswered = {each.request_id: each for each in requests}
        self._seen = known.seen
        self._unconfirmed = {uuid: bytes(line) + b"\n" for uuid, line in known.unconfirmed.items()}
        self._initialized = known.initialized

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """The uuids of the prompts that no turn is known to have taken."""
        return tuple(self._unconfirmed)

    @property
    def initialized(self) -> bool:
        """Whether the CLI has answered `initialize`, now or before."""
        return self._initialized

    def has_seen(self, uuid: str) -> bool:
        """Whether the CLI said a message with this uuid, among the last that are remembered."""
        return uuid in self._seen

    def has_used(self, uuid: str) -> bool:
        """Whether a prompt with this uuid would be dropped: there is a message that has it."""
        return uuid in self._seen or uuid in self._unconfirmed

    # --- what comes -----------------------------------------------------------------------

    def receive_data(self, data: bytes) -> list[Event]:
        """Take bytes from the CLI, cut anywhere. Send `data_to_send` afterwards.

        After `link_closed` there is no CLI any more, and nothing that it could say.
        """
        events: list[Event] = []
        if self.state is State.CLOSED:
            return events
        read_header, working = codec.read_header, State.WORKING
        # Most lines are deltas in the midst of a turn: they change nothing but the screen.
        plain = None if self._resumable else StreamEvent
        for line in self._reader.feed(data):
            if isinstance(line, OversizedLine):
                events.append(codec.from_oversized(line))
                continue
            try:
                message = read_header(line)
            except DECODE_ERRORS:
                self._take(codec.from_cli(line), events)
                continue
            if type(message) is plain and self.state is working:
                message.__dict__["raw"] = line
                events.append(message)
            else:
                self._take(codec.from_cli(line, message), events)
        return events

    def receive_line(self, line: bytes) -> list[Event]:
        """Take one line from the CLI, without its line end. Journal `lines_to_send` afterwards."""
        return self.receive_message(codec.from_cli(line))

    def receive_message(self, message: Message) -> list[Event]:
        """Take one line from the CLI that was decoded already."""
        events: list[Event] = []
        if self.state is not State.CLOSED:
            self._take(message, events)
        return events

    def remember(self, uuid: str) -> bool:
        """Take note of a message that changes nothing here. False if it came before."""
        return self._seen.add(uuid)

    def new_requests(self, message: Message) -> list[ControlRequest]:
        """The requests in a message for which `receive_data` would give `Asked`."""
        match message:
            case ControlRequest():
                found: Iterable[ControlRequest] = (message,)
            case ControlResponse(response=response) if (
                self._ours.subtype(response.request_id) == Initialize().subtype
            ):
                found = response.pending_requests()
            case _:
                return []
        return [request for request in found if self._theirs.is_new(request.request_id)]

    def receive_eof(self) -> list[Event]:
        """No more bytes will come: give what was left of an unfinished line."""
        rest = self._reader.end()
        events: list[Event] = []
        if isinstance(rest, OversizedLine):
            events.append(codec.from_oversized(rest))
        elif rest is not None:
            self._take(codec.from_cli(rest), events)
        return events

    def data_to_send(self) -> bytes:
        """What must be written to the CLI now; empty if nothing. Each byte is given once."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def lines_to_send(self) -> list[bytes]:
        """The lines that must be written to the CLI now, without line ends. Each is given once."""
        lines = [line[:-1] for line in self._out]
        self._out.clear()
        return lines

    # --- what the link does ---------------------------------------------------------------

    def link_lost(self) -> None:
        """The link is down, and may come back."""
        self._apply_transition(Transition.LINK_LOST)

    def link_back(self) -> None:
        """The link is back and has lost nothing: its lines were numbered and kept on their way."""
        if self.asks:
            self._apply_transition(Transition.BACK_ASKING)
        else:
            self._apply_transition(
                Transition.BACK_IN_TURN if self.turns.busy else Transition.BACK_IDLE
            )

    def link_resumed(self, last_request_id: str | None = None) -> list[Event]:
        """The link is back, with a new stream: half a line of the old one is void.

        What may have been lost on the way is sent again; the CLI ignores what it had. A second
        `initialize` asks for the questions that are open; its answer comes as more events.
        """
        complete = last_request_id is None or last_request_id in self._seen
        if not complete:
            self.turns.messages_lost()
        events: list[Event] = [Recovered(complete), *self.note_resumed()]
        for line in self.lines_to_repeat():
            self._out.append(line + b"\n")
            if isinstance(request := codec.to_cli(line), Request):
                self._begin_request(request.request_id, request.request.subtype, line + b"\n")
        return events

    def note_resumed(self) -> list[Event]:
        """The link is back, with a new stream. Nothing is sent: see `lines_to_repeat`."""
        self.link_lost()
        self._reader = LineReader(self._max_line)
        self.link_back()
        events: list[Event] = []
        for request in self._ours.open:
            if request.subtype == "interrupt":
                # Not to be repeated: it could stop the turn after the one it was meant for.
                self._end_ours(request.request_id, Lost("the link was lost"), events)
        return events

    def lines_to_repeat(self) -> list[bytes]:
        """What may have been lost with the old stream, and a request for the open questions.

        Nothing is changed: what is sent of it is for `note_sent`.
        """
        lines = [*self._theirs.answers(), *(request.line for request in self._ours.open)]
        if self._initialized:
            # What the first one set lives on in the process; this one only asks what is open.
            lines.append(codec.encode(Request.of(self._new_id(), Initialize())) + b"\n")
        return [line[:-1] for line in (*lines, *self._unconfirmed.values())]

    def turn_lost(self) -> list[Event]:
        """The CLI is idle, and what it said at the end of its turn was lost on the way."""
        events: list[Event] = [*self.turns.idle()]
        if not self.turns.busy:
            self._apply_transition(Transition.TURN_ENDED)
        return events

    def open_requests(self, reason: str) -> list[RequestEnded | Withdrawn]:
        """How the open requests of both sides would end with the link. Nothing is changed."""
        ours = [RequestEnded(e.request_id, e.subtype, Lost(reason)) for e in self._ours.open]
        return [*ours, *(Withdrawn(request_id, reason) for request_id in self._theirs.open)]

    def link_closed(self, reason: str) -> list[Event]:
        """The link has ended for good: so does all that was open."""
        events: list[Event] = []
        self._apply_transition(Transition.LINK_CLOSED)
        self._out.clear()
        for request in self._ours.open:
            self._end_ours(request.request_id, Lost(reason), events)
        events.extend(Withdrawn(request_id, reason) for request_id in self._theirs.end_all())
        self._unanswered.clear()
        events.extend(PromptDropped(uuid, reason) for uuid in self.turns.end_all())
        self._unconfirmed.clear()
        return events

    # --- what we do -----------------------------------------------------------------------

    @property
    def asks(self) -> tuple[ControlRequest, ...]:
        """What the CLI asks a person and waits for, oldest first."""
        return tuple(each for each in self.unanswered if isinstance(each.request, _FOR_PEOPLE))

    @property
    def unanswered(self) -> tuple[ControlRequest, ...]:
        """Every request of the CLI that is open, oldest first: also those between programs."""
        return tuple(self._unanswered.values())

    def prompt(self, prompt: Prompt) -> str:
        """Send a prompt; returns its uuid. Raises `UsageError` if that uuid was used before."""
        uuid, line = self.prompt_line(prompt)
        self._begin_prompt(uuid, line + b"\n")
        self._out.append(line + b"\n")
        return uuid

    def prompt_line(self, prompt: Prompt) -> tuple[str, bytes]:
        """The uuid and the line of a prompt. Raises `UsageError` if that uuid was used before."""
        uuid = prompt.uuid or str(uuid4())
        if prompt.uuid is None:
            prompt = msgspec.structs.replace(prompt, uuid=uuid)
        elif self.has_used(uuid):
            raise UsageError(
                f"a prompt with the uuid {uuid} was sent before; the CLI would drop it"
            )
        check_prompt(prompt, self.version)
        transition(self.state, Transition.PROMPT)
        return uuid, codec.encode(prompt)

    def _begin_prompt(self, uuid: str, line: bytes) -> None:
        self._apply_transition(Transition.PROMPT)
        self.turns.prompt(uuid)
        self._unconfirmed[uuid] = line

    def prompt_cancelled(self, uuid: str) -> list[Event]:
        """The CLI has confirmed that it took a queued prompt back."""
        events: list[Event] = [*self.turns.cancel(uuid)]
        self._unconfirmed.pop(uuid, None)
        if events and not self.turns.busy:
            self._apply_transition(Transition.TURN_ENDED)
        return events

    def request(self, command: Command[Any]) -> str:
        """Send a control request; returns its id. Ends with exactly one `RequestEnded`."""
        request_id, line = self.request_line(command)
        self._begin_request(request_id, command.subtype, line + b"\n")
        self._out.append(line + b"\n")
        return request_id

    def request_line(self, command: Command[Any]) -> tuple[str, bytes]:
        """The id and the line of a control request."""
        check(command, self.version, bypass_allowed=self._bypass_allowed)
        if isinstance(command, Initialize):
            transition(self.state, Transition.INITIALIZE)
        elif self.state is State.CLOSED:
            raise UsageError("cannot send a request: the CLI is closed")
        request_id = self._new_id()
        return request_id, codec.encode(Request.of(request_id, command))

    def _begin_request(self, request_id: str, subtype: str, line: bytes) -> None:
        if subtype == "initialize" and self.state is State.NEW:
            self._apply_transition(Transition.INITIALIZE)
        if self._ours.subtype(request_id) is None:  # one that is repeated is open already
            self._ours.begin(Ours(request_id, subtype, line))

    def give_up(self, request_id: str, reason: str) -> list[Event]:
        """We no longer wait for the answer to a request of ours; a late one is ignored."""
        line = self.cancel_line(request_id)
        if line is not None:
            self._out.append(line + b"\n")
        events: list[Event] = []
        self._end_ours(request_id, Abandoned(reason), events)
        return events

    def cancel_line(self, request_id: str) -> bytes | None:
        """The line that cancels an open request; None if this version does not bear one."""
        if self._ours.subtype(request_id) is None or not may_send_cancel(self.version):
            return None
        return codec.encode(CancelRequest(request_id=request_id))

    def answer(self, request_id: str, body: Struct | Raw) -> bool:
        """Answer the CLI. False, and nothing is sent, if the request is not open any more."""
        return self._answer(Answer.success(request_id, body), request_id)

    def answer_line(self, request_id: str, body: Struct | Raw) -> bytes | None:
        """The line that answers the CLI; None if the request is not open any more."""
        return self._answer_line(Answer.success(request_id, body), request_id)

    def refusal_line(self, request_id: str, error: str) -> bytes | None:
        """The line that answers the CLI with an error; None if the request is not open."""
        return self._answer_line(Answer.error(request_id, error), request_id)

    def _answer_line(self, answer: Answer, request_id: str) -> bytes | None:
        return codec.encode(answer) if self._theirs.is_open(request_id) else None

    def answered_line(self, request_id: str) -> bytes | None:
        """The line with which a request of the CLI was answered, if it is still known."""
        line = self._theirs.answer_line(request_id)
        return None if line is None else line[:-1]

    def repeat_answer(self, request_id: str) -> bool:
        """Answer the CLI once more with the same line: it takes an answer once, and only once."""
        line = self._theirs.answer_line(request_id)
        if line is not None:
            self._out.append(line)
        return line is not None

    def refuse(self, request_id: str, error: str) -> bool:
        """Answer the CLI with an error. False, and nothing is sent, if the request is not open."""
        return self._answer(Answer.error(request_id, error), request_id)

    def note_sent(self, line: bytes, message: Message | None = None) -> Message:
        """Take note of a line, without its line end, that is sent now or was sent before.

        A line that is sent twice changes nothing the second time. Returns the decoded line, which
        may be given where it is known: to decode a large prompt takes long.
        """
        message = message or codec.to_cli(line)
        match message:
            case Prompt(uuid=str(uuid)):
                self._begin_prompt(uuid, line + b"\n")
            case Request(request_id=request_id, request=request):
                self._begin_request(request_id, request.subtype, line + b"\n")
            case CancelRequest(request_id=request_id):
                self._ours.end(request_id)
            case Answer(response=response):
                self._theirs.answer(response.request_id, line + b"\n")
                self._settle(response.request_id)
            case _:
                pass
        return message

    def set_environment(self, variables: Mapping[str, str]) -> None:
        """Set variables for the tools that the CLI starts from now on. It gives no answer."""
        if not environment_reaches_tools(self.version):
            version = None if self.version is None else str(self.version)
            raise UnsupportedError("a change of the running CLI's environment", version=version)
        self._send(UpdateEnvironment(variables=dict(variables)))

    def keep_alive(self) -> None:
        """Say nothing, audibly."""
        self._send(KeepAlive())

    # --- inside ---------------------------------------------------------------------------

    def _take(self, message: Message, events: list[Event]) -> None:
        # Every line comes through here: what most messages do not need is looked up by their type.
        kind = type(message)
        if kind in _CONTROL:
            self._take_control(message, events)
            return
        uuid = getattr(message, "uuid", None)
        if uuid and not self._seen.add(uuid):
            return  # A reconnect may repeat many.
        events.append(message)
        self._learn(message)
        meaning = self.turns.observe(message) if kind in OBSERVED else ()
        events.extend(meaning)
        if kind in _MOVING:
            self._move(message)
        for event in meaning:
            match event:
                case PromptTaken(uuid=uuid) | PromptDropped(uuid=uuid):
                    self._unconfirmed.pop(uuid, None)
                case TurnEnded() if not self.turns.busy:
                    self._apply_transition(Transition.TURN_ENDED)
                case _:
                    pass

    def _take_control(self, message: Message, events: list[Event]) -> None:
        events.append(message)
        match message:
            case ControlRequest():
                self._take_request(message, events)
            case ControlResponse():
                self._take_response(message, events)
            case ControlCancel(request_id=request_id):
                self._withdraw(request_id, "the CLI withdrew it", TextCode.WITHDRAWN_BY_CLI, events)
            case _:
                raise AssertionError(f"{message!r} is no control message")

    def _learn(self, message: Message) -> None:
        """Take from a message what it says of the CLI itself."""
        if isinstance(message, Init):
            self.init = message
            if message.claude_code_version:
                self.version = Version.parse(message.claude_code_version) or self.version
        # The `new_conversation_id` of a reset is not the id that later messages have.
        if session_id := getattr(message, "session_id", None):
            self.session_id = session_id

    def _move(self, message: Message) -> None:
        match message:
            case Init():
                self._apply_transition(Transition.TURN_BEGAN)
            case StreamEvent(parent_tool_use_id=None) | Assistant(parent_tool_use_id=None):
                self._apply_transition(Transition.PROGRESS)
            case Status(status="compacting"):
                self._apply_transition(Transition.COMPACTING)
            case Status():
                self._apply_transition(Transition.COMPACTED)
            case ApiRetry():
                self._apply_transition(Transition.RETRYING)
            case _:
                pass

    def _take_request(self, message: ControlRequest, events: list[Event]) -> None:
        if not message.request_id:
            return  # There is no way to answer it. The message itself tells that it came.
        if not self._theirs.begin(message.request_id):
            # Asked again after a reconnect: our answer was lost, or is still to come.
            if line := self._theirs.answer_line(message.request_id):
                self._out.append(line)
            return
        request = message.request
        if isinstance(request, UnknownRequest):
            self.refuse(
                message.request_id, f"Unsupported control request subtype: {request.subtype}"
            )
            return
        self._unanswered[message.request_id] = message
        if isinstance(request, _FOR_PEOPLE):
            self._apply_transition(Transition.ASKED)
        events.append(Asked(message))

    def _take_response(self, message: ControlResponse, events: list[Event]) -> None:
        response = message.response
        ours = self._ours.end(response.request_id)
        if ours is None:
            return  # Late, doubled, or not for us.
        ending: Ending
        if response.ok:
            ending = Answered(response.response_json)
        else:
            ending = Refused(response.error or "it gave no reason", response.error_code)
        events.append(RequestEnded(ours.request_id, ours.subtype, ending))
        if ours.subtype == "initialize":
            self._take_initialized(message, events)

    def _take_initialized(self, message: ControlResponse, events: list[Event]) -> None:
        """Both answers count: «Already initialized» lists the open questions as a success does."""
        first, self._initialized = not self._initialized, True
        self._apply_transition(Transition.INITIALIZED)
        answer = message.response
        if answer.response_json is not None:
            found = decode_or_none(answer.response_json, InitializeAnswer)
            if found is not None and found.claude_code_version:
                self.version = Version.parse(found.claude_code_version) or self.version
        pending = {request.request_id: request for request in answer.pending_requests()}
        for request in pending.values():
            self._take_request(request, events)
        if not first:
            for ask in self.asks:
                if isinstance(ask.request, CanUseTool) and ask.request_id not in pending:
                    why = "it was settled while the link was down"
                    self._withdraw(ask.request_id, why, TextCode.SETTLED_MEANWHILE, events)

    def _withdraw(self, request_id: str, reason: str, code: TextCode, events: list[Event]) -> None:
        if self._theirs.withdraw(request_id):
            events.append(Withdrawn(request_id, reason, code))
            self._settle(request_id)

    def _answer(self, answer: Answer, request_id: str) -> bool:
        line = codec.encode(answer) + b"\n"
        if not self._theirs.answer(request_id, line):
            return False
        self._out.append(line)
        self._settle(request_id)
        return True

    def _settle(self, request_id: str) -> None:
        settled = self._unanswered.pop(request_id, None)
        if settled is not None and isinstance(settled.request, _FOR_PEOPLE) and not self.asks:
            in_turn = self.turns.busy
            self._apply_transition(
                Transition.SETTLED_IN_TURN if in_turn else Transition.SETTLED_BETWEEN_TURNS
            )

    def _end_ours(self, request_id: str, ending: Ending, events: list[Event]) -> bool:
        request = self._ours.end(request_id)
        if request is None:
            return False
        events.append(RequestEnded(request_id, request.subtype, ending))
        return True

    def _send(self, message: Message) -> bytes:
        line = codec.encode(message) + b"\n"
        self._out.append(line)
        return line

    def _apply_transition(self, happened: Transition) -> None:
        self.state = transition(self.state, happened)


_M = TypeVar("_M", bound=Message)


def _decode_as(line: Raw, kind: type[_M]) -> _M:
    message = codec.from_cli(bytes(line))
    if not isinstance(message, kind):
        raise ValueError(f"a stored {kind.__name__} is a {type(message).__name__}")
    return message
