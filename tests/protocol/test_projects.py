"""A project's defaults hold for what a session leaves out, and for nothing else."""

from __future__ import annotations

import pytest

from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.protocol.projects import Project, ProjectBudget, resolve_spec
from quarterdeck.protocol.sessions import Budget, SessionSpec

WEB = Project(
    directory="/srv/web",
    model="opus",
    mode="plan",
    effort="high",
    policy="careful",
    env={"STAGE": "test", "KEY": "project's"},
    auto_approve=("Read",),
    append_system_prompt="Be brief.",
    ask_timeout=60.0,
    session_mirror=True,
    budget=ProjectBudget(session_usd=5.0, run_tokens=1000, total_usd=20.0),
)
PROJECTS = {
    "web": WEB,
    "inner": Project(directory="/srv/web/inner/", model="haiku"),
    "far": Project(directory="/srv/far", machine="box"),
}


def test_a_session_of_a_project_gets_what_it_leaves_out() -> None:
    made = resolve_spec(SessionSpec(project="web"), PROJECTS)
    assert made == SessionSpec(
        directory="/srv/web",
        project="web",
        model="opus",
        mode="plan",
        effort="high",
        policy="careful",
        env={"STAGE": "test", "KEY": "project's"},
        auto_approve=("Read",),
        append_system_prompt="Be brief.",
        ask_timeout=60.0,
        session_mirror=True,
        budget=Budget(session_usd=5.0, run_tokens=1000),
    )


def test_what_a_session_says_itself_holds() -> None:
    own = SessionSpec(
        project="web",
        directory="/elsewhere",
        model="haiku",
        env={"KEY": "mine"},
        auto_approve=("Grep",),
        budget=Budget(session_usd=1.0),
    )
    made = resolve_spec(own, PROJECTS)
    assert (made.directory, made.model, made.auto_approve) == ("/elsewhere", "haiku", ("Grep",))
    assert made.env == {"STAGE": "test", "KEY": "mine"}
    assert made.budget == Budget(session_usd=1.0, run_tokens=1000)


@pytest.mark.parametrize(
    ("directory", "machine", "project"),
    [
        ("/srv/web", None, "web"),
        ("/srv/web/deep/er", None, "web"),
        ("/srv/web/inner/x", None, "inner"),
        ("/srv/web/x/../inner", None, "inner"),
        ("/srv/website", None, None),
        ("/srv", None, None),
        ("/srv/web", "box", None),
        ("/srv/far/x", "box", "far"),
        ("/srv/far/x", None, None),
    ],
)
def test_a_session_belongs_to_the_innermost_project_around_it(
    directory: str, machine: str | None, project: str | None
) -> None:
    spec = SessionSpec(directory=directory, machine=machine)
    assert resolve_spec(spec, PROJECTS).project == project


def test_a_session_outside_of_all_projects_stays_as_it_is() -> None:
    spec = SessionSpec(directory="/tmp")
    assert resolve_spec(spec, PROJECTS) is spec


def test_a_project_on_another_machine_is_worked_in_there() -> None:
    made = resolve_spec(SessionSpec(project="far"), PROJECTS)
    assert (made.machine, made.directory) == ("box", "/srv/far")


def test_what_is_no_project_and_no_directory_is_refused() -> None:
    with pytest.raises(NotFound, match="there is no project 'wbe'"):
        resolve_spec(SessionSpec(project="wbe"), PROJECTS)
    with pytest.raises(UsageError, match="directory"):
        SessionSpec()
    with pytest.raises(UsageError, match="directory"):
        SessionSpec(directory="relative", project="web")


def test_a_project_never_switches_permissions_off() -> None:
    with pytest.raises(UsageError, match="never a default"):
        Project(directory="/", mode="bypassPermissions")
    assert "skip_permissions" not in Project.__struct_fields__


def test_the_mode_of_a_project_does_not_take_the_place_of_skipped_permissions() -> None:
    projects = {"web": Project(directory="/web", mode="acceptEdits")}
    skipping = SessionSpec(project="web", skip_permissions=True)
    assert resolve_spec(skipping, projects).mode is None
    assert resolve_spec(SessionSpec(project="web"), projects).mode == "acceptEdits"
    planning = SessionSpec(project="web", mode="plan", skip_permissions=True)
    assert resolve_spec(planning, projects).mode == "plan"
