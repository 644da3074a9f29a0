"""Questions: several at once, on their way, for always, of a policy, and forms."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, WebSocketRoute, expect

from quarterdeck.fronts.http import Role
from quarterdeck.testing import fake, play
from support.api_client import ApiSeat, Json
from support.browser import Screen, browsing
from support.runners import program
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

Another = Callable[[Role, str], Awaitable[Screen]]
POLICY = """
[[rule]]
name = "releases are the owners'"
verdict = "ask"
command = "./release.sh"
answered_by = ["role:owner"]
wait = "30m"
match = ["./release.sh --now"]
not_match = ["./build.sh"]
"""
SCHEMA = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "title": "Colour", "enum": ["red", "blue"]},
        "coats": {"type": "integer", "title": "Coats", "description": "one is enough"},
        "gloss": {"type": "boolean", "title": "Gloss"},
        "where": {"type": "string", "title": "Where", "default": "the wall"},
    },
    "required": ["colour", "gloss"],
}
ANSWERED = fake.Expect("control_response", timeout=120.0)
IDS: fake.Line = {"session_id": "$session_id", "uuid": "$uuid"}
TODOS: list[fake.Line] = [
    {"content": "Read the code", "status": "completed", "activeForm": "Reading the code"},
    {"content": "Change it", "status": "in_progress", "activeForm": "Changing it"},
    {"content": "Test it", "status": "pending", "activeForm": "Testing it"},
]


class Held:
    """What the page says to the hub, which hears an answer to a question only once it is let go."""

    def __init__(self) -> None:
        self._waiting: list[tuple[WebSocketRoute, str | bytes]] = []

    async def put_before(self, page: Page) -> None:
        """From the next load of the page on."""
        await page.route_web_socket("**/api/stream", self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        hub = socket.connect_to_server()

        def heard(message: str | bytes) -> None:
            if "ask.answer" in str(message):
                self._waiting.append((hub, message))
            else:
                hub.send(message)

        socket.on_message(heard)

    def let_go(self) -> None:
        """Let the hub hear what was held back."""
        for hub, message in self._waiting:
            hub.send(message)
        self._waiting.clear()


def make_program(seat: ApiSeat, name: str) -> str:
    """A program that nobody knows, in the session's folder."""
    path = seat.work / f"{name}.sh"
    path.write_text("#!/bin/sh\necho ran\n")
    path.chmod(0o755)
    return f"./{name}.sh"


@pytest.fixture
async def another(browser: Browser, seat: ApiSeat) -> AsyncIterator[Another]:
    """Somebody else's browser before a session."""
    async with AsyncExitStack() as stack:

        async def opened(role: Role, session: str) -> Screen:
            other = await stack.enter_async_context(browsing(browser, seat.deck))
            await other.login(role)
            await other.page.goto(f"{seat.deck.address}/s/{session}")
            return other

        yield opened


async def test_several_questions_wait_and_are_answered_in_any_order(
    seat: ApiSeat, screen: Screen
) -> None:
    first = await seat.create(bash("touch one"), "done one")
    await seat.ask(first)
    second = await seat.create(bash("touch two"), "done two")
    page = screen.page
    waits = page.get_by_role("region", name="Waiting for you")
    cards = waits.locator(".asks-card")
    await expect(cards).to_have_count(2)
    await expect(page).to_have_title("(2) Quarterdeck")
    # The questions are the page. The list beside them has a line for each session, no question.
    await expect(page.get_by_role("main").locator(".asks-card")).to_have_count(2)
    for card in await cards.all():
        box = await card.bounding_box()
        assert box is not None
        assert box["width"] > 600, "the width of the page, not of the list"
    for session in (first, second):
        await expect(page.locator(f"aside a[href='/s/{session}']")).to_be_in_viewport()
    for wanted in ("touch one", "touch two", "touch one"):
        await page.keyboard.press("g")
        await expect(cards.filter(has_text=wanted)).to_be_focused()
    await screen.shot("asks-several")
    await screen.check_access()

    await cards.filter(has_text="touch two").get_by_role("button", name="Allow once").click()
    await expect(cards).to_have_count(1)
    await expect(page).to_have_title("(1) Quarterdeck")
    await seat.turn_ended(second)
    assert (seat.work / "two").exists()
    assert not (seat.work / "one").exists()
    await page.keyboard.press("g")
    await expect(cards).to_be_focused()
    await screen.keys_act()
    await page.keyboard.press("y")
    await expect(waits).to_have_count(0)
    await seat.turn_ended(first)
    for session in (first, second):
        await seat.stop(session)


