"""Loops and schedules from Telegram: a running loop is paused, resumed and stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from quarterdeck.client.calls import add_schedule, get, remove_schedule, send
from quarterdeck.fronts.http import Role
from quarterdeck.loop.shapes import LoopList, LoopShape, NewLoop
from quarterdeck.loop.spec import LoopSpec, StopReason, Stops
from quarterdeck.protocol.schedules import Schedule
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.telegram_house import Guest, TelegramHouse
from support.telegram_questions import asking, bash

pytestmark = [pytest.mark.anyio, pytest.mark.process]


INTERRUPTED = fake.result(
    "",
    subtype="error_during_execution",
    is_error=True,
    terminal_reason="aborted_tools",
)
ENDLESS = (
    fake.Initialize(),
    fake.Expect("user", polite=True),
    fake.say(*bash()),
    fake.Expect("control_request", "interrupt", polite=True),
    fake.say(
        fake.answer(),
        {"type": "control_cancel_request", "request_id": "ask-1"},
        INTERRUPTED,
    ),
    fake.Serve(),
)
"""A CLI whose turn waits for an answer until it is interrupted."""


async def loop_of(guest: Guest, loop: str, state: str = "") -> LoopShape:
    """A loop as the hub has it, as soon as it has this state."""
    async with guest.hub() as hub:
        with anyio.fail_after(SECONDS):
            while True:
                found = (await hub.call(get("/api/loops", LoopList))).loops
                shape = next(one for one in found if one.loop == loop)
                if not state or shape.state == state:
                    return shape
                await anyio.sleep(0.02)


@asynccontextmanager
async def looping(guest: Guest, *steps: fake.Step) -> AsyncIterator[LoopShape]:
    """A loop each of whose turns asks a question, which the guest is shown."""
    await guest.tells("/config follow all", "follow: all by this chat")
    guest.play(*(steps or ENDLESS))
    spec = LoopSpec(
        task="Mend the parser.",
        name=f"mend {guest.user}",
        directory=str(guest.work),
        stops=Stops(phrase="ALL DONE"),
    )
    async with guest.hub() as hub:
        new = NewLoop(spec=spec, session=SessionSpec(project=guest.project))
        shape = await hub.call(send("POST", "/api/loops", LoopShape, new))
        yield shape
        if (await loop_of(guest, shape.loop)).state != "stopped":
            await hub.call(send("POST", f"/api/loops/{shape.loop}/stop", LoopShape))
    await loop_of(guest, shape.loop, "stopped")
    await guest.tells("/config follow own", "follow: own")


async def test_a_running_loop_is_paused_resumed_and_stopped(ada: Guest) -> None:
    async with looping(ada, *asking(*bash())) as loop:
        card = await ada.hears("🔐")
        ada.play(*ENDLESS)
        assert f"{loop.title}: turn 1" in card.shown
        shown = await ada.tells("/loops", f"🔵 running · {loop.title}")
        assert "turn 0 of 20" in shown.shown
        ada.press(shown, "⏸ Pause")
        paused = await ada.hears(f"⏸ {loop.title} pauses")
        ada.press(card, "✅ Allow")
        assert (await loop_of(ada, loop.loop, "paused")).turns == 1
        await ada.tells("/loops", f"⏸ paused · {loop.title}")
        ada.press(paused, "▶️ Resume")
        goes_on = await ada.hears(f"▶️ {loop.title} continues")
        assert f"{loop.title}: turn 2" in (await ada.hears("🔐")).shown
        ada.press(goes_on, "🛑 Stop")
        asks = await ada.hears(f"Stop {loop.title}?")
        assert (await loop_of(ada, loop.loop)).state == "running"
        ada.press(asks, "🛑 Stop it")
        await ada.hears(f"🛑 {loop.title} stops")
        stopped = await loop_of(ada, loop.loop, "stopped")
        assert (stopped.reason, ada.name in stopped.text) == (StopReason.PERSON, True)
        ended = await ada.tells("/loops", f"⚪ stopped · {loop.title}")
        assert not [button for button in ended.buttons if loop.title in button.text]
        await ada.tells(f"/loops pause {loop.title}", "⚠️ the loop has stopped")


@pytest.mark.parametrize("command", ["/stop", "/cancel"])
async def test_who_stops_the_session_of_a_loop_or_its_turn_stops_the_loop(
    ada: Guest, command: str
) -> None:
    async with looping(ada) as loop:
        card = await ada.hears("🔐")
        ada.type(command, to=card.message_id)
        stopped = await loop_of(ada, loop.loop, "stopped")
        assert stopped.reason is StopReason.PERSON
        if command == "/stop":
            assert ada.name in stopped.text


async def test_words_name_a_loop_and_rights_are_those_of_the_hub(
    house: TelegramHouse, ada: Guest
) -> None:
    grace = await house.person(Role.VIEWER)
    async with looping(ada) as loop:
        await ada.hears("🔐")
        shown = await grace.tells("/loops", loop.title)
        for button in ("⏸ Pause", "🛑 Stop"):
            grace.press(shown, button)
        asks = await grace.hears(f"Stop {loop.title}?")
        grace.press(asks, "🛑 Stop it")
        for _ in range(2):
            assert "may not steer" in (await grace.hears("⚠️")).shown
        assert (await loop_of(ada, loop.loop)).state == "running"
        await ada.tells(f"/loops pause {loop.loop[:20]}", "pauses")
        await ada.tells(f"/loops resume {loop.title}", "continues")
        await ada.tells("/loops pause nothing", "⚠️ there is no loop")
        await ada.tells("/loops explode", "⚠️ /loops, or /loops pause|resume|stop NAME")
        await ada.tells(f"/loops stop {loop.title}", "stops: the turn that runs is interrupted")


async def test_a_schedule_is_paused_and_resumed(house: TelegramHouse, ada: Guest) -> None:
    grace = await house.person(Role.OPERATOR)
    await ada.tells("/schedules", "There are no schedules")
    schedule = Schedule(name="nightly", prompt="Go.", directory=str(ada.work), cron="0 3 * * *")
    async with ada.hub() as hub:
        await hub.call(add_schedule(schedule))
        shown = await grace.tells("/schedules", "nightly · cron 0 3 * * * · next ")
        grace.press(shown, "⏸ Pause nightly")
        paused = await grace.hears("⏸ nightly is paused")
        await ada.tells("/schedules", f"paused by {grace.name}")
        grace.press(paused, "▶️ Resume nightly")
        assert "may not manage" in (await grace.hears("⚠️")).shown
        await ada.tells("/schedules resume nightly", "▶️ nightly continues")
        await ada.tells("/schedules pause", "⚠️ /schedules, or /schedules pause|resume NAME")
        await hub.call(remove_schedule("nightly"))
