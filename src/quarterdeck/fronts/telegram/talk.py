"""What a message, a press or a stop means, and doing it.

`handle` does one update for a person who may talk to the bot. A message is a command, an answer to
a question, or a prompt. What goes wrong is said in the chat; only a hub that is away is left to the
caller, who tries again.
"""

from __future__ import annotations

import logging

import anyio.to_thread
import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.client.calls import HubRefused
from quarterdeck.domain.errors import LinkError, QuarterdeckError, UsageError
from quarterdeck.fronts.telegram.api import BotApiError, Upload
from quarterdeck.fronts.telegram.ask_steps import (
    Nothing,
    Purpose,
    Redraw,
    Show,
    Step,
    Submit,
    Type,
    press,
    reply,
)
from quarterdeck.fronts.telegram.ask_store import AskRow, Button, Note
from quarterdeck.fronts.telegram.asks import whole
from quarterdeck.fronts.telegram.commands.table import COMMANDS
from quarterdeck.fronts.telegram.details import detail
from quarterdeck.fronts.telegram.display import safe_line, safe_slices, safe_start
from quarterdeck.fronts.telegram.jobs import Job, Services
from quarterdeck.fronts.telegram.media import blocks_of
from quarterdeck.fronts.telegram.message_prompts import prompt
from quarterdeck.fronts.telegram.people import is_revoked
from quarterdeck.fronts.telegram.reporter import session_of_turn
from quarterdeck.fronts.telegram.text import plain
from quarterdeck.fronts.telegram.types import CallbackQuery, GenerationStopped, Message, Update
from quarterdeck.fronts.telegram.updates import job_of
from quarterdeck.protocol.commands import AnswerAsk, ChangePrompt, Interrupt
from quarterdeck.protocol.roles import Right

log = logging.getLogger(__name__)

REVOKED = "Your access to the hub has ended. Pair again: make a code, and send /pair CODE"


async def handle(
    services: Services, update: Update, more: tuple[Message, ...], *, begun: bool
) -> None:
    """Do what an update asks for; `more` are the other messages of the same album.

    Raises `LinkError` when the hub is away: then nothing was done that may not be done again.
    """
    job = job_of(services, update, begun=begun)
    if job is None:
        return
    try:
        await _do(job, update, more)
    except LinkError:
        raise
    except BotApiError as error:
        job.say(f"⚠️ {error}")
    except QuarterdeckError as error:
        if is_revoked(error):
            services.messenger.state.unpair(job.user)
            job.say(f"⚠️ {REVOKED}")
        elif not _is_settled(error):
            job.say(f"⚠️ {safe_start(str(error), 2000)}")


async def _do(job: Job, update: Update, more: tuple[Message, ...]) -> None:
    if update.callback_query is not None:
        await _press(job, update.callback_query)
    elif update.stopped_message_generation is not None:
        await _stop(job, update.stopped_message_generation)
    elif update.edited_message is not None:
        await _edit_prompt(job, update.edited_message)
    elif update.message is not None:
        await _message(job, update.message, more)


# --- messages ------------------------------------------------------------------------------------


async def _message(job: Job, message: Message, more: tuple[Message, ...]) -> None:
    if message.migrate_to_chat_id is not None:
        job.messenger.state.migrate(message.chat.id, message.migrate_to_chat_id)
        job.messenger.asks.migrate(message.chat.id, message.migrate_to_chat_id)
        return
    job.messenger.state.note_user(job.place, private=job.private)
    text = message.text or message.caption
    mention = f"@{job.services.me.username}"
    if text.startswith("/"):
        _, _, target = text.split(maxsplit=1)[0].partition("@")
        if target and target.lower() != job.services.me.username.lower():
            return  # a command for another bot
        await run_line(job, text.replace(f"@{target}", "", 1) if target else text)
        return
    note = await job.note_of_reply()
    if note is not None and note.ask and await _reply(job, note, text):
        return
    addressed = mention.lower() in text.lower() or job.replied is not None
    mentions_only = job.messenger.preference(job.place, "trigger").value == "mentions"
    if not job.private and not addressed and mentions_only:
        return
    text = _without(text, mention)
    blocks, said = await blocks_of(job, (message, *more))
    if said:
        text = f"{text}\n{said}".strip()
    if not text and not blocks:
        return  # a service message, a sticker, a poll
    await prompt(job, text, blocks=blocks)


def _without(text: str, mention: str) -> str:
    at = text.lower().find(mention.lower())
    return text if at < 0 else (text[:at] + text[at + len(mention) :]).strip()


async def _edit_prompt(job: Job, message: Message) -> None:
    """A person has changed a message: a prompt that still waits is changed too."""
    row = job.messenger.state.prompt_of(message.chat.id, message.message_id)
    if row is None or row.user != job.user or not message.text or message.text.startswith("/"):
        return
    content = Raw(msgspec.json.encode(message.text))
    hub = await job.hub()
    try:
        await hub.submit(ChangePrompt(session=row.session, prompt=row.prompt, content=content))
    except HubRefused as error:
        if error.problem.status == 409:
            raise UsageError("The prompt was sent already: the change comes too late.") from error
        raise
    job.say("✏️ The queued prompt is changed.", session=row.session)


