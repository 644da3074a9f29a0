"""Settings of the front, tried with a whole hub: rich answers, voice notes, summaries, polling."""

from __future__ import annotations

from functools import partial

import anyio
import pytest
from anyio.abc import SocketStream
from msgspec.structs import replace

from quarterdeck.fronts.telegram.api import BotApiError, open_bot
from quarterdeck.fronts.telegram.chats import Binding, Preferences
from quarterdeck.fronts.telegram.display import Leaves
from quarterdeck.fronts.telegram.front import run_front
from quarterdeck.fronts.telegram.options import Options, Transcription
from quarterdeck.fronts.telegram.webhook import WebhookSettings
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.runtime.web_server import bind
from quarterdeck.testing import fake
from quarterdeck.testing.telegram import BotApiServer
from support.bounds import SECONDS
from support.telegram_house import Guest, TelegramHouse
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]

TABLE = "# Result\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


def options(house: TelegramHouse) -> Options:
    return house.front().options


async def test_an_answer_is_a_rich_message_where_that_is_set(ada: Guest) -> None:
    await ada.tells("/config rich on", "rich: on by this chat")
    ada.play(
        fake.Initialize(),
        fake.Expect("user", polite=True),
        fake.say(fake.assistant(TABLE), fake.result(TABLE)),
        fake.Serve(),
    )
    ada.type("go")
    await ada.hears("Result")
    assert ada.house.telegram.calls_of("sendRichMessage", chat=ada.user, code=200)


async def test_what_may_not_leave_stays(house: TelegramHouse, ada: Guest) -> None:
    house.running.change(replace(options(house), leaves=Leaves(answers=False)))
    try:
        ada.type("a secret matter")
        done = await ada.hears("✅ done")
    finally:
        house.running.change(options(house))
    assert "echo" not in done.shown


async def test_a_chat_without_a_project_uses_the_configured_one(
    house: TelegramHouse, ada: Guest
) -> None:
    await ada.tells("/ctx clear", "No project")
    configured = replace(
        options(house),
        binding=Binding(project=ada.project),
        preferences=Preferences(model="haiku"),
    )
    house.running.change(configured)
    try:
        await ada.tells("/ctx", "(as configured)")
        await ada.tells("/model", "haiku by the configuration")
        await ada.tells("hello", "echo: hello")
    finally:
        house.running.change(options(house))
    (shape,) = await ada.sessions()
    assert shape.spec.model == "haiku"


async def test_a_voice_note_is_written_down_and_is_a_prompt(
    house: TelegramHouse, ada: Guest
) -> None:
    asked: list[bytes] = []
    answers = [b'{"text": "run the tests"}', b"<html>", b'{"text": ""}']

    async def answer(stream: SocketStream) -> None:
        async with stream:
            request = b""
            while b"ogg data" not in request:
                request += await stream.receive()
            asked.append(request)
            body = answers[len(asked) - 1]
            head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            await stream.send(head.encode() + body)

    key = house.folder / "key"
    key.write_text("the key\n")
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        service = Transcription(url=f"http://127.0.0.1:{port}/v1", key_file=str(key))
        house.running.change(replace(options(house), transcription=service))
        async with background_tasks() as tasks:
            tasks.start_soon(listener.serve, answer)
            for text in ("echo: run the tests", "⚠️ the service", "⚠️ nothing could be understood"):
                house.sim.send_file(ada.user, "v.ogg", b"ogg data", kind="voice")
                await ada.hears(text)
    house.sim.send_file(ada.user, "v.ogg", b"ogg data", kind="voice")
    await ada.hears("⚠️ the service for voice notes cannot be reached")
    house.running.change(options(house))
    assert b"Bearer the key" in asked[0]
    assert b"whisper-1" in asked[0]
    (shape,) = await ada.sessions()
    assert shape.turns == 1


async def test_the_day_before_is_summed_up_once(house: TelegramHouse, ada: Guest) -> None:
    house.running.change(replace(options(house), daily=0))
    try:
        summary = await ada.hears("📊")
        assert "turns" in summary.shown
        await ada.tells("/at 25s later", "⏰")
        await ada.hears("echo: later")
    finally:
        house.running.change(options(house))
    # The fast clock may pass midnight meanwhile: each summary names its day.
    days = [one.shown.split("\n")[0] for one in house.sim.from_bot(ada.user) if "📊" in one.shown]
    assert len(days) == len(set(days))


