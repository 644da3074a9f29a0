"""The outbox: nothing lost, nothing doubled, no chat in the way of another, within the limits."""

from __future__ import annotations

import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from quarterdeck.fronts.telegram.api import Upload
from quarterdeck.fronts.telegram.budget import Limits
from quarterdeck.fronts.telegram.outbox_store import State
from quarterdeck.fronts.telegram.text import bold, link, plain
from quarterdeck.fronts.telegram.types import Button
from quarterdeck.runtime.clock import Clock
from quarterdeck.testing.telegram import BotApiServer
from support.bounds import SECONDS
from support.processes import Processes
from support.telegram import SPEED, open_outbox
from support.waiting import until

ADA, BOB, EVE = 11, 12, 13
SHOWN = ("sendMessage", "editMessageText", "deleteMessage", "sendMessageDraft")
YES = ((Button(text="Yes", callback_data="yes"),),)


@pytest.fixture
async def server() -> AsyncIterator[BotApiServer]:
    async with BotApiServer(clock=Clock(speed=SPEED)) as server:
        for number in (ADA, BOB, EVE):
            server.sim.add_user(number)
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "telegram.db"


def texts(server: BotApiServer, chat: int) -> list[str]:
    return [message.shown for message in server.sim.from_bot(chat)]


async def test_a_message_is_sent_once_for_its_key(server: BotApiServer, path: Path) -> None:
    async with open_outbox(server, path) as opened:
        outbox = opened.outbox
        assert outbox.send(ADA, None, bold("one"), key="k", buttons=YES)
        assert not outbox.send(ADA, None, plain("again"), key="k")
        await opened.done()
        assert not outbox.send(ADA, None, plain("again"), key="k")
        await opened.done()
        [message] = server.sim.from_bot(ADA)
        assert message.shown == "one"
        assert message.buttons[0].callback_data == "yes"
        assert message.entities[0].type == "bold"
        assert [sent.message_id for sent in opened.sent] == [message.message_id]
        assert outbox.message_id_of("k") == message.message_id
        assert outbox.key_of(ADA, message.message_id) == "k"
        assert outbox.key_of(BOB, message.message_id) is None


async def test_of_several_parts_the_last_one_has_key_and_buttons(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("1"), plain("2"), plain("3"), key="k", buttons=YES)
        await opened.done()
        assert texts(server, ADA) == ["1", "2", "3"]
        assert [bool(message.buttons) for message in server.sim.from_bot(ADA)] == [
            False,
            False,
            True,
        ]
        assert opened.outbox.message_id_of("k") == server.sim.from_bot(ADA)[-1].message_id


async def test_an_edit_before_its_turn_changes_what_is_sent(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("old"), key="k")
        assert opened.outbox.edit("k", plain("new"))
        await opened.done()
        assert texts(server, ADA) == ["new"]
        assert [call.method for call in server.calls] == ["sendMessage"]


async def test_edits_are_coalesced_and_the_last_one_is_shown(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("start"), key="k")
        await opened.done()
        for number in range(200):
            opened.outbox.edit("k", plain(f"{number}"))
        opened.outbox.edit("k", plain("last"))
        await opened.done()
        assert texts(server, ADA) == ["last"]
        assert len(server.calls_of("editMessageText")) == 1


async def test_an_edit_during_the_call_that_sends_is_not_lost(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("old"), key="k")
        with anyio.fail_after(SECONDS):
            await until(lambda: opened.outbox.state_of("k") is not State.WAITING)
        opened.outbox.edit("k", plain("new"))
        await opened.done()
        assert texts(server, ADA) == ["new"]


async def test_an_edit_that_changes_nothing_makes_no_call(server: BotApiServer, path: Path) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("same"), key="k")
        await opened.done()
        opened.outbox.edit("k", plain("same"))
        opened.outbox.edit("k", plain("same"), lazy=True)
        opened.outbox.send(ADA, None, plain("next"), key="next")
        await opened.done()
        assert server.calls_of("editMessageText") == []
        assert not opened.outbox.edit("unknown", plain("x"))


