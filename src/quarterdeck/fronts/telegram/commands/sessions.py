"""Commands about sessions: new ones, their ends, and resuming old ones."""

from __future__ import annotations

import anyio
from msgspec import Raw

from quarterdeck.client import HubClient
from quarterdeck.client.calls import HubRefused, events
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.asks import Press, Rows
from quarterdeck.fronts.telegram.commands.base import (
    control,
    run_button,
    session_line,
)
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.fronts.telegram.message_prompts import prompt
from quarterdeck.fronts.telegram.progress import money
from quarterdeck.fronts.telegram.text import Part, bold, code, join
from quarterdeck.history.story import prompt_body
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import ForkSession, Interrupt, ResumeSession, StopSession
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.views import SessionShape
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.messages import Assistant

LISTED = 10
REWINDS = 8
STOP_SECONDS = 60.0


async def new(job: Job, rest: str) -> None:
    """Begin a new session: with the rest as its prompt, or with the next message."""
    if rest:
        await prompt(job, rest, new=True)
        return
    await job.need(Right.STEER)
    job.messenger.state.set_current(job.place, None)
    job.say("🆕 The next message begins a new session.")


async def cancel(job: Job, rest: str) -> None:
    """Interrupt the turn."""
    session = await job.session(rest)
    hub = await job.hub()
    await hub.submit(Interrupt(session=session))
    job.say("🛑 Interrupted.", session=session)


async def stop(job: Job, rest: str) -> None:
    """End the CLI of the session."""
    session = await job.session(rest)
    hub = await job.hub()
    done = await hub.submit(StopSession(session=session))
    text = "⚪ It has no process." if done.repeated else "⚪ Stopped. A prompt starts it again."
    job.say(text, session=session)


async def resume(job: Job, rest: str) -> None:
    """Continue a session here; without one, choose from a list."""
    if not rest:
        await _choose(job, "Continue which session?", "/resume")
        return
    session = await job.session(rest)
    shape = await attach(job, session)
    if shape.run is None:
        hub = await job.hub()
        try:
            await hub.submit(ResumeSession(session=session))
        except HubRefused as error:
            if error.problem.code != "running":
                raise
    job.say(join(["▶️ Messages here go to ", bold(safe_line(shape.name, 60)), "."]), session=session)


async def continue_(job: Job, rest: str) -> None:
    """Continue the newest session of the project or folder of this place."""
    hub = await job.hub()
    binding = job.messenger.state.binding(job.place)
    where = binding if binding.project or binding.directory else job.messenger.options.binding
    async for shape in hub.sessions():
        same = (
            shape.spec.project == where.project
            if where.project
            else where.directory in {shape.directory, shape.spec.directory}
        )
        if same:
            await attach(job, shape.session)
            text = join(["▶️ Messages here go to ", bold(safe_line(shape.name, 60)), "."])
            job.say(text, session=shape.session)
            if rest:
                await prompt(job, rest)
            return
    raise UsageError("there is no session in this project or folder yet")


async def attach(job: Job, session: str) -> SessionShape:
    """Have a session belong to this place; gives it."""
    await job.need(Right.STEER)
    hub = await job.hub()
    shape = await hub.session(session).read()
    with job.messenger.database.transaction():
        job.messenger.state.follow(
            session, job.place, name=shape.name, at=job.messenger.clock.now(), seq=shape.head
        )
        job.messenger.state.set_current(job.place, session)
        job.messenger.state.own(job.place, job.user)
    job.services.reporter.note_change(session)
    await job.services.follow(session)
    return shape


async def fork(job: Job, rest: str) -> None:
    """Copy the session, and continue with the copy here."""
    session = await job.session()
    await _fork(job, session, None, rest or None)


async def _fork(job: Job, session: str, at: str | None, name: str | None) -> None:
    hub = await job.hub()
    made = await hub.submit(ForkSession(session=session, at=at, name=name))
    shape = await attach(job, made.session)
    text = join(["🍴 Messages here go to the copy ", bold(safe_line(shape.name, 60)), "."])
    job.say(text, session=made.session)


