"""Commands to a session, and requests to its process that are answered.

Owns the waits: for the answer of the CLI to a control request, and for a process that is asked to
end. The lock of the session is held while a request is journalled and sent, and not while its
answer is waited for. What is sent is decided in `decisions.commands`.
"""

from __future__ import annotations

import logging
from typing import Any

from msgspec import Raw

from quarterdeck.domain.errors import (
    Conflict,
    JournalError,
    RequestError,
    RequestTimeout,
    StaleFence,
    StaleHead,
    UnsupportedError,
)
from quarterdeck.hub.decisions.base import Done
from quarterdeck.hub.decisions.inputs import AskCli, CommandInput, EndProcess, GiveUp, Input
from quarterdeck.hub.permissions import deadlines
from quarterdeck.hub.session import Session
from quarterdeck.hub.shell import handle
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import Outcome
from quarterdeck.wire.commands import EndSession, Interrupt

log = logging.getLogger(__name__)

LEAVE_SECONDS = 5.0
"""How long a CLI may take to end by itself before its machine ends it."""
INTERRUPT_SECONDS = 30.0


async def submit(session: Session, command: CommandInput) -> Outcome:
    """Do what a command to a session asks for."""
    match command:
        case cmd.StopSession():
            return await stop(session, command)
        case cmd.Interrupt():
            await _request(session, command, INTERRUPT_SECONDS)
            return Outcome(session=session.id)
        case cmd.Control(timeout=seconds):
            answer = await _request(session, command, seconds)
            return Outcome(session=session.id, answer=answer)
        case _:
            done = await handle(session, command)
    if done.leave:
        await leave(session, done.leave)
    return done.outcome or Outcome(session=session.id)


async def check_answerer(session: Session, command: cmd.AnswerAsk) -> None:
    """Raise `Forbidden` unless this person may answer the question."""
    if (card := session.view.asks.get(command.ask)) is not None:
        deadlines.check_answerer(card.opened, command)
    elif (record := await session.journal.find_ask(command.ask)) is not None:
        deadlines.check_answerer(record.ask.opened, command)


async def stop(session: Session, command: cmd.StopSession) -> Outcome:
    """End the process: politely first, and then by its machine."""
    try:
        done = await handle(session, command)
    except (StaleFence, StaleHead):
        raise  # another hub is to stop it
    except JournalError as error:  # a full disk must not keep it running
        if session.run is None:
            raise
        log.warning("session %s is stopped, and that is not journalled: %s", session.id, error)
        done = Done(leave=session.run.run)
    if done.leave:
        await leave(session, done.leave)
    return done.outcome or Outcome(session=session.id)


async def leave(session: Session, run: str) -> None:
    """Have a process end that is to: it is asked to, and then ended by its machine."""
    try:
        state = session.run_state
        if state is not None and state.run == run and not state.link_down:
            if state.busy:
                await request_cli(session, Interrupt(), LEAVE_SECONDS, of=run)
            if not state.link_down:  # else the request would not arrive
                await request_cli(session, EndSession(), LEAVE_SECONDS, of=run)
    except (StaleFence, StaleHead):
        raise
    except (RequestError, UnsupportedError, Conflict, JournalError) as error:
        log.debug("session %s did not take its leave: %s", session.id, error)
    await handle(session, EndProcess(run=run))


async def request_cli(
    session: Session, command: Any, seconds: float, *, of: str = "", by: str = ""
) -> Raw:
    """Ask the process something, and wait for its answer; only this one, if one is given."""
    return await _request(session, AskCli(command=command, by=by, of=of), seconds)


async def _request(session: Session, input_: Input, seconds: float) -> Raw:
    done = await handle(session, input_)
    try:
        return await session.waiters.answer(done.request, seconds)
    except RequestTimeout:
        await handle(session, GiveUp(request_id=done.request))
        raise
    finally:
        session.waiters.forget(done.request)