async def test_a_turn_of_ten_thousand_deltas_makes_at_most_one_edit_a_second(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        outbox = opened.outbox
        outbox.send(ADA, None, plain("begin"), key="progress")
        await opened.done()
        began = server.clock.now()
        for number in range(10_000):
            outbox.edit("progress", plain(f"delta {number}"), lazy=True)
            if number % 20 == 0:
                await anyio.lowlevel.checkpoint()
        outbox.edit("progress", plain("the answer"))
        await opened.done()
        edits = server.calls_of("editMessageText", chat=ADA)
        assert 1 < len(edits) <= server.clock.now() - began + 1
        gaps = [b.at - a.at for a, b in pairwise(edits)]
        assert all(gap >= 1 for gap in gaps)
        assert texts(server, ADA) == ["the answer"]
        assert server.calls_of(code=429) == []


async def test_messages_of_a_chat_keep_their_order(server: BotApiServer, path: Path) -> None:
    async with open_outbox(server, path) as opened:
        expected = [f"{number}" for number in range(15)]
        for text in expected:
            opened.outbox.send(ADA, None, plain(text), key=text)
            opened.outbox.send(BOB, None, plain(text), key=f"b{text}")
        await opened.done()
        assert texts(server, ADA) == expected
        assert texts(server, BOB) == expected


async def test_a_chat_that_must_wait_delays_no_other(server: BotApiServer, path: Path) -> None:
    async with open_outbox(server, path) as opened:
        server.sim.flood(1, retry_after=86400, chat=ADA)
        opened.outbox.send(ADA, None, plain("tomorrow"), key="tomorrow")
        for number in range(10):
            opened.outbox.send(BOB, None, plain(f"{number}"), key=f"b{number}")
        await server.wait_for(lambda: len(server.calls_of(chat=BOB, code=200)) == 10, SECONDS)
        assert [call.code for call in server.calls_of(chat=ADA)] == [429]
        with anyio.fail_after(SECONDS):
            await until(lambda: opened.outbox.waiting == 1)


async def test_the_time_that_telegram_asks_for_is_waited(server: BotApiServer, path: Path) -> None:
    async with open_outbox(server, path) as opened:
        server.sim.flood(1, retry_after=30, chat=ADA)
        opened.outbox.send(ADA, None, plain("late"), key="late")
        await opened.done()
        [refused, sent] = server.calls_of("sendMessage", chat=ADA)
        assert (refused.code, sent.code) == (429, 200)
        assert sent.at - refused.at >= 30
        assert opened.outbox.counts.retried == 1


@pytest.mark.heavy
async def test_a_thousand_messages_in_a_storm_of_refusals_starve_no_chat(
    server: BotApiServer, path: Path
) -> None:
    chance = random.Random(16)
    chats = [*range(100, 150)]
    for chat in chats:
        server.sim.add_user(chat)
    busy = chats[0]
    wanted: dict[int, list[str]] = {chat: [] for chat in chats}
    async with open_outbox(server, path) as opened:
        # The first chat alone wants as many messages as all others together would take turns for.
        order = [busy] * 20 + [chat for chat in chats for _ in range(20)]
        chance.shuffle(order)
        for number, chat in enumerate(order):
            wanted[chat].append(f"{number}")
            opened.outbox.send(chat, None, plain(f"{number}"), key=f"{number}")
        for chat in chance.sample(chats, 25):
            server.sim.flood(2, retry_after=chance.randint(1, 5), chat=chat)
        server.sim.flood(30, retry_after=2)
        await opened.done()
        assert opened.failed == []
    assert {chat: texts(server, chat) for chat in chats} == wanted
    refused = Counter(call.chat for call in server.calls_of(code=429))
    assert len(refused) > 25
    # Only what was ordered is refused, and what was on its way then: no limit was ever passed.
    assert sum(refused.values()) <= 25 * 2 + 30 + Limits().in_flight
    # Whoever has no more than others is done before the one who has twice as much.
    last = {chat: server.calls_of("sendMessage", chat=chat, code=200)[-1].at for chat in chats}
    assert max(last, key=lambda chat: last[chat]) == busy
    for chat in chats:
        sent = server.calls_of("sendMessage", chat=chat, code=200)
        waits = [b.at - a.at for a, b in pairwise(sent)]
        assert min(waits) >= 1


async def test_what_was_not_sent_is_sent_after_a_restart(server: BotApiServer, path: Path) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("first"), key="first")
        await opened.done()
        server.sim.flood(1, retry_after=20, chat=ADA)
        opened.outbox.send(ADA, None, plain("second"), key="second")
        await server.wait_for(lambda: server.calls_of(code=429), SECONDS)
        with anyio.fail_after(SECONDS):
            await until(lambda: opened.outbox.counts.retried == 1)
        opened.outbox.edit("first", plain("changed"))
    async with open_outbox(server, path) as opened:
        assert opened.outbox.waiting == 2
        await opened.done()
    assert texts(server, ADA) == ["changed", "second"]
    # The time to wait is known after the restart, too.
    assert len(server.calls_of(code=429)) == 1


