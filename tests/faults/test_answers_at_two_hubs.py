"""Ten people at two hubs answer the same questions at once: exactly one wins each, always."""

from __future__ import annotations

from collections import Counter

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict
from quarterdeck.journal.base import Journal
from quarterdeck.journal.engines import open_journal
from quarterdeck.protocol.commands import AllowAnswer, Answer, AnswerAsk, DenyAnswer, SendPrompt
from quarterdeck.protocol.events import AskAnswered, AskOpened
from quarterdeck.protocol.runner_frames import Lines, RunReport
from quarterdeck.protocol.stored_events import Stored
from support import lines
from support.fleets import PROMPT, Side, create, machine, two_hubs

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]

QUESTIONS, AT_ONCE, PEOPLE = 1000, 50, 10


@pytest.mark.no_cover
async def test_of_ten_people_at_two_hubs_one_wins_each_of_a_thousand_times(
    postgres_url: str,
) -> None:
    async with await open_journal(postgres_url) as one, await open_journal(postgres_url) as other:
        await answer_all(one, other)


async def answer_all(one: Journal, other: Journal) -> None:
    """Ask, and have all answer each question at once."""
    results: dict[str, list[str]] = {}

    async def answer(side: Side, ask: str, by: str) -> None:
        given: Answer = AllowAnswer() if by.endswith("1") else DenyAnswer()
        try:
            await side.hub.submit(AnswerAsk(ask=ask, answer=given, by=by))
            results.setdefault(ask, []).append(by)
        except Conflict as error:
            results.setdefault(ask, []).append(str(error))

    async with two_hubs((one, other)) as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        run = await box.greeted(a, start.run)
        prompt = PROMPT.format(1)
        await b.hub.submit(SendPrompt(session="s", prompt=prompt, content=Raw(b'"go"'), by="ada"))
        run.say(
            Lines(first=2),
            *(line.rstrip(b"\n") for line in (lines.init("2.1.325", uuid="i"), lines.echo(prompt))),
        )
        said = 3
        await box.journalled(a, "s", said)
        for begin in range(0, QUESTIONS, AT_ONCE):
            if begin == QUESTIONS // 2:  # half of the way the machine goes to the other hub
                box.runs = [RunReport(run=start.run, session="s", said=said, written=1)]
                await box.dial(b)
                run = await box.run(b, start.run, written=1)
            asked = [lines.asks_permission(f"q{begin + n}").rstrip(b"\n") for n in range(AT_ONCE)]
            run.say(Lines(first=said + 1), *asked)
            said += AT_ONCE
            await box.journalled(b, "s", said)
            async with anyio.create_task_group() as tasks:
                for card in await a.hub.asks():
                    for number in range(PEOPLE):
                        side = (a, b)[number % 2]
                        tasks.start_soon(answer, side, card.opened.ask, f"person{number}")
        events: list[Stored] = []
        while page := await b.journal.read("s", after=len(events)):
            events += page
    assert len(results) == QUESTIONS
    kinds = Counter(type(stored.event) for stored in events)
    assert kinds[AskOpened] == kinds[AskAnswered] == QUESTIONS
    won = {e.event.ask: e.event.by for e in events if isinstance(e.event, AskAnswered)}
    for ask, told in results.items():
        assert sorted(told) == sorted(
            [won[ask], *[f"already answered by {won[ask]}"] * (PEOPLE - 1)]
        )
