"""Who gets which line: the program, the hub or the CLI. No I/O.

Owns the account of all requests in both directions, and the turns. The hub hears all that the CLI
says, but for what is between the CLI and the program's own code (its hooks, its MCP servers, the
answers to its requests). The program hears what it would hear from the CLI alone: what only the
hub has asked for is kept from it.

| message | way |
|---|---|
| `initialize` | waits for both, is sent once with the hooks of both, and answered to both |
| `hook_callback` | to the one whose callback it is; the CLI puts deny before ask before allow |
| … whose hook changes the input | the hub's hook is shown that, before the CLI hears of it |
| … whose hook answers a permission request | that is the program's answer, see below |
| `mcp_message`, others | to the program |
| `elicitation` | to the hub |
| `can_use_tool` | to the hub, and to the program if it has a callback; the hub answers |
| the program's requests and messages | to the CLI, unless they undo what the hub forces on it |
| the end of the program's input | `may_end_input` says when it is the CLI's, too |

What the program asks of the CLI, and what its hooks decide, goes to the hub as an `Act`.

The module is long because one account of requests serves all rows of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.program import acts
from quarterdeck.program.acts import Act
from quarterdeck.program.arguments import Given
from quarterdeck.program.lines import (
    Envelope,
    Reply,
    answer_to,
    callbacks_of,
    cancel_of,
    decision_of,
    hides_a_message,
    hooks_of,
    maybe_envelope,
    merged_hooks,
    read_envelope,
    read_reply,
    refusal,
    strings_of,
    subtype_of,
    success,
    with_hooks,
)
from quarterdeck.wire import codec
from quarterdeck.wire.base import Message
from quarterdeck.wire.control import ControlCancel, ControlRequest, ControlResponse
from quarterdeck.wire.exchange import RecentIds
from quarterdeck.wire.hooks import HookEvent, PermissionRequestInput
from quarterdeck.wire.internal import CommandLifecycle, TranscriptMirror
from quarterdeck.wire.messages import StreamEvent, User
from quarterdeck.wire.rawjson import members, same_json
from quarterdeck.wire.requests import CanUseTool, Elicitation, HookCallback
from quarterdeck.wire.system import SessionStateChanged, Status
from quarterdeck.wire.turns import PromptTaken, TurnLedger

GONE = "the program has ended its input, and answers nothing any more"
REMEMBERED = 4096


_UUID_MEMBER = b'"user_message_uuid'
_UUID_MEMBERS = ("user_message_uuid", "user_message_uuids")
"""How a message names the prompts that it belongs to, if they have a uuid."""


class ProgramAnswer(Value):
    """The program's answer to a permission request, for the hub. `response` is its body."""

    request_id: str
    response: Raw


class Routed(Struct):
    """What is to be passed on now, to each in this order."""

    cli: list[bytes] = field(default_factory=list)
    program: list[bytes] = field(default_factory=list)
    hub: list[bytes | ProgramAnswer | Act] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """For readers of stderr."""


class _Open(Value):
    """A request of the CLI that waits for an answer."""

    hub: bool
    program: bool
    hook: HookCallback | None = None
    """The program's hook that is called."""
    call: CanUseTool | None = None
    """The call that is asked about."""


