"""The pages, cards, panels and dialogs of the web app, in one table.

`tools.screens` takes a picture of each, and `tests/browser/test_every_page.py` looks at each at
every width. `tests/tools/test_web_views.py` fails when a route, a part of a page, a panel or a
dialog of `web/src` is not in the table. Owns the table, the sessions that it needs besides those of
`quarterdeck demo`, and how a view is opened. It judges nothing and takes no picture.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from msgspec import Raw
from playwright.async_api import Page, Request

from quarterdeck.cli.hub.demo import SCENE, running_scenes
from quarterdeck.cli.hub.demo_scenes import (
    DAY,
    MIGRATION,
    SCENES,
    Scene,
    asks,
    begin,
    end,
    says,
)
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.commands import CreateSession, StopSession
from quarterdeck.protocol.events import CliSession
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import Budget, SessionSpec
from quarterdeck.service.service import Service
from quarterdeck.testing import fake

SECONDS = 60.0
VISITOR = "ada"
SHARE_SECONDS = 3600.0


class Group(StrEnum):
    """What a view is."""

    PAGE = "page"
    CARD = "card"
    PANEL = "panel"
    DIALOG = "dialog"


class Place(StrEnum):
    """Where a view is opened."""

    DECK = "deck"
    """The hub with all sessions."""
    EMPTY = "empty"
    """A hub without sessions."""
    STRANGER = "stranger"
    """The hub without sessions, by a name with which nobody is logged in."""


class View(Value):
    """Something to look at: an address, and what is pressed there."""

    name: str
    path: str
    group: Group = Group.PAGE
    place: Place = Place.DECK
    opens: tuple[tuple[str, str], ...] = ()
    """Roles and beginnings of names of what is pressed, one after the other. A `text` is any."""
    dialog: str = ""
    """The file of `web/src` whose dialog is shown then."""
    narrow: bool = False
    """Whether only a small screen has it."""


def _panel(name: str) -> View:
    return View(name=f"panel-{name}", path=f"/s/demo-todos?panel={name}", group=Group.PANEL)


def _policy(part: str) -> View:
    return View(name=f"policy-{part}", path=f"/policy?part={part}")


def _card(name: str, session: str, *buttons: str) -> View:
    opens = tuple(("button", button) for button in buttons)
    return View(name=name, path=f"/s/{session}", group=Group.CARD, opens=opens)


def _dialog(name: str, file: str, path: str, *opens: tuple[str, str], narrow: bool = False) -> View:
    return View(name=name, path=path, group=Group.DIALOG, opens=opens, dialog=file, narrow=narrow)


_MORE = ("button", "More")
_PROMPT = ("button", "What to do with this prompt")
_FINISHED, _CHANGES = "/s/demo-changes", "/changes/demo-changes"

VIEWS: tuple[View, ...] = (
    View(name="inbox", path="/"),
    View(name="inbox-empty", path="/", place=Place.EMPTY),
    View(name="logged-out", path="/", place=Place.STRANGER),
    View(name="login", path="/login", place=Place.STRANGER),
    View(name="tour", path="/?tour"),
    View(name="finished", path=_FINISHED),
    View(name="todos", path="/s/demo-todos"),
    View(name="failure", path="/s/demo-failure"),
    View(name="budget-spent", path="/s/view-budget"),
    View(name="ended", path="/s/view-ended"),
    View(name="session-missing", path="/s/nothing"),
    View(name="conversations", path="/s/view-talks"),
    View(name="conversation", path="/s/view-talks/{conversation}"),
    View(name="shared", path="/share#{share}"),
    View(name="shared-gone", path="/share#nothing"),
    View(name="changes", path=_CHANGES),
    View(name="changes-worktree", path="/changes/view-worktree"),
    View(name="changes-files", path=f"{_CHANGES}?part=files"),
    View(name="changes-file", path=f"{_CHANGES}?part=files&file=prices/rounding.py"),
    View(name="changes-checkpoints", path=f"{_CHANGES}?part=checkpoints"),
    View(name="compare", path="/compare?s=demo-changes&s=demo-failure"),
    View(name="compare-changes", path="/compare/demo-changes/view-worktree"),
    View(name="search", path="/search"),
    View(name="usage", path="/usage"),
    View(name="loops", path="/loops"),
    View(name="schedules", path="/schedules"),
    *(_policy(one) for one in ("rules", "edit", "explain", "audit", "replay", "suggestions")),
    View(name="machines", path="/machines"),
    View(name="settings", path="/settings"),
    _card("permission", "demo-checkout"),
    _card("permission-session", "demo-checkout", "Allow for session"),
    _card("permission-always", "demo-checkout", "Always allow"),
    _card("permission-edit", "demo-checkout", "Edit …"),
    _card("permission-deny", "demo-checkout", "Deny"),
    _card("plan", "demo-plan"),
    _card("plan-comment", "demo-plan", "Comment"),
    _card("questions", "demo-questions"),
    _card("write", "view-write"),
    _card("elicitation", "view-form"),
    *(_panel(one) for one in ("files", "tasks", "context", "mcp", "raw")),
    _dialog("new-session", "sessions/NewSession.tsx", "/", ("button", "New session")),
    _dialog("keys", "asks/KeysHelp.tsx", "/", ("button", "Keys")),
    _dialog("stop", "session/StopDialog.tsx", "/s/demo-todos", ("button", "Stop")),
    _dialog("share", "session/ShareDialog.tsx", _FINISHED, _MORE, ("menuitem", "Share by a link")),
    _dialog(
        "details",
        "session/SessionHeader.tsx",
        _FINISHED,
        _MORE,
        ("menuitem", "Session details"),
        narrow=True,
    ),
    _dialog("delete", "session/SessionHeader.tsx", "/s/view-ended", _MORE, ("menuitem", "Delete")),
    _dialog(
        "move", "session/MoveDialog.tsx", "/s/view-ended", _MORE, ("menuitem", "Resume on another")
    ),
    _dialog(
        "prompts", "session/PromptsMenu.tsx", _FINISHED, ("button", "Saved and earlier prompts")
    ),
    _dialog("budget", "session/head/Budget.tsx", "/s/view-budget", ("button", "Raise the budget")),
    _dialog("usage-budget", "panels/Usage.tsx", "/usage", ("button", "Raise …")),
    _dialog("edit", "rewind/EditDialog.tsx", _FINISHED, _PROMPT, ("menuitem", "Edit and send")),
    _dialog("fork", "rewind/ForkDialog.tsx", _FINISHED, _MORE, ("menuitem", "Branch off")),
    _dialog("rewind", "rewind/RewindDialog.tsx", _FINISHED, _PROMPT, ("menuitem", "Rewind both")),
    _dialog("commit", "changes/CommitDialog.tsx", _CHANGES, ("button", "Commit …")),
    _dialog("push", "changes/PushDialog.tsx", _CHANGES, ("button", "Push …")),
    _dialog(
        "undo-file",
        "changes/FilePane.tsx",
        f"{_CHANGES}?part=changes&file=prices/group_1.py",
        ("button", "Undo file"),
    ),
    _dialog(
        "comments",
        "changes/CommentBar.tsx",
        f"{_CHANGES}?part=changes&file=prices/rounding.py",
        ("text", "def rounded"),  # a finger finds the button of a line after a tap on the line
        ("button", "Comment on line 6"),
        ("textbox", "Your comment"),
        ("button", "Keep comment"),
        ("button", "Review and send"),
    ),
    _dialog("merge", "changes/Settle.tsx", "/changes/view-worktree", ("button", "Merge …")),
    _dialog("keep", "changes/Settle.tsx", "/changes/view-worktree", ("button", "Keep")),
    _dialog(
        "policy-save",
        "panels/policy/Edit.tsx",
        "/policy?part=edit",
        ("button", "Start with an example"),
        ("button", "Save and put in force"),
    ),
    _dialog("revoke", "panels/settings/Access.tsx", "/settings", ("button", "Revoke access of")),
)

# --- what is there to look at --------------------------------------------------------------------

_OTHER_TALK = "4b6f1f6e-0000-4000-8000-000000000002"


def _in_other_talk(*steps: fake.Step) -> tuple[fake.Step, ...]:
    """The same steps, of another conversation of the same process."""
    return tuple(
        fake.say(*({**line, "session_id": _OTHER_TALK} for line in step.lines))
        if isinstance(step, fake.Say)
        else step
        for step in steps
    )


_GREETING = begin()[-1]
TALKS = Scene(
    session="view-talks",
    name="invoices",
    folder="invoices",
    prompt="Where are the invoices numbered?",
    steps=(
        *begin(),
        says("In `src/numbers.py`. Each year begins with 1."),
        fake.say(fake.result("Found.", total_cost_usd=0.0071)),
        *_in_other_talk(
            _GREETING,
            says("This is a new conversation: I know nothing of the one before."),
            fake.say(fake.result("New.", total_cost_usd=0.0083)),
        ),
        fake.Serve(),
    ),
)

_SCHEMA: fake.Line = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "title": "Region", "enum": ["eu-central", "us-east"]},
        "copies": {
            "type": "integer",
            "title": "Copies",
            "description": "how many servers answer",
            "default": 2,
        },
        "public": {"type": "boolean", "title": "Open to the internet"},
        "note": {"type": "string", "title": "Note for the log"},
    },
    "required": ["region", "public"],
}


def form(session: str, message: str, schema: fake.Line) -> Scene:
    """A session in which an MCP server asks for input."""
    asked = fake.control_request(
        f"ask-{session}",
        subtype="elicitation",
        mcp_server_name="deploy",
        message=message,
        requested_schema=schema,
    )
    return Scene(
        session=session,
        name="deployment",
        folder="deployment",
        prompt="Deploy the shop.",
        steps=(
            *begin(),
            fake.say(asked),
            fake.Expect("control_response", timeout=DAY, polite=True),
            *end("Deployed."),
        ),
    )


_NOTES = "notes.md"
_BEFORE = (
    "# Release 4.2\n\n- prices are decimals\n- the tax of each country\n\nNot announced yet.\n"
)
_AFTER = "# Release 4.2\n\n- prices are decimals\n- the tax of each country\n- faster search\n"


def write_over(session: str, file: Path, after: str) -> Scene:
    """A session that wants to write over a file."""
    given: fake.Line = {"file_path": str(file), "content": after}
    return Scene(
        session=session,
        name="release notes",
        folder=file.parent.name,
        prompt="Announce the release.",
        steps=(
            *begin(),
            says("I replace the notes."),
            *asks("Write", given, f"ask-{session}"),
            *end("Announced."),
        ),
    )


_REWOUND: fake.Line = {
    "canRewind": True,
    "filesChanged": ["prices/group_1.py", "prices/group_2.py", "prices/rounding.py"],
    "insertions": 12,
    "deletions": 41,
}
_REWINDS = 40
"""How often the dialog can ask what would change."""


def _rewindable() -> Scene:
    """The scene with changes, whose agent says what a rewind would change."""
    *steps, last = MIGRATION.steps
    answers = (
        fake.Expect("control_request", "rewind_files", timeout=DAY, polite=True),
        fake.say(fake.answer(_REWOUND)),
    )
    fields = {name: getattr(MIGRATION, name) for name in Scene.__struct_fields__}
    return Scene(**{**fields, "steps": (*steps, *answers * _REWINDS, last)})


def _scenes(work: Path) -> tuple[Scene, ...]:
    own = _rewindable()
    return (
        *(own if scene is MIGRATION else scene for scene in SCENES),
        TALKS,
        form("view-form", "Where should the shop run?", _SCHEMA),
        write_over("view-write", work / "release" / _NOTES, _AFTER),
    )


class Deck(Value):
    """Two hubs, and what the addresses of views contain."""

    service: Service
    empty: Service
    names: dict[str, str]

    def hub_of(self, view: View) -> Service:
        """The hub that shows a view."""
        return self.service if view.place is Place.DECK else self.empty

    def address(self, view: View) -> str:
        """Where a view is."""
        path = view.path
        for name, value in self.names.items():
            path = path.replace(f"{{{name}}}", value)
        base = self.hub_of(view).address
        if view.place is Place.STRANGER:
            base = base.replace("127.0.0.1", "localhost")
        return f"{base}{path}"


@asynccontextmanager
async def running_views(folder: Path, more: Sequence[Scene] = ()) -> AsyncIterator[Deck]:
    """Hubs with all that the table names, and the sessions of more scenes, below this folder."""
    first, second = folder / "deck", folder / "empty"
    work = first / "work"
    for place in (first, second):
        place.mkdir()
    async with (
        running_scenes(first, 0, (*_scenes(work), *more)) as service,
        running_scenes(second, 0, ()) as empty,
    ):
        await anyio.to_thread.run_sync(_write_files, work)
        await _start_others(service, work)
        secret, _ = service.access.make_share("Grace", "demo-changes", seconds=SHARE_SECONDS)
        conversation = await _first_conversation(service, TALKS.session)
        yield Deck(
            service=service,
            empty=empty,
            names={"share": secret, "conversation": conversation},
        )


def _write_files(work: Path) -> None:
    (work / "release" / _NOTES).write_text(_BEFORE)
    remote = work / "shop-prices.git"
    _git(work, "init", "-q", "--bare", "-b", "main", str(remote))
    _git(work / "shop-prices", "remote", "add", "origin", str(remote))


def _git(folder: Path, *words: str) -> None:
    nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *words], cwd=folder, env={**os.environ, **nothing}, check=True)


async def _start_others(service: Service, work: Path) -> None:
    """Sessions that differ from the scenes by their settings: all of them have finished a turn."""
    shop = work / "shop-prices"
    await _start(service, shop, "view-worktree", "decimal prices, again", worktree="decimals-2")
    await _start(service, work / "shop", "view-budget", "price list", budget=Budget(session_usd=1))
    await _start(service, work / "shop", "view-ended", "old prices", session_mirror=True)
    await service.hub.submit(StopSession(session="view-ended"))
    await _until(service, "view-ended", lambda view: view.run is None)
    tree = (await service.hub.session("view-worktree")).directory
    assert tree
    changed = Path(tree) / "prices" / "group_1.py"
    text = changed.read_text()
    changed.write_text(text.replace("price * rate * count", "round(price * rate * count, 2)"))


async def _start(service: Service, folder: Path, session: str, name: str, **members: Any) -> None:
    spec = SessionSpec(directory=str(folder), name=name, env={SCENE: MIGRATION.session}, **members)
    prompt = Raw(b'"Replace floating point prices by decimals."')
    await service.hub.submit(CreateSession(spec=spec, session=session, prompt=prompt, by=VISITOR))
    await _until(service, session, lambda view: view.last_turn is not None)


async def _until(service: Service, session: str, holds: Callable[[SessionView], bool]) -> None:
    with anyio.fail_after(SECONDS):
        while True:
            view = service.hub.view(session)
            if view is not None and holds(view):
                return
            await anyio.sleep(0.02)


async def _first_conversation(service: Service, session: str) -> str:
    with anyio.fail_after(SECONDS):
        while True:
            told = [
                stored.event.cli_session
                for stored in await service.hub.events(session, after=0, limit=1000)
                if isinstance(stored.event, CliSession)
            ]
            if _OTHER_TALK in told:
                return told[0]
            await anyio.sleep(0.02)


# --- how it is opened ----------------------------------------------------------------------------


async def settle(page: Page) -> None:
    """Wait until a page has loaded what it shows, and has been laid out."""
    await page.wait_for_load_state("networkidle")
    await page.evaluate("document.fonts.ready")
    await page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


async def open_view(page: Page, deck: Deck, view: View) -> None:
    """Load a view, and press what opens it."""
    await page.goto("about:blank")  # an address that differs by its fragment only is loaded, too
    async with _all_read(page):
        await page.goto(deck.address(view))
        await settle(page)
    async with _all_read(page):
        for role, name in view.opens:
            await _press(page, role, name)
        if view.dialog:
            await page.get_by_role("dialog").wait_for()
        await settle(page)
    await settle(page)


@asynccontextmanager
async def _all_read(page: Page) -> AsyncIterator[None]:
    """Wait at the end until the page has read what it asked for meanwhile."""
    asked: set[Request] = set()

    def begins(request: Request) -> None:
        asked.add(request)

    def ends(request: Request) -> None:
        asked.discard(request)

    page.on("request", begins)
    page.on("requestfinished", ends)
    page.on("requestfailed", ends)
    try:
        yield
        with anyio.move_on_after(SECONDS):
            while True:
                if not asked:
                    return
                await anyio.sleep(0.02)
    finally:
        page.remove_listener("request", begins)
        page.remove_listener("requestfinished", ends)
        page.remove_listener("requestfailed", ends)


async def _press(page: Page, role: str, name: str) -> None:
    start = re.compile(f"^{re.escape(name)}")
    named = page.get_by_role(role, name=start)  # type: ignore[arg-type]
    found = (page.get_by_text(name) if role == "text" else named).locator("visible=true").first
    if role == "textbox":
        await found.fill("Is half to even right here?")
    else:
        await found.click()
