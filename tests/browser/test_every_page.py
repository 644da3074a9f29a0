"""Every page, card, panel and dialog at every width, with the longest words, and without the hub.

`tools.web_views` has the table of what there is; here are hostile ones besides. The agents are
scripted (`fake`): fifty questions at once would take fifty turns of a real CLI. One service and one
page for all of it: a view is loaded once, and resized.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec import Raw
from playwright.async_api import Browser, Locator, expect
from tools.web_views import (
    VIEWS,
    Deck,
    Group,
    View,
    form,
    open_view,
    running_views,
    settle,
    write_over,
)

from quarterdeck.cli.hub.demo import SCENE
from quarterdeck.cli.hub.demo_scenes import Scene, asks, begin, says
from quarterdeck.domain.structs import ABSENT
from quarterdeck.fronts.http import login_link
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.service.service import Service
from quarterdeck.testing import fake
from support.apart import apart
from support.bounds import SECONDS
from support.browser import COLOURS, EVERY_RULE, PHONE, Screen, browsing
from support.page_checks import BEYOND, LAYOUT, SMALL, find

pytestmark = [pytest.mark.anyio, pytest.mark.process]

WIDTHS = (1440, 1280, 768, 390, 320)
WORD = "unbroken" * 40
COMMAND = f"touch {WORD} && echo " + "several words " * 40
TABLE = (
    f"| Package | Remark {WORD[:60]} | Since |\n|---|---|---|\n| quarterdeck-{WORD} | x | 2024 |"
)
MANY = 50


def _many() -> tuple[fake.Step, ...]:
    """Fifty calls that wait at the same time."""
    steps: list[fake.Step] = []
    for number in range(MANY):
        call: fake.Line = {"command": f"touch file-{number} {WORD[:200]}", "description": WORD[:90]}
        steps += asks("Bash", call, f"ask-{number}")[:2]
    return (*steps, fake.Serve())


QUESTIONS: fake.Line = {
    "questions": [
        {
            "header": WORD[:12],
            "question": f"{WORD}?",
            "multiSelect": True,
            "options": [
                {"label": WORD, "description": WORD, "preview": COMMAND},
                {"label": "Short", "description": "short"},
            ],
        }
    ]
}
HOSTILE = (
    Scene(
        session="long-many",
        name=f"{WORD} and a name of many words " * 2,
        folder="d" * 120,
        prompt=f"{WORD} " * 3,
        steps=(*begin(), says(f"# {WORD}\n\n{TABLE}\n\n- `{WORD}`\n\n> {WORD}"), *_many()),
    ),
    Scene(
        session="long-call",
        name="call",
        folder="call",
        prompt="call",
        steps=(
            *begin(),
            *asks("Bash", {"command": COMMAND, "description": WORD, WORD: COMMAND}, "ask-c"),
        ),
    ),
    Scene(
        session="long-plan",
        name="plan",
        folder="plan",
        prompt="plan",
        mode="plan",
        steps=(
            *begin(),
            *asks(
                "ExitPlanMode",
                {"plan": f"# {WORD}\n\n{TABLE}\n\n```bash\n{COMMAND}\n```\n\n- {WORD}\n"},
                "ask-p",
            ),
        ),
    ),
    Scene(
        session="long-questions",
        name="questions",
        folder="questions",
        prompt="ask",
        steps=(*begin(), *asks("AskUserQuestion", QUESTIONS, "ask-q")),
    ),
    Scene(
        session="long-edit",
        name="edit",
        folder="edit",
        prompt="edit",
        steps=(
            *begin(),
            *asks(
                "Edit",
                {
                    "file_path": f"/{'p' * 120}/{'f' * 120}.py",
                    "old_string": f"x = '{WORD}'\n" * 4,
                    "new_string": f"y = '{WORD}'\n" * 4,
                },
                "ask-e",
            ),
        ),
    ),
)
CHILDREN: dict[str, tuple[str, ...]] = {
    "tree-a": ("demo-changes",),
    "tree-b": ("demo-changes",),
    "tree-b1": ("demo-changes", "tree-b"),
    "tree-b2": ("demo-changes", "tree-b", "tree-b1"),
    "circle-a": ("circle-b",),
    "circle-b": ("circle-a",),
}
"""Sessions that agents started, and those above them. The first waits for a person."""
LONG_FILE = "replaced.txt"
FORM: fake.Line = {
    "type": "object",
    "properties": {
        WORD: {"type": "string", "description": f"{WORD} and words", "default": WORD},
        "choice": {"type": "string", "title": WORD, "enum": [WORD, "short"]},
        "switch": {"type": "boolean", "title": f"{WORD} or not"},
    },
    "required": ["choice"],
}


def _hostile(name: str, *buttons: str) -> View:
    opens = tuple(("button", button) for button in buttons)
    title = "-".join([name, *(button.split()[0].lower() for button in buttons)])
    return View(name=title, path=f"/s/{name}", group=Group.CARD, opens=opens)


LONG_VIEWS = (
    _hostile("long-many"),
    _hostile("long-call", "Always allow"),
    _hostile("long-call", "Edit …"),
    _hostile("long-call", "Deny"),
    _hostile("long-plan"),
    _hostile("long-plan", "Comment"),
    _hostile("long-questions"),
    _hostile("long-edit"),
    _hostile("long-edit", "Allow for session"),
    _hostile("long-form"),
    _hostile("long-write"),
    View(name="tree", path="/s/tree-b2"),
)
"""What the table has with ordinary words, with the longest."""


@pytest.fixture(scope="module")
async def views(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deck]:
    """Two services: one with hostile and ordinary scenes, one with nothing."""
    folder = tmp_path_factory.mktemp("scenes")
    file = folder / "deck" / "work" / "replaced" / LONG_FILE
    more = (
        *HOSTILE,
        form("long-form", f"{WORD} {COMMAND}", FORM),
        write_over("long-write", file, f"y = '{WORD}'\nand words\n" * 3),
    )
    async with apart(running_views(folder, more)) as deck:
        file.write_text(f"x = '{WORD}'\nand words\n" * 4)
        for child, lineage in CHILDREN.items():
            await _start_child(deck.service, folder, child, lineage)
        yield deck


@pytest.fixture(scope="module")
def deck(views: Deck) -> Service:
    """The service with the scenes."""
    return views.service


async def _start_child(
    service: Service, folder: Path, child: str, lineage: tuple[str, ...]
) -> None:
    """As an agent's tool starts it; only the first has a prompt."""
    name = f"{child} {WORD}" if child == "tree-b2" else child
    spec = SessionSpec(directory=str(folder), name=name, env={SCENE: "no scene"})
    asks_something = child == "tree-a"
    prompt = Raw(b'"go"') if asks_something else ABSENT
    by = f"agent:{lineage[-1]}"
    command = CreateSession(spec=spec, session=child, prompt=prompt, by=by)
    await service.hub.spawn(command, lineage, "ada")
    with anyio.fail_after(SECONDS):
        while asks_something:
            view = service.hub.view(child)
            asks_something = view is None or view.state is not SessionState.WAITING
            await anyio.sleep(0.02)