class Router:
    """The lines of one CLI, its program and the hub."""

    def __init__(self, given: Given, *, new_uuid: Callable[[], str] = lambda: str(uuid4())) -> None:
        self._given = given
        self._new_uuid = new_uuid
        self._ended = False
        self._held: list[bytes] = []
        """Lines of the program that wait for the hub's `initialize`."""
        self._greeted = False
        """Whether an `initialize` has been sent."""
        self._greeting: bytes | None = None
        """The hub's `initialize` that was sent within the program's."""
        self._greetings: dict[str, str] = {}
        """The hub's requests that wait for the answer to a request of the program."""
        self._greeting_answer: Raw | None = None
        self._hub_hooks: dict[str, list[Raw]] = {}
        self._hub_callbacks: set[str] = set()
        self._of_hub: set[str] = set()
        """The requests of the hub that the CLI has not answered."""
        self._of_program: set[str] = set()
        self._open: dict[str, _Open] = {}
        self._answered = RecentIds(REMEMBERED)
        """Requests of the CLI that were answered: with replay it echoes the answers."""
        self._turns = TurnLedger()
        self._hub_prompts = RecentIds(REMEMBERED)
        self._program_prompts = RecentIds(REMEMBERED)
        self._marked = RecentIds(REMEMBERED)
        """Prompts of the program that got their uuid here."""
        self._hidden = False
        """Whether the open turn is one that only the hub has asked for."""
        self._state: str | None = None
        self._shown_again: dict[str, tuple[str, Raw]] = {}
        """What the hub is asked about changed inputs: the hook's request, and its output."""
        self._decided: dict[str, Raw] = {}
        """Decisions of hooks about calls that the CLI has not asked about yet."""

    # --- what it knows ---------------------------------------------------------------------------

    @property
    def program_spoke(self) -> bool:
        """Whether the program has said or ended something: then the hub's greeting can come."""
        return bool(self._held) or self._greeted or self._ended

    def is_open(self, request_id: str) -> bool:
        """Whether the CLI waits for the answer to this request."""
        return request_id in self._open

    @property
    def may_end_input(self) -> bool:
        """Whether the CLI's input is to end: the program's has, and nothing is open."""
        return (
            self._ended
            and not self._held
            and not self._turns.busy
            and self._state in (None, "idle")
            and not self._open
            and not self._of_program
            and not self._of_hub
        )

    # --- the program -----------------------------------------------------------------------------

    def from_program(self, line: bytes) -> Routed:
        """A line that the program wrote."""
        routed = Routed()
        line = line.replace(b"\r", b" ")  # a blank for us, and for others the end of a line
        if not self._greeted:
            self._held.append(line)
            self._greet(routed)
        else:
            self._program_says(line, routed)
        return routed

    def program_ended(self) -> Routed:
        """The program ended its input: what the CLI asks its code is refused from now on."""
        routed = Routed()
        self._ended = True
        self._greet(routed)
        for request_id, asked in list(self._open.items()):
            if asked.hub:
                self._open[request_id] = replace(asked, program=False)
            else:
                self._close(request_id)
                routed.cli.append(refusal(request_id, GONE))
        return routed

    def _program_says(self, line: bytes, routed: Routed) -> None:
        said = maybe_envelope(line)
        if said is None:
            if hides_a_message(line):
                routed.warnings.append("a message of the program is not passed on: it is malformed")
                routed.hub.append(acts.malformed_act())
            else:
                routed.cli.append(line)  # the CLI says what is wrong with it
            return
        match said.type:
            case "control_request":
                self._program_requests(said, line, routed)
            case "control_response":
                self._program_answers(said, line, routed)
            case "user":
                routed.cli.append(self._marked_prompt(said, line))
            case "control_cancel_request":
                if said.request_id in self._of_program:
                    self._of_program.discard(said.request_id)  # it may get no answer any more
                    routed.cli.append(line)
            case kind:
                self._handle_program_line(kind, said, line, routed)

    def _handle_program_line(self, kind: str, said: Envelope, line: bytes, routed: Routed) -> None:
        if acts.is_environment(kind):
            try:
                acts.check_variables(line)
            except UsageError as error:
                routed.warnings.append(f"variables of the program are not passed on: {error}")
                _add(routed, acts.message_act(kind, line, refused=str(error)))
                if said.request_id:
                    routed.program.append(refusal(said.request_id, str(error)))
                return
        if (act := acts.message_act(kind, line)) is not None:
            routed.hub.append(act)
        routed.cli.append(line)

    def _program_requests(self, said: Envelope, line: bytes, routed: Routed) -> None:
        if said.request_id in self._of_hub or said.request_id in self._of_program:
            text = f"the request {said.request_id!r} is open already"
            self._refuse(said, text, routed)
            return
        subtype = subtype_of(said.request)
        try:
            acts.check_request(subtype, said.request, self._given)
        except UsageError as error:
            self._refuse(said, str(error), routed)
            return
        if subtype == "initialize":
            found = hooks_of(members(said.request))
            if taken := callbacks_of(found) & self._hub_callbacks:
                self._refuse(said, f"the callback id {min(taken)!r} is the hub's", routed)
                return
            # Also one that comes later: it would take the hub's hooks away.
            line = with_hooks(line, said.request, merged_hooks(self._hub_hooks, found))
        self._of_program.add(said.request_id)
        _add(routed, acts.request_act(subtype, said.request))
        routed.cli.append(line)

    def _refuse(self, said: Envelope, why: str, routed: Routed) -> None:
        """Refuse a request of the program, and have that in the audit log."""
        routed.program.append(refusal(said.request_id, why))
        _add(routed, acts.request_act(subtype_of(said.request), said.request, refused=why))

    def _program_answers(self, said: Envelope, line: bytes, routed: Routed) -> None:
        reply = read_reply(said.response)
        asked = self._open.get(reply.request_id)
        if asked is None or not asked.program:
            return  # withdrawn, answered by the hub, or never asked
        if asked.hub:
            # Only the hub answers: it knows who may, and keeps what was answered.
            self._open[reply.request_id] = replace(asked, program=False)
            routed.hub.append(
                ProgramAnswer(request_id=reply.request_id, response=decision_of(reply))
            )
            return
        if asked.hook is not None:
            self._hook_answers(asked.hook, reply, line, routed)
            return
        self._close(reply.request_id)
        routed.cli.append(line)

    def _hook_answers(self, hook: HookCallback, reply: Reply, line: bytes, routed: Routed) -> None:
        """A hook of the program has an output."""
        _add(routed, acts.hook_act(hook, reply))
        event = acts.event_of(hook)
        if event == HookEvent.PERMISSION_REQUEST.value and reply.subtype == "success":
            # The CLI would take a decision here for the answer, and the hub could not object.
            decision, rest = acts.taken_decision(reply)
            self._close(reply.request_id)
            routed.cli.append(success(reply.request_id, rest))
            if decision is not None:
                self._answer_by_hook(hook, decision, routed)
            return
        changed = acts.changed_input(reply)
        watching = sorted(callbacks_of({event: self._hub_hooks.get(event, [])}))
        if changed is not None and watching:
            # The hub has been shown the agent's input only.
            second = f"{reply.request_id}-changed"
            self._shown_again[second] = reply.request_id, reply.response
            self._open[reply.request_id] = _Open(hub=True, program=False, hook=hook)
            routed.hub.append(acts.with_input(hook, watching[0], changed, second))
            return
        self._close(reply.request_id)
        routed.cli.append(line)

    def _answer_by_hook(self, hook: HookCallback, decision: Raw, routed: Routed) -> None:
        """Give the decision of a hook to the hub, as the program's answer."""
        for request_id, asked in self._open.items():
            if asked.call is not None and _is_same_call(asked.call, hook):
                routed.hub.append(ProgramAnswer(request_id=request_id, response=decision))
                return
        if hook.tool_use_id:  # the CLI is about to ask
            self._decided[hook.tool_use_id] = decision
            while len(self._decided) > REMEMBERED:
                del self._decided[next(iter(self._decided))]

    def _marked_prompt(self, said: Envelope, line: bytes) -> bytes:
        """The prompt with a uuid: the CLI reports on those that have one."""
        uuid = said.uuid
        if not uuid:
            uuid = self._new_uuid()
            self._marked.add(uuid)
            line = msgspec.json.encode({**members(Raw(line)), "uuid": uuid})
        self._program_prompts.add(uuid)
        self._turns.prompt(uuid)
        return line

    # --- the hub ---------------------------------------------------------------------------------

    def from_hub(self, line: bytes) -> Routed:
        """A line that the hub has for the CLI."""
        routed = Routed()
        said = read_envelope(line)
        match said.type:
            case "control_request" if subtype_of(said.request) == "initialize":
                self._hub_greets(said, line, routed)
            case "control_request":
                self._of_hub.add(said.request_id)
                routed.cli.append(line)
            case "control_response":
                self._hub_answers(read_reply(said.response), line, routed)
            case "control_cancel_request":
                self._of_hub.discard(said.request_id)
                routed.cli.append(line)
            case "user":
                if said.uuid:
                    self._hub_prompts.add(said.uuid)
                    self._turns.prompt(said.uuid)
                routed.cli.append(line)
            case _:
                routed.cli.append(line)
        return routed

    def _hub_greets(self, said: Envelope, line: bytes, routed: Routed) -> None:
        if self._greeting_answer is not None:
            routed.hub.append(answer_to(said.request_id, self._greeting_answer))
            return
        self._greeting = line
        self._hub_hooks = hooks_of(members(said.request))
        self._hub_callbacks = callbacks_of(self._hub_hooks)
        self._greet(routed)

    def _greet(self, routed: Routed) -> None:
        """Send the one `initialize` when both are there, and then what the program has said."""
        if self._greeted or self._greeting is None or not self.program_spoke:
            return
        self._greeted = True
        mine = read_envelope(self._greeting)
        held, self._held = self._held, []
        first = maybe_envelope(held[0]) if held else None
        if first is not None and subtype_of(first.request) == "initialize":
            self._program_says(held.pop(0), routed)
            if first.request_id in self._of_program:
                self._greetings[first.request_id] = mine.request_id
        if not self._greetings:
            self._of_hub.add(mine.request_id)
            self._greetings[mine.request_id] = mine.request_id
            routed.cli.append(self._greeting)
        for line in held:
            self._program_says(line, routed)

    def _hub_answers(self, reply: Reply, line: bytes, routed: Routed) -> None:
        if (shown := self._shown_again.pop(reply.request_id, None)) is not None:
            request_id, output = shown
            if request_id in self._open:
                self._close(request_id)
                routed.cli.append(success(request_id, acts.both_outputs(output, reply)))
            return
        asked = self._open.get(reply.request_id)
        if asked is None or not asked.hub:
            return  # withdrawn meanwhile, or a line that was written before
        if asked.program:
            routed.program.append(cancel_of(reply.request_id))
        self._close(reply.request_id)
        routed.cli.append(line)

    # --- the CLI ---------------------------------------------------------------------------------

    def from_cli(self, line: bytes) -> Routed:
        """A line that the CLI wrote."""
        routed = Routed()
        message = codec.from_cli(line)
        match message:
            case ControlRequest():
                self._cli_requests(message, line, routed)
            case ControlCancel(request_id=request_id):
                self._cli_withdraws(request_id, line, routed)
            case ControlResponse():
                self._cli_answers(message, line, routed)
            case _:
                self._follow_turns(message)
                routed.hub.append(line)
                if self._is_for_program(message):
                    routed.program.append(self._without_marks(line))
                self._turn_over(message)
        return routed

    def _cli_requests(self, message: ControlRequest, line: bytes, routed: Routed) -> None:
        decided: Raw | None = None
        match message.request:
            case CanUseTool(tool_use_id=tool_use_id) as call:
                decided = self._decided.pop(tool_use_id, None)
                by_program = self._given.callback and not self._ended and decided is None
                asked = _Open(hub=True, program=by_program, call=call)
            case Elicitation():
                asked = _Open(hub=True, program=False)
            case HookCallback(callback_id=callback_id):
                mine = callback_id in self._hub_callbacks
                hook = None if mine else message.request
                asked = _Open(hub=mine, program=not mine, hook=hook)
            case _:
                asked = _Open(hub=False, program=True)
        if self._ended and not asked.hub:
            self._answered.add(message.request_id)
            routed.cli.append(refusal(message.request_id, GONE))
            return
        self._open[message.request_id] = asked
        if asked.hub:
            routed.hub.append(line)
        if asked.program:
            routed.program.append(line)
        if decided is not None:
            routed.hub.append(ProgramAnswer(request_id=message.request_id, response=decided))

    def _cli_withdraws(self, request_id: str, line: bytes, routed: Routed) -> None:
        asked = self._open.get(request_id)
        if asked is None:
            return
        self._close(request_id)
        again = [each for each, (of, _) in self._shown_again.items() if of == request_id]
        for second in again:
            del self._shown_again[second]
            routed.hub.append(cancel_of(second))
        if asked.hub and not again:
            routed.hub.append(line)
        if asked.program:
            routed.program.append(line)

    def _cli_answers(self, message: ControlResponse, line: bytes, routed: Routed) -> None:
        request_id = message.response.request_id
        hub = self._greetings.pop(request_id, None)
        if hub is not None:
            self._greeting_answer = message.response_json
            routed.hub.append(answer_to(hub, message.response_json))
            self._of_hub.discard(hub)
        if request_id in self._of_program:
            self._of_program.discard(request_id)
            routed.program.append(line)
        elif hub is None and request_id in self._of_hub:
            self._of_hub.discard(request_id)
            routed.hub.append(line)
        elif hub is None and self._given.replay and request_id in self._answered:
            routed.program.append(line)  # with replay it gives back what it was answered

    def _follow_turns(self, message: Message) -> None:
        was_open = self._turns.in_turn
        if isinstance(message, SessionStateChanged):
            self._state = str(message.state)
        for event in self._turns.observe(message):
            match event:
                case PromptTaken(uuid=uuid) if uuid in self._hub_prompts:
                    self._hidden = self._hidden or not was_open
                case PromptTaken():
                    self._hidden = False
                case _:
                    pass
            was_open = True

    def _turn_over(self, message: Message) -> None:
        """What comes after the last message of a turn is not part of it."""
        if self._hidden and not self._turns.in_turn and not isinstance(message, CommandLifecycle):
            self._hidden = False

    def _is_for_program(self, message: Message) -> bool:
        """Whether the program would hear this from the CLI alone."""
        match message:
            case SessionStateChanged():
                return self._given.states
            case TranscriptMirror():
                return True
            case CommandLifecycle(command_uuid=uuid):
                return uuid not in self._hub_prompts and uuid not in self._marked
            case _ if self._hidden:
                return False
            case StreamEvent():
                return self._given.partial
            case Status(status="requesting"):
                return self._given.partial
            case User(is_replay=True, uuid=str(uuid)) if uuid in self._hub_prompts:
                return False
            case User(is_replay=True, uuid=str(uuid)) if uuid in self._program_prompts:
                return self._given.replay  # others are the output of commands
            case _:
                return True

    def _without_marks(self, line: bytes) -> bytes:
        """The line without the uuids that prompts of the program got here."""
        if _UUID_MEMBER not in line:
            return line
        found = members(Raw(line))
        for name in _UUID_MEMBERS:
            if name in found and any(each in self._marked for each in strings_of(found[name])):
                del found[name]
        return msgspec.json.encode(found)

    def _close(self, request_id: str) -> None:
        self._open.pop(request_id, None)
        self._answered.add(request_id)


def _add(routed: Routed, act: Act | None) -> None:
    if act is not None:
        routed.hub.append(act)


def _is_same_call(call: CanUseTool, hook: HookCallback) -> bool:
    """Whether a hook is about the call that is asked about."""
    if hook.tool_use_id:
        return call.tool_use_id == hook.tool_use_id
    seen = hook.hook_input
    return (
        isinstance(seen, PermissionRequestInput)
        and seen.tool_name == call.tool_name
        and same_json(seen.tool_input, call.input)
    )