@pytest.mark.parametrize("place", ["private", "group"])
@pytest.mark.parametrize("between", [0, 2])
async def test_a_message_whose_answer_was_lost_is_not_sent_again(
    server: BotApiServer, path: Path, place: str, between: int
) -> None:
    chat = ADA if place == "private" else server.sim.add_group("Team", [ADA]).id
    async with open_outbox(server, path) as opened:
        opened.outbox.send(chat, None, plain("first"), key="first")
        await opened.done()
        for _ in range(between):
            server.sim.type(ADA, "somebody else writes", chat)
        server.fail("lost", "sendMessage")
        opened.outbox.send(chat, None, bold("second"), key="second", buttons=YES)
        opened.outbox.send(chat, None, plain("third"), key="third")
        await opened.done()
        assert texts(server, chat) == ["first", "second", "third"]
        ids = [message.message_id for message in server.sim.from_bot(chat)]
        assert [opened.outbox.message_id_of(key) for key in ("first", "second", "third")] == ids
        assert opened.outbox.edit("second", plain("edited"))
        await opened.done()
        assert texts(server, chat) == ["first", "edited", "third"]


@pytest.mark.parametrize("fault", ["cut", "error", "page"])
async def test_a_message_that_did_not_arrive_is_sent_once(
    server: BotApiServer, path: Path, fault: str
) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("first"), key="first")
        await opened.done()
        server.fail(fault, "sendMessage", times=2)  # type: ignore[arg-type]
        opened.outbox.send(ADA, None, plain("second"), key="second")
        await opened.done()
        assert texts(server, ADA) == ["first", "second"]
        assert opened.outbox.counts.retried == 2


async def calls_after(server: BotApiServer, number: int) -> None:
    await server.wait_for(lambda: len(server.calls) > number, SECONDS)