async def test_an_answer_is_on_its_way_until_the_hub_has_it_and_adds_what_the_card_says(
    seat: ApiSeat, lone_screen: Screen
) -> None:
    screen = lone_screen
    held, page = Held(), screen.page
    await held.put_before(page)
    build, check = (make_program(seat, name) for name in ("build", "check"))
    session = await seat.create(bash(build), "built")
    await screen.open(session)
    await screen.card.get_by_role("button", name="Allow for session").click()
    rule = screen.card.get_by_label("Allow from now on")
    await expect(rule).to_have_value(f"Bash({build})")
    await expect(screen.card.get_by_role("checkbox", checked=True)).to_have_count(0)
    await screen.shot("ask-lasting")
    await screen.check_access()
    await screen.card.get_by_role("button", name="Allow and grant").click()
    sending = screen.story.locator(".asks-card[data-state='sending']")
    await expect(sending).to_contain_text("Sending …")
    await expect(sending.get_by_role("button", name="Allow and grant")).to_be_disabled()
    assert len((await seat.ada.get("asks"))["asks"]) == 1
    await screen.shot("ask-sending")
    await screen.check_access()
    held.let_go()
    await screen.hears("built")
    settled = screen.story.locator(".asks-card[data-state='settled']")
    await expect(settled).to_contain_text("Allowed for the session by the owner")
    await screen.say(play(bash(build), "built again"))
    await screen.hears("built again")

    await seat.send(session, bash(check), "checked")
    await screen.card.get_by_role("button", name="Always allow").click()
    await screen.card.get_by_label("How long").select_option("1 day")
    await screen.card.get_by_role("button", name="Allow and grant").click()
    await expect(sending).to_have_count(1)
    held.let_go()
    await screen.hears("checked")
    await expect(settled.last).to_contain_text("Always allowed by the owner")
    await seat.send(session, bash(check), "checked again")
    await screen.hears("checked again")
    assert len(seat.stream.of(session, "ask.opened")) == 2

    await page.get_by_role("navigation", name="Pages").get_by_text("Policy").click()
    grants = page.get_by_role("region", name="Grants")
    row = grants.get_by_role("row").filter(has_text=check)
    await expect(row).to_contain_text(str(seat.work))
    await expect(row).to_contain_text("the owner")
    await screen.shot("policy-granted")
    await row.get_by_role("button", name="Revoke").click()
    await expect(row).to_have_count(0)
    await expect(grants.get_by_role("row").filter(has_text=build)).to_contain_text(session)
    await screen.open(session)
    await seat.send(session, bash(check), "not said")
    await expect(screen.card).to_contain_text(check)
    await seat.stop(session)


