"""The whole front in a storm: a thousand updates, refusals, redeliveries, and very long turns."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import pairwise

import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.telegram.budget import Limits
from quarterdeck.testing import fake
from quarterdeck.testing.telegram.objects import Call
from support.bounds import SECONDS
from support.telegram_house import Guest, TelegramHouse

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.heavy]

CHATS, GROUPS, EACH = 16, 4, 50
FLOODED = 6
ORDERED = 2
"""Calls that are refused each time that a chat, or the bot, is told to wait."""
DELTAS = 10_000
ANSWER = re.compile("pong|/ping")


async def paired(house: TelegramHouse) -> Guest:
    guest = await house.stranger()
    code = house.service.access.make_pairing(guest.name, Role.VIEWER)
    await guest.tells(f"/pair {code}", "🤝")
    return guest


async def test_a_storm_of_a_thousand_updates_loses_doubles_and_starves_nothing(
    house: TelegramHouse,
) -> None:
    chance = random.Random(16)
    sim, telegram = house.sim, house.telegram
    guests = [await paired(house) for _ in range(CHATS)]
    groups = [sim.add_group(f"group {number}", [guests[0].user]).id for number in range(GROUPS)]
    places = [(guest, guest.user) for guest in guests]
    places += [(guests[0], group) for group in groups]
    flooded = {chat for _, chat in chance.sample(places[:CHATS], FLOODED)}
    before = len(telegram.calls)
    asked: dict[int, list[int]] = {chat: [] for _, chat in places}

    def answered() -> dict[int, list[int]]:
        return {
            chat: [
                message.reply_to_message.message_id
                for message in sim.from_bot(chat)
                if message.reply_to_message is not None and ANSWER.search(message.shown)
            ]
            for chat in asked
        }

    count, looked = 0, before

    def done(number: int) -> bool:
        """Whether so many messages were sent: cheap, as it is looked at after every call."""
        nonlocal count, looked
        new, looked = telegram.calls[looked:], len(telegram.calls)
        count += sum(call.method == "sendMessage" and call.code == 200 for call in new)
        return count >= number

    async def until_answered(number: int) -> None:
        await telegram.wait_for(lambda: done(number), SECONDS)

    redelivered = 0
    for number in range(EACH):
        chance.shuffle(places)
        for guest, chat in places:
            # Every fifth asks the hub too; the others cost less.
            text = "/help ping" if number % 5 else "/ping"
            asked[chat].append(guest.type(text, chat=chat).message_id)
        if number % 10 == 5:
            await until_answered(number)  # so that it is in the middle of its work
            # Telegram delivers again what it has delivered, and some chats are told to wait.
            redelivered += sim.redeliver(100)
            for chat in flooded:
                sim.flood(ORDERED, retry_after=chance.randint(2, 20), chat=chat)
    sim.flood(ORDERED, retry_after=2)
    await until_answered(len(asked) * EACH)
    assert redelivered > EACH
    # Every update has one answer, in the order of its chat.
    assert answered() == asked
    assert sum(map(len, asked.values())) == 1000

    calls = [call for call in telegram.calls[before:] if call.method == "sendMessage"]
    refused = Counter(call.chat for call in calls if call.code == 429)
    # Only what was ordered is refused, and what was on its way then: no limit was ever passed.
    assert set(refused) >= flooded
    assert sum(refused.values()) <= (EACH // 10 * FLOODED + 1) * ORDERED + Limits().in_flight
    # Nobody starves: all chats that nobody slows down advance together.
    free = [chat for chat in asked if chat > 0 and chat not in flooded]
    first = min(free, key=lambda chat: sent(calls, chat)[-1].at)
    end = sent(calls, first)[-1].at
    for chat in free:
        assert sum(call.at <= end for call in sent(calls, chat)) > EACH / 2
    # And a chat that is told to wait, or is a group, is served meanwhile as often as it may be.
    for chat in asked:
        assert sum(call.at <= end for call in sent(calls, chat)) > 0
        assert all(b.at - a.at >= 1 for a, b in pairwise(sent(calls, chat)))


def sent(calls: list[Call], chat: int) -> list[Call]:
    return [call for call in calls if call.chat == chat and call.code == 200]


@pytest.mark.parametrize("where", ["private", "group"])
async def test_a_turn_of_ten_thousand_deltas_shows_its_progress_at_most_once_a_second(
    where: str, house: TelegramHouse, ada: Guest
) -> None:
    steps: list[fake.Step] = [fake.Initialize(), fake.Expect("user", polite=True)]
    for _ in range(20):
        steps += [fake.Stream(DELTAS // 20), fake.Wait(0.1)]
    steps += [fake.say(fake.assistant("All written."), fake.result("All written.")), fake.Serve()]
    ada.play(*steps)
    chat = ada.user
    if where == "group":
        chat = house.sim.add_group("work", [ada.user]).id
        ada.type(f"/ctx project {ada.project}", chat=chat)
        await ada.hears("📌", chat=chat)
    before, began = len(house.telegram.calls), house.clock.now()
    ada.type("write", chat=chat)
    await ada.hears("All written.", chat=chat)

    calls = [call for call in house.telegram.calls[before:] if call.chat == chat]
    assert [call.code for call in calls if call.code != 200] == []
    kind = "sendMessageDraft" if where == "private" else "editMessageText"
    shown = [call for call in calls if call.method == kind]
    assert 1 < len(shown) <= house.clock.now() - began + 1
    assert all(b.at - a.at >= 1 for a, b in pairwise(calls))
    texts = [call.params["text"] for call in shown]
    if where == "group":  # Telegram removes a draft after half a minute, so it is sent again
        assert len(set(texts)) == len(texts), "what is shown already is not shown again"
    assert any("word word" in text for text in texts)
