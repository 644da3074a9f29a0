"""The table of views has everything that the web app can show."""

from __future__ import annotations

import re
from pathlib import Path

from tools.web_views import VIEWS, Group

WEB = Path(__file__).parents[2] / "web" / "src"


def _names(file: str, mark: str) -> list[str]:
    """The names in the first list, or the keys of the first object, after a mark of a module."""
    text = (WEB / file).read_text()
    rest = text[text.index(mark) + len(mark) :]
    return re.findall(r"\w+", re.split(r"[\]}]", rest, maxsplit=1)[0])


def test_every_route_of_the_app_is_in_the_table() -> None:
    text = (WEB / "App.tsx").read_text()
    routes = re.findall(r'<Route path="([^"]+)"', text)
    assert len(routes) > 10
    routes += ["/", *re.findall(r'pathname === "([^"]+)"', text), "/login"]
    paths = {re.split(r"[?#]", view.path)[0] for view in VIEWS}
    missing = [
        route
        for route in routes
        if not any(re.fullmatch(re.sub(r":\w+", "[^/]+", route), path) for path in paths)
    ]
    assert not missing


def test_every_part_of_a_page_and_every_panel_is_in_the_table() -> None:
    paths = {view.path for view in VIEWS}
    parts = _names("changes/ChangesPage.tsx", "const PARTS = [")
    assert "checkpoints" in parts
    missing = [
        part
        for part in parts
        if part != "changes" and not any(f"part={part}" in path for path in paths)
    ]
    policy = re.findall(
        r'value: "(\w+)", label: words.tabs', (WEB / "panels/Policy.tsx").read_text()
    )
    assert "audit" in policy
    missing += [part for part in policy if f"/policy?part={part}" not in paths]
    panels = re.findall(r"(\w+): [A-Z]", " ".join(_lines("panels/Panel.tsx", "const PANELS")))
    assert "context" in panels
    missing += [one for one in panels if not any(f"panel={one}" in path for path in paths)]
    assert not missing


def _lines(file: str, mark: str) -> list[str]:
    return [line for line in (WEB / file).read_text().splitlines() if mark in line]


def test_every_dialog_is_in_the_table() -> None:
    used = re.compile(r"<(Dialog|Confirm)\b")
    files = {
        str(file.relative_to(WEB)) for file in WEB.rglob("*.tsx") if used.search(file.read_text())
    }
    assert len(files) > 15
    shown = {view.dialog for view in VIEWS if view.group is Group.DIALOG}
    # A dialog that asks before something is done is used by others.
    assert files - {"ui/Confirm.tsx"} == shown


def test_every_kind_of_card_is_in_the_table() -> None:
    forms = {file.stem for file in (WEB / "asks").glob("*Form.tsx")}
    cards = {view.name.partition("-")[0] for view in VIEWS if view.group is Group.CARD}
    kinds = {
        "PermissionForm": "permission",
        "LastingForm": "permission",
        "PlanForm": "plan",
        "QuestionsForm": "questions",
        "ElicitationForm": "elicitation",
    }
    assert forms == set(kinds)
    assert set(kinds.values()) <= cards


def test_a_view_has_a_name_of_its_own() -> None:
    names = [view.name for view in VIEWS]
    assert len(names) == len(set(names))
