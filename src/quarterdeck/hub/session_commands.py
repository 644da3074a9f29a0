"""The commands to a session: one function for each, and the table of them.

Each function takes the session's lock, decides, and has the session journal what it decided before
it has an effect. What the CLI's process does is in `session_process`, and what lines mean in `run`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import (
    Conflict,
    NotFound,
)
from quarterdeck.hub.lines import check_steering, take_content
from quarterdeck.hub.rewinds import rewind
from quarterdeck.hub.run import Run
from quarterdeck.hub.session import Session
from quarterdeck.hub.session_answers import answer
from quarterdeck.hub.session_requests import control, interrupt, stop
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import Outcome
from quarterdeck.protocol.events import (
    Event,
    PromptCancelled,
    PromptChanged,
    PromptQueued,
    RunStarting,
    SessionArchived,
    SessionCreated,
    SessionRenamed,
    SpecChanged,
)
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.runtime.off_loop import large_turn

log = logging.getLogger(__name__)

MOST_WAITING = 48 * 1024 * 1024
"""Bytes of a session's prompts that no turn has taken: two of the largest. They are a part of its
view, which the journal stores whole with each change. One prompt may always wait."""


async def create(
    session: Session, created: SessionCreated, more: Sequence[Event], origin: Origin
) -> None:
    """Begin: journal what made the session, and start its process."""
    async with session.in_order():
        await session.start(origin, created, *more, spec=created.spec)


async def adopt(session: Session, created: SessionCreated, starting: RunStarting) -> None:
    """Begin or continue with a process that the hub did not start.

    A session has one process at most: if it has one, nothing happens.
    """
    async with session.in_order():
        if session.run is not None:
            return
        new = [] if session.known else [created]
        await session.append([*new, starting])
        session.begin_run(starting)
        session.port = session.machines.attach(starting.run, session.id, starting.machine, said=0)


async def rename(session: Session, command: cmd.RenameSession) -> Outcome:
    """Give the session another name."""
    async with session.in_order():
        await session.append([SessionRenamed(name=command.name, by=command.by)])
    return Outcome(session=session.id)


async def archive(session: Session, command: cmd.ArchiveSession) -> Outcome:
    """Archive the session, or take it out of the archive."""
    async with session.in_order():
        if session.view.archived == command.archived:
            return Outcome(session=session.id, repeated=True)
        await session.append([SessionArchived(archived=command.archived, by=command.by)])
    return Outcome(session=session.id)


async def change(session: Session, command: cmd.ChangeSession) -> Outcome:
    """Change the session's spec."""
    async with session.in_order():
        spec = _changed_spec(session.view.spec, command)
        await session.append([SpecChanged(spec=spec, by=command.by)])
        if session.run is not None:
            await session.apply(
                session.supervisor.check_spending(session.view, session.run, again=True)
            )
        await session.apply(session.supervisor.freed(session.view, session.run))
        await session.send_next()
    return Outcome(session=session.id)


def _changed_spec(spec: SessionSpec, command: cmd.ChangeSession) -> SessionSpec:
    if command.auto_approve is not None:
        spec = replace(spec, auto_approve=command.auto_approve)
    if command.ask_timeout is not None:
        spec = replace(spec, ask_timeout=command.ask_timeout or None)
    if command.budget is not None:
        spec = replace(spec, budget=command.budget)
    return spec


async def prompt(session: Session, command: cmd.SendPrompt) -> Outcome:
    """Queue a prompt, and send it as soon as no turn runs. An ended session is resumed."""
    async with session.in_order():
        view = session.view
        if await _knows_prompt(session, command.prompt):
            return Outcome(session=session.id, prompt=command.prompt, repeated=True)
        content = await take_content(command.content)
        if command.steer:
            await check_steering(content)
        _check_room(session, content)
        session.supervisor.admit(view, session.run)
        queued = PromptQueued(prompt=command.prompt, content=content, by=command.by)
        if session.run is None:
            await session.start(Origin(cli_session=view.cli_session), queued)
        elif command.steer and _may_steer(session, session.run):
            await _send_at_once(session, session.run, queued, steered=True)
        elif session.next_unsent(session.run) is None and session.may_send(session.run):
            await _send_at_once(session, session.run, queued)
        else:
            await session.append([queued])
            await session.send_next()
    return Outcome(session=session.id, prompt=command.prompt)