@pytest.fixture
async def screen(browser: Browser, deck: Service) -> AsyncIterator[Screen]:
    """A page of this module's own."""
    async with browsing(browser, deck) as opened:
        await opened.login()
        yield opened
        # A folder without git has no changes to compare, and who leaves a page that tries a policy
        # has a turn less for the next one. The page says both; the browser tells of the status.
        opened.complaints[:] = [
            one
            for one in opened.complaints
            if not ("409" in one and "/diff" in one)
            and not ("503" in one and "/policy/suggestions" in one)
        ]
    await deck.hub.workers.end_idle()  # those that wait for the next policy that is tried


REFUSED = ("Authentication failed", "401", "/sessions/nothing/")
"""What the browser tells of the views that show a refusal."""
WITHIN = {
    Group.DIALOG: "[role=dialog]",
    Group.CARD: "main",
    Group.PANEL: "main",
    Group.PAGE: "html",
}
COLOURED = {"inbox": "aside", "tour": "[aria-label=Tour]"}
"""What axe looks at. The list of sessions is the same beside all of them: its colours are looked at
beside the inbox. The cards of the inbox are looked at one by one."""
THEMES = ("light", "dark", "contrast", "contrast on a dark system")


async def look(screen: Screen, views: Deck, view: View) -> list[tuple[object, ...]]:
    """What is wrong with a view: it is loaded once, and looked at in every width and theme."""
    page, wrong = screen.page, list[tuple[object, ...]]()
    first = 390 if view.narrow else 1280
    await page.set_viewport_size({"width": first, "height": 800})
    await open_view(page, views, view)
    if view.name == "inbox":
        await expect(page.locator(".asks-card")).to_have_count(MANY + 12)

    async def check_access(what: str, rules: str) -> None:
        within = WITHIN[view.group]
        if rules == COLOURS and view.group is Group.PAGE:
            within = COLOURED.get(view.name, "main")
        try:
            await screen.check_access(rules, within)
        except AssertionError as error:
            wrong.append((view.name, what, str(error)[:600]))

    # The tour lies over the page until it is closed.
    checks = {name: one for name, one in LAYOUT.items() if (view.name, name) != ("tour", "covered")}
    tools = await page.context.new_cdp_session(page)
    seen: dict[str, list[str]] = {}
    for width in WIDTHS:
        if view.narrow and width > 760:
            continue
        await page.set_viewport_size({"width": width, "height": 800})
        await settle(page)
        for name, told in (await find(page, checks)).items():
            if told != seen.get(name):  # the same at the next width says nothing new
                wrong.append((view.name, width, name, told))
            seen[name] = told
        if width == first:
            await check_access("axe", EVERY_RULE)
            for theme in THEMES[1:]:
                chosen, _, dark = theme.partition(" ")
                await page.emulate_media(
                    color_scheme="dark" if dark else "light", reduced_motion="reduce"
                )
                await page.evaluate(
                    "one => { document.documentElement.dataset.theme = one }", chosen
                )
                await check_access(f"axe, {theme}", COLOURS)
            await page.emulate_media(color_scheme="light", reduced_motion="reduce")
            await page.evaluate("delete document.documentElement.dataset.theme")
        if width == PHONE["width"]:
            # A finger: buttons and fields are larger there.
            await tools.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
            await settle(page)
            found = await find(page, {"small": SMALL, "beyond, touch": BEYOND})
            wrong += [(view.name, width, *one) for one in found.items()]
            await check_access("axe on a phone", EVERY_RULE)
            await tools.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    await tools.detach()
    return wrong


