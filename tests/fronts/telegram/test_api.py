"""The Bot API client: typed results, errors with their facts, and a token that nobody sees."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import anyio
import msgspec
import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.telegram.api import (
    BotApi,
    BotApiError,
    RichText,
    Upload,
    open_bot,
    read_update,
)
from quarterdeck.fronts.telegram.types import Button, Command, Entity, File, Update
from quarterdeck.testing.telegram import NO_LIMITS, BotApiServer
from support.bounds import SECONDS
from support.waiting import until

ADA = 11
YES = ((Button(text="Yes", callback_data="yes", style="success"),),)


@pytest.fixture
async def server() -> AsyncIterator[BotApiServer]:
    async with BotApiServer(limits=NO_LIMITS) as server:
        server.sim.add_user(ADA, "Ada", "ada")
        yield server


@pytest.fixture
async def api(server: BotApiServer) -> AsyncIterator[BotApi]:
    async with open_bot(server.token, base=server.url, timeout=SECONDS) as api:
        yield api


async def test_messages_are_sent_edited_and_deleted(server: BotApiServer, api: BotApi) -> None:
    bold = Entity(type="bold", offset=0, length=3)
    sent = await api.send_message(ADA, "one", entities=[bold], buttons=YES)
    assert (sent.chat.private, sent.text, sent.entities) == (True, "one", (bold,))
    await api.edit_message_text(ADA, sent.message_id, "two", buttons=YES)
    await api.edit_message_reply_markup(ADA, sent.message_id)
    [shown] = server.sim.from_bot(ADA)
    assert (shown.shown, shown.buttons) == ("two", ())
    reply = await api.send_message(ADA, "reply", reply_to=sent.message_id, silent=True)
    assert reply.reply_to_message is not None
    # The message that it answers may be gone.
    await api.send_message(ADA, "reply", reply_to=999)
    await api.set_message_reaction(ADA, sent.message_id, "👍")
    await api.send_chat_action(ADA)
    await api.delete_message(ADA, sent.message_id)
    assert len(server.sim.from_bot(ADA)) == 2


async def test_rich_messages_and_drafts(server: BotApiServer, api: BotApi) -> None:
    sent = await api.send_rich_message(ADA, RichText(markdown="# one"), buttons=YES)
    await api.edit_message_text(ADA, sent.message_id, "", rich=RichText(html="<h1>two</h1>"))
    assert server.sim.from_bot(ADA)[0].shown == "two"
    await api.send_message_draft(ADA, 5, "writing", can_stop=True)
    draft = server.sim.draft(ADA)
    assert draft is not None
    assert (draft.text, draft.can_stop) == ("writing", True)
    await api.send_message_draft(ADA, 5, "")
    await api.send_rich_message_draft(ADA, 6, RichText(html="<p>rich</p>"))
    draft = server.sim.draft(ADA)
    assert draft is not None
    assert draft.rich


async def test_files_go_both_ways(server: BotApiServer, api: BotApi) -> None:
    data = bytes(range(256)) * 40
    file = Upload(name='a "b".bin', data=data)
    sent = await api.send_document(ADA, file, caption="look", buttons=YES)
    assert server.sim.file(sent.message_id, ADA) == data
    await api.edit_message_caption(ADA, sent.message_id, "seen")
    assert (await api.send_photo(ADA, file)).photo
    server.sim.send_file(ADA, "in.bin", data)
    [update] = await api.get_updates(timeout=0)
    assert update.message is not None
    assert update.message.document is not None
    there = await api.get_file(update.message.document.file_id)
    assert await api.download(there) == data
    with pytest.raises(BotApiError, match="too large"):
        await api.download(there, largest=100)
    with pytest.raises(BotApiError, match="no path"):
        await api.download(File(file_id="x"))
    with pytest.raises(BotApiError) as gone:
        await api.download(File(file_id="x", file_path="documents/../x"))
    assert gone.value.code == 404


async def test_updates_are_values(server: BotApiServer, api: BotApi) -> None:
    forum = server.sim.add_group("Forum", [ADA], forum=True)
    thread = server.sim.add_topic(forum.id, "Work", ADA)
    sent = await api.send_message(ADA, "question", buttons=YES)
    server.sim.type(ADA, "hello", forum.id, thread)
    server.sim.type(ADA, "general", forum.id, 1)
    server.sim.press(ADA, sent.message_id, "Yes")
    server.sim.block(ADA)
    server.sim.raw_update({"message": {"message_id": "not a number"}})
    server.sim.raw_update({"something_new": {"x": 1}})
    in_topic, general, press, member, odd, new = await api.get_updates(timeout=0)
    assert in_topic.message is not None
    assert (in_topic.message.thread, in_topic.message.text) == (thread, "hello")
    assert in_topic.message.sender is not None
    assert in_topic.message.sender.id == ADA
    assert general.message is not None
    assert general.message.thread is None
    assert press.callback_query is not None
    assert press.callback_query.data == "yes"
    assert member.my_chat_member is not None
    assert not member.my_chat_member.new_chat_member.present
    # What is not understood has its number, so that it can be passed.
    assert odd == Update(update_id=odd.update_id)
    assert new == Update(update_id=odd.update_id + 1)
    assert await api.get_updates(new.update_id + 1, timeout=0) == []
    # A stored update is the same after it was read again.
    assert read_update(msgspec.json.encode(press)) == press
    with pytest.raises(BotApiError, match="no number"):
        read_update(b"{}")


async def test_the_general_topic_is_left_out_when_sending(
    server: BotApiServer, api: BotApi
) -> None:
    forum = server.sim.add_group("Forum", [ADA], forum=True)
    topic = await api.create_forum_topic(forum.id, "Work")
    await api.edit_forum_topic(forum.id, topic.message_thread_id, "Other")
    await api.send_message(forum.id, "general", thread=1)
    await api.send_message(forum.id, "topic", thread=topic.message_thread_id)
    assert [message.shown for message in server.sim.from_bot(forum.id, 1)] == ["general"]
    await api.close_forum_topic(forum.id, topic.message_thread_id)
    assert (await api.get_chat_member(forum.id, (await api.get_me()).id)).administrator


async def test_the_bot_and_its_menu(api: BotApi) -> None:
    assert (await api.get_me()).username == "test_bot"
    menu = (Command(command="help", description="what there is"),)
    await api.set_my_commands(menu)
    assert await api.get_my_commands() == menu
    assert (await api.get_webhook_info()).url == ""


async def test_a_refusal_has_its_facts(server: BotApiServer, api: BotApi) -> None:
    sent = await api.send_message(ADA, "one")
    with pytest.raises(BotApiError) as same:
        await api.edit_message_text(ADA, sent.message_id, "one")
    assert (same.value.code, same.value.unchanged, same.value.passing) == (400, True, False)
    with pytest.raises(BotApiError) as gone:
        await api.edit_message_text(ADA, 999, "one")
    assert (gone.value.gone, gone.value.unchanged) == (True, False)
    server.sim.flood(1, retry_after=9, chat=ADA)
    with pytest.raises(BotApiError) as flood:
        await api.send_message(ADA, "two")
    assert (flood.value.code, flood.value.retry_after, flood.value.passing) == (429, 9, True)
    group = server.sim.add_group("Team", [ADA], basic=True)
    new = server.sim.migrate(group.id)
    with pytest.raises(BotApiError) as moved:
        await api.send_message(group.id, "x")
    assert moved.value.migrate_to == new.id
    with pytest.raises(BotApiError) as query:
        await api.answer_callback_query("1", "x")
    assert query.value.code == 400


FAULTS = {"error": 500, "page": 502, "cut": 0, "lost": 0, "hang": 0}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_broken_connection_is_an_error_without_the_token(
    server: BotApiServer, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    timeout = 0.2 if fault == "hang" else SECONDS
    async with open_bot(server.token, base=server.url, timeout=timeout) as api:
        server.fail(fault, "getMe")  # type: ignore[arg-type]
        with pytest.raises(BotApiError) as failed:
            await api.get_me()
        assert failed.value.code == FAULTS[fault]
        assert failed.value.passing
        assert failed.value.sent
        secret = server.token.partition(":")[2]
        assert secret not in str(failed.value)
        assert secret not in repr(api)
        assert secret not in caplog.text


async def test_a_server_that_is_not_there_was_not_reached(server: BotApiServer) -> None:
    async with open_bot(server.token, base="http://127.0.0.1:9", timeout=SECONDS) as api:
        with pytest.raises(BotApiError) as failed:
            await api.get_me()
    assert (failed.value.code, failed.value.sent, failed.value.passing) == (0, False, True)


@pytest.mark.parametrize(
    ("token", "base"),
    [
        ("", "https://a.example"),
        ("1:a/../b", "https://a.example"),
        ("1:a b", "https://a.example"),
        ("1:a", "http://a.example"),
        ("1:a", "ftp://127.0.0.1"),
        ("1:a", "a.example"),
    ],
)
async def test_a_token_is_not_sent_where_others_could_read_it(token: str, base: str) -> None:
    with pytest.raises(UsageError):
        async with open_bot(token, base=base):
            pass


async def test_a_second_poller_is_a_conflict(server: BotApiServer, api: BotApi) -> None:
    codes: list[int] = []

    async def poll() -> None:
        with pytest.raises(BotApiError) as conflict:
            await api.get_updates()
        codes.append(conflict.value.code)

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(poll)
            await until(lambda: server._poller._current is not None)
            await api.get_updates(timeout=0)
    assert codes == [409]
