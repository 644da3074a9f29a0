"""Text at the speed of people, while questions wait and come: only deliberate answers count.

The letters of each text are keys that answer, jump or open something. The answers are counted in
the journal. The agents are scripted: many questions wait at the same time, and more come while a
person writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import msgspec
import pytest
from msgspec import Raw
from playwright.async_api import Browser, Locator, Page, expect

from quarterdeck.cli.hub.demo import running_scenes
from quarterdeck.cli.hub.demo_scenes import Scene, asks, begin, end, says
from quarterdeck.protocol.commands import SendPrompt
from quarterdeck.protocol.events import AskAnswered
from quarterdeck.service.service import Service
from quarterdeck.testing import fake
from support.apart import apart
from support.bounds import SECONDS
from support.browser import PHONE, Screen, browsing

pytestmark = [pytest.mark.anyio, pytest.mark.process]

REASON = "yes, gas again: say nay, 1 2 3 a s e g c ? any easy way? yes"
MANY = 9
COMING = 60
TYPING = 60.0
"""Milliseconds between two letters, as a practised person types."""

PLAN = "# How\n\nFirst I read the code.\n\nThen I change it.\n"
QUESTIONS: fake.Line = {
    "questions": [
        {
            "header": "Colour",
            "question": "Which colour?",
            "multiSelect": False,
            "options": [{"label": "Red", "description": "red"}, {"label": "Blue"}],
        }
    ]
}


def _calls(name: str, count: int, *between: fake.Step) -> tuple[fake.Step, ...]:
    """So many calls that wait at the same time."""
    steps: list[fake.Step] = []
    for number in range(count):
        steps += (
            *between,
            *asks("Bash", {"command": f"touch {name}-{number}"}, name + str(number))[:2],
        )
    return tuple(steps)


def _scene(session: str, *steps: fake.Step, mode: str | None = None) -> Scene:
    return Scene(
        session=session,
        name=session,
        folder=session,
        prompt="go",
        mode=mode,
        steps=(*begin(), *steps, fake.Serve()),
    )


SCENES = (
    _scene("many", says("All at once."), *_calls("many", MANY)),
    _scene("plan", *asks("ExitPlanMode", {"plan": PLAN}, "ask-p"), *end("thanks")[:1], mode="plan"),
    _scene("questions", *asks("AskUserQuestion", QUESTIONS, "ask-q"), *end("thanks")[:1]),
    _scene(
        "coming",
        *end("ready")[:1],
        fake.Expect("user", timeout=3600.0, polite=True),
        *_calls("coming", COMING, fake.Wait(0.15)),
    ),
)


class Desk:
    """The service, and what was answered there."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._seen = 0

    async def answers(self) -> list[tuple[str, str]]:
        """What was answered since this was asked last: the kind of each answer, and its text."""
        entries = await self.service.hub.audit(after=self._seen)
        self._seen = max([self._seen, *(entry.position for entry in entries)])
        return [
            _told(entry.event.answer) for entry in entries if isinstance(entry.event, AskAnswered)
        ]

    async def first_answers(self) -> list[tuple[str, str]]:
        """The same, as soon as there is one: a card is closed before the hub has its answer."""
        with anyio.fail_after(SECONDS):
            while not (given := await self.answers()):  # noqa: ASYNC110  (there is no event)
                await anyio.sleep(0.02)
        return given

    async def open_asks(self) -> int:
        return len(await self.service.hub.asks())


def _told(answer: Raw) -> tuple[str, str]:
    given = msgspec.json.decode(answer)
    said = given.get("message") or given.get("feedback") or given.get("answers") or ""
    return given.get("choice") or given["answer"], str(said)


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    """A service where nine calls, a plan and a question wait."""
    async with apart(running_scenes(tmp_path_factory.mktemp("typing"), 0, SCENES)) as service:
        made = Desk(service)
        with anyio.fail_after(SECONDS):
            while await made.open_asks() < MANY + 2:  # noqa: ASYNC110  (there is no event)
                await anyio.sleep(0.02)
        yield made


@pytest.fixture
async def screen(browser: Browser, desk: Desk) -> AsyncIterator[Screen]:
    """A page of this module's own."""
    async with browsing(browser, desk.service) as opened:
        await opened.login()
        await desk.answers()
        yield opened


def cards(page: Page) -> Locator:
    return page.get_by_role("region", name="Waiting for you").locator(".asks-card")


def card(page: Page, command: str) -> Locator:
    return cards(page).filter(has_text=command)


async def type_reason(page: Page, at: Locator, *, ends: str = "Deny and continue") -> None:
    """Deny a call with a reason, as people do it."""
    await at.get_by_role("button", name="Deny").click()
    await page.keyboard.type(REASON, delay=TYPING)
    field = at.get_by_label("Reason (sent to the agent)")
    await expect(field).to_have_value(REASON)
    await expect(field).to_be_focused()
    await at.get_by_role("button", name=ends).click()


