"""Requests to a session's process that are answered: control requests, interrupts, its end.

Owns the wait for an answer of the CLI. The lock of the session is held while the request is
journalled and sent, and not while its answer is waited for.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from msgspec import Raw

from quarterdeck.domain.errors import (
    Conflict,
    JournalError,
    RequestError,
    RequestTimeout,
    UnsupportedError,
)
from quarterdeck.hub.run import Run
from quarterdeck.hub.session import Session
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import Outcome
from quarterdeck.protocol.events import RunStopping
from quarterdeck.wire.commands import EndSession, Interrupt, decode_command

log = logging.getLogger(__name__)

LEAVE_SECONDS = 5.0
"""How long a CLI may take to end by itself before its machine ends it."""
INTERRUPT_SECONDS = 30.0


async def stop(session: Session, command: cmd.StopSession) -> Outcome:
    """End the process: politely first, and then by its machine."""
    async with session.in_order():
        run = session.run
        if run is None:
            if not session.supervisor.restarts(session.view):
                return Outcome(session=session.id, repeated=True)
            # The last run has died, and another one would be started in a moment.
            await session.append([RunStopping(run=session.view.ended_runs[-1], by=command.by)])
            return Outcome(session=session.id)
        with suppress(JournalError):  # a full disk must not keep it running
            await session.append([RunStopping(run=run.run, by=command.by)])
    try:
        if run.busy and not run.link_down:
            await request_cli(session, Interrupt(), LEAVE_SECONDS, of=run)
        if not run.link_down:  # else the request would not arrive
            await request_cli(session, EndSession(), LEAVE_SECONDS, of=run)
    except (RequestError, UnsupportedError, Conflict, JournalError) as error:
        log.debug("session %s did not take its leave: %s", session.id, error)
    async with session.in_order():
        # It may have left already, and another may have begun in its place.
        if session.port is not None and session.run is not None and session.run.run == run.run:
            session.port.stop()
    return Outcome(session=session.id)


async def interrupt(session: Session, command: cmd.Interrupt) -> Outcome:  # noqa: ARG001 - a handler
    """Stop the running turn."""
    await request_cli(session, Interrupt(), INTERRUPT_SECONDS)
    return Outcome(session=session.id)


async def control(session: Session, command: cmd.Control) -> Outcome:
    """Send a control request, and wait for its answer."""
    request = decode_command(command.request)
    answer = await request_cli(session, request, command.timeout, by=command.by)
    return Outcome(session=session.id, answer=answer)


async def request_cli(
    session: Session, command: Any, seconds: float, *, of: Run | None = None, by: str = ""
) -> Raw:
    """Ask the process something, and wait for its answer; only this one, if one is given."""
    async with session.in_order():
        if session.run is None or (of is not None and session.run.run != of.run):
            raise Conflict("not_running", "the session has no process; resume it first")
        request_id = session.run.request(command, session.supervisor.now, by)
        await session.append()
        answer = session.waiters.expect(request_id, command.subtype)
    try:
        return await answer.wait(seconds)
    except RequestTimeout:
        async with session.in_order():
            if session.run is not None:
                session.run.give_up(request_id, session.supervisor.now)
                await session.append()
        raise
    finally:
        session.waiters.forget(request_id)
