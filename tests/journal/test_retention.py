"""Which sessions go, and which never do."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.journal.retention import DAY, plan
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.protocol.retention import Retention
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.views import AskView, PromptView

NOW = 1000 * DAY
OPENED = AskOpened(
    ask="q", run="r", request_id="1", ask_kind=AskKind.TOOL, tool="B", title="", request=Raw(b"{}")
)


def view(session: str, days: int, **more: Any) -> SessionView:
    return SessionView(session=session, updated=NOW - days * DAY, **more)


def going(rule: Retention, *views: SessionView, size: int = 10) -> list[str]:
    sizes = {each.session: size for each in views}
    return [each.session for each in plan(rule, views, sizes, NOW).leaving]


def test_without_a_limit_everything_stays() -> None:
    assert Retention().keeps_all
    assert going(Retention(), view("a", 900), view("b", 1, archived=True)) == []


def test_what_is_older_than_the_limit_goes() -> None:
    assert going(Retention(days=30), view("a", 31), view("b", 29), view("c", 90)) == ["c", "a"]


def test_the_oldest_go_until_the_rest_fits_and_what_was_put_away_goes_first() -> None:
    views = [view("a", 5), view("b", 9), view("c", 1, archived=True), view("d", 2)]
    assert going(Retention(bytes=40), *views) == []
    assert going(Retention(bytes=39), *views) == ["c"]
    assert going(Retention(bytes=20), *views) == ["c", "b"]
    assert going(Retention(bytes=1), *views) == ["c", "b", "a", "d"]


def test_what_goes_by_its_age_counts_for_the_size() -> None:
    views = [view("a", 50), view("b", 9), view("c", 1)]
    assert going(Retention(days=30, bytes=20), *views) == ["a"]


def test_what_is_in_use_never_goes() -> None:
    prompt = PromptView(prompt="p", content=Raw(b'"x"'), by="ann", at=0)
    views = [
        view("runs", 900, run="r", archived=True),
        view("asks", 900, asks={"q": AskView(session="asks", seq=1, at=0, opened=OPENED)}),
        view("waits", 900, unsent=(prompt,)),
    ]
    assert going(Retention(days=1, bytes=1), *views) == []


def test_only_what_was_put_away_goes_if_that_is_wanted() -> None:
    views = [view("a", 50), view("b", 60, archived=True)]
    assert going(Retention(days=1, bytes=1, archived_only=True), *views) == ["b"]


def test_a_plan_tells_how_much_there_is_and_how_much_goes() -> None:
    views = [view("a", 50, name="old"), view("b", 1)]
    made = plan(Retention(days=30), views, {"a": 7, "b": 5, "gone": 100}, NOW)
    assert (made.sessions, made.bytes, made.freed) == (2, 12, 7)
    assert (made.leaving[0].name, made.leaving[0].reason) == ("old", "nothing for 50 days")


@pytest.mark.parametrize("wrong", [{"days": 0}, {"days": float("inf")}, {"bytes": -1}])
def test_limits_that_cannot_be_meant_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="above 0"):
        Retention(**wrong)
