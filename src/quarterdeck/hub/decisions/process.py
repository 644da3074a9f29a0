"""What follows from what a process does, besides its lines: start, link, end. Pure."""

from __future__ import annotations

from msgspec import Raw

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict
from quarterdeck.hub.decisions.base import (
    NOTHING,
    Decision,
    Done,
    Facts,
    State,
    Steps,
    send_line,
    status_changes,
)
from quarterdeck.hub.decisions.inputs import (
    Acted,
    AfterEnd,
    Connected,
    EarlierFacts,
    EarlierRead,
    Ended,
    EndFacts,
    InboundReconnected,
    LinkBack,
    LinkBroken,
    Move,
    NotGreeted,
    SendNext,
    Started,
    StartFailed,
    TranscriptRead,
)
from quarterdeck.hub.decisions.lines import WATCHING_HOOK, import_lines, translate_event
from quarterdeck.hub.decisions.starts import begin, check_machine, check_options, next_spec
from quarterdeck.hub.effects import (
    Acknowledge,
    AwaitGreeting,
    CloseGap,
    Effect,
    ReadTranscript,
    Settle,
    StopProcess,
)
from quarterdeck.hub.lines import messages
from quarterdeck.hub.run_state import RunState
from quarterdeck.hub.sandbox_hints import refused_host
from quarterdeck.hub.supervision import crashes
from quarterdeck.protocol.coded_texts import end_text
from quarterdeck.protocol.events import (
    CliSession,
    Event,
    LinkFound,
    LinkLost,
    Noted,
    ProgramActed,
    Recalled,
    RunEnded,
    RunStarted,
    SandboxConnection,
    SandboxStarted,
    SpecChanged,
)
from quarterdeck.protocol.runner_frames import TranscriptQuery
from quarterdeck.protocol.sessions import Origin
from quarterdeck.wire.commands import Initialize
from quarterdeck.wire.exchange import Ending
from quarterdeck.wire.hooks import HookEvent, HookMatcher
from quarterdeck.wire.peer import RequestEnded
from quarterdeck.wire.tools import one_line

LONGEST_NAME, LONGEST_DETAIL = 100, 300
"""Characters that are kept of what a program tells of itself."""
WATCHING_SECONDS = 2_000_000.0
"""How long the CLI waits for our verdict on a call: 23 days, near the most that it can count. With
a shorter time, versions up to 2.1.120 would let the call pass when the hub is away."""


# --- its start -----------------------------------------------------------------------------------


def decide_started(state: State, started: Started, facts: Facts) -> Decision[Done]:
    """Its process runs: greet it, once."""
    run = state.run_of(started.run)
    if run is None:
        return NOTHING
    waits = () if run.greeted else (AwaitGreeting(),)
    if state.view.link_lost is not None:
        # The link was lost before the start was reported.
        yield from _link_found(run, facts.now, journalled_lost=True)
    if started.pid is None or state.view.pid != started.pid:
        yield RunStarted(
            run=run.run,
            pid=started.pid,
            version=started.version,
            directory=started.directory,
        )
        if (box := started.sandbox) is not None:
            yield SandboxStarted(run=run.run, state=box.state, paths=box.paths)
        if not run.greeting:
            yield from send_line(run, run.peer.request_line(_greeting(run))[1])
    return Done(effects=waits)


def _greeting(run: RunState) -> Initialize:
    watch = HookMatcher(hook_callback_ids=(WATCHING_HOOK,), timeout=WATCHING_SECONDS)
    return Initialize(
        hooks={HookEvent.PRE_TOOL_USE.value: (watch,)},
        skills=run.spec.skills,
        agent_progress_summaries=run.spec.agent_progress_summaries or None,
    )


def decide_not_greeted(state: State, late: NotGreeted, facts: Facts) -> Decision[Done]:
    """A CLI that does not answer `initialize` will not answer anything else: it is ended."""
    del facts
    run = state.run_of(late.run)
    if run is None or run.greeted:
        return NOTHING
    coded = CodedText(code=TextCode.NOT_GREETED, seconds=late.seconds)
    yield Noted(level="error", text="", coded=coded)
    return Done(effects=(StopProcess(force=True),))


def decide_start_failed(state: State, failed: StartFailed, facts: Facts) -> Decision[Done]:
    """Its machine cannot start it."""
    del facts
    if state.view.run == failed.run:
        yield RunEnded(run=failed.run, reason="", coded=failed.why, written=failed.written)
    return NOTHING


# --- what it reports -----------------------------------------------------------------------------