async def look_at_all(screen: Screen, deck: Deck, views: Sequence[View]) -> None:
    """Nothing is wrong with any of these."""
    empty = Screen(screen.page, deck.empty)
    await empty.login()
    empty.leave()
    wrong = [one for view in views for one in await look(screen, deck, view)]
    # Nobody is logged in there, a link or a session is gone, and the page says so.
    screen.complaints[:] = [
        one for one in screen.complaints if not any(sign in one for sign in REFUSED)
    ]
    assert not wrong, "\n".join(map(str, wrong))


def of_group(*groups: Group) -> list[View]:
    return [view for view in (*VIEWS, *LONG_VIEWS) if view.group in groups]


def is_of_session(view: View) -> bool:
    return view.path.startswith(("/s/", "/share", "/changes", "/compare"))


async def test_every_page_fits_every_width_and_axe_finds_nothing(
    screen: Screen, views: Deck
) -> None:
    pages = [view for view in of_group(Group.PAGE) if not is_of_session(view)]
    await look_at_all(screen, views, pages)


async def test_every_page_and_panel_of_a_session_fits_every_width_and_axe_finds_nothing(
    screen: Screen, views: Deck
) -> None:
    pages = [view for view in of_group(Group.PAGE, Group.PANEL) if is_of_session(view)]
    await look_at_all(screen, views, pages)


