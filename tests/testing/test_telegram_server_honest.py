"""The Bot API server for tests is honest: the libraries that others use work against it unchanged.

python-telegram-bot runs in this process. aiogram, which knows the newest methods, needs packages in
versions that are not ours: it has an environment of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from telegram import Bot, BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, RetryAfter
from telegram.request import HTTPXRequest

from quarterdeck.testing.telegram import NO_LIMITS, BotApiServer
from support.bounds import SECONDS
from support.waiting import until

ROOT = Path(__file__).parents[2]
ADA = 11
NO_REGISTRY = 3
"""What `tools/install_aiogram.py` exits with when the registry does not answer."""
KEYBOARD = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])


@pytest.fixture
async def server() -> AsyncIterator[BotApiServer]:
    async with BotApiServer(limits=NO_LIMITS) as server:
        server.sim.add_user(ADA, "Ada", "ada")
        yield server


@pytest.fixture
async def bot(server: BotApiServer) -> AsyncIterator[Bot]:
    async with open_bot(server) as bot:
        yield bot


def open_bot(server: BotApiServer) -> Bot:
    base = f"{server.url}/bot"
    return Bot(server.token, base_url=base, base_file_url=f"{server.url}/file/bot")


async def test_python_telegram_bot_sends_edits_and_deletes(server: BotApiServer, bot: Bot) -> None:
    me = await bot.get_me()
    assert me.username == "test_bot"
    styles = [
        MessageEntity("bold", 0, 5),
        MessageEntity("text_link", 6, 4, url="https://a.example"),
    ]
    sent = await bot.send_message(ADA, "hello link", entities=styles, reply_markup=KEYBOARD)
    assert sent.entities == tuple(styles)
    assert sent.reply_markup == KEYBOARD
    edited = await bot.edit_message_text("changed", ADA, sent.message_id, reply_markup=KEYBOARD)
    assert not isinstance(edited, bool)
    assert edited.edit_date is not None
    with pytest.raises(BadRequest, match="Message is not modified"):
        await bot.edit_message_text("changed", ADA, sent.message_id, reply_markup=KEYBOARD)
    await bot.edit_message_reply_markup(ADA, sent.message_id)
    reply = await bot.send_message(ADA, "reply", reply_to_message_id=sent.message_id)
    assert reply.reply_to_message is not None
    assert reply.reply_to_message.text == "changed"
    assert await bot.set_message_reaction(ADA, sent.message_id, "👍")
    assert await bot.send_chat_action(ADA, "typing")
    assert await bot.delete_message(ADA, sent.message_id)
    assert await bot.set_my_commands([BotCommand("help", "what there is")])
    assert (await bot.get_my_commands())[0].command == "help"
    assert (await bot.get_chat(ADA)).first_name == "Ada"
    assert [message.shown for message in server.sim.from_bot(ADA)] == ["reply"]


async def test_python_telegram_bot_receives_what_people_do(server: BotApiServer, bot: Bot) -> None:
    sent = await bot.send_message(ADA, "question", reply_markup=KEYBOARD)
    server.sim.type(ADA, "/new work", reply_to=sent.message_id)
    query = server.sim.press(ADA, sent.message_id, "Yes")
    server.sim.send_file(ADA, "a.txt", "contents", caption="look")
    server.sim.send_file(ADA, "p.jpg", b"picture", kind="photo")
    server.sim.send_file(ADA, "v.ogg", b"voice", kind="voice")
    server.sim.block(ADA)
    server.sim.block(ADA, blocked=False)
    updates = await bot.get_updates()
    [typed, pressed, document, photo, voice, left, came] = updates
    assert typed.message is not None
    assert typed.message.text == "/new work"
    assert typed.message.entities[0].type == "bot_command"
    assert typed.message.reply_to_message is not None
    assert pressed.callback_query is not None
    assert (pressed.callback_query.id, pressed.callback_query.data) == (query, "yes")
    assert await bot.answer_callback_query(query, "thanks")
    with pytest.raises(BadRequest, match="Query is too old"):
        await bot.answer_callback_query(query)
    assert document.message is not None
    assert document.message.document is not None
    file = await bot.get_file(document.message.document.file_id)
    assert bytes(await file.download_as_bytearray()) == b"contents"
    assert photo.message is not None
    assert photo.message.photo
    assert voice.message is not None
    assert voice.message.voice is not None
    assert left.my_chat_member is not None
    assert left.my_chat_member.new_chat_member.status == "kicked"
    assert came.my_chat_member is not None
    assert await bot.get_updates(offset=updates[-1].update_id + 1) == ()


async def test_python_telegram_bot_works_in_groups_and_topics(
    server: BotApiServer, bot: Bot
) -> None:
    forum = server.sim.add_group("Forum", [ADA], forum=True)
    topic = await bot.create_forum_topic(forum.id, "Work")
    assert await bot.edit_forum_topic(forum.id, topic.message_thread_id, name="Other")
    sent = await bot.send_message(forum.id, "x", message_thread_id=topic.message_thread_id)
    assert sent.is_topic_message
    document = await bot.send_document(forum.id, b"data", filename="f.bin", caption="a file")
    assert document.document is not None
    assert server.sim.file(document.message_id, forum.id) == b"data"
    photo = await bot.send_photo(forum.id, b"picture")
    assert photo.photo
    await bot.edit_message_caption(forum.id, document.message_id, caption="another")
    assert (await bot.get_chat_member(forum.id, bot.id)).status == "administrator"
    assert (await bot.get_chat_member(forum.id, ADA)).status == "member"
    assert await bot.close_forum_topic(forum.id, topic.message_thread_id)
    assert await bot.delete_forum_topic(forum.id, topic.message_thread_id)


async def test_python_telegram_bot_understands_every_refusal(
    server: BotApiServer, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")  # else it warns about its own future
    server.sim.flood(1, retry_after=7, chat=ADA)
    with pytest.raises(RetryAfter) as flood:
        await bot.send_message(ADA, "x")
    assert flood.value._retry_after.total_seconds() == 7
    server.sim.add_user(12)
    server.sim.add_user(13)
    server.sim.block(12)
    with pytest.raises(Forbidden):
        await bot.send_message(12, "x")
    with pytest.raises(BadRequest, match="Message text is empty"):
        await bot.send_message(13, " ")
    async with HTTPXRequest() as request:
        wrong = Bot("1000000001:wrong", base_url=f"{server.url}/bot", request=request)
        with pytest.raises(InvalidToken):
            await wrong.get_me()
    errors: list[Exception] = []

    async def poll() -> None:
        try:
            await bot.get_updates(timeout=30, offset=10**9)
        except Conflict as error:
            errors.append(error)

    async with open_bot(server) as second:
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(poll)
                await until(lambda: server._poller._current is not None)
                await second.get_updates(timeout=0)
    assert len(errors) == 1


async def test_python_telegram_bot_sets_a_webhook(server: BotApiServer, bot: Bot) -> None:
    assert await bot.set_webhook("http://127.0.0.1:9/hook", secret_token="secret")
    assert (await bot.get_webhook_info()).url == "http://127.0.0.1:9/hook"
    with pytest.raises(Conflict, match="webhook is active"):
        await bot.get_updates()
    assert await bot.delete_webhook()
    assert (await bot.get_webhook_info()).url == ""


@pytest.mark.process
async def test_aiogram_with_the_newest_methods_works(server: BotApiServer) -> None:
    install = await anyio.run_process(
        [sys.executable, str(ROOT / "tools" / "install_aiogram.py")], check=False, stderr=None
    )
    if install.returncode == NO_REGISTRY:
        pytest.skip("aiogram cannot be installed: the package registry cannot be reached")
    assert install.returncode == 0
    python = install.stdout.decode().strip()
    program = ROOT / "tests" / "fixtures" / "telegram" / "aiogram_bot.py"
    ran = await anyio.run_process([python, str(program), server.url, server.token], stderr=None)
    said = json.loads(ran.stdout)
    assert said["me"] == "test_bot"
    assert said["rich"] is True
    assert said["draft"] is True
    assert said["stopped"] == said["draft_id"]
    assert said["pressed"] == "yes"
    assert said["refused"] == {
        "unchanged": "TelegramBadRequest",
        "flood": "TelegramRetryAfter",
        "blocked": "TelegramForbiddenError",
        "moved": "TelegramMigrateToChat",
        "conflict": "TelegramConflictError",
        "token": "TelegramUnauthorizedError",
    }
    assert said["file"] == "contents"
    assert server.sim.from_bot(ADA)[0].shown == "edited"
    assert any(message.rich_message for message in server.sim.from_bot(ADA))
