"""What follows from a line of the CLI. Pure.

Owns the translation of the CLI's lines into our events. The line itself is the first event; the
fold reports what it has changed, and from that report and from the rulings on the CLI's questions
all else follows: switches, prompts taken, ends of turns, answers, cards, holdings, the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.structs import Value
from quarterdeck.hub import holdings
from quarterdeck.hub.decisions.base import Decision, Known, State, Steps, send_line
from quarterdeck.hub.decisions.inputs import Line, LineFacts
from quarterdeck.hub.lines import ReadLine, line_event, messages
from quarterdeck.hub.peer_prompts import peer_prompts
from quarterdeck.hub.permissions.context import NO_RULING, CallQuestion, Ruling
from quarterdeck.hub.permissions.open_asks import PLAN, AskFactory
from quarterdeck.hub.program_prompts import program_prompts
from quarterdeck.hub.run_state import LineReport, RunState
from quarterdeck.hub.sandbox_hints import hints
from quarterdeck.protocol.events import (
    AskWithdrawn,
    Event,
    Recalled,
    RunStarted,
    SpecChanged,
    TurnEnded,
)
from quarterdeck.wire.base import Message
from quarterdeck.wire.command_base import decode_or_none
from quarterdeck.wire.commands import GetPlan, PlanAnswer
from quarterdeck.wire.control import ControlRequest
from quarterdeck.wire.exchange import Answered, Ending
from quarterdeck.wire.hook_outputs import SyncOutput
from quarterdeck.wire.messages import Assistant, Result
from quarterdeck.wire.peer import Asked, RequestEnded, Withdrawn
from quarterdeck.wire.peer import Event as PeerEvent
from quarterdeck.wire.requests import CanUseTool, Elicitation, HookCallback
from quarterdeck.wire.system import Init
from quarterdeck.wire.turns import PromptTaken as WireTaken
from quarterdeck.wire.turns import TurnEnded as WireEnded
from quarterdeck.wire.versions import permits

WATCHING_HOOK = "quarterdeck-watch"


class LineResult(Value):
    """What a line of the CLI means, besides its events."""

    whole: bool = False
    """A message is whole: the deltas before it are superseded."""
    endings: tuple[tuple[str, Ending], ...] = ()
    """The requests of ours that have ended."""
    turns: tuple[TurnEnded, ...] = ()
    """The turns that have ended."""


NO_RESULT = LineResult()


# --- facts that a line needs ---------------------------------------------------------------------


def questions(run: RunState, read: ReadLine, at: int) -> dict[str, CallQuestion]:
    """The questions to the rules that a line raises, by the ids of the CLI's requests."""
    found: dict[str, CallQuestion] = {}
    for request in run.peer.new_requests(read.message):
        question = _question(run, request, at)
        if question is not None:
            found[request.request_id] = question
    return found


def _question(run: RunState, message: ControlRequest, at: int) -> CallQuestion | None:
    gate, switches = run.gate, run.switches
    match message.request:
        case CanUseTool() as request:
            return gate.ask_question(request, switches.mode_of_call(request.tool_use_id), at)
        case HookCallback(callback_id=callback_id, hook_input=seen) if callback_id == WATCHING_HOOK:
            return gate.hook_question(seen, switches.mode_in_hook(seen), at, run.version)
        case _:
            return None


# --- a line --------------------------------------------------------------------------------------


def decide_line(state: State, said: Line, facts: LineFacts) -> Decision[LineResult]:
    """A line of the CLI that is no piece of a message."""
    run = state.run_of(said.run)
    if run is None:
        return NO_RESULT
    line, flaw, message = said.read
    uuid = getattr(message, "uuid", None)
    if run.inbound and uuid and run.peer.has_seen(uuid):
        return NO_RESULT  # 2.1.120 repeats all that it said when it dials again
    report = yield Known(line_event(run.run, said.number, line, message, flaw), message)
    assert report is not None
    if not report.events:
        return NO_RESULT
    if report.plain:  # as most lines are
        yield from holdings.changes(run.holds, message)
        for answer in report.answers:
            yield from send_line(run, answer)
        yield from run.status.changes(run.peer, message, facts.now)
        return NO_RESULT
    turns: list[TurnEnded] = []
    endings: list[tuple[str, Ending]] = []
    # Parts that most lines do not need are called only where they are needed: every line is here.
    yield from report.switched
    yield from _peers(run, message)
    if run.program:
        yield from program_prompts(run.run, message, run.turns.uuids, state.view.by)
    for event in report.events:
        match event:
            case RequestEnded(request_id=request_id, subtype=subtype, ending=ending):
                endings.append((request_id, ending))
                yield from _decide_ending(run, subtype, ending, facts.now)
            case Asked(request=request):
                yield from _decide_request(run, request, report, facts.rulings, facts.now)
            case Withdrawn() | WireTaken() | WireEnded():
                yield from translate_event(run, event, report.tool_calls, turns)
            case _:
                pass
    if isinstance(message, Init):
        yield from _decide_place(run, message)
    yield from report.by_cli
    yield from report.limits
    # Before the calls of the results are gone from `holds`.
    yield from list(hints(run.sandbox, run.holds, message))
    yield from holdings.changes(run.holds, message)
    for answer in report.answers:
        yield from send_line(run, answer)
    yield from run.status.changes(run.peer, message, facts.now)
    whole = isinstance(message, Assistant | Result)
    if not (whole or endings or turns):
        return NO_RESULT
    return LineResult(endings=tuple(endings), turns=tuple(turns), whole=whole)


