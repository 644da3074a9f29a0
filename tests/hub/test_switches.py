"""Switches of the mode and the model: what survives a run, and by which mode policy judges."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import RequestError, UsageError
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    Control,
    CreateSession,
    ForkSession,
    PlanAnswer,
    ResumeSession,
    Scope,
)
from quarterdeck.protocol.events import Decided, Event, Sent, SpecChanged, Switched
from quarterdeck.protocol.modes import allows_more, is_within, resumed_spec
from quarterdeck.protocol.sessions import SessionSpec
from support import lines
from support.bounds import SECONDS
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio
SUGGESTED = [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]


# --- a CLI in the hand of the test ---------------------------------------------------------------


async def begun(
    hub: Hub, machines: TestMachines, version: str = "2.1.325", **spec: Any
) -> tuple[str, TestRun]:
    """A session in the midst of its first turn."""
    command = CreateSession(
        spec=SessionSpec(directory="/project", **spec), prompt=Raw(b'"go"'), by="ada"
    )
    session = (await hub.submit(command)).session
    run = machines.runs[-1]
    await run.greet(version)
    (prompt,) = run.read()
    await run.say(lines.init(version), lines.echo(prompt["uuid"]))
    return session, run


async def test_settings_that_undo_what_is_forced_on_the_cli_are_refused() -> None:
    hub, machines = hub_with(MemoryJournal())
    async with hub.run():
        session, run = await begun(hub, machines)
        for settings in ({"env": {"CLAUDE_CODE_SIMPLE": "1"}}, {"crossSessionInbound": "accept"}):
            request = lines.line(subtype="apply_flag_settings", settings=settings)
            with pytest.raises(UsageError, match="settings"):
                await hub.submit(Control(session=session, request=Raw(request), by="ada"))
        assert run.read() == []


async def switch(
    hub: Hub, run: TestRun, *answers: bytes | str, by: str = "ada", **request: Any
) -> None:
    """Send a control request; the CLI says these lines, or answers with success or an error."""
    command = Control(session=run.session, request=Raw(lines.line(**request)), by=by)

    async def answer() -> None:
        while not (asked := [one for one in run.read() if one["type"] == "control_request"]):
            await run.wait_for_write()
        id_ = asked[0]["request_id"]
        for line in answers or (lines.success_answer(id_),):
            await run.say(lines.error_answer(id_, line) if isinstance(line, str) else line)

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            await hub.submit(command)


async def set_mode(hub: Hub, run: TestRun, mode: str, by: str = "ada") -> None:
    await switch(hub, run, subtype="set_permission_mode", mode=mode, by=by)


def status(mode: str, uuid: str = "status-1") -> bytes:
    return lines.line(
        type="system",
        subtype="status",
        status=None,
        permissionMode=mode,
        uuid=uuid,
        session_id=lines.SESSION,
    )


def hook(request_id: str, mode: str, tool: str = "Write", **more: Any) -> bytes:
    """The CLI is about to make a call."""
    seen = {
        "hook_event_name": "PreToolUse",
        "permission_mode": mode,
        "tool_name": tool,
        "tool_input": {"file_path": "/project/a", "content": ""},
        "tool_use_id": f"toolu_{request_id}",
        **more,
    }
    return lines.requests(
        f"hook_{request_id}", subtype="hook_callback", callback_id="quarterdeck-watch", input=seen
    )


def verdict(run: TestRun) -> str | None:
    """What the newest answer of ours to a hook decides; None leaves it to the CLI."""
    answer = run.read()[-1]["response"]["response"]
    decided: str | None = answer.get("hookSpecificOutput", {}).get("permissionDecision")
    return decided


async def kept(hub: Hub, session: str, kind: type[Event]) -> list[Any]:
    stored = await hub.events(session, limit=1000)
    return [one.event for one in stored if isinstance(one.event, kind)]


async def resumed(hub: Hub, machines: TestMachines, run: TestRun) -> SessionSpec:
    """What the next process of the session is started with, after this one was killed."""
    await run.end(signal=9)
    await hub.submit(ResumeSession(session=run.session))
    return machines.started[-1][0]


# --- what survives -------------------------------------------------------------------------------


@pytest.mark.parametrize(("made", "set_to"), [(None, "acceptEdits"), ("acceptEdits", "default")])
async def test_a_mode_that_was_set_holds_in_the_next_run(
    deck: tuple[Hub, TestMachines], made: str | None, set_to: str
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, mode=made)
    await set_mode(hub, run, set_to)
    assert (await kept(hub, session, SpecChanged))[-1].by == "ada"
    view = await hub.session(session)
    assert (view.spec.mode, view.mode) == (set_to, set_to)
    assert (await resumed(hub, machines, run)).mode == set_to


async def test_a_session_that_skips_permissions_and_was_tightened_asks_now_and_later(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, skip_permissions=True)
    await run.say(lines.asks_permission("q1"))
    assert await hub.asks() == []
    await set_mode(hub, run, "default")
    await run.say(lines.asks_permission("q2"))
    assert len(await hub.asks()) == 1
    spec = await resumed(hub, machines, run)
    assert (spec.mode, spec.skip_permissions) == ("default", False)

    await machines.runs[-1].greet()
    with pytest.raises(ExceptionGroup) as refused:
        await set_mode(hub, machines.runs[-1], "bypassPermissions")
    assert refused.group_contains(UsageError, match="permission to bypass")
    assert (await hub.session(session)).spec.mode == "default"


async def test_a_person_who_tightened_may_loosen_again_in_the_same_run(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    _, run = await begun(hub, machines, skip_permissions=True)
    await set_mode(hub, run, "acceptEdits")
    await set_mode(hub, run, "bypassPermissions")
    spec = await resumed(hub, machines, run)
    assert (spec.mode, spec.skip_permissions) == ("bypassPermissions", True)


async def test_an_approved_plan_leaves_the_leave_to_skip_permissions_unless_calls_are_to_be_asked(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, skip_permissions=True)
    choices: list[tuple[Any, str, bool]] = [
        ("auto", "acceptEdits", True),
        ("manual", "default", False),
    ]
    for number, (choice, mode, skip) in enumerate(choices):
        plan = lines.asks_permission(f"q{number}", "ExitPlanMode", plan="build it")
        await run.say(status("plan", f"s{number}"), plan)
        (card,) = await hub.asks()
        answer = PlanAnswer(choice=choice)
        await hub.submit(AnswerAsk(ask=card.opened.ask, answer=answer, by="ada"))
        spec = (await hub.session(session)).spec
        assert (spec.mode, spec.skip_permissions) == (mode, skip)


async def test_a_switch_that_the_cli_refuses_changes_nothing(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, mode="plan", model="opus")
    with pytest.raises(ExceptionGroup) as refused:
        await switch(hub, run, "no", subtype="set_permission_mode", mode="acceptEdits")
    assert refused.group_contains(RequestError)
    with pytest.raises(ExceptionGroup):
        await switch(hub, run, "no", subtype="set_model", model="haiku")
    assert await kept(hub, session, SpecChanged) == []
    spec = await resumed(hub, machines, run)
    assert (spec.mode, spec.model) == ("plan", "opus")


@pytest.mark.parametrize(("given", "model"), [("haiku", "haiku"), (None, "default")])
async def test_a_model_that_was_set_holds_in_the_next_run(
    deck: tuple[Hub, TestMachines], given: str | None, model: str
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, model="opus")
    await switch(hub, run, subtype="set_model", model=given)
    assert (await hub.session(session)).model == model
    assert (await resumed(hub, machines, run)).model == model


async def test_an_effort_or_model_of_flag_settings_holds_in_the_next_run(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, effort="low", model="opus")
    for settings in ({"language": "en"}, {"effortLevel": "high"}, {"model": "haiku"}):
        await switch(hub, run, subtype="apply_flag_settings", settings=settings)
    view = await hub.session(session)
    assert (view.effort, view.model) == ("high", "haiku"), "shown at once, not with the next turn"
    spec = await resumed(hub, machines, run)
    assert (spec.effort, spec.model) == ("high", "haiku")


@pytest.mark.parametrize(("choice", "mode"), [("auto", "acceptEdits"), ("manual", "default")])
async def test_the_mode_of_an_approved_plan_holds_in_the_next_run(
    deck: tuple[Hub, TestMachines], choice: Any, mode: str
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, mode="plan")
    await run.say(lines.asks_permission("q1", "ExitPlanMode", plan="build it"))
    (card,) = await hub.asks()
    answer = PlanAnswer(choice=choice)
    await hub.submit(AnswerAsk(ask=card.opened.ask, answer=answer, by="ada"))
    assert (await kept(hub, session, SpecChanged))[-1].by == "ada"
    # The CLI first leaves plan mode, and then does what the answer says.
    await run.say(status("default", "s1"), status(mode, "s2"))
    assert (await resumed(hub, machines, run)).mode == mode


@pytest.mark.parametrize("choice", ["revise", "reject"])
async def test_a_plan_that_is_sent_back_stays_in_plan_mode(
    deck: tuple[Hub, TestMachines], choice: Any
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, mode="plan")
    await run.say(lines.asks_permission("q1", "ExitPlanMode", plan="build it"))
    (card,) = await hub.asks()
    answer = PlanAnswer(choice=choice, feedback="tests?")
    await hub.submit(AnswerAsk(ask=card.opened.ask, answer=answer, by="ada"))
    assert await kept(hub, session, SpecChanged) == []
    assert (await resumed(hub, machines, run)).mode == "plan"


@pytest.mark.parametrize(
    ("updates", "mode"), [((0,), "acceptEdits"), ((), None)], ids=["chosen", "not chosen"]
)
@pytest.mark.parametrize("scope", list(Scope)[:3])
async def test_a_mode_that_an_answer_chooses_holds_in_the_next_run(
    deck: tuple[Hub, TestMachines], scope: Scope, updates: tuple[int, ...], mode: str | None
) -> None:
    hub, machines = deck
    _, run = await begun(hub, machines)
    request = {
        "subtype": "can_use_tool",
        "tool_name": "Write",
        "input": {"file_path": "/project/a", "content": ""},
        "permission_suggestions": SUGGESTED,
        "tool_use_id": "toolu_q1",
    }
    await run.say(lines.requests("q1", **request))
    (card,) = await hub.asks()
    answer = AllowAnswer(scope=scope, updates=updates)
    await hub.submit(AnswerAsk(ask=card.opened.ask, answer=answer, by="bob", role="owner"))
    assert (await resumed(hub, machines, run)).mode == mode


async def test_a_fork_begins_in_the_mode_and_model_of_its_parent(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, mode="acceptEdits", model="opus")
    await set_mode(hub, run, "default")
    await switch(hub, run, subtype="set_model", model="haiku")
    fork = (await hub.submit(ForkSession(session=session, by="bob"))).session
    spec = machines.started[-1][0]
    assert (spec.mode, spec.model) == ("default", "haiku")
    assert (await hub.session(fork)).spec.mode == "default"


async def test_plan_mode_that_the_agent_entered_holds_in_the_next_run_and_is_no_choice_of_people(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, mode="acceptEdits")
    await run.say(status("plan"))
    assert (await hub.session(session)).mode == "plan"
    assert (await kept(hub, session, Switched))[-1].by == "cli"
    assert await kept(hub, session, SpecChanged) == []
    assert (await resumed(hub, machines, run)).mode == "plan"
    # Of itself it leaves it for what people chose, and that holds again.
    await machines.runs[-1].greet()
    await machines.runs[-1].say(status("acceptEdits", "s2"))
    assert (await resumed(hub, machines, machines.runs[-1])).mode == "acceptEdits"


async def test_a_mode_that_nobody_chose_is_not_come_back_to_if_it_allows_more(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, mode="default")
    await run.say(status("bypassPermissions"))
    assert (await hub.session(session)).mode == "bypassPermissions"
    assert (await resumed(hub, machines, run)).mode == "default"
    view = await hub.session(session)
    assert view.mode == "default"


async def test_a_tighter_mode_holds_also_when_the_cli_died_before_it_could_answer(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines, mode="acceptEdits", model="opus")
    for request in (
        {"subtype": "set_permission_mode", "mode": "default"},
        {"subtype": "set_model", "model": "haiku"},
    ):
        command = Control(
            session=session, request=Raw(lines.line(**request)), by="ada", timeout=0.01
        )
        with pytest.raises(RequestError):
            await hub.submit(command)
    spec = await resumed(hub, machines, run)
    assert (spec.mode, spec.model) == ("default", "opus")
    assert (await kept(hub, session, SpecChanged))[-1].by == "ada"


async def test_an_answer_that_comes_after_nobody_waits_for_it_still_counts(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines)
    command = Control(
        session=session,
        request=Raw(b'{"subtype": "set_permission_mode", "mode": "acceptEdits"}'),
        by="ada",
        timeout=0.01,
    )
    with pytest.raises(RequestError):
        await hub.submit(command)
    sent = run.read()[0]
    await run.say(lines.success_answer(sent["request_id"]))
    assert (await resumed(hub, machines, run)).mode == "acceptEdits"


async def test_a_hub_that_is_restarted_before_the_answer_knows_who_switched(
    journal: MemoryJournal,
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        session, run = await begun(hub, machines)
        command = Control(
            session=session,
            request=Raw(b'{"subtype": "set_permission_mode", "mode": "plan"}'),
            by="ada",
            timeout=0.01,
        )
        with pytest.raises(RequestError):
            await hub.submit(command)
        sent, said = run.read()[0], run.said
        assert [one.by for one in await kept(hub, session, Sent)].count("ada") == 1
    hub, machines = hub_with(journal)
    async with hub.run():
        (run,) = machines.runs
        assert run.said == said
        await run.say(lines.success_answer(sent["request_id"]))
        (changed,) = await kept(hub, session, SpecChanged)
        assert (changed.by, changed.spec.mode) == ("ada", "plan")
        assert (await resumed(hub, machines, run)).mode == "plan"


async def test_a_hub_killed_before_the_start_was_heard_of_starts_in_the_same_mode(
    journal: MemoryJournal,
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        _, run = await begun(hub, machines, mode="acceptEdits")
        await run.say(status("plan"))
        assert (await resumed(hub, machines, run)).mode == "plan"
    hub, machines = hub_with(journal)
    async with hub.run():
        assert machines.started[-1][0].mode == "plan"


async def test_a_late_approval_starts_in_its_mode_though_plan_mode_held_last(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    _, run = await begun(hub, machines, mode="acceptEdits")
    await run.say(status("plan"), lines.asks_permission("q1", "ExitPlanMode", plan="build it"))
    (card,) = await hub.asks()
    await run.end()
    answer = PlanAnswer(choice="auto")
    await hub.submit(AnswerAsk(ask=card.opened.ask, answer=answer, by="ada"))
    assert machines.started[-1][0].mode == "acceptEdits"


async def test_what_holds_now_is_told_by_whichever_way_the_version_tells_it(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, run = await begun(hub, machines)
    view = await hub.session(session)
    assert (view.mode, view.model) == ("default", "claude")
    await run.end()
    await hub.submit(ResumeSession(session=session))
    run = machines.runs[-1]
    await run.owner.run_started(run.run, 43, "2.1.325", "/project")
    (greeting,) = run.read()
    answer = {"current_permission_mode": "acceptEdits", "current_model": "claude-haiku"}
    await run.say(lines.success_answer(greeting["request_id"], answer))
    view = await hub.session(session)
    assert (view.mode, view.model) == ("acceptEdits", "claude-haiku")


def test_a_mode_that_nobody_knows_may_allow_more_than_any() -> None:
    assert allows_more("nonsense", "bypassPermissions")
    assert not allows_more("bypassPermissions", "nonsense")
    assert not allows_more("nonsense", "nonsense")
    spec = SessionSpec(directory="/project", skip_permissions=True)
    assert resumed_spec(spec, "nonsense") == spec
    assert resumed_spec(spec, "bypassPermissions") == spec
    chosen = SessionSpec(directory="/project", mode="nonsense")
    assert resumed_spec(chosen, "auto") == chosen
    assert [is_within(*pair) for pair in (("plan", "auto"), ("nonsense", "nonsense"))] == [True] * 2
    for pair in (("auto", "plan"), ("auto", "nonsense"), ("nonsense", "auto")):
        assert not is_within(*pair)


def test_a_mode_of_the_settings_is_left_to_the_settings() -> None:
    spec = SessionSpec(directory="/project")
    assert resumed_spec(spec, "acceptEdits") == spec
    assert resumed_spec(spec, "default") == spec
    assert resumed_spec(spec, "plan").mode == "plan"


# --- by which mode policy judges -----------------------------------------------------------------

NO_EDITS_IN_PLAN = '[[rule]]\nname = "plans"\nverdict = "deny"\ntool = "Write"\nmode = "plan"\n'
EDITS = '[[rule]]\nname = "edits"\nverdict = "allow"\ntool = "Write"\nmode = "acceptEdits"\n'


@asynccontextmanager
async def ruled(
    journal: MemoryJournal, folder: Path, rules: str
) -> AsyncIterator[tuple[Hub, TestMachines]]:
    (folder / "policy.toml").write_text(rules)
    hub, machines = hub_with(journal, policies=Policies(folder))
    async with hub.run():
        yield hub, machines


@pytest.mark.parametrize("version", ["2.1.37", "2.1.325"])
async def test_a_rule_on_plan_mode_ends_with_plan_mode_in_the_same_turn(
    journal: MemoryJournal, tmp_path: Path, version: str
) -> None:
    async with ruled(journal, tmp_path, NO_EDITS_IN_PLAN) as (hub, machines):
        session, run = await begun(hub, machines, version, mode="plan")
        await run.say(hook("1", "plan"))
        assert verdict(run) == "deny"
        await run.say(status("acceptEdits"), hook("2", "acceptEdits"))
        assert verdict(run) is None
    # Whoever reads the lines again judges by the same mode: also what only the CLI asks about.
    async with ruled(journal, tmp_path, NO_EDITS_IN_PLAN) as (hub, machines):
        (run,) = machines.runs
        run.read()
        await run.say(lines.asks_permission("3", "Write", file_path="/project/a", content=""))
        (card,) = await hub.asks()
        assert card.opened.rule is None
        assert len([one for one in await kept(hub, session, Decided) if one.rule]) == 1


async def test_a_rule_on_a_loose_mode_ends_when_a_person_tightens_it_in_mid_turn(
    journal: MemoryJournal, tmp_path: Path
) -> None:
    async with ruled(journal, tmp_path, EDITS) as (hub, machines):
        # 2.1.62 announces no change: only its answer tells.
        session, run = await begun(hub, machines, "2.1.62", mode="acceptEdits")
        await run.say(status("acceptEdits"), hook("1", "acceptEdits"))
        assert verdict(run) == "allow"
        await set_mode(hub, run, "default")
        await run.say(lines.asks_permission("2", "Write", file_path="/project/a", content=""))
        assert len(await hub.asks()) == 1
    async with ruled(journal, tmp_path, EDITS) as (hub, machines):
        (run,) = machines.runs
        run.read()
        await run.say(hook("3", "default"))
        assert verdict(run) is None
        await run.say(lines.asks_permission("4", "Write", file_path="/project/a", content=""))
        assert len(await hub.asks(session=session)) == 2


async def test_while_a_switch_is_under_way_the_mode_counts_that_allows_less(
    journal: MemoryJournal, tmp_path: Path
) -> None:
    async with ruled(journal, tmp_path, EDITS) as (hub, machines):
        session, run = await begun(hub, machines, mode="acceptEdits")
        command = Control(
            session=session,
            request=Raw(b'{"subtype": "set_permission_mode", "mode": "default"}'),
            timeout=0.01,
        )
        with pytest.raises(RequestError):
            await hub.submit(command)
        await run.say(status("acceptEdits"), hook("1", "acceptEdits"))
        assert verdict(run) is None


@pytest.mark.parametrize(
    ("version", "asked"), [("2.1.37", "card"), ("2.1.120", "ask"), ("2.1.325", None)]
)
async def test_plan_mode_does_not_give_back_the_leave_that_a_person_took_away(
    journal: MemoryJournal, version: str, asked: str | None
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        session, run = await begun(hub, machines, version, skip_permissions=True)
        await run.say(hook("1", "plan", "Bash", tool_input={"command": "make"}))
        assert verdict(run) is None
        await set_mode(hub, run, "default")
        await run.say(status("plan"), hook("2", "plan", "Read"))
        assert verdict(run) is None
    hub, machines = hub_with(journal)  # a hub that reads the lines again knows it, too
    async with hub.run():
        (run,) = machines.runs
        run.read()
        await run.say(hook("3", "plan", "Bash", tool_input={"command": "make"}))
        if asked == "card":
            (card,) = await hub.asks(session=session)
            assert (card.opened.rule, card.opened.source) == ("plan-mode", "session")
        else:
            assert verdict(run) == asked


async def test_a_subagent_is_judged_by_its_own_mode_and_does_not_change_the_session(
    journal: MemoryJournal, tmp_path: Path
) -> None:
    async with ruled(journal, tmp_path, EDITS + NO_EDITS_IN_PLAN) as (hub, machines):
        session, run = await begun(hub, machines, mode="acceptEdits")
        await run.say(status("acceptEdits"))
        await run.say(hook("1", "plan", agent_id="a1", agent_type="planner"))
        assert verdict(run) == "deny"
        assert (await hub.session(session)).mode == "acceptEdits"
        await run.say(hook("2", "acceptEdits"))
        assert verdict(run) == "allow"