async def test_a_policys_question_says_why_and_only_those_whom_it_names_can_allow_it(
    seat: ApiSeat, screen: Screen, another: Another
) -> None:
    (seat.deck.home / "policy.toml").write_text(POLICY)
    (told,) = (await seat.ada.get("policy"))["files"]
    assert told["flaws"] == [], told
    release = make_program(seat, "release")
    session = await seat.create(bash(f"{release} --now"), "released")
    await screen.open(session)
    why = screen.card.locator(".asks-reasons")
    await expect(why).to_contain_text("releases are the owners'")
    await expect(why).to_contain_text("in policy.toml:2")
    await expect(why).to_contain_text("Must be answered by any owner.")
    await expect(why).to_contain_text("Times out after 30 min 0 s.")
    await expect(why.get_by_role("timer")).to_have_text(
        re.compile(r"Denied automatically in [1-3]?\d min \d+ s\.")
    )
    await screen.shot("ask-policy")
    await screen.check_access()

    viewer = await another(Role.VIEWER, session)
    await expect(viewer.card).to_contain_text("You have read-only access.")
    for button in await viewer.card.get_by_role("button").all():
        if await button.inner_text() != "Copy":
            await expect(button).to_be_disabled()
    await viewer.card.locator(".asks-heading").click()
    await viewer.keys_act()
    await viewer.page.keyboard.press("y")
    await expect(viewer.composer).to_have_count(0)
    await expect(viewer.page.locator(".composer-box")).to_have_text("You have read-only access.")
    await viewer.shot("ask-viewer")
    await viewer.check_access()

    operator = await another(Role.OPERATOR, session)
    await operator.card.get_by_role("button", name="Allow once").click()
    refused = operator.story.locator(".asks-card[data-state='failed'] [role=alert]")
    await expect(refused).to_contain_text("wants an answer by role:owner")
    await operator.shot("ask-refused")
    await operator.check_access()

    await screen.card.get_by_role("button", name="Allow once").click()
    await screen.hears("released")
    for other in (viewer, operator):
        await expect(other.story).to_contain_text("Allowed by the owner")
        assert not other.complaints, other.complaints
    await seat.stop(session)


def answers_in(record: Path) -> dict[str, Json]:
    """What a fake CLI was answered, by the id of its request."""
    heard = [json.loads(line) for line in record.read_text().splitlines() if line[0] == "{"]
    return {
        line["response"]["request_id"]: line["response"]["response"]
        for line in heard
        if line.get("type") == "control_response"
    }


async def test_several_questions_of_one_turn_are_answered_by_several_people(
    seat: ApiSeat, screen: Screen
) -> None:
    record = seat.home / "parallel"
    names = ("one", "two", "three")
    calls = [fake.tool_use("Bash", {"command": f"touch {name}"}, f"t-{name}") for name in names]
    asks = [
        fake.control_request(
            name,
            subtype="can_use_tool",
            tool_name="Bash",
            input={"command": f"touch {name}"},
            tool_use_id=f"t-{name}",
        )
        for name in names
    ]
    done = [fake.tool_result(f"made {name}", f"t-{name}") for name in names]
    end = [fake.say(*done), fake.say(fake.assistant("all three")), fake.say(fake.result())]
    script = [
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.assistant(*calls)),
        fake.say(*asks),
        *[ANSWERED] * len(names),
        *end,
        fake.Serve(),
    ]
    spec = {
        "directory": str(seat.work),
        "claude": program(seat.home / "three", script, record),
        "sandbox": "off",  # it records outside of the session's folders
    }
    session = str((await seat.ada.post("sessions", spec=spec, prompt="begin"))["session"])
    await screen.open(session)
    await expect(screen.card).to_have_count(3)
    await expect(screen.page).to_have_title("(3) Quarterdeck")
    second = screen.card.filter(has_text="touch two")
    await second.get_by_role("button", name="Allow for session").click()
    await expect(second.get_by_label("Allow from now on")).to_have_value("Bash(touch two)")
    await second.get_by_role("button", name="Back").click()
    await screen.shot("asks-in-one-turn")
    await screen.check_access()
    await second.get_by_role("button", name="Allow once").click()
    settled = screen.story.locator(".asks-card[data-state='settled']")
    await expect(settled).to_contain_text("Allowed by the owner")
    await expect(screen.card).to_have_count(2)

    # Somebody else is first, while we are still writing why not.
    third = screen.card.filter(has_text="touch three")
    await third.get_by_role("button", name="Deny").click()
    await third.get_by_label("Reason (sent to the agent)").fill("it is too")
    open_ = [each["opened"] for each in (await seat.bob.get("asks"))["asks"]]
    (card,) = [each for each in open_ if each["title"] == "touch three"]
    await seat.answer(card, "allow")
    await expect(settled.filter(has_text="touch three")).to_contain_text("Allowed by ada")
    await expect(screen.page).to_have_title("(1) Quarterdeck")
    await screen.card.get_by_role("button", name="Deny").click()
    await screen.card.get_by_role("button", name="Deny and continue").click()
    await screen.hears("all three")
    await expect(screen.page).to_have_title("Quarterdeck")
    given = {name: answer["behavior"] for name, answer in answers_in(record).items()}
    assert given == {"one": "deny", "two": "allow", "three": "allow"}