async def test_every_card_fits_every_width_and_axe_finds_nothing(
    screen: Screen, views: Deck
) -> None:
    await look_at_all(screen, views, of_group(Group.CARD))


async def test_every_dialog_fits_every_width_and_axe_finds_nothing(
    screen: Screen, views: Deck
) -> None:
    await look_at_all(screen, views, of_group(Group.DIALOG))


async def test_the_first_key_leads_past_the_list_on_every_page(screen: Screen, views: Deck) -> None:
    page = screen.page
    for path in ("/", "/s/demo-changes", "/changes/demo-changes", "/settings"):
        await page.goto(f"{screen.deck.address}{path}")
        await settle(page)
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("main")).to_be_focused()


async def test_fingers_reach_every_control_of_menus_diffs_and_dialogs(
    browser: Browser, deck: Service
) -> None:
    context = await browser.new_context(
        viewport={"width": PHONE["width"], "height": PHONE["height"]},
        has_touch=True,
        is_mobile=True,
        reduced_motion="reduce",
    )
    try:
        screen = Screen(await context.new_page(), deck)
        await screen.login()
        page, wrong = screen.page, list[tuple[object, ...]]()

        async def look_with_touch(place: str) -> None:
            await settle(page)
            found = await find(page, {"small": SMALL, "beyond": BEYOND})
            wrong.extend((place, *one) for one in found.items())

        await page.goto(f"{deck.address}/s/demo-changes")
        await page.get_by_role("button", name="More", exact=True).tap()
        await look_with_touch("the menu of a session")
        await page.get_by_role("menuitem", name="Session details").tap()
        await look_with_touch("the details of a session")
        await page.keyboard.press("Escape")
        await page.goto(f"{deck.address}/changes/demo-changes")
        await page.get_by_text("group_1.py").first.tap()
        await page.get_by_text("part_1(price: Decimal").first.tap()
        await look_with_touch("a diff")
        await page.get_by_role("button", name="Comment on line 7").tap()
        await page.get_by_label("Comment", exact=False).locator("visible=true").last.fill("Why?")
        await look_with_touch("a comment on a line")
        await page.goto(f"{deck.address}/")
        for name in ("New session", "Keys"):
            await page.get_by_role("button", name=name, exact=True).first.tap()
            await page.get_by_role("dialog").wait_for()
            await look_with_touch(f"the dialog {name}")
            await page.get_by_role("button", name="Close").tap()
        assert not wrong, "\n".join(map(str, wrong))
    finally:
        await context.close()
        await deck.hub.workers.end_idle()