async def test_reasons_comments_and_answers_that_are_typed_while_questions_come_are_only_text(
    desk: Desk, screen: Screen
) -> None:
    page = screen.page
    await expect(cards(page)).to_have_count(MANY + 2)
    # From here on a question comes every 150 ms.
    await desk.service.hub.submit(SendPrompt(session="coming", content=Raw(b'"go"'), by="ada"))
    await type_reason(page, card(page, "many-2"))
    await expect(card(page, "many-2")).to_have_count(0)
    assert await desk.answers() == [("deny", REASON)]

    # On the page of the session.
    await screen.open("many")
    await type_reason(page, screen.card.filter(has_text="many-3"))
    await expect(screen.card.filter(has_text="many-3")).to_have_count(0)
    assert await desk.first_answers() == [("deny", REASON)]

    # A comment on a plan.
    await screen.load("plan")
    await screen.card.get_by_role("button", name="Comment on: First I").click()
    await page.keyboard.type(REASON, delay=TYPING)
    await expect(screen.card.get_by_label("Your comment on part 2")).to_have_value(REASON)
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    assert await desk.answers() == []
    await screen.card.get_by_role("button", name="Keep planning, with 1 comment").click()
    await expect(screen.card).to_have_count(0)
    ((choice, said),) = await desk.first_answers()
    assert choice == "revise"
    assert REASON in said

    # An answer of one's own, sent by Enter that is pressed twice.
    await screen.load("questions")
    field = screen.card.get_by_label("Other answer to: Which colour?")
    await field.click()
    await page.keyboard.type(REASON, delay=TYPING)
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await expect(screen.card).to_have_count(0)
    ((kind, said),) = await desk.first_answers()
    assert kind == "questions"
    assert REASON in said
    await expect(screen.story.locator(".asks-card")).to_have_attribute("data-state", "settled")
    assert await desk.answers() == []
    assert await desk.open_asks() > MANY
    assert not (await desk.service.hub.policy.view()).grants


async def test_a_keyboard_at_a_phone_and_an_input_method_answer_nothing_by_accident(
    desk: Desk, screen: Screen
) -> None:
    page = screen.page
    await page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await type_reason(page, card(page, "many-4"))
    await expect(card(page, "many-4")).to_have_count(0)
    assert await desk.answers() == [("deny", REASON)]

    # An input method composes characters where no field has the focus.
    await card(page, "many-5").locator(".asks-heading").click()
    await screen.keys_act()
    tools = await page.context.new_cdp_session(page)
    for letter in "ynas12":
        for kind in ("rawKeyDown", "keyUp"):
            await tools.send(
                "Input.dispatchKeyEvent",
                {"type": kind, "key": letter, "windowsVirtualKeyCode": 229},
            )
    # And in a field: what is being composed is no key, and its end is no answer.
    await card(page, "many-5").get_by_role("button", name="Deny").click()
    await tools.send(
        "Input.imeSetComposition", {"text": "ya", "selectionStart": 2, "selectionEnd": 2}
    )
    await tools.send(
        "Input.dispatchKeyEvent",
        {"type": "rawKeyDown", "key": "Enter", "windowsVirtualKeyCode": 229},
    )
    await tools.send("Input.insertText", {"text": "や"})
    reason = card(page, "many-5").get_by_label("Reason (sent to the agent)")
    await expect(reason).to_have_value("や")
    assert await desk.answers() == []
    await page.keyboard.press("Escape")


async def test_a_key_that_is_held_and_a_click_that_is_doubled_answer_one_question(
    desk: Desk, screen: Screen
) -> None:
    page = screen.page
    await expect(cards(page).first).to_contain_text("many-0")

    async def is_one_answer(command: str) -> None:
        await expect(card(page, command)).to_have_count(0)
        # What a page says next reaches the hub after all that it said before.
        await card(page, "many-8").get_by_role("button", name="Deny").click()
        await page.keyboard.press("Escape")
        await page.reload()
        await expect(cards(page).last).to_be_visible()
        assert await desk.answers() == [("allow", "")]

    await card(page, "many-0").get_by_role("button", name="Allow once").focus()
    for _ in range(20):  # the keyboard repeats it, and the next card moves up
        await page.keyboard.down("Enter")
    await page.keyboard.up("Enter")
    await is_one_answer("many-0")

    await card(page, "many-1").locator(".asks-heading").click()
    await screen.keys_act()
    for _ in range(20):
        await page.keyboard.down("y")
    await page.keyboard.up("y")
    await is_one_answer("many-1")

    # The card below moves under the pointer before the second click of a double click.
    await card(page, "many-6").evaluate("one => one.scrollIntoView({block: 'start'})")
    box = await card(page, "many-6").get_by_role("button", name="Allow once").bounding_box()
    assert box is not None
    where = (box["x"] + 9, box["y"] + 9)
    await page.mouse.click(*where)
    await expect(card(page, "many-6")).to_have_count(0)
    await card(page, "many-7").evaluate(
        "(one, [x, y]) => { one.style.position = 'fixed'; one.style.zIndex = '9';"
        " const box = one.querySelector('button[data-primary]').getBoundingClientRect();"
        " one.style.left = `${one.getBoundingClientRect().left + x - box.left - 9}px`;"
        " one.style.top = `${one.getBoundingClientRect().top + y - box.top - 9}px`; }",
        list(where),
    )
    await page.mouse.move(*where)
    await page.mouse.down(click_count=2)
    await page.mouse.up(click_count=2)
    await is_one_answer("many-6")
    await expect(card(page, "many-7")).to_have_count(1)


async def test_text_that_begins_with_an_answer_key_takes_the_answer_back(
    desk: Desk, screen: Screen
) -> None:
    page = screen.page
    await page.evaluate("localStorage.removeItem('quarterdeck.undo')")
    await card(page, "many-7").locator(".asks-heading").click()
    await screen.keys_act()
    await page.keyboard.type("yes please", delay=TYPING)
    await expect(card(page, "many-7")).to_have_attribute("data-state", "open")
    await expect(page.get_by_text("looked like typed text")).to_be_visible()
    assert await desk.answers() == []
