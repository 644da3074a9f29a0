"""A person replies to a message, or presses its button, before the front knows its number.

Telegram shows a message to people before it answers the call that has sent it. Its answer is held
back here, until the front has got the reply: as on a slow connection, or in a front that dies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from quarterdeck.domain.structs import Value
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.testing import fake
from quarterdeck.testing.telegram.objects import Message
from support.bounds import SECONDS
from support.telegram_house import Guest, TelegramHouse
from support.telegram_questions import PLAN, answers, asking, bash, form, tool
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def got_all(house: TelegramHouse) -> None:
    """Wait until the front has got, and begun, everything that people did."""
    with anyio.fail_after(SECONDS):
        await until(lambda: house.sim.pending_count() == 0)


class Early(Value):
    """A question that is answered by a reply to a message that has just appeared."""

    lines: tuple[fake.Line, ...]
    card: str
    button: str
    """What is pressed on the card, to be asked for the reply; empty: the card itself is meant."""
    request: str
    """The message that the person replies to."""
    reply: str
    verdict: str
    answer: Callable[[Any], str]
    """The part of what the CLI is told that has the reply."""


async def accept(guest: Guest, card: Message) -> None:
    """Complete a form whose first value was a reply."""
    card = await guest.sees(card.message_id, "2 of 2: kind")
    guest.press(card, "bug")
    card = await guest.sees(card.message_id, button="✅ Accept")
    guest.press(card, "✅ Accept")


EARLY = {
    "plan": Early(
        lines=tool("ExitPlanMode", PLAN),
        card="has a plan",
        button="",
        request="has a plan",
        reply="smaller steps, please",
        verdict="💬 To be revised by {}: smaller steps, please",
        answer=lambda told: str(told["message"]),
    ),
    "form": Early(
        lines=(form(),),
        card="Describe it.",
        button="",
        request="Describe it.",
        reply="It breaks",
        verdict="✅ Accepted by {}",
        answer=lambda told: str(told["content"]["title"]),
    ),
    "reason": Early(
        lines=bash(),
        card="🔐",
        button="Deny with reason…",
        request="Reply with the reason",
        reply="use the other script",
        verdict="❌ Denied by {}: use the other script",
        answer=lambda told: str(told["message"]),
    ),
    "edit": Early(
        lines=bash(),
        card="🔐",
        button="✏️ Edit…",
        request="Reply with the command",
        reply="make lint",
        verdict="✅ Allowed, edited by {}",
        answer=lambda told: str(told["updatedInput"]["command"]),
    ),
}


async def ends(guest: Guest, early: Early, card: Message, record: Path) -> None:
    """Wait until the question is answered by the reply, and by nothing else."""
    if early.lines == (form(),):
        await accept(guest, card)
    await guest.sees(card.message_id, early.verdict.format(guest.name))
    await guest.hears("Done.")
    assert early.reply in early.answer(answers(record)[-1])
    (session,) = await guest.sessions()
    assert (session.turns, session.queued) == (1, 0)


@pytest.mark.parametrize("name", EARLY)
async def test_a_reply_that_comes_before_the_number_of_the_message_is_an_answer(
    house: TelegramHouse, ada: Guest, tmp_path: Path, name: str
) -> None:
    early, record = EARLY[name], tmp_path / "record"
    ada.play(*asking(*early.lines), record=record)
    if not early.button:
        with house.telegram.hold_back("sendMessage"):
            ada.type("go")
            card = await ada.hears(early.card)
            ada.type(early.reply, to=card.message_id)
            await got_all(house)
    else:
        ada.type("go")
        card = await ada.hears(early.card)
        with house.telegram.hold_back("sendMessage"):
            ada.press(card, early.button)
            request = await ada.hears(early.request)
            ada.type(early.reply, to=request.message_id)
            await got_all(house)
    await ends(ada, early, card, record)


async def test_a_press_that_comes_before_the_number_of_the_message_is_an_answer(
    house: TelegramHouse, ada: Guest, tmp_path: Path
) -> None:
    ada.play(*asking(*bash()), record=tmp_path / "record")
    with house.telegram.hold_back("sendMessage"):
        ada.type("go")
        card = await ada.hears("🔐")
        ada.press(card, "✅ Allow")
        await got_all(house)
    await ada.sees(card.message_id, f"✅ Allowed by {ada.name}")
    await ada.hears("Done.")
    assert answers(tmp_path / "record")[-1]["behavior"] == "allow"


async def _press_lift(ada: Guest, shown: Message) -> None:
    ada.press(shown, "Lift")


async def _type_lift(ada: Guest, shown: Message) -> None:
    ada.type("/budget lift", to=shown.message_id)


@pytest.mark.parametrize("act", [_press_lift, _type_lift])
async def test_a_command_on_a_message_without_a_number_yet_is_for_its_own_session(
    house: TelegramHouse, ada: Guest, act: Callable[[Guest, Message], Awaitable[None]]
) -> None:
    ada.type("one")
    first = await ada.hears("echo: one")
    await ada.tells("/budget 5", "session usd: 5")
    await ada.tells("/new two", "echo: two")
    await ada.tells("/budget 6", "session usd: 6")
    with house.telegram.hold_back("sendMessage"):
        ada.type("/budget", to=first.message_id)
        shown = await ada.hears("session usd: 5")
        await act(ada, shown)
        await got_all(house)
    await ada.hears("The session has no budget")
    two, one = await ada.sessions()
    assert two.spec.budget is not None
    assert two.spec.budget.session_usd == 6
    assert one.spec.budget is None or one.spec.budget.session_usd is None


async def test_a_reply_to_a_message_that_is_not_known_is_no_prompt(
    house: TelegramHouse, ada: Guest
) -> None:
    await ada.tells("hello", "echo: hello")
    room = house.telegram.world.room(ada.user)
    lost = house.telegram.world.post(room, house.telegram.world.bot, None, text="from before")
    for text in ("yes, do it", "/stop", "/cancel"):
        ada.type(text, to=lost.message_id)
        await ada.hears("I do not know any more what that message of mine is about")
    await ada.tells("/ping", "pong")
    (session,) = await ada.sessions()
    assert (session.turns, session.queued, session.run is None) == (1, 0, False)


@pytest.mark.parametrize("name", ["plan", "reason"])
async def test_a_reply_to_a_message_that_the_front_died_on_is_an_answer(
    bare_house: TelegramHouse, tmp_path: Path, name: str
) -> None:
    early, record = EARLY[name], tmp_path / "record"
    dying, telegram = bare_house, bare_house.telegram
    async with background_tasks() as before:
        before.start_soon(dying.run)
        guest = await dying.person()
        guest.play(*asking(*early.lines), record=record)
        card = None
        if early.button:
            guest.type("go")
            card = await guest.hears(early.card)
        with telegram.hold_back("sendMessage"):
            if card is not None:
                guest.press(card, early.button)
            else:
                guest.type("go")
            request = await guest.hears(early.request)
            before.cancel_scope.cancel()
    guest.type(early.reply, to=request.message_id)
    async with background_tasks() as after:
        # The reply comes before the front has found out whether the message was sent.
        with telegram.hold_back("editMessageText"):
            after.start_soon(dying.run)
            await got_all(dying)
        await ends(guest, early, card or request, record)
        await dying.clear()
        texts = [one.shown for one in dying.sim.from_bot(guest.user)]
        assert sum(early.request in text for text in texts) == (1 if early.button else 0)