class _Point(Value):
    """A prompt."""

    text: str
    uuid: str
    """By which the CLI knows it."""
    before: str
    """The last message of the model before it; empty if there is none."""


async def rewind(job: Job, rest: str) -> None:
    """Go back to before a prompt: a copy of the session up to there, or the files as they were."""
    session = await job.session()
    words = rest.split()
    if words and words[0] == "files" and len(words) == 2:
        request: dict[str, object] = {"subtype": "rewind_files", "user_message_id": words[1]}
        await control(job, session, request)
        job.say("⏪ The files are as they were before that prompt.", session=session)
        return
    if rest and rest != "files":
        await _fork(job, session, rest, None)
        return
    points = await _points(await job.hub(), session)
    if rest:
        text = "The files as they were before which prompt? The conversation stays as it is."
        choices = [(point.text, f"/rewind files {point.uuid}") for point in points]
    else:
        text = "Go back to before which prompt? The session itself stays as it is."
        choices = [(point.text, f"/rewind {point.before}") for point in points if point.before]
    if not choices:
        raise UsageError("there is no prompt to go back to")
    rows: Rows = tuple(
        (run_button(f"⏪ {safe_line(label, 40)}", line),)
        for label, line in reversed(choices[-REWINDS:])
    )
    job.say(text, rows, session=session)


async def _points(hub: HubClient, session: str) -> list[_Point]:
    """The prompts of a session that were sent."""
    found: list[_Point] = []
    last, after = "", 0
    texts: dict[str, Raw] = {}
    while True:
        page = await hub.call(events(session, after))
        for shape in page.events:
            match shape.event:
                case (
                    ev.PromptQueued(prompt=id_, content=content)
                    | ev.PromptChanged(prompt=id_, content=content)
                ):
                    texts[id_] = content
                case ev.PromptSent(prompt=id_, uuid=uuid) if id_ in texts:
                    text = prompt_body(texts[id_]).text or "…"
                    found.append(_Point(text=text, uuid=uuid or id_, before=last))
                case ev.Said(line=line) if b'"assistant"' in bytes(line)[:400]:
                    message = from_cli(bytes(line))
                    if isinstance(message, Assistant) and message.parent_tool_use_id is None:
                        last = message.uuid or last
                case _:
                    pass
        if page.next is None:
            return found
        after = page.next


async def sessions(job: Job, rest: str) -> None:
    """List the sessions, newest first."""
    await _choose(job, "Sessions, newest first:", "/resume", everything=rest == "all")


async def _choose(job: Job, title: str, command: str, *, everything: bool = False) -> None:
    hub = await job.hub()
    pieces: list[Part | str] = [title]
    rows: list[tuple[Press, ...]] = []
    current = job.messenger.state.current(job.place)
    most = 3 * LISTED if everything else LISTED
    async for shape in hub.sessions():
        if len(rows) >= most:
            pieces.append("\n…")
            break
        here = " ← here" if shape.session == current else ""
        pieces += ["\n", code(shape.session[:8]), f" {session_line(shape)}"]
        pieces.append(f" · {money(shape.cost_usd)}{here}" if shape.cost_usd else here)
        rows.append((run_button(safe_line(shape.name, 40), f"{command} {shape.session}"),))
    if not rows:
        job.say("There are no sessions yet. Send a prompt.")
        return
    job.say(join(pieces), tuple(rows))


async def restart(job: Job, rest: str) -> None:
    """End the CLI of the session, and start it again where it ended."""
    session = await job.session(rest)
    hub = await job.hub()
    await hub.submit(StopSession(session=session))
    with anyio.move_on_after(STOP_SECONDS):
        while (await hub.session(session).read()).run is not None:  # noqa: ASYNC110 - no event
            await anyio.sleep(0.2)
    await hub.submit(ResumeSession(session=session))
    job.say("🔄 Restarted.", session=session)
