"""The shell around a session's decisions: one input at a time, from the lock to the effects.

Owns the order: take the lock, look up facts, decide, journal, and only then act::

    facts = await gather(session, input)          # `facts`: clock, rules, disk, journal
    decide(state, input, facts) -> events         # `decisions`: pure
    evolve(state, event) -> state                 # `run_state` and `journal.views`: pure
    effects(events) -> effects                    # `effects`: pure; performed here

What follows from an input is decided in the same way, on top of what was journalled. It knows no
command and no line: the tables of `decisions`, `facts` and `effects` do.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import LaunchError, NotFound, StaleFence
from quarterdeck.hub import effects as do
from quarterdeck.hub.decisions.base import Done, Facts, State, collect
from quarterdeck.hub.decisions.inputs import Input, OtherInput, StartFailed
from quarterdeck.hub.decisions.starts import spec_of
from quarterdeck.hub.decisions.table import TABLE
from quarterdeck.hub.facts import gather
from quarterdeck.hub.session import Session, UnheardEnd
from quarterdeck.protocol.events import Event, RunStarting
from quarterdeck.protocol.sessions import UNMANAGED

GREETING_SECONDS = 90.0
"""How long a CLI may take to answer `initialize` before it is ended."""


async def handle(session: Session, input_: Input) -> Done:
    """Take an input: from the lock to the effects. Raises what its decision refuses it with."""
    async with session.in_order():
        return await carry_out(session, input_)


async def carry_out(session: Session, input_: Input) -> Done:
    """The same for a caller that has the lock."""
    facts = await gather(session, input_)
    done: Done = decide(session, input_, facts)
    failed = await commit(session, done.effects)
    for following in done.then:
        then = await carry_out(session, following)
        done = done if then.outcome is None else then
    if failed is not None:
        raise failed
    return done


async def record(session: Session, input_: OtherInput) -> None:
    """Take what others do to a session: no process waits for it. Raises `NotFound`.

    Another hub may have its process: that hub reads the session again before it goes on.
    """
    try:
        await handle(session, input_)
    except StaleFence:
        if not session.known:
            raise
        state = State(session.id, session.view, None)
        events: list[Event] = []
        decision = TABLE[type(input_)].decide(state, input_, Facts(now=session.supervisor.now))
        collect(decision, lambda event, _, __: events.append(event), session.supervisor.now)
        await session.journal.append(session.id, events)


def decide(session: Session, input_: Input, facts: Facts) -> Any:
    """Decide about an input. Its events are in memory then, and not in the journal."""
    decision = TABLE[type(input_)].decide(session.state, input_, facts)
    return collect(decision, session.note, facts.now)


async def commit(session: Session, more: Iterable[do.Effect] = ()) -> NotFound | LaunchError | None:
    """Journal what was decided, and do what follows. Returns why a process was not started.

    Raises `UsageError` if what an answer grants is no rule.
    """
    events = await session.append()
    failed: NotFound | LaunchError | None = None
    for effect in more:
        if isinstance(effect, do.StoreGrant):
            await session.policies.grant(effect.grant)
        else:
            perform(session, effect)
    for effect in do.effects(events):
        if isinstance(effect, do.StartProcess):
            failed = await _start(session, effect.starting)
        else:
            perform(session, effect)
    return failed


async def _start(session: Session, starting: RunStarting) -> NotFound | LaunchError | None:
    """Start a process, or take hold of one that the hub did not start. Returns why it cannot."""
    if starting.machine in UNMANAGED:
        session.port = session.machines.attach(starting.run, session.id, starting.machine, said=0)
        return None
    spec = spec_of(session.view, starting)
    try:
        session.port = session.machines.start(starting.run, session.id, spec, starting.origin)
    except (NotFound, LaunchError) as error:
        why = CodedText(code=TextCode.NOT_STARTED, detail=str(error))
        failed = StartFailed(run=starting.run, why=why, written=starting.written)
        await carry_out(session, failed)
        return error
    return None


def perform(session: Session, effect: do.Effect) -> None:
    """Do what a decision wants done. Nothing here waits."""
    port = session.port
    match effect:
        case do.WriteLine(number=number, line=line):
            if port is not None:
                port.write(number, line)
        case do.Acknowledge(number=number):
            if port is not None:
                port.acknowledge(number)
        case do.Settle(endings=endings):
            session.waiters.settle(endings)
        case do.Expect(request_id=request_id, subtype=subtype):
            session.waiters.expect(request_id, subtype)
        case do.StopProcess(force=force):
            if port is not None:
                port.stop(force=force)
        case do.ForgetRun():
            session.port = session.run_held = None
            session.live.supersede(session.id)
            if port is not None:
                port.forget()
        case do.AwaitGreeting():
            session.greet_by = time.monotonic() + GREETING_SECONDS
        case do.ReadTranscript(run=run, end=end, wanted=wanted):
            if port is not None:
                session.unheard = UnheardEnd(run=run, end=end)
                port.read_transcript(wanted)
        case do.SpendingChecked():
            if session.run is not None:
                meter = session.run.state.meter
                meter.checked = meter.version
        case do.CloseGap(messages=messages):
            session.gap.close(messages)
        case do.StartProcess() | do.StoreGrant():
            raise AssertionError("`commit` does that: it waits")
