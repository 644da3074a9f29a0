"""A message as a prompt: for the session that it replies to, the current one, or a new one."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.client.calls import HubRefused
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.fronts.telegram.chats import Preferences, spec_for, split_options
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.fronts.telegram.state import PromptRow
from quarterdeck.protocol.commands import Control, CreateSession, SendPrompt

NEW_BRANCH = "*"
"""The worktree of a binding that gives each session a branch of its own."""
NAME = 60

Blocks = list[dict[str, Any]]


async def prompt(
    job: Job, text: str, *, blocks: Blocks | None = None, steer: bool = False, new: bool = False
) -> None:
    """Send a prompt. Raises `UsageError` for one that is empty."""
    options, rest = split_options(text)
    if not rest and not blocks:
        raise UsageError("there is no prompt in the message")
    session = None if new else await job.current()
    if session == job.session_id:
        session = None  # this very update was making it when the front was interrupted
    if session is not None and not await _exists(job, session):
        job.messenger.state.forget(session)
        job.services.reporter.note_change(session)
        session = None
    if session is None:
        await create(job, rest, blocks=blocks, options=options)
        return
    await switch(job, session, options)
    await send(job, session, _content(rest, blocks), steer=steer)


async def send(job: Job, session: str, content: Raw, *, steer: bool = False) -> None:
    """Send a prompt to a session."""
    hub = await job.hub()
    _remember(job, session)
    await hub.submit(
        SendPrompt(session=session, prompt=job.prompt_id, content=content, steer=steer)
    )


async def create(
    job: Job,
    text: str,
    *,
    blocks: Blocks | None = None,
    options: Preferences | None = None,
    cli_session: str | None = None,
) -> str:
    """Make a session in this place, with a prompt if there is one; gives its id."""
    messenger, hub = job.messenger, await job.hub()
    messenger.projects = {row.name: row.defaults for row in await hub.projects()}
    spec = spec_for(
        messenger.state.binding(job.place),
        message=options or Preferences(),
        chat=messenger.state.preferences(job.place),
        projects=messenger.projects,
        config=messenger.options.preferences,
        default=messenger.options.binding,
        cooldown_seconds=messenger.options.plan_cooldown,
        name=safe_line(text, NAME) or None,
    )
    session = job.session_id
    if spec.worktree == NEW_BRANCH:
        spec = replace(spec, worktree=f"telegram/{session[-8:]}")
    has_prompt = bool(text or blocks)
    before = messenger.state.current(job.place)
    with messenger.database.transaction():
        # First, so that its events find the place.
        name = spec.name or session[:8]
        messenger.state.follow(session, job.place, name=name, at=messenger.clock.now())
        messenger.state.set_current(job.place, session)
        messenger.state.own(job.place, job.user)
        if has_prompt:
            _remember(job, session)
    job.services.reporter.note_change(session)
    try:
        await hub.submit(
            CreateSession(
                spec=spec,
                session=session,
                prompt=_content(text, blocks) if has_prompt else ABSENT,
                prompt_id=job.prompt_id if has_prompt else None,
                cli_session=cli_session,
            )
        )
    except HubRefused:
        messenger.state.forget(session)
        job.services.reporter.note_change(session)
        messenger.state.set_current(job.place, before)
        raise
    await job.services.follow(session)
    return session


async def switch(job: Job, session: str, options: Preferences) -> None:
    """Apply the options of a message to a session that is there."""
    hub = await job.hub()
    for request in requests_for(options):
        body = Raw(msgspec.json.encode(request))
        await hub.submit(Control(session=session, request=body))


def requests_for(options: Preferences) -> list[dict[str, object]]:
    """The control requests that make a session work so."""
    found: list[dict[str, object]] = []
    if options.model is not None:
        found.append({"subtype": "set_model", "model": options.model})
    if options.mode is not None:
        found.append({"subtype": "set_permission_mode", "mode": options.mode})
    if options.effort is not None:
        level = None if options.effort == "auto" else options.effort
        found.append({"subtype": "apply_flag_settings", "settings": {"effortLevel": level}})
    return found


def _content(text: str, blocks: Blocks | None) -> Raw:
    if not blocks:
        return Raw(msgspec.json.encode(text))
    words: Blocks = [{"type": "text", "text": text}] if text else []
    return Raw(msgspec.json.encode([*blocks, *words]))


def _remember(job: Job, session: str) -> None:
    row = PromptRow(
        prompt=job.prompt_id,
        session=session,
        place=job.place,
        message_id=job.message_id,
        user=job.user,
    )
    job.messenger.state.add_prompt(row, job.messenger.clock.now())


async def _exists(job: Job, session: str) -> bool:
    try:
        shape = await (await job.hub()).session(session).read()
    except HubRefused as error:
        if error.problem.status == 404:
            return False
        raise
    return not shape.archived