async def _send_at_once(
    session: Session, run: Run, queued: PromptQueued, *, steered: bool = False
) -> None:
    """Send a prompt with the same append that queues it."""
    await large_turn(len(memoryview(queued.content)))
    now = session.supervisor.now
    run.record([queued], now)
    run.prompt(queued.prompt, queued.content, now, steered=steered)
    await session.append()


def _may_steer(session: Session, run: Run) -> bool:
    """Whether a prompt can be sent into a running turn now; it is queued otherwise."""
    held = session.view.afresh or session.supervisor.held(session.view, run)
    return run.steerable and not held


async def change_prompt(session: Session, command: cmd.ChangePrompt) -> Outcome:
    """Change a prompt that has not been sent yet."""
    async with session.in_order():
        await _check_queued(session, command.prompt)
        content = await take_content(command.content)
        _check_room(session, content, instead_of=command.prompt)
        await session.append([PromptChanged(prompt=command.prompt, content=content, by=command.by)])
    return Outcome(session=session.id, prompt=command.prompt)


async def cancel_prompt(session: Session, command: cmd.CancelPrompt) -> Outcome:
    """Cancel a prompt that has not been sent yet."""
    async with session.in_order():
        await _check_queued(session, command.prompt)
        await session.append([PromptCancelled(prompt=command.prompt, by=command.by)])
    return Outcome(session=session.id, prompt=command.prompt)


async def resume(session: Session, command: cmd.ResumeSession) -> Outcome:  # noqa: ARG001 - a handler
    """Start a process again, where the last one ended."""
    async with session.in_order():
        if session.run is not None:
            raise Conflict("running", "the session has a process already")
        await session.start(Origin(cli_session=session.view.cli_session))
    return Outcome(session=session.id)


async def _knows_prompt(session: Session, prompt: str) -> bool:
    """Whether there was a prompt with this id. The view keeps the newest ids only."""
    view = session.view
    if prompt in view.prompts or not view.prompts_forgotten:
        return prompt in view.prompts
    return await session.journal.has_prompt(session.id, prompt)


def _check_room(session: Session, content: Raw, instead_of: str = "") -> None:
    """Raise `Conflict` if too much waits already."""
    waiting = [
        len(memoryview(each.content)) for each in session.view.unsent if each.prompt != instead_of
    ]
    if waiting and sum(waiting) + len(memoryview(content)) > MOST_WAITING:
        text = f"the prompts that wait for a turn have {sum(waiting)} bytes; at most {MOST_WAITING}"
        raise Conflict("queue_full", text)


async def _check_queued(session: Session, prompt: str) -> None:
    if not await _knows_prompt(session, prompt):
        raise NotFound("prompt", prompt)
    if all(queued.prompt != prompt for queued in session.view.queued):
        raise Conflict("not_queued", "the prompt is not in the queue any more")


Handler = Callable[[Session, Any], Awaitable[Outcome]]

HANDLERS: dict[type[object], Handler] = {
    cmd.RenameSession: rename,
    cmd.ArchiveSession: archive,
    cmd.ChangeSession: change,
    cmd.StopSession: stop,
    cmd.ResumeSession: resume,
    cmd.Interrupt: interrupt,
    cmd.Control: control,
    cmd.RewindSession: rewind,
    cmd.SendPrompt: prompt,
    cmd.ChangePrompt: change_prompt,
    cmd.CancelPrompt: cancel_prompt,
    cmd.AnswerAsk: answer,
}
"""What each command to a session does. `hub` knows those that make or delete one."""
