"""The Bot API server for tests: it refuses what Telegram refuses, and does nothing twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import msgspec
import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.runtime.clock import Clock
from quarterdeck.testing.telegram import NO_LIMITS, TOKEN, BotApiServer, FloodLimits
from support.bounds import SECONDS
from support.waiting import until

ADA, BOB = 11, 12
LONG = 4096


class Bot:
    """A bot that makes calls as JSON, and sees the answers as they are."""

    def __init__(self, server: BotApiServer, client: httpx2.AsyncClient) -> None:
        self._base = f"{server.url}/bot{server.token}"
        self._client = client

    async def answer(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self._client.post(f"{self._base}/{method}", json=params)
        body: dict[str, Any] = answer.json()
        assert body["ok"] or answer.status_code == body["error_code"]
        return body

    async def call(self, method: str, **params: Any) -> Any:
        body = await self.answer(method, **params)
        assert body["ok"], body
        return body["result"]

    async def refused(self, method: str, **params: Any) -> tuple[int, str]:
        body = await self.answer(method, **params)
        assert not body["ok"], body
        return body["error_code"], body["description"]


@pytest.fixture
async def server() -> AsyncIterator[BotApiServer]:
    async with BotApiServer(limits=NO_LIMITS) as server:
        server.sim.add_user(ADA, "Ada", "ada")
        server.sim.add_user(BOB, "Bob")
        yield server


@pytest.fixture
async def bot(server: BotApiServer) -> AsyncIterator[Bot]:
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False, verify=False) as client:
        yield Bot(server, client)


def button(data: str = "x", text: str = "Press") -> dict[str, Any]:
    return {"inline_keyboard": [[{"text": text, "callback_data": data}]]}


# --- what is refused -----------------------------------------------------------------------------

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "an unknown chat": ("sendMessage", {"chat_id": 99, "text": "x"}, "chat not found"),
    "no chat": ("sendMessage", {"text": "x"}, "chat_id is empty"),
    "no text": ("sendMessage", {}, "message text is empty"),
    "a text of white space": ("sendMessage", {"text": " \n\t "}, "message text is empty"),
    "a text that is too long": ("sendMessage", {"text": "x" * (LONG + 1)}, "message is too long"),
    "a text that is too long in UTF-16": (
        "sendMessage",
        {"text": "\N{GRINNING FACE}" * (LONG // 2 + 1)},
        "message is too long",
    ),
    "callback data of 65 bytes": (
        "sendMessage",
        {"text": "x", "reply_markup": button("é" * 32 + "x")},
        "BUTTON_DATA_INVALID",
    ),
    "empty callback data": (
        "sendMessage",
        {"text": "x", "reply_markup": button("")},
        "BUTTON_DATA_INVALID",
    ),
    "a button that does nothing": (
        "sendMessage",
        {"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a"}]]}},
        "text buttons are unallowed",
    ),
    "a button with a dangerous link": (
        "sendMessage",
        {
            "text": "x",
            "reply_markup": {"inline_keyboard": [[{"text": "a", "url": "javascript:x"}]]},
        },
        "URL 'javascript:x' is invalid",
    ),
    "an entity outside of the text": (
        "sendMessage",
        {"text": "abc", "entities": [{"type": "bold", "offset": 2, "length": 2}]},
        "outside of the text",
    ),
    "an entity that halves a character": (
        "sendMessage",
        {"text": "\N{GRINNING FACE}", "entities": [{"type": "bold", "offset": 1, "length": 1}]},
        "middle of a UTF-16 symbol",
    ),
    "an unknown entity": (
        "sendMessage",
        {"text": "abc", "entities": [{"type": "huge", "offset": 0, "length": 1}]},
        "unsupported type",
    ),
    "a reply to nothing": (
        "sendMessage",
        {"text": "x", "reply_parameters": {"message_id": 999}},
        "message to be replied not found",
    ),
    "an unknown topic": (
        "sendMessage",
        {"text": "x", "message_thread_id": 5},
        "message thread not found",
    ),
    "an edit of nothing": (
        "editMessageText",
        {"message_id": 999, "text": "x"},
        "message to edit not found",
    ),
    "a deletion of nothing": (
        "deleteMessage",
        {"message_id": 999},
        "message to delete not found",
    ),
    "an unknown query": (
        "answerCallbackQuery",
        {"callback_query_id": "1"},
        "query is too old",
    ),
    "a toast that is too long": (
        "answerCallbackQuery",
        {"callback_query_id": "1", "text": "x" * 201},
        "MESSAGE_TOO_LONG",
    ),
    "a draft without a number": ("sendMessageDraft", {"text": "x", "draft_id": 0}, "non-zero"),
    "an unknown action": ("sendChatAction", {"action": "dancing"}, "wrong parameter action"),
    "an unknown file": ("getFile", {"file_id": "no"}, "invalid file_id"),
    "an unknown document": ("sendDocument", {"document": "no"}, "wrong file identifier"),
    "a command with a capital letter": (
        "setMyCommands",
        {"commands": [{"command": "Help", "description": "x"}]},
        "BOT_COMMAND_INVALID",
    ),
    "a topic in a private chat": ("createForumTopic", {"name": "x"}, "not a forum"),
    "a webhook elsewhere": ("setWebhook", {"url": "https://192.0.2.1/x"}, "loopback only"),
    "a wrong secret": (
        "setWebhook",
        {"url": "http://127.0.0.1/x", "secret_token": "a b"},
        "unallowed characters",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_telegram_refuses_is_refused(server: BotApiServer, bot: Bot, case: str) -> None:
    method, params, words = REFUSED[case]
    if case != "no chat":
        params = {"chat_id": ADA} | params
    code, description = await bot.refused(method, **params)
    assert code == 400
    assert words in description
    assert server.sim.messages(ADA) == []


RICH_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "exactly one"),
    "two forms": ({"html": "x", "markdown": "x"}, "exactly one"),
    "an empty text": ({"html": "<p> </p>"}, "empty"),
    "too many characters": ({"markdown": "x" * 32769}, "too long"),
    "too many blocks": ({"html": "<p>x</p>" * 501}, "too many blocks"),
    "too deep": ({"html": "<blockquote>" * 17 + "x" + "</blockquote>" * 17}, "nested too deep"),
    "too many columns": ({"html": f"<table><tr>{'<td>x</td>' * 21}</tr></table>"}, "columns"),
    "too many pictures": ({"html": '<img src="https://a.example/b"/>' * 51}, "too many media"),
    "thinking": ({"html": "<p><tg-thinking>x</tg-thinking></p>"}, "drafts only"),
    "an unknown tag": ({"html": "<script>x</script>"}, "unsupported tag"),
    "an open tag": ({"html": "<p>x"}, "not closed"),
    "a wrong end": ({"html": "<p>x</b></p>"}, "unexpected end tag"),
}


@pytest.mark.parametrize("case", RICH_REFUSED)
async def test_a_rich_message_beyond_the_limits_is_refused(
    server: BotApiServer, bot: Bot, case: str
) -> None:
    rich, words = RICH_REFUSED[case]
    code, description = await bot.refused("sendRichMessage", chat_id=ADA, rich_message=rich)
    assert (code, words in description) == (400, True), description
    assert server.sim.messages(ADA) == []


async def test_a_rich_message_within_the_limits_is_shown(server: BotApiServer, bot: Bot) -> None:
    rich = {"markdown": "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- two"}
    await bot.call("sendRichMessage", chat_id=ADA, rich_message=rich)
    [message] = server.sim.from_bot(ADA)
    assert "Title" in message.shown
    assert "two" in message.shown


async def test_the_longest_text_and_data_are_accepted(server: BotApiServer, bot: Bot) -> None:
    await bot.call("sendMessage", chat_id=ADA, text="x" * LONG, reply_markup=button("é" * 32))
    [message] = server.sim.from_bot(ADA)
    assert len(message.shown) == LONG


async def test_an_unknown_token_and_an_unknown_method_are_refused(
    server: BotApiServer, bot: Bot
) -> None:
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False, verify=False) as client:
        answer = await client.get(f"{server.url}/bot1:wrong/getMe")
        assert answer.json() == {"ok": False, "error_code": 401, "description": "Unauthorized"}
    assert (await bot.refused("sendPigeon"))[0] == 404


# --- edits, deletions, presses -------------------------------------------------------------------


async def test_an_unchanged_edit_is_refused(server: BotApiServer, bot: Bot) -> None:
    sent = await bot.call("sendMessage", chat_id=ADA, text="one", reply_markup=button())
    where = {"chat_id": ADA, "message_id": sent["message_id"]}
    same = {"text": "one", "reply_markup": button()}
    code, description = await bot.refused("editMessageText", **where, **same)
    assert (code, "message is not modified" in description) == (400, True)
    await bot.call("editMessageText", **where, text="one")
    assert server.sim.from_bot(ADA)[0].buttons == ()
    assert "not modified" in (await bot.refused("editMessageReplyMarkup", **where))[1]


async def test_messages_of_others_cannot_be_edited(server: BotApiServer, bot: Bot) -> None:
    theirs = server.sim.type(ADA, "hello")
    where = {"chat_id": ADA, "message_id": theirs.message_id}
    assert "can't be edited" in (await bot.refused("editMessageText", **where, text="x"))[1]


async def test_a_deleted_message_cannot_be_edited(server: BotApiServer, bot: Bot) -> None:
    sent = await bot.call("sendMessage", chat_id=ADA, text="one")
    where = {"chat_id": ADA, "message_id": sent["message_id"]}
    await bot.call("deleteMessage", **where)
    assert "not found" in (await bot.refused("editMessageText", **where, text="x"))[1]
    assert "not found" in (await bot.refused("deleteMessage", **where))[1]


async def test_a_press_is_answered_once(server: BotApiServer, bot: Bot) -> None:
    sent = await bot.call("sendMessage", chat_id=ADA, text="one", reply_markup=button("d", "Yes"))
    query = server.sim.press(ADA, sent["message_id"], "Yes")
    [update] = await bot.call("getUpdates")
    assert update["callback_query"]["data"] == "d"
    assert update["callback_query"]["id"] == query
    await bot.call("answerCallbackQuery", callback_query_id=query, text="done")
    assert server.sim.query(query).answer == "done"
    assert (
        "query is too old" in (await bot.refused("answerCallbackQuery", callback_query_id=query))[1]
    )


async def test_a_button_that_is_not_there_cannot_be_pressed_but_forged(
    server: BotApiServer, bot: Bot
) -> None:
    sent = await bot.call("sendMessage", chat_id=ADA, text="one")
    with pytest.raises(UsageError, match="no button"):
        server.sim.press(ADA, sent["message_id"], "Yes")
    server.sim.press(BOB, sent["message_id"], chat=ADA, forge="stolen")
    [update] = await bot.call("getUpdates")
    assert update["callback_query"]["from"]["id"] == BOB
    assert update["callback_query"]["data"] == "stolen"


# --- drafts --------------------------------------------------------------------------------------


async def test_a_draft_is_for_private_chats_and_ends_with_the_message(
    server: BotApiServer, bot: Bot
) -> None:
    group = server.sim.add_group("Team", [ADA])
    assert (await bot.refused("sendMessageDraft", chat_id=group.id, draft_id=1, text="x"))[0] == 400
    await bot.call("sendMessageDraft", chat_id=ADA, draft_id=7, text="writing", can_stop=True)
    draft = server.sim.draft(ADA)
    assert draft is not None
    assert (draft.text, draft.draft_id) == ("writing", 7)
    await bot.call("sendMessage", chat_id=ADA, text="written")
    assert server.sim.draft(ADA) is None
    with pytest.raises(UsageError, match="no draft"):
        server.sim.stop(ADA)


async def test_stop_under_a_draft_is_an_update(server: BotApiServer, bot: Bot) -> None:
    await bot.call("sendMessageDraft", chat_id=ADA, draft_id=7, text="writing", can_stop=True)
    server.sim.stop(ADA)
    [update] = await bot.call("getUpdates")
    assert update["stopped_message_generation"]["draft_id"] == 7
    assert server.sim.draft(ADA) is None


async def test_a_draft_is_gone_after_half_a_minute() -> None:
    clock = Clock(speed=1000)
    async with (
        BotApiServer(limits=NO_LIMITS, clock=clock) as server,
        httpx2.AsyncClient(timeout=SECONDS, trust_env=False, verify=False) as client,
    ):
        server.sim.add_user(ADA)
        await Bot(server, client).call("sendMessageDraft", chat_id=ADA, draft_id=7, text="x")
        with anyio.fail_after(SECONDS):
            await clock.sleep(31)
        assert server.sim.draft(ADA) is None


# --- topics --------------------------------------------------------------------------------------


async def test_the_general_topic_has_no_number_for_sending(server: BotApiServer, bot: Bot) -> None:
    forum = server.sim.add_group("Forum", [ADA], forum=True)
    where = {"chat_id": forum.id, "text": "x"}
    assert "thread not found" in (await bot.refused("sendMessage", **where, message_thread_id=1))[1]
    topic = await bot.call("createForumTopic", chat_id=forum.id, name="Work")
    thread = topic["message_thread_id"]
    await bot.call("sendMessage", **where, message_thread_id=thread)
    await bot.call("sendMessage", **where)
    assert len(server.sim.from_bot(forum.id, thread)) == 1
    assert len(server.sim.from_bot(forum.id, 1)) == 1
    server.sim.type(ADA, "hello", forum.id, thread)
    [update] = await bot.call("getUpdates")
    assert update["message"]["message_thread_id"] == thread
    assert update["message"]["is_topic_message"]


# --- files ---------------------------------------------------------------------------------------


async def test_files_go_both_ways_within_their_limits(server: BotApiServer, bot: Bot) -> None:
    sent = server.sim.send_file(ADA, "a.bin", b"\r\n\x00--boundary\r\n", caption="look")
    [update] = await bot.call("getUpdates")
    file_id = update["message"]["document"]["file_id"]
    path = (await bot.call("getFile", file_id=file_id))["file_path"]
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False, verify=False) as client:
        got = await client.get(f"{server.url}/file/bot{TOKEN}/{path}")
        assert got.content == server.sim.file(sent.message_id, ADA)
        nothing = await client.get(f"{server.url}/file/bot1:wrong/{path}")
        assert nothing.status_code == 404
    server.sim.send_file(ADA, "large.bin", bytes(20 * 1024 * 1024 + 1))
    large = (await bot.call("getUpdates"))[-1]["message"]["document"]["file_id"]
    assert "file is too big" in (await bot.refused("getFile", file_id=large))[1]


UPLOADS = {
    "an empty file": ("sendDocument", "document", 0, 400, "non-empty"),
    "a photo over 10 MB": ("sendPhoto", "photo", 10 * 2**20 + 1, 400, "too big for a photo"),
    "a file over 50 MB": ("sendDocument", "document", 50 * 2**20 + 1, 413, "Too Large"),
}


@pytest.mark.parametrize("case", UPLOADS)
async def test_an_upload_beyond_the_limits_is_refused(server: BotApiServer, case: str) -> None:
    method, name, size, code, words = UPLOADS[case]
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False, verify=False) as client:
        answer = await client.post(
            f"{server.url}/bot{TOKEN}/{method}",
            data={"chat_id": str(ADA)},
            files={name: ("x", bytes(size))},
        )
    assert answer.status_code == code
    assert words in answer.json()["description"]


# --- polling -------------------------------------------------------------------------------------


async def test_an_update_is_delivered_until_the_offset_passes_it(
    server: BotApiServer, bot: Bot
) -> None:
    server.sim.storm(ADA, 3)
    first = await bot.call("getUpdates", limit=2)
    assert await bot.call("getUpdates", limit=2) == first
    last = first[-1]["update_id"]
    [third] = await bot.call("getUpdates", offset=last + 1)
    assert third["message"]["text"] == "storm 2"
    assert await bot.call("getUpdates", offset=third["update_id"] + 1) == []
    assert server.sim.redeliver(1) == 1
    assert await bot.call("getUpdates") == [third]


async def test_a_poll_waits_for_the_next_update(server: BotApiServer, bot: Bot) -> None:
    found: list[Any] = []

    async def poll() -> None:
        found.extend(await bot.call("getUpdates", timeout=50))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(poll)
            await anyio.wait_all_tasks_blocked()
            server.sim.type(ADA, "now")
    assert [update["message"]["text"] for update in found] == ["now"]


async def test_a_second_poller_ends_the_first_with_a_conflict(
    server: BotApiServer, bot: Bot
) -> None:
    codes: list[int] = []

    async def poll() -> None:
        codes.append((await bot.refused("getUpdates", timeout=50))[0])

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(poll)
            # The first must be waiting before the second comes.
            await until(lambda: server._poller._current is not None)
            assert await bot.call("getUpdates", timeout=0) == []
    assert codes == [409]


async def test_kinds_that_the_bot_does_not_want_are_not_delivered(
    server: BotApiServer, bot: Bot
) -> None:
    await bot.call("getUpdates", allowed_updates=["message"])
    sent = await bot.call("sendMessage", chat_id=ADA, text="x", reply_markup=button())
    server.sim.press(ADA, sent["message_id"], "Press")
    server.sim.type(ADA, "hello")
    updates = await bot.call("getUpdates")
    assert [list(update)[1] for update in updates] == ["message"]


# --- floods --------------------------------------------------------------------------------------


async def test_too_many_calls_are_refused_with_a_time_to_wait() -> None:
    clock = Clock()
    limits = FloodLimits(chat_per_second=0, group_per_minute=3, overall_per_second=0)
    async with (
        BotApiServer(limits=limits, clock=clock) as server,
        httpx2.AsyncClient(timeout=SECONDS, trust_env=False, verify=False) as client,
    ):
        bot = Bot(server, client)
        server.sim.add_user(ADA)
        group = server.sim.add_group("Team", [ADA])
        for number in range(3):
            await bot.call("sendMessage", chat_id=group.id, text=f"{number}")
        answer = await bot.answer("sendMessage", chat_id=group.id, text="x")
        assert answer["error_code"] == 429
        assert 1 <= answer["parameters"]["retry_after"] <= 60
        await bot.call("sendMessage", chat_id=ADA, text="another chat")


async def test_an_ordered_flood_refuses_one_chat_or_all(server: BotApiServer, bot: Bot) -> None:
    server.sim.flood(1, retry_after=60, chat=ADA)
    answer = await bot.answer("sendMessage", chat_id=ADA, text="x")
    assert answer["parameters"] == {"retry_after": 60}
    # Whoever does not wait is refused again.
    assert (await bot.refused("sendMessage", chat_id=ADA, text="x"))[0] == 429
    await bot.call("sendMessage", chat_id=BOB, text="x")
    server.sim.flood(1, retry_after=60)
    assert (await bot.refused("sendMessage", chat_id=BOB, text="x"))[0] == 429


# --- trouble -------------------------------------------------------------------------------------


async def test_a_blocked_bot_and_a_moved_group_are_refused(server: BotApiServer, bot: Bot) -> None:
    server.sim.block(ADA)
    assert (await bot.refused("sendMessage", chat_id=ADA, text="x"))[0] == 403
    server.sim.block(ADA, blocked=False)
    await bot.call("sendMessage", chat_id=ADA, text="x")
    group = server.sim.add_group("Team", [ADA], basic=True)
    new = server.sim.migrate(group.id)
    answer = await bot.answer("sendMessage", chat_id=group.id, text="x")
    assert answer["parameters"] == {"migrate_to_chat_id": new.id}
    await bot.call("sendMessage", chat_id=new.id, text="x")


@pytest.mark.parametrize(("kind", "done"), [("cut", 0), ("lost", 1)])
async def test_a_connection_breaks_before_or_after_the_work(
    server: BotApiServer, bot: Bot, kind: str, done: int
) -> None:
    server.fail(kind, "sendMessage")  # type: ignore[arg-type]
    with pytest.raises(httpx2.TransportError):
        await bot.call("sendMessage", chat_id=ADA, text="x")
    assert len(server.sim.from_bot(ADA)) == done
    assert [call.code for call in server.calls] == [0]
    await bot.call("sendMessage", chat_id=ADA, text="x")


# --- over HTTP -----------------------------------------------------------------------------------


async def test_the_simulation_works_over_http(server: BotApiServer, bot: Bot) -> None:
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False, verify=False) as client:

        async def sim(name: str, **params: Any) -> Any:
            answer = await client.post(f"{server.url}/sim/{name}", json=params)
            body = answer.json()
            assert body["ok"], body
            return body["result"]

        typed = await sim("type", user=ADA, text="/new work")
        assert typed["entities"] == [{"type": "bot_command", "offset": 0, "length": 4}]
        sent = await bot.call("sendMessage", chat_id=ADA, text="one", reply_markup=button())
        query = await sim("press", user=ADA, message_id=sent["message_id"], button="Press")
        assert isinstance(query, str)
        assert [one["text"] for one in await sim("from_bot", chat=ADA)] == ["one"]
        assert [one["method"] for one in await sim("calls")] == ["sendMessage"]
        wrong = await client.post(f"{server.url}/sim/dance", content=b"{}")
        assert wrong.status_code == 400
        assert "press" in wrong.json()["description"]
        missing = await client.post(f"{server.url}/sim/type", content=b'{"user": 5}')
        assert missing.status_code == 400


async def test_forms_and_queries_are_read_as_json_is(server: BotApiServer) -> None:
    markup = msgspec.json.encode(button()).decode()
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False, verify=False) as client:
        base = f"{server.url}/bot{TOKEN}/sendMessage"
        for options in (
            {"params": {"chat_id": ADA, "text": "x", "reply_markup": markup}},
            {"data": {"chat_id": str(ADA), "text": "x", "reply_markup": markup}},
            {
                "data": {"chat_id": str(ADA), "text": "x", "reply_markup": markup},
                "files": {"unused": ("n", b"x")},
            },
        ):
            answer = await client.post(base, **options)
            assert answer.json()["ok"], answer.text
    assert [message.buttons[0].callback_data for message in server.sim.from_bot(ADA)] == ["x"] * 3


@pytest.mark.parametrize(
    ("status", "text", "reply", "seen"),
    [
        ("member", "hello", False, False),
        ("member", "/new@test_bot hello", False, True),
        ("member", "hello @test_bot", False, True),
        ("member", "hello", True, True),
        ("administrator", "hello", False, True),
    ],
)
async def test_with_the_privacy_mode_a_bot_gets_only_what_is_meant_for_it(
    server: BotApiServer, bot: Bot, status: str, text: str, reply: bool, seen: bool
) -> None:
    group = server.sim.add_group("team", [ADA])
    said = await bot.call("sendMessage", chat_id=group.id, text="Yes?")
    server.sim.set_status(group.id, server.world.bot.id, status)
    server.sim.set_privacy(True)
    to = said["message_id"] if reply else None
    server.sim.type(ADA, text, group.id, reply_to=to)
    assert server.sim.pending_count() == int(seen)
    server.sim.type(ADA, "hello")
    assert server.sim.pending_count() == int(seen) + 1, "a private chat is always for the bot"