async def run_line(job: Job, line: str) -> None:
    """Run a command line of the bot; one that the bot does not have is the CLI's."""
    word, _, rest = line.strip().partition(" ")
    word, newline, below = word.partition("\n")
    rest = f"{below} {rest}".strip() if newline else rest.strip()
    if word.startswith("//"):
        await prompt(job, f"/{word[2:]} {rest}".strip())
        return
    command = COMMANDS.get(word[1:].lower())
    if command is None:
        await prompt(job, f"{word} {rest}".strip())
        return
    if command.once and job.begun:
        job.say(
            f"⚠️ /{command.name} was interrupted, and may have been done. Look before you repeat it."
        )
        return
    await command.run(job, rest)


# --- questions -----------------------------------------------------------------------------------


async def _reply(job: Job, note: Note, text: str) -> bool:
    """Answer a question by a reply; False if it is not open, and the reply is a prompt."""
    row = job.messenger.asks.ask(note.ask)
    if row is None or not row.open:
        if job.messenger.inbox.answers(job.update_id):
            return True  # it was sent, and the front ended before it knew
        if note.purpose == "card":
            return False
        job.say("⚠️ This question is not open any more.")
        return True
    purpose = _purpose(note.purpose)
    await _step(job, row, reply(row.opened, row.draft, purpose, text))
    return True


def _purpose(given: str) -> Purpose:
    match given:
        case "edit" | "reason" | "feedback":
            return given
        case _:
            return "card"


def step_of(services: Services, chat: int, data: str) -> tuple[Button, Step | None] | None:
    """What a press means now; None for a button that is not one of this chat."""
    button = services.messenger.asks.press(data, chat)
    if button is None:
        return None
    if not button.ask:
        return button, None
    row = services.messenger.asks.ask(button.ask)
    if row is None or not row.open:
        return None
    return button, press(row.opened, row.draft, button.action, button.arg)


def toast_of(services: Services, chat: int, data: str) -> str | None:
    """The short text that a press is answered with at once; None: no answer."""
    found = step_of(services, chat, data)
    if found is None:
        return None
    return "" if found[1] is None else found[1].toast


async def _press(job: Job, query: CallbackQuery) -> None:
    found = step_of(job.services, job.place.chat, query.data)
    if found is None:
        log.info("a press on a button that is not valid, by Telegram user %d", job.user)
        return
    button, step = found
    if step is None:
        await run_line(job, button.arg)
        return
    row = job.messenger.asks.ask(button.ask)
    assert row is not None
    job.paired  # noqa: B018 - who is nobody in the hub changes no draft either
    await _step(job, row, step)


async def _step(job: Job, row: AskRow, step: Step) -> None:
    match step:
        case Submit(answer=answer):
            hub = await job.hub()
            job.messenger.inbox.answer(job.update_id)
            await hub.submit(AnswerAsk(ask=row.ask, answer=answer))
        case Redraw(draft=draft):
            await job.need(Right.STEER)
            with job.messenger.database.transaction():
                job.messenger.asks.set_draft(row.ask, draft)
                job.services.reporter.redraw(row.ask)
                job.mark_done()
        case Type(purpose=purpose, text=text):
            note = Note(session=row.session, ask=row.ask, purpose=purpose)
            about = safe_line(row.opened.title, 200)
            job.say(f"💬 {text}\n\n{about}", note=note)
        case Show():
            await _show(job, row)
        case Nothing():
            pass


async def _show(job: Job, row: AskRow) -> None:
    """Send what a question is about, because a person has asked for it."""
    await (await job.hub()).whoami()
    opened = row.opened
    if opened.plan:
        name, text = "plan.md", await anyio.to_thread.run_sync(safe_slices, opened.plan)
    else:
        found = detail(opened)
        name, text = found.name, whole(found)
    file = Upload(name=name, data=text.encode())
    note = Note(session=row.session, ask=row.ask, purpose="card")
    with job.messenger.database.transaction():
        job.say(plain(safe_line(opened.title, 200)), file=file, note=note)
        now = job.messenger.asks.ask(row.ask)  # it may have changed since
        if now is not None and now.open and job.place.chat not in now.draft.shown:
            draft = replace(now.draft, shown=(*now.draft.shown, job.place.chat))
            job.messenger.asks.set_draft(row.ask, draft)
            job.services.reporter.redraw(row.ask)
        job.mark_done()


def _is_settled(error: QuarterdeckError) -> bool:
    """Whether another answer was faster: the message of the question says who."""
    return isinstance(error, HubRefused) and error.problem.code in {"already_answered", "withdrawn"}


# --- drafts --------------------------------------------------------------------------------------


async def _stop(job: Job, stopped: GenerationStopped) -> None:
    key = job.messenger.outbox.draft_key(stopped.draft_id, stopped.chat.id)
    session = session_of_turn(key) if key is not None else None
    if session is None:
        return
    hub = await job.hub()
    await hub.submit(Interrupt(session=session))
    job.say("🛑 Interrupted.", session=session)