def decide_acted(state: State, acted: Acted, facts: Facts) -> Decision[Done]:
    """Its program has done something to it. What came before is nothing."""
    del facts
    run = state.run_of(acted.run)
    if run is None:
        return NOTHING
    if acted.act.number > run.said:
        yield ProgramActed(
            run=run.run,
            by=acted.by,
            number=acted.act.number,
            act=one_line(acted.act.act, LONGEST_NAME),
            what=one_line(acted.act.what, LONGEST_NAME),
            detail=one_line(acted.act.detail, LONGEST_DETAIL),
            tool=None if acted.act.tool is None else one_line(acted.act.tool, LONGEST_NAME),
            tool_use_id=acted.act.tool_use_id,
            refused=acted.act.refused,
        )
    return Done(effects=(Acknowledge(number=acted.act.number),))


def decide_connected(state: State, connected: Connected, facts: Facts) -> Decision[Done]:
    """Its CLI used the network through the proxy. One that came before is nothing."""
    del facts
    run, connection = state.run_of(connected.run), connected.connection
    if run is None:
        return NOTHING
    if connection.number > run.said:
        yield SandboxConnection(
            run=run.run,
            number=connection.number,
            host=connection.host,
            port=connection.port,
            allowed=connection.allowed,
            count=connection.count,
        )
        tools = run.holds.tools
        if not connection.allowed and tools:
            yield refused_host(tools[-1], connection.host)
    return Done(effects=(Acknowledge(number=connection.number),))


# --- its link ------------------------------------------------------------------------------------


def decide_link_broken(state: State, lost: LinkBroken, facts: Facts) -> Decision[Done]:
    """Its machine cannot be reached."""
    run = state.run_of(lost.run)
    if run is not None:
        yield LinkLost(run=run.run, reason="", coded=lost.why)
        yield from status_changes(run, facts.now)
    return NOTHING


def decide_link_back(state: State, back: LinkBack, facts: Facts) -> Decision[Done]:
    """Its machine is there again, and nothing was lost: runs are numbered."""
    run = state.run_of(back.run)
    if run is None:
        return NOTHING
    journalled_lost = state.view.link_lost is not None
    yield from _link_found(run, facts.now, journalled_lost=journalled_lost)
    return Done(then=(SendNext(),))


def _link_found(run: RunState, at: int, *, journalled_lost: bool) -> Steps:
    """A hub that has just started may not know that the link was lost (`journalled_lost`)."""
    if journalled_lost or run.link_down:
        yield LinkFound(run=run.run)
    yield from status_changes(run, at)


def decide_inbound_reconnect(
    state: State, again: InboundReconnected, facts: Facts
) -> Decision[Done]:
    """The CLI has connected again: ask it for what it still wants to know."""
    run = state.run_of(again.run)
    if run is None:
        return NOTHING
    lost = again.last is not None and not run.peer.has_seen(again.last)
    yield LinkFound(run=run.run, lost=lost)
    for line in run.peer.lines_to_repeat():
        yield from send_line(run, line)
    yield from status_changes(run, facts.now)
    return Done(then=(SendNext(),))


# --- its end -------------------------------------------------------------------------------------


def wanted_of_transcript(run: RunState, cli_session: str | None) -> TranscriptQuery:
    """What is to be asked for of its transcript: the messages that were not received.

    They are the last ones: those of a long run that are known are the last ones too.
    """
    received, complete = run.received, run.received.complete
    return TranscriptQuery(
        cli_session=cli_session,
        known=received.remembered,
        prompts=run.turns.uuids if complete else run.peer.unconfirmed,
        since=() if complete else received.newest,
    )


def decide_transcript(state: State, read: TranscriptRead, facts: Facts) -> Decision[Done]:
    """Messages of its transcript: the unknown ones are journalled."""
    del facts
    run = state.run_of(read.run)
    if run is None:
        return NOTHING
    yield from import_lines(run, read.lines)
    if read.cli_session is not None and state.view.cli_session is None:
        yield CliSession(cli_session=read.cli_session)
    return NOTHING


def decide_earlier(state: State, read: EarlierRead, facts: EarlierFacts) -> Decision[Done]:
    """What a resumed CLI wrote about the turn that was cut off before it: see `resume_gap`."""
    run = state.run_of(read.run)
    if run is None or facts.cut_off is None:
        return NOTHING
    found: dict[str, None] = {}
    for uuid, line in messages(read.lines):
        if uuid not in facts.known and uuid not in found and not run.peer.has_seen(uuid):
            found[uuid] = None
            yield Recalled(run=facts.cut_off, uuid=uuid, line=Raw(line))
    return Done(effects=(CloseGap(messages=tuple(found)),)) if found else NOTHING


