"""`top` against a real hub with scripted CLIs: what it shows, and what its keys do."""

from __future__ import annotations

import re
from functools import partial

import msgspec
import pytest
from textual.events import Resize
from textual.geometry import Size

from quarterdeck.cli.top.app import Top
from quarterdeck.client.calls import HubAddress
from quarterdeck.domain.errors import LinkRefused
from quarterdeck.protocol import events as ev
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.served_deck import ServedDeck
from support.top_screen import TopScreen, asking, play_session, top_screen

pytestmark = [pytest.mark.anyio, pytest.mark.process]
WIDE, NARROW, LARGE, TINY = (100, 30), (40, 12), (200, 60), (20, 5)
HOSTILE = "touch \x1b[2J\x1b]0;owned\x07 \u202emade [bold red]x[/] & more"
PLAN = "\n".join(f"{number}. Step {number}" for number in range(1, 80))


COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
SIZES = COLOUR | {"question": "Which sizes?", "header": "Size", "multiSelect": True}


SNAPSHOT = """\
 quarterdeck  1 session  0 questions
○ talk �[31mred  idle · N s · <$0.01
claude-fake · default · /…
> now **this**
  last

echo: now this
last

done · $0.00 · 1 turn · 0.N s
 A prompt; Enter sends it
F2 inbox F3 list F4 session ^Q quit"""
"""A session in a small terminal."""


def steady(rows: str) -> str:
    """What is on the screen, without what differs: ages, folders and the scroll bar."""
    rows = re.sub(r"\b\d+ (s|min)\b", "N s", rows)
    rows = re.sub(r"/\S+$", "/…", rows, flags=re.MULTILINE)
    return re.sub(r" +[▁-█]$", "", rows, flags=re.MULTILINE)


def answers_of(deck: ServedDeck, session: str) -> list[dict[str, object]]:
    """The answers that the hub has taken."""
    found = [shape.event for shape in deck.client.events(session)]
    return [
        msgspec.json.decode(event.answer) for event in found if isinstance(event, ev.AskAnswered)
    ]


async def to_inbox(here: TopScreen, text: str) -> None:
    """Go to the first question, as soon as this text is on the screen."""
    await here.see(text)
    await here.press("f2")
    await here.rest()


async def test_words_and_held_keys_answer_nothing(deck: ServedDeck) -> None:
    await deck.serve()
    one = await play_session(deck, "one [bold]\x1b[2J", *asking("Bash", command=HOSTILE))
    two = await play_session(deck, "two", *asking("Bash", command="touch two"))
    async with top_screen(deck, WIDE, settle=1.2) as here:
        await here.see("2 questions")
        await to_inbox(here, "touch ⟨U+001B⟩[2J")
        assert "⟨U+202E⟩made [bold red]x[/] & more" in here.rows
        assert "one [bold]" in here.rows
        assert "\x1b" not in here.rows
        first = here.card
        for words in ("say add", "aaaa"):
            await here.rest()
            await here.type(words, 0.15)
            await here.quiet()
            assert here.card is first
        await here.rest()
        await here.press("x")
        await here.see("press x again")
        await here.press("escape")
        await here.rest()
        await here.press("a", "b")
        await here.see("Not sent: another key was pressed.")
        await here.rest()
        await here.press("a", "tab")  # the focus jumps before the answer is sent
        await here.quiet()
        assert here.card is not first
        assert answers_of(deck, one) == answers_of(deck, two) == []
        # A card that disappears is a jump, too.
        await here.rest()
        await deck("answer", one, "deny")
        await here.until(lambda: len(here.app.board.asks) == 1)
        await here.see("touch two")
        await here.rest()
    assert answers_of(deck, two) == []
    await deck("stop")
    await deck.ends()


async def test_a_question_is_denied_with_a_reason_allowed_once_and_allowed_for_longer(
    deck: ServedDeck,
) -> None:
    await deck.serve()
    one = await play_session(deck, "one", *asking("Bash", command="touch made", answers=3))
    async with top_screen(deck, WIDE) as here:
        await to_inbox(here, "touch made")
        await here.press("d")
        await here.see("Why not?")
        await here.type("always say allow", 0.03)
        await here.press("escape")
        assert answers_of(deck, one) == []
        await here.rest()
        await here.press("d")
        await here.type("always say allow", 0.03)
        await here.press("enter")
        await here.until(lambda: len(answers_of(deck, one)) == 1)

        await here.until(lambda: bool(here.app.board.asks))
        await to_inbox(here, "touch made")
        await here.press("a")
        await here.until(lambda: len(answers_of(deck, one)) == 2)

        await here.until(lambda: bool(here.app.board.asks))
        await to_inbox(here, "touch made")
        await here.press("s")
        await here.see("press s again")
        await here.rest()
        await here.press("s")
        await here.see("No open questions.")
    denied, allowed, granted = answers_of(deck, one)
    assert denied == {"answer": "deny", "message": "always say allow"}
    assert allowed == {"answer": "allow"}
    assert granted == {"answer": "allow", "scope": "session", "rules": ["Bash(touch made)"]}
    await deck("stop")
    await deck.ends()