async def test_sessions_that_agents_started_are_a_tree_that_hides_no_question(
    screen: Screen,
) -> None:
    page = screen.page
    fleet = page.get_by_role("navigation", name="All sessions")
    row = fleet.locator(".sidebar-row")
    below = fleet.get_by_role("list", name="Sessions that agents of decimal prices started")
    inner = below.get_by_role("list", name="Sessions that agents of tree-b started")
    for width in (1280, 390):
        await page.set_viewport_size({"width": width, "height": 844})
        await page.goto(screen.deck.address)
        fold = fleet.get_by_role("button", name="decimal prices: 4 agents")
        await expect(fold).to_have_attribute("aria-expanded", "true")
        await expect(fold).to_contain_text("1 waits for you")
        await expect(below.locator(".sidebar-title")).to_contain_text(
            ["tree-a", "tree-b", "tree-b1", "tree-b2"]
        )
        await expect(inner.locator(".sidebar-title")).to_contain_text(["tree-b1", "tree-b2"])
        await expect(row.filter(has_text="circle-")).to_have_count(2)
        await fold.scroll_into_view_if_needed()
        await screen.shot(f"tree-{width}")

        # With the keyboard; what is folded stays so, and says who waits.
        await fold.focus()
        await page.keyboard.press("Enter")
        await expect(fold).to_have_attribute("aria-expanded", "false")
        await expect(below).to_have_count(0)
        await page.reload()
        await expect(fold).to_have_attribute("aria-expanded", "false")
        await expect(fold).to_contain_text("1 waits for you")
        await expect(row.filter(has_text="tree-")).to_have_count(0)
        await settle(page)
        await screen.shot(f"tree-folded-{width}")
        await screen.check_access()
        inbox = page.get_by_role("region", name="Waiting for you")
        await expect(inbox.get_by_role("link", name="tree-a")).to_have_count(1)

        # A filter finds what is folded away.
        await page.get_by_label("Filter sessions").fill("tree-")
        await expect(row).to_have_count(4)
        await page.get_by_label("Filter sessions").fill("")
        await page.get_by_label("Sessions to show").select_option("Waiting")
        await expect(row.filter(has_text="tree-a")).to_have_count(1)
        await page.get_by_label("Sessions to show").select_option("All")
        await expect(row.filter(has_text="tree-")).to_have_count(0)
        await fold.click()
        await expect(row.filter(has_text="tree-")).to_have_count(4)

    await page.set_viewport_size({"width": 1280, "height": 800})
    await row.filter(has_text="tree-b1").get_by_role("link").click()
    started = page.locator("main [data-fact=starter]").get_by_role("link")
    await expect(started).to_have_text("Started by tree-b")
    await screen.shot("tree-child")
    await started.click()
    await expect(page.get_by_role("heading", name="tree-b", exact=True)).to_be_visible()


async def test_the_tour_opens_its_five_pages(screen: Screen) -> None:
    page = screen.page
    code = screen.deck.access.make_code("a visitor")
    await page.goto(login_link(screen.deck.address, code).replace("/login#", "/login?tour#"))
    tour = page.get_by_role("complementary", name="Tour")
    await expect(tour).to_contain_text("1 of 5")
    places = []
    for step in range(1, 6):
        await expect(tour).to_contain_text(f"{step} of 5")
        places.append(await page.evaluate("location.pathname"))
        await tour.get_by_role("button", name="Done" if step == 5 else "Next").click()
    assert len(set(places)) == 5
    await expect(tour).to_have_count(0)


async def test_the_app_opens_without_the_hub_and_keeps_nothing_of_the_api(screen: Screen) -> None:
    page, address = screen.page, screen.deck.address
    await page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    await page.goto(f"{address}/policy")
    await settle(page)
    kept = await page.evaluate(
        "caches.open('quarterdeck-files').then(async (files) =>"
        " (await files.keys()).map((one) => new URL(one.url).pathname))"
    )
    assert "/" in kept
    assert any(path.startswith("/assets/app-") for path in kept)
    assert not [path for path in kept if path.startswith("/api")]
    await page.context.set_offline(True)
    await page.goto(f"{address}/")
    await expect(page.get_by_role("heading", name="The hub cannot be reached")).to_be_visible()
    await screen.shot("offline-shell")
    await page.context.set_offline(False)
    await expect(page.locator(".asks-card").first).to_be_visible()
    screen.complaints.clear()  # the browser tells that it was offline


POLICY = '[[rule]]\nname = "no push"\nverdict = "deny"\ncommand = "git push"\n'