def decide_ended(state: State, ended: Ended, facts: EndFacts) -> Decision[Done]:
    """Its process is gone, and so is all that was open. The session can be resumed.

    If it may have written messages that the hub did not receive, its transcript is read first.
    Until these are journalled its machine keeps the end, and reports it again on reconnect. A
    session that is to begin afresh does so in the same append: a hub that is killed here has ended
    the one and begun the other.
    """
    run = state.run_of(ended.run)
    if run is None:
        return NOTHING
    view, end = state.view, ended.end
    if end.unheard and facts.reachable and not ended.transcript_read:
        wanted = wanted_of_transcript(run, view.cli_session)
        if wanted.known or wanted.prompts:
            return Done(effects=(ReadTranscript(run=run.run, end=end, wanted=wanted),))
    over = RunEnded(
        run=run.run,
        reason=end.reason if end.coded is None else "",
        coded=end.coded,
        clean=end.clean,
        exit_code=end.exit_code,
        signal=end.signal,
        stderr=end.stderr,
        fault=end.fault,
        cut_off=run.busy,
        written=run.gate.written,
    )
    endings = yield from _close(run, over, facts.now)
    empty = crashes.nothing_to_resume(view, over, run.watch)
    if not empty:
        yield from _at_end(state, run, over, facts)
    effects: list[Effect] = []
    if end.number is not None:
        effects.append(Acknowledge(number=end.number))
    effects.append(Settle(endings=tuple(endings)))
    yield over
    if view.afresh or empty:
        yield from _begin_afresh(state, run, over, facts)
    return Done(effects=tuple(effects), then=(AfterEnd(),))


def decide_move(state: State, move: Move, facts: EndFacts) -> Decision[Done]:
    """The run that there is is given up, and another begins elsewhere, in one append."""
    view, run = state.view, state.run
    origin = Origin(cli_session=view.cli_session)
    changes: list[Event] = list(move.notes)
    if move.spec != view.spec:
        changes.insert(0, SpecChanged(spec=move.spec, by=move.by))
    switched = () if run is None else tuple(run.switches.end_events(run.spec))
    spec = next_spec(view, origin, (*switched, *changes))
    if move.here:
        check_machine(spec, state.session)
    effects: tuple[Effect, ...] = ()
    written = facts.written
    if run is not None:
        moved = CodedText(code=TextCode.MOVED_AWAY, name=move.away, other=move.machine)
        written = run.gate.written
        over = RunEnded(run=run.run, reason="", coded=moved, cut_off=run.busy, written=written)
        endings = yield from _close(run, over, facts.now)
        yield from _at_end(state, run, over, facts)
        yield over
        effects = (Settle(endings=tuple(endings)),)
    if move.here:
        yield from begin(state, facts, origin, *changes, written=written, spec=spec)
    else:
        yield from changes
    return Done(effects=effects)


def _close(run: RunState, over: RunEnded, at: int) -> Decision[list[tuple[str, Ending]]]:
    """What was open ends with the process. Returns the requests of ours that end."""
    yield from run.switches.end_events(run.spec)
    endings: list[tuple[str, Ending]] = []
    for event in run.peer.open_requests(end_text(over)):
        if isinstance(event, RequestEnded):
            endings.append((event.request_id, event.ending))
        else:
            yield from translate_event(run, event, 0)
    yield from status_changes(run, at, over=True)
    return endings


def _begin_afresh(state: State, run: RunState, over: RunEnded, facts: EndFacts) -> Steps:
    try:
        check_machine(run.spec, state.session)
        check_options(state.view)
    except Conflict as error:
        coded = CodedText(code=TextCode.NO_NEW_CONVERSATION, detail=str(error))
        yield Noted(level="warning", text="", coded=coded)
    else:
        yield from begin(state, facts, Origin(), written=over.written, spec=run.spec)


def _at_end(state: State, run: RunState, over: RunEnded, facts: EndFacts) -> Steps:
    """What is written down before the end of a run."""
    if run.meter.used:
        metered = run.meter.metered_event(run.run, facts.prices)
        if metered.models != state.view.account.metered:
            yield metered
    yield from crashes.alarms_at_end(state.view, over, answered=run.watch.answered_for)


def decide_after_end(state: State, after: AfterEnd, facts: Facts) -> Decision[Done]:
    """A run has ended: what is written down after it."""
    del after, facts
    if (alarm := crashes.loop_alarm(state.view)) is not None:
        yield alarm
    return NOTHING
