"""Commands about prompts: the queue, steering, compacting, prompts for later."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import msgspec

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.telegram.asks import Press, Rows
from quarterdeck.fronts.telegram.commands.base import run_button
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.fronts.telegram.message_prompts import prompt
from quarterdeck.fronts.telegram.types import Chat, ChatType, Message, User
from quarterdeck.history.story import prompt_body
from quarterdeck.protocol.commands import CancelPrompt
from quarterdeck.protocol.roles import Right

MOST_SCHEDULES = 50
FURTHEST_DAYS = 366
_AFTER = re.compile(r"\+?(\d{1,5})\s*(s|m|min|h|d)$")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})$")
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


async def queue(job: Job, rest: str) -> None:
    """Show the prompts that wait, or take one back."""
    word, _, given = rest.partition(" ")
    if word == "drop" and given:
        row = job.messenger.state.prompt(given)
        session = row.session if row is not None else await job.session()
        hub = await job.hub()
        await hub.submit(CancelPrompt(session=session, prompt=given))
        return  # the message of the prompt says so
    session = await job.session(given if word == "show" else rest)
    hub = await job.hub()
    waiting = await hub.session(session).prompts()
    waiting = tuple(each for each in waiting if each.run is None)
    if not waiting:
        job.say("The queue is empty.", session=session)
        return
    lines, rows = ["Prompts that wait, the next first:"], list[tuple[Press, ...]]()
    for number, each in enumerate(waiting, 1):
        text = safe_line(prompt_body(each.content).text or "(no text)", 100)
        lines.append(f"{number}. {text} ({safe_line(each.by, 40)})")
        rows.append((run_button(f"↩️ Take back {number}", f"/queue drop {each.prompt}"),))
    job.say("\n".join(lines), tuple(rows), session=session)


async def steer(job: Job, rest: str) -> None:
    """Send a prompt into the running turn."""
    if not rest:
        raise UsageError("what should the agent know? /steer TEXT")
    if await job.current() is None:
        raise UsageError("there is no session here yet")
    await prompt(job, rest, steer=True)


async def compact(job: Job, rest: str) -> None:
    """Have the CLI compact the conversation."""
    await job.session()
    await prompt(job, f"/compact {rest}".strip())


async def at(job: Job, rest: str) -> None:
    """Keep a prompt for later; without arguments: list them."""
    await job.need(Right.STEER)
    word, _, text = rest.partition(" ")
    if word in {"", "list"}:
        _list(job)
        return
    if word == "drop":
        found = [each for each in job.messenger.state.schedules(job.place) if str(each.id) == text]
        if not found or not job.messenger.state.unschedule(found[0].id):
            raise UsageError(f"there is no planned prompt {text!r} here")
        job.say("↩️ Taken back.")
        return
    due = when(word, job.messenger.options.local(job.messenger.clock.now()))
    text = text.strip()
    if not text:
        raise UsageError("what is to be done then? /at 07:30 TEXT, or /at 2h TEXT")
    if len(job.messenger.state.schedules(job.place)) >= MOST_SCHEDULES:
        raise UsageError(f"there are {MOST_SCHEDULES} planned prompts here already")
    kind = ChatType.PRIVATE if job.private else ChatType.SUPERGROUP
    message = Message(
        message_id=0,
        chat=Chat(id=job.place.chat, type=kind),
        sender=User(id=job.user),
        text=text,
        message_thread_id=job.place.thread,
        is_topic_message=job.place.thread is not None,
    )
    body = msgspec.json.encode(message)
    number = job.messenger.state.schedule(job.place, job.user, due.timestamp(), text, body)
    rows: Rows = ((run_button("↩️ Take back", f"/at drop {number}"),),)
    job.say(f"⏰ Planned for {due:%Y-%m-%d %H:%M}: {safe_line(text, 200)}", rows)


def when(word: str, now: datetime) -> datetime:
    """A time of the day, the next that comes, or a time from now. Raises `UsageError`."""
    if match := _CLOCK.match(word):
        hour, minute = int(match[1]), int(match[2])
        if hour > 23 or minute > 59:
            raise UsageError(f"{word} is no time of the day")
        due = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
        return due if due > now else due + timedelta(days=1)
    if match := _AFTER.match(word):
        seconds = int(match[1]) * _UNITS[match[2]]
        if not 0 < seconds <= FURTHEST_DAYS * 86400:
            raise UsageError(f"at most {FURTHEST_DAYS} days from now")
        return now + timedelta(seconds=seconds)
    raise UsageError("when? A time as 07:30, or a time from now as 45m, 2h or 1d")


def _list(job: Job) -> None:
    planned = job.messenger.state.schedules(job.place)
    if not planned:
        job.say("Nothing is planned here. /at 07:30 TEXT, or /at 2h TEXT")
        return
    lines, rows = ["Planned prompts:"], list[tuple[Press, ...]]()
    for each in planned:
        due = job.messenger.options.local(each.due)
        lines.append(f"{each.id}. {due:%Y-%m-%d %H:%M}: {safe_line(each.text, 100)}")
        rows.append((run_button(f"↩️ Take back {each.id}", f"/at drop {each.id}"),))
    job.say("\n".join(lines), tuple(rows))