CHILD = """
import sys, anyio
from pathlib import Path
from quarterdeck.fronts.telegram.api import open_bot
from quarterdeck.fronts.telegram.budget import Limits
from quarterdeck.fronts.telegram.database import Database
from quarterdeck.fronts.telegram.outbox import Outbox
from quarterdeck.fronts.telegram.budget import Limits
from quarterdeck.fronts.telegram.outbox_store import OutboxStore
from quarterdeck.fronts.telegram.text import plain
from quarterdeck.runtime.clock import Clock

async def main(url, token, path, chats):
    async with open_bot(token, base=url) as api, anyio.create_task_group() as tasks:
        outbox = Outbox(api, OutboxStore(Database(Path(path))), Clock(speed=50))
        for number in range(12):
            for chat in chats.split(","):
                outbox.send(int(chat), None, plain(f"{number}"), key=f"{chat}:{number}")
        tasks.start_soon(outbox.run)
        while not await outbox.flush(600):
            pass
        tasks.cancel_scope.cancel()

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.process
async def test_a_killed_outbox_loses_and_doubles_nothing(
    server: BotApiServer, path: Path, processes: Processes
) -> None:
    group = server.sim.add_group("Team", [ADA]).id
    chats = [ADA, group]
    # A chat of which a message is known: that is how a doubtful one can be found.
    async with open_outbox(server, path) as opened:
        for chat in chats:
            opened.outbox.send(chat, None, plain("begin"), key=f"begin:{chat}")
        await opened.done()
    command = [
        *(sys.executable, "-c", CHILD, server.url, server.token, str(path)),
        ",".join(map(str, chats)),
    ]
    chance = random.Random(9)
    for _ in range(5):
        seen = len(server.calls)
        child = await anyio.open_process(command, stdout=None, stderr=None)
        processes.started(child.pid)
        await calls_after(server, seen + 2)
        if chance.random() < 0.5:
            # Between the work and its answer, where it hurts most.
            server.fail("lost", "sendMessage")
            seen = len(server.calls)
            await calls_after(server, seen)
        child.send_signal(signal.SIGKILL)
        with anyio.fail_after(SECONDS):
            await child.wait()
    child = await anyio.open_process(command, stdout=None, stderr=None)
    processes.started(child.pid)
    with anyio.fail_after(SECONDS):
        assert await child.wait() == 0
    for chat in chats:
        assert texts(server, chat) == ["begin", *(f"{number}" for number in range(12))]


async def test_a_refusal_for_good_is_told_and_stops_nothing(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        server.sim.block(ADA)
        opened.outbox.send(ADA, None, plain("never"), key="never")
        opened.outbox.send(BOB, None, plain("hello"), key="hello")
        opened.outbox.send(99, None, plain("nobody"), key="nobody")
        await opened.done()
        assert {(failed.key, failed.code) for failed in opened.failed} == {
            ("never", 403),
            ("nobody", 400),
        }
        assert opened.outbox.state_of("never") is State.FAILED
        assert not opened.outbox.edit("never", plain("x"))
        assert texts(server, BOB) == ["hello"]


async def test_what_telegram_refuses_to_style_is_sent_plainer(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        server.fail("unknown", "sendRichMessage")
        opened.outbox.send(ADA, None, plain("old server"), key="old", html="<h1>x</h1>")
        opened.outbox.send(ADA, None, bold("as text"), key="rich", html="<script>x</script>")
        opened.outbox.send(ADA, None, link("link", "https://a.example"), key="link", buttons=YES)
        await opened.done()
        [old, rich, _] = server.sim.from_bot(ADA)
        assert (old.shown, old.rich_message) == ("old server", None)
        assert (rich.shown, rich.entities[0].type) == ("as text", "bold")
        assert opened.failed == []
        assert opened.outbox.waiting == 0
        # An entity that only a newer Telegram would refuse.
        server.fail("refuse", "sendMessage")
        opened.outbox.send(ADA, None, bold("bold"), key="bold", buttons=YES)
        await opened.done()
        last = server.sim.from_bot(ADA)[-1]
        assert (last.shown, last.entities, len(last.buttons)) == ("bold", (), 1)


async def test_a_part_that_is_too_long_or_empty_is_sent_nevertheless(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("word " * 1000), key="long", buttons=YES)
        opened.outbox.send(ADA, None, plain(" \n"), key="empty")
        file = Upload(name="f", data=b"f")
        opened.outbox.send(ADA, None, plain("x" * 5000), key="file", file=file)
        await opened.done()
        first, second, empty, document = server.sim.from_bot(ADA)
        assert f"{first.shown} {second.shown}".split() == ["word"] * 1000
        assert (len(first.buttons), len(second.buttons)) == (0, 1)
        assert empty.shown == "…"
        assert len(document.shown) == 1024
        opened.outbox.edit("empty", plain("y" * 5000))
        opened.outbox.edit("file", plain(""))
        await opened.done()
        assert len(server.sim.from_bot(ADA)[2].shown) == 4096
        assert opened.failed == []


async def test_a_rich_message_is_sent_and_edited(server: BotApiServer, path: Path) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("one"), key="k", html="<h1>one</h1>")
        await opened.done()
        opened.outbox.edit("k", plain("two"), html="<h1>two</h1>")
        await opened.done()
        [message] = server.sim.from_bot(ADA)
        assert message.rich_message is not None
        assert message.shown == "two"


async def test_a_file_is_sent_with_its_caption_which_can_be_edited(
    server: BotApiServer, path: Path
) -> None:
    data = bytes(range(256)) * 100
    async with open_outbox(server, path) as opened:
        file = Upload(name="plän.md", data=data)
        opened.outbox.send(ADA, None, plain("the plan"), key="k", file=file, buttons=YES)
        opened.outbox.send(ADA, None, key="bare", file=Upload(name="b", data=b"b"), photo=True)
        await opened.done()
        [message, photo] = server.sim.from_bot(ADA)
        assert server.sim.file(message.message_id, ADA) == data
        assert message.document is not None
        assert message.document.file_name == "plän.md"
        assert photo.photo
        opened.outbox.edit("k", plain("answered"))
        await opened.done()
        [message, _] = server.sim.from_bot(ADA)
        assert (message.caption, message.buttons) == ("answered", ())


async def test_a_deleted_message_is_taken_back_or_deleted(server: BotApiServer, path: Path) -> None:
    async with open_outbox(server, path) as opened:
        outbox = opened.outbox
        outbox.send(ADA, None, plain("unsent"), key="unsent")
        assert outbox.delete("unsent")
        outbox.send(ADA, None, plain("sent"), key="sent")
        await opened.done()
        assert texts(server, ADA) == ["sent"]
        outbox.edit("sent", plain("never shown"))
        assert outbox.delete("sent")
        await opened.done()
        assert texts(server, ADA) == []
        assert server.calls_of("editMessageText") == []
        assert not outbox.delete("sent")
        assert not outbox.edit("sent", plain("x"))


async def test_a_message_that_a_person_deleted_is_given_up(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("one"), key="one")
        await opened.done()
        server.sim.delete(ADA, opened.sent[0].message_id)
        opened.outbox.edit("one", plain("two"))
        await opened.done()
        assert [failed.key for failed in opened.failed] == ["one"]
        assert opened.outbox.state_of("one") is State.DELETED


async def test_a_time_to_wait_is_not_believed_without_bounds(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("first"), key="first")
        await opened.done()
        server.sim.flood(1, retry_after=10**12, chat=ADA)
        opened.outbox.send(ADA, None, plain("second"), key="second")
        with anyio.fail_after(SECONDS):
            await until(lambda: opened.outbox.counts.retried == 1)
        chat = opened.outbox._turns.find(ADA)
        assert chat is not None
        assert chat.budget.blocked_until <= server.clock.now() + 86400
    async with open_outbox(server, path) as opened:
        # The clock of the machine may be wrong: after a restart an hour is believed.
        with anyio.fail_after(SECONDS):
            await until(lambda: opened.outbox._turns.find(ADA) is not None)
        chat = opened.outbox._turns.find(ADA)
        assert chat is not None
        assert chat.budget.blocked_until <= server.clock.now() + 3600


async def test_messages_follow_a_group_that_has_moved(server: BotApiServer, path: Path) -> None:
    group = server.sim.add_group("Team", [ADA], basic=True).id
    async with open_outbox(server, path) as opened:
        opened.outbox.send(group, None, plain("old"), key="old")
        await opened.done()
        new = server.sim.migrate(group).id
        opened.outbox.send(group, None, plain("one"), key="one")
        opened.outbox.send(group, None, plain("two"), key="two")
        await opened.done()
        assert texts(server, new) == ["one", "two"]
        assert opened.migrated == [(group, new)]
        assert opened.outbox.key_of(new, opened.sent[-1].message_id) == "two"


async def test_a_draft_is_shown_kept_alive_and_ended_by_the_message(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        outbox = opened.outbox
        draft_id = 0
        for number in range(500):
            draft_id = outbox.draft(ADA, None, plain(f"{number}"), key="turn", can_stop=True)
        await server.wait_for(lambda: server.sim.draft(ADA), SECONDS)
        assert server.calls_of("sendMessageDraft")[0].params["text"] == "499"
        # Unchanged, it is sent again before Telegram removes it.
        await server.wait_for(lambda: len(server.calls_of("sendMessageDraft")) > 2, SECONDS)
        update = server.sim.stop(ADA)
        assert update.stopped_message_generation is not None
        assert update.stopped_message_generation.draft_id == draft_id
        assert outbox.draft_key(draft_id, ADA) == "turn"
        assert outbox.draft_key(draft_id, BOB) is None
        outbox.send(ADA, None, plain("answer"), key="turn")
        await opened.done()
        shown = len(server.calls_of("sendMessageDraft"))
        with anyio.fail_after(SECONDS):
            await server.clock.sleep(45)
        assert len(server.calls_of("sendMessageDraft")) == shown
        calls = server.calls_of("sendMessageDraft")
        assert all(b.at - a.at >= 1 for a, b in pairwise(calls))


async def test_a_draft_where_there_are_none_is_told(server: BotApiServer, path: Path) -> None:
    group = server.sim.add_group("Team", [ADA]).id
    async with open_outbox(server, path) as opened:
        opened.outbox.draft(group, None, plain("x"), key="turn")
        with anyio.fail_after(SECONDS):
            await until(lambda: bool(opened.failed))
        assert (opened.failed[0].key, opened.failed[0].code) == ("turn", 400)


async def test_an_idle_outbox_waits_without_a_timer(server: BotApiServer, path: Path) -> None:
    waits: list[float | None] = []

    class Watched(Clock):
        async def wait(self, event: anyio.Event, seconds: float | None = None) -> bool:
            waits.append(seconds)
            return await super().wait(event, seconds)

    clock = Watched(speed=SPEED)
    async with open_outbox(server, path, clock=clock) as opened:
        opened.outbox.send(ADA, None, plain("x"), key="x")
        with anyio.fail_after(SECONDS):
            turns = opened.outbox._turns
            await until(
                lambda: not turns.overall.in_flight and not any(one.stored for one in turns)
            )
            await anyio.wait_all_tasks_blocked()
        assert waits[-1] is None
        before = len(waits)
        await clock.sleep(30)
        assert len(waits) == before


async def test_a_rolled_back_transaction_sends_nothing(server: BotApiServer, path: Path) -> None:
    async with open_outbox(server, path) as opened:

        def fail() -> None:
            with opened.outbox._store.database.transaction():
                opened.outbox.send(ADA, None, plain("never"), key="never")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        opened.outbox.send(ADA, None, plain("next"), key="next")
        await opened.done()
        assert texts(server, ADA) == ["next"]


async def test_old_messages_are_forgotten_unless_something_is_left_to_do(
    server: BotApiServer, path: Path
) -> None:
    async with open_outbox(server, path) as opened:
        opened.outbox.send(ADA, None, plain("done"), key="done")
        await opened.done()
        server.sim.flood(1, retry_after=3600, chat=ADA)
        opened.outbox.send(ADA, None, plain("waits"), key="waits")
        await server.wait_for(lambda: server.calls_of(code=429), SECONDS)
        assert opened.outbox.prune(days=-1) == 1
        assert opened.outbox.message_id_of("done") is None
        assert opened.outbox.state_of("waits") is not None


async def test_a_wrong_token_pauses_everything_and_loses_nothing(
    server: BotApiServer, path: Path
) -> None:
    right = server.token
    async with open_outbox(server, path) as opened:
        server.token = "1:revoked"
        for chat in (ADA, BOB, EVE):
            opened.outbox.send(chat, None, plain("x"), key=f"{chat}")
        with anyio.fail_after(SECONDS):
            await until(lambda: opened.outbox._turns.overall.blocked_until > 0)
        server.token = right
        await opened.done()
        assert [texts(server, chat) for chat in (ADA, BOB, EVE)] == [["x"]] * 3