async def test_forms_lists_of_things_to_do_and_limits_of_the_account(
    seat: ApiSeat, screen: Screen
) -> None:
    record = seat.home / "record"
    limit = {
        "status": "rejected",
        "rateLimitType": "five_hour",
        "resetsAt": int(time.time()) + 3000,
    }
    form = {"subtype": "elicitation", "mcp_server_name": "painter", "requested_schema": SCHEMA}
    script = [
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.assistant(fake.tool_use("TodoWrite", {"todos": TODOS}))),
        fake.say(fake.tool_result("Todos have been modified")),
        fake.say(fake.control_request("form-1", message="How shall I paint?", **form)),
        ANSWERED,
        fake.say(fake.control_request("form-2", message="And again?", **form)),
        ANSWERED,
        fake.say({"type": "rate_limit_event", "rate_limit_info": limit} | IDS),
        fake.say(fake.result("limited", is_error=True)),
        fake.Serve(),
    ]
    spec = {
        "directory": str(seat.work),
        "claude": program(seat.home / "fake", script, record),
        "sandbox": "off",  # it records outside of the session's folders
    }
    session = str((await seat.ada.post("sessions", spec=spec, prompt="paint"))["session"])
    await screen.open(session)
    todos = screen.story.locator(".tool-todos li")
    await expect(todos).to_have_count(3)
    await expect(todos.nth(1)).to_contain_text("Change it, in progress")
    card = screen.card
    await expect(card).to_contain_text("painter: How shall I paint?")
    send = card.get_by_role("button", name="Send")
    await expect(send).to_be_disabled()
    await card.get_by_label("Colour").select_option("blue")
    await card.get_by_label("Coats").fill("2")
    await expect(card.get_by_label("Where")).to_have_value("the wall")
    await screen.shot("ask-form")
    await screen.check_access()
    await send.click()
    settled = screen.story.locator(".asks-card[data-state='settled']")
    await expect(settled).to_contain_text("Submitted by the owner")
    await expect(card).to_contain_text("And again?")
    await card.get_by_role("button", name="Decline").click()
    await expect(settled.last).to_contain_text("Declined by the owner")
    note = screen.story.locator("[data-code]", has_text="reached its rate limit")
    await expect(note).to_be_visible()  # and so the CLI has heard both answers
    given = answers_in(record)
    assert given["form-1"] == {
        "action": "accept",
        "content": {"colour": "blue", "coats": 2, "gloss": False, "where": "the wall"},
    }
    assert given["form-2"]["action"] == "decline"

    timer = note.get_by_role("timer")
    await expect(timer).to_have_text(re.compile(r"It resets in [1-5]?\d min \d+ s\."))
    before = await timer.inner_text()
    await expect(timer).not_to_have_text(before)
    await expect(screen.page.locator(".session-header-bar")).to_contain_text("limit until")
    await screen.page.get_by_role("button", name="Panels").click()
    await screen.page.get_by_role("tab", name="Tasks").click()
    await expect(screen.page.get_by_role("tabpanel").locator(".tool-todos li")).to_have_count(3)
    await screen.shot("session-limited")
    await screen.check_access()
    await seat.stop(session)