async def test_an_album_is_one_prompt(house: TelegramHouse, ada: Guest) -> None:
    ada.play(fake.Initialize(), fake.Serve(), record=house.folder / f"record-{ada.user}")
    for name in ("a", "b", "c"):
        caption = "look at these" if name == "a" else None
        house.sim.send_file(
            ada.user, f"{name}.jpg", name.encode(), kind="photo", caption=caption, group="album"
        )
    await ada.hears("look at these")
    await ada.tells("/ping", "pong")
    found = await ada.until(lambda found: bool(found) and found[0].turns >= 1)
    assert (house.folder / f"record-{ada.user}").read_bytes().count(b'"type":"image"') == 3
    assert found[0].turns == 1


async def test_a_second_poller_disturbs_and_does_not_end_the_bot(
    house: TelegramHouse, ada: Guest
) -> None:
    services = house.running.services
    assert services is not None
    async with open_bot(house.telegram.token, base=house.telegram.url) as api:
        with anyio.move_on_after(SECONDS):
            while not services.health.poll_failure:
                with anyio.move_on_after(0.2):
                    try:
                        await api.get_updates(None, timeout=1)
                    except BotApiError as error:
                        assert error.code == 409  # noqa: PT017 - either of the two gets it
                await anyio.sleep(0.01)
    assert "[409]" in services.health.poll_failure
    await ada.tells("/ping", "pong")
    with anyio.fail_after(SECONDS):
        await until(lambda: not services.health.poll_failure)


async def test_a_turn_of_ten_thousand_deltas_makes_at_most_one_call_a_second(
    house: TelegramHouse, ada: Guest
) -> None:
    ada.play(
        fake.Initialize(),
        fake.Expect("user", polite=True),
        fake.say(fake.assistant(fake.tool_use("Bash", {"command": "ls"}))),
        *(step for _ in range(10) for step in (fake.Stream(1000, "word "), fake.Wait(0.05))),
        fake.say(fake.assistant("The end."), fake.result("The end.")),
        fake.Serve(),
    )
    began = house.clock.now()
    before = len(house.telegram.calls)
    ada.type("tell me a story")
    await ada.hears("The end.")
    seconds = house.clock.now() - began
    calls = [one for one in house.telegram.calls[before:] if one.chat == ada.user]
    assert any(one.method == "sendMessageDraft" for one in calls)
    assert len(calls) <= seconds + 2
    assert [one.code for one in calls if one.code == 429] == []


async def test_the_updates_of_another_bot_are_counted_anew(
    house: TelegramHouse, ada: Guest
) -> None:
    """The numbers of two bots have nothing to do with each other, but the file is one."""
    state = house.folder / "two-bots.db"
    for number in (7, 8):
        token = f"{number}:another-bot-of-no-real-bot-0000000000000"
        async with BotApiServer(clock=house.clock, token=token) as telegram:
            telegram.sim.add_user(ada.user)
            settings = replace(house.front(state=state), api=telegram.url, token=token)
            async with background_tasks() as tasks:
                tasks.start_soon(partial(run_front, house.where, settings, clock=house.clock))
                for count in range(1, 10 - number):
                    telegram.sim.type(ada.user, "/ping")
                    await telegram.wait_for(
                        partial(heard, telegram, ada.user, count), timeout=SECONDS
                    )


def heard(telegram: BotApiServer, user: int, count: int) -> bool:
    return len(telegram.sim.from_bot(user)) >= count


async def test_updates_come_by_webhook_where_that_is_set(house: TelegramHouse, ada: Guest) -> None:
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    async with BotApiServer(clock=house.clock) as telegram:
        telegram.sim.add_user(ada.user)
        settings = replace(
            house.front(state=house.folder / "webhook.db"),
            api=telegram.url,
            webhook=WebhookSettings(url=f"http://127.0.0.1:{port}/hook", port=port),
        )
        async with background_tasks() as tasks:
            tasks.start_soon(partial(run_front, house.where, settings, clock=house.clock))
            telegram.sim.type(ada.user, "/ping")
            await telegram.wait_for_message(ada.user, "You are not paired", timeout=SECONDS)
        assert telegram.calls_of("getUpdates") == []