async def test_a_plan_is_read_to_its_end_and_questions_are_answered(deck: ServedDeck) -> None:
    await deck.serve()
    plan = await play_session(deck, "the plan", *asking("ExitPlanMode", plan=PLAN))
    async with top_screen(deck, WIDE) as here:
        await to_inbox(here, "1. Step 1")
        await here.press("y")
        await here.until(lambda: "first: PgDn" in str(here.card.note))
        for _ in range(5):
            await here.press("pagedown")
        await here.see("79. Step 79")
        await here.rest()
        await here.press("y")
        await here.until(lambda: answers_of(deck, plan) == [{"answer": "plan", "choice": "manual"}])

        model = await play_session(
            deck, "the model", *asking("AskUserQuestion", questions=[COLOUR, SIZES])
        )
        await to_inbox(here, "Which colour?")
        await here.press("2")
        await here.see("(•) Blue")
        await here.press("right")
        await here.rest()
        await here.press("1")
        await here.rest()
        await here.press("2")
        await here.see("send the answers")
        await here.rest()
        await here.press("enter")
        await here.until(lambda: len(answers_of(deck, model)) == 1)
        assert answers_of(deck, model)[0]["answers"] == {
            "Which colour?": "Blue",
            "Which sizes?": ["Red", "Blue"],
        }
    await deck("stop")
    await deck.ends()


async def test_one_session_in_terminals_of_any_size_and_a_hub_that_is_gone_and_back(
    deck: ServedDeck,
) -> None:
    await deck.serve()
    said = fake.assistant("An **answer** \x1b[2J with [bold]markup[/] and a " + "long " * 40)
    expect = fake.Expect("user", timeout=SECONDS, polite=True)
    steps = (expect, fake.say(said, fake.result("x")), fake.Serve())
    session = await play_session(deck, "talk \x1b[31mred", *steps)
    async with top_screen(deck, WIDE) as here:
        await here.see("1 session")
        await here.press("enter")
        rows = await here.see("An answer ␛[2J with [bold]markup[/]")
        assert "F2 inbox" in rows
        await here.type("now **this**", 0.0)
        await here.press("ctrl+j", "l", "a", "s", "t", "enter")
        await here.see("echo: now this")
        (prompt,) = [
            shape.event
            for shape in deck.client.events(session)
            if isinstance(shape.event, ev.PromptQueued) and b"now" in bytes(shape.event.content)
        ]
        assert msgspec.json.decode(prompt.content) == "now **this**\nlast"

        for size in (NARROW, LARGE, TINY, WIDE):
            await here.pilot.resize_terminal(*size)
            await here.until(partial(here.fits, size))
            if size != TINY:
                await here.see("echo: now this")
            if size == NARROW:
                await here.until(lambda: steady(here.rows) == SNAPSHOT)
        assert here.rows.count("echo: now this") == 1

        await deck("stop", "--hub-only")
        await deck.ends()
        await here.see("waiting for the hub")
        await here.type("kept", 0.0)
        await here.press("enter")
        await here.see("not sent: the hub is away")
        assert here.app.focused is not None
        await deck.serve()
        await here.until(lambda: "waiting for the hub" not in here.rows)
        await here.press("enter")
        await here.see("echo: kept")
    await deck("stop")
    await deck.ends()


async def test_what_moves_while_it_ends_does_not_matter() -> None:
    async def nowhere() -> HubAddress:
        raise LinkRefused("no hub runs")

    app = Top(nowhere)
    async with app.run_test(size=WIDE) as pilot:
        await app.query_one("#nothing").remove()  # the parts of the screen go one by one
        app._board_changed()
        app._show_changes()
        await pilot.press("ctrl+q")
    assert not app.screen_stack
    app.on_descendant_focus()
    app.on_resize(Resize(Size(*NARROW), Size(*NARROW)))
    assert app.return_code == 0