async def test_an_owner_edits_tries_and_saves_a_policy_and_a_stale_one_is_refused(
    screen: Screen,
) -> None:
    page, file = screen.page, screen.deck.home / "policy.toml"
    await page.goto(f"{screen.deck.address}/policy?part=edit")
    rules = page.get_by_label("Rules (TOML)").get_by_role("textbox")
    await expect(rules).to_be_editable()
    await rules.fill("no = rule = at all")
    await page.get_by_role("button", name="Check", exact=True).click()
    await expect(page.get_by_role("alert").filter(has_text="line 1")).to_be_visible()
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()

    await rules.fill(POLICY)
    await page.get_by_role("button", name="Try all").click()
    tried = page.get_by_role("region", name="Try calls").get_by_role("row")
    push = tried.filter(has_text="git push --force")
    await expect(push.locator(".policy-verdict")).to_have_text(["left to the CLI", "deny"])
    await page.get_by_role("button", name="Run replay").click()
    past = page.get_by_role("region", name="Replay past calls")
    await expect(past.get_by_role("heading", name="unchanged")).to_be_visible()

    await page.get_by_role("button", name="Save").click()
    asked = page.get_by_role("dialog", name="Put this policy in force?")
    # What is safe has the focus, and Escape is the same.
    await expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(asked).to_have_count(0)
    assert not file.exists()
    await page.get_by_role("button", name="Save").click()
    await asked.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved. The policy is in force")).to_be_visible()
    assert file.read_text() == POLICY

    file.write_text(POLICY.replace("deny", "ask"))
    await rules.fill(f"{POLICY}\n")
    await page.get_by_role("button", name="Save").click()
    await asked.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert").filter(has_text="has changed since")).to_be_visible()
    assert "ask" in file.read_text()
    screen.complaints[:] = [one for one in screen.complaints if "409" not in one]
    await page.get_by_role("button", name="Load again").click()
    await expect(rules).to_have_value(POLICY.replace("deny", "ask"))
    await page.get_by_role("tab", name="Rules").click()
    await expect(page.get_by_role("region", name="policy.toml")).to_contain_text("1 rule")
    file.write_text("")


async def test_what_closes_gives_the_focus_back(screen: Screen) -> None:
    page = screen.page

    async def opens_and_closes(opener: Locator, dialog: str, item: str = "") -> None:
        """With keys alone: what opened a dialog has the focus when it is closed."""
        await opener.focus()
        await page.keyboard.press("Enter")
        if item:
            await page.get_by_role("menuitem", name=item).focus()
            await page.keyboard.press("Enter")
        shown = page.get_by_role("dialog", name=dialog)
        await expect(shown.locator(":focus")).to_have_count(1)
        await page.keyboard.press("Escape")
        await expect(shown).to_have_count(0)
        await expect(opener).to_be_focused()

    def button(name: str) -> Locator:
        return page.get_by_role("button", name=name, exact=True).first

    await page.goto(f"{screen.deck.address}/s/demo-changes")
    await settle(page)
    await opens_and_closes(button("New session"), "New session")
    await opens_and_closes(button("Stop agent"), "Stop the agent?")
    await opens_and_closes(button("More"), "Share by a link", "Share by a link")
    await page.set_viewport_size({"width": 390, "height": 844})
    await opens_and_closes(button("More"), "Session details", "Session details")
    await page.set_viewport_size({"width": 1280, "height": 800})
    await button("More").focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("menuitem", name="Rename").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Name", exact=True)).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(button("More")).to_be_focused()
    await page.goto(f"{screen.deck.address}/changes/demo-changes")
    await settle(page)
    await opens_and_closes(button("Commit …"), "Commit")
    await opens_and_closes(button("Undo file …"), "Undo the changes of")


async def test_keys_alone_lead_through_the_page(screen: Screen) -> None:
    page = screen.page
    await page.goto(f"{screen.deck.address}/policy")
    await settle(page)
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the page")
    await expect(skip).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()
    tabs = page.get_by_role("tablist", name="Parts of the policy")
    first = tabs.get_by_role("tab", name="Rules")
    while not await first.evaluate("one => one === document.activeElement"):
        await page.keyboard.press("Tab")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await expect(tabs.get_by_role("tab", name="Edit")).to_have_attribute("aria-selected", "true")
    # A dialog takes the focus, keeps it, and gives it back.
    keys = page.get_by_role("button", name="Keys")
    await keys.focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Keys")
    await expect(dialog).to_be_visible()
    for _ in range(6):
        await page.keyboard.press("Tab")
        await expect(dialog.locator(":focus")).to_have_count(1)
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(keys).to_be_focused()
