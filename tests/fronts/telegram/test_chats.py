"""Preferences and bindings: the order of who may say something, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.telegram.chats import (
    Binding,
    Preferences,
    approved_tools,
    choose_preference,
    spec_for,
    split_options,
    with_preference,
)
from quarterdeck.fronts.telegram.options import Options, QuietHours
from quarterdeck.protocol.projects import Project

NONE = Preferences()
PROJECT = Project(directory="/work", model="of the project")


@pytest.mark.parametrize(
    ("message", "chat", "project", "config", "value", "source"),
    [
        ("m", "c", PROJECT, "k", "m", "message"),
        (None, "c", PROJECT, "k", "c", "chat"),
        (None, None, PROJECT, "k", "of the project", "project"),
        (None, None, None, "k", "k", "config"),
        (None, None, None, None, None, "default"),
    ],
)
def test_the_first_that_says_something_counts(
    message: str | None,
    chat: str | None,
    project: Project | None,
    config: str | None,
    value: str | None,
    source: str,
) -> None:
    found = choose_preference(
        "model",
        message=Preferences(model=message),
        chat=Preferences(model=chat),
        project=project,
        config=Preferences(model=config),
    )
    assert (found.value, found.source) == (value, source)


def spec(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "message": NONE,
        "chat": NONE,
        "projects": {"p": PROJECT},
        "config": NONE,
        "default": Binding(),
        "cooldown_seconds": 30.0,
        "name": "a name",
    }
    binding = changes.pop("binding", Binding(project="p"))
    return spec_for(binding, **(given | changes))


def test_a_session_is_made_where_and_how_the_place_says() -> None:
    made = spec(
        binding=Binding(directory="/x", machine="far", worktree="b"),
        chat=Preferences(effort="high", approve="Read, Grep", cooldown=True),
        message=Preferences(model="opus"),
    )
    assert (made.directory, made.machine, made.worktree) == ("/x", "far", "b")
    assert (made.model, made.effort, made.auto_approve) == ("opus", "high", ("Read", "Grep"))
    assert made.plan_cooldown == 30.0


def test_what_the_project_says_is_left_to_the_hub() -> None:
    assert (spec().model, spec().project) == (None, "p")
    assert spec(config=Preferences(model="k")).model is None
    assert spec(binding=Binding(), default=Binding(directory="/d")).directory == "/d"


def test_without_any_place_to_work_nothing_is_made() -> None:
    with pytest.raises(UsageError, match="no project yet"):
        spec(binding=Binding())


@pytest.mark.parametrize(
    ("text", "options", "rest"),
    [
        ("hello", NONE, "hello"),
        ("--model opus hello", Preferences(model="opus"), "hello"),
        ("--model=opus --mode PLAN x", Preferences(model="opus", mode="plan"), "x"),
        ("--plan think hard", Preferences(mode="plan"), "think hard"),
        ("--effort max\nhello", Preferences(effort="max"), "hello"),
        ("--verbose hello", NONE, "--verbose hello"),
        ("say --model opus", NONE, "say --model opus"),
    ],
)
def test_options_are_taken_from_the_beginning_of_a_message(
    text: str, options: Preferences, rest: str
) -> None:
    assert split_options(text) == (options, rest)


@pytest.mark.parametrize("text", ["--model", "--mode sideways x", "--mode bypassPermissions x"])
def test_an_option_that_cannot_be_right_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        split_options(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "bypassPermissions"),
        ("verbose", "loud"),
        ("rich", "perhaps"),
        ("follow", "some"),
        ("model", "a\nb"),
        ("nothing", "x"),
        ("approve", "Read, ExitPlanMode"),
        ("approve", "AskUserQuestion"),
        ("approve", "Bash(rm:*)"),
    ],
)
def test_a_preference_that_cannot_be_right_is_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError):
        with_preference(NONE, name, value)


def test_questions_and_plans_are_never_approved_by_a_list() -> None:
    assert approved_tools(" Read,, Grep ,Read") == ("Read", "Grep")
    for name in ("AskUserQuestion", "ExitPlanMode"):
        with pytest.raises(UsageError, match="always need a person"):
            approved_tools(f"Read,{name}")


@pytest.mark.parametrize(
    ("quiet", "minute", "holds"),
    [
        (QuietHours(begin=1320, end=420), 1400, True),
        (QuietHours(begin=1320, end=420), 10, True),
        (QuietHours(begin=1320, end=420), 420, False),
        (QuietHours(begin=60, end=120), 60, True),
        (QuietHours(begin=60, end=120), 120, False),
    ],
)
def test_quiet_hours_may_include_midnight(quiet: QuietHours, minute: int, holds: bool) -> None:
    assert quiet.holds(minute) is holds


def test_times_are_those_of_the_configured_zone() -> None:
    options = Options(users=frozenset({1}), timezone="Asia/Tokyo")
    assert options.local(0.0).hour == 9