def _peers(run: RunState, message: Message) -> list[Event]:
    """A prompt that another session has sent to the CLI."""
    return peer_prompts(run.run, message, run.peers, refused=not run.spec.cross_session)


def _decide_ending(run: RunState, subtype: str, ending: Ending, at: int) -> Steps:
    """A request of ours has ended."""
    if isinstance(ending, Answered):
        yield from holdings.changes_by_answer(run.holds, subtype, ending.json)
    if subtype == GetPlan().subtype:
        yield from open_plans(run, at, _plan_in(ending), at)


def translate_event(
    run: RunState, event: PeerEvent, tool_calls: int, turns: list[TurnEnded] | None = None
) -> Steps:
    """What an event of the protocol means to us. Turns that have ended are added to `turns`."""
    match event:
        case Withdrawn(request_id=request_id, code=code):
            ask = run.asks.ask_of(request_id)
            if ask is not None:
                yield AskWithdrawn(ask=ask, reason="", coded=CodedText(code=code))
        case WireTaken() | WireEnded():
            found = run.turns.translate(event, tool_calls, run.status.problem)
            if turns is not None and isinstance(found, TurnEnded):
                turns.append(found)
            yield found
        case _:
            pass


def _decide_place(run: RunState, init: Init) -> Steps:
    """A CLI that the hub did not start reports its directory, for resume and fork."""
    if not run.unknown_place or not init.cwd.startswith("/"):
        return
    version = init.claude_code_version or None
    yield RunStarted(run=run.run, version=version, directory=init.cwd)
    if init.cwd != run.spec.directory:
        yield SpecChanged(spec=replace(run.spec, directory=init.cwd), by="cli")


# --- requests of the CLI -------------------------------------------------------------------------


def _decide_request(
    run: RunState,
    message: ControlRequest,
    report: LineReport,
    rulings: Mapping[str, Ruling],
    at: int,
) -> Steps:
    request_id = message.request_id
    ruling = rulings.get(request_id, NO_RULING)
    match message.request:
        case CanUseTool() as request:
            yield from _decide_ask(run, message, request, report, ruling, at)
        case HookCallback(callback_id=callback_id) as request if callback_id == WATCHING_HOOK:
            mode = report.modes[request_id]
            yield from _decide_hook(run, request_id, request, mode, ruling, at)
        case Elicitation() as request:
            yield _cards(run).elicitation(
                request_id, request, message.request_json, at, number=run.said
            )
        case request:
            error = f"the hub does not do {type(request).__name__}"
            yield from send_line(run, run.peer.refusal_line(request_id, error))


def _decide_ask(
    run: RunState,
    message: ControlRequest,
    request: CanUseTool,
    report: LineReport,
    ruling: Ruling,
    at: int,
) -> Steps:
    """The CLI asks about a call."""
    request_id, json = message.request_id, message.request_json
    decision = run.gate.decide_ask(request, report.earlier[request_id], ruling, at)
    if decision.body is not None:
        yield from decision.events
        yield from send_line(run, run.peer.answer_line(request_id, decision.body))
        return
    plan = run.asks.plan_of(request)
    if request.tool_name == PLAN and not plan and permits(run.version, GetPlan):
        yield from send_line(run, run.peer.request_line(GetPlan())[1])
        return
    shown = decision.shown_request(request)
    card = _cards(run).tool(request_id, shown, plan, at, number=run.said, json=json)
    yield decision.with_policy(card)


def _decide_hook(
    run: RunState, request_id: str, request: HookCallback, mode: str, ruling: Ruling, at: int
) -> Steps:
    """The CLI is about to run a tool, or to ask about it: policy speaks first."""
    decision = run.gate.decide_hook(request.hook_input, mode, ruling, run.version)
    if decision.held is not None:
        plan = run.asks.plan_of(decision.held)
        card = _cards(run).tool(request_id, decision.held, plan, at, number=run.said)
        yield decision.with_policy(card)
        return
    yield from decision.events
    body = decision.body or SyncOutput()
    yield from send_line(run, run.peer.answer_line(request_id, body))


def open_plans(run: RunState, before: int, plan: str | None, at: int) -> Steps:
    """Open the cards of plans whose text was asked for, before or at a time in ms."""
    for request_id, asked_at, request, json in run.without_card():
        if asked_at <= before:
            text = run.asks.plan_of(request) or plan
            yield _cards(run).tool(request_id, request, text, at, number=run.said, json=json)


def _cards(run: RunState) -> AskFactory:
    return AskFactory(run.session, run.run)


def _plan_in(ending: Ending) -> str | None:
    """The text in the answer to `get_plan`, if there is one."""
    if isinstance(ending, Answered) and ending.json is not None:
        answer = decode_or_none(ending.json, PlanAnswer)
        return answer.content if answer is not None else None
    return None


# --- the transcript ------------------------------------------------------------------------------


def import_lines(run: RunState, lines: Iterable[bytes]) -> Steps:
    """Messages of the CLI's transcript. Those that the hub has received are ignored."""
    for uuid, line in messages(lines):
        if run.peer.has_seen(uuid):
            continue
        report = yield Recalled(run=run.run, uuid=uuid, line=Raw(line))
        if report is not None and report.events:
            yield from _peers(run, report.message)
        for event in report.events if report is not None else ():
            if isinstance(event, WireTaken):
                yield from translate_event(run, event, 0)
