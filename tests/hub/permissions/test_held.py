"""Questions that a hook of an old CLI holds: what the CLI is sent, also by the next hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    AnswerAsk,
    CreateSession,
    DenyAnswer,
    Scope,
)
from quarterdeck.protocol.events import AskOpened, AskWithdrawn, Decided
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import AskView
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio

OLD = "2.1.92"
ASKING = '[[rule]]\nname = "touching"\nverdict = "ask"\ncommand = "touch"\n'
CALL = "toolu_1"


def hook(request_id: str = "h1", command: str = "touch x") -> bytes:
    """The CLI is about to run a command."""
    seen = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": CALL,
    }
    return lines.requests(
        request_id, subtype="hook_callback", callback_id="quarterdeck-watch", input=seen
    )


def asks(request_id: str = "q1", command: str = "touch x") -> bytes:
    """The CLI asks about the same call."""
    return lines.requests(
        request_id,
        subtype="can_use_tool",
        tool_name="Bash",
        input={"command": command},
        tool_use_id=CALL,
    )


def call_ended() -> bytes:
    content = [{"type": "tool_result", "tool_use_id": CALL, "content": "text"}]
    return lines.line(type="user", message={"role": "user", "content": content}, uuid="u1")


@pytest.fixture
def policies(tmp_path: Path) -> Policies:
    """A policy that asks about `touch`."""
    (tmp_path / "policy.toml").write_text(ASKING)
    return Policies(tmp_path)


async def holding(hub: Hub, machines: TestMachines) -> TestRun:
    """A run of an old CLI with a question that its hook holds."""
    spec = SessionSpec(directory="/work", skip_permissions=True)
    await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada"))
    run = machines.runs[-1]
    await run.greet(OLD)
    await run.take_prompt(OLD)
    await run.say(hook())
    assert run.read() == []
    return run


async def card_of(hub: Hub) -> AskView:
    (card,) = await hub.asks()
    assert (card.opened.title, card.opened.rule) == ("touch x", "touching")
    return card


async def answer(hub: Hub, card: AskView, given: Answer) -> None:
    await hub.submit(AnswerAsk(ask=card.opened.ask, answer=given, by="ada"))


def response(run: TestRun) -> tuple[str, Any]:
    """The one answer that was sent: to which request, and what it says."""
    (line,) = run.read()
    return line["response"]["request_id"], line["response"]["response"]


UNREADABLE = [
    {"hook_event_name": "PreToolUse", "tool_name": 1, "tool_input": {"command": "touch x"}},
    {"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": {}},
    {"hook_event_name": "SomethingNew", "tool_name": "Bash"},
    {},
]


@pytest.mark.parametrize("version", [OLD, "2.1.325"])
async def test_a_call_that_cannot_be_read_is_denied(version: str, policies: Policies) -> None:
    hub, machines = hub_with(MemoryJournal(), policies=policies)
    async with hub.run():
        spec = SessionSpec(directory="/work", skip_permissions=True)
        await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada"))
        run = machines.runs[-1]
        await run.greet(version)
        await run.take_prompt(version)
        for number, seen in enumerate(UNREADABLE):
            await run.say(
                lines.requests(
                    f"h{number}",
                    subtype="hook_callback",
                    callback_id="quarterdeck-watch",
                    input=seen,
                )
            )
            answered, said = response(run)
            assert answered == f"h{number}"
            assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
        found = [each.event for each in await hub.audit(session="mine")]
        denied = [one for one in found if isinstance(one, Decided)]
        assert [(one.tool, one.verdict) for one in denied] == [("unknown", "deny")] * 4


DENIED = {"permissionDecision": "deny", "permissionDecisionReason": "No."}
EDITED = {"permissionDecision": "allow", "updatedInput": {"command": "touch y"}}
ANSWERS = [
    (DenyAnswer(message="No."), DENIED),
    (AllowAnswer(input=Raw(b'{"command":"touch y"}')), EDITED),
]


@pytest.mark.parametrize(("given", "told"), ANSWERS)
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_hook_is_told_the_answer_in_the_form_that_it_heeds(
    given: Answer, told: dict[str, object], restarted: bool, policies: Policies
) -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal, policies=policies)
    async with hub.run():
        run = await holding(hub, machines)
        if not restarted:
            await answer(hub, await card_of(hub), given)
            assert response(run) == (
                "h1",
                {"hookSpecificOutput": {"hookEventName": "PreToolUse", **told}},
            )
            return
    hub, machines = hub_with(journal, policies=policies)
    async with hub.run():
        run = machines.runs[-1]
        run.read()
        await answer(hub, await card_of(hub), given)
        assert response(run) == (
            "h1",
            {"hookSpecificOutput": {"hookEventName": "PreToolUse", **told}},
        )


async def test_a_held_question_that_the_cli_withdraws_after_a_restart_is_not_open_any_more(
    policies: Policies,
) -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal, policies=policies)
    async with hub.run():
        await holding(hub, machines)
    hub, machines = hub_with(journal, policies=policies)
    async with hub.run():
        card = await card_of(hub)
        await machines.runs[-1].say(lines.cancels("h1"))
        assert await hub.asks() == []
        with pytest.raises(Conflict, match="withdrawn"):
            await answer(hub, card, AllowAnswer())
    kinds = [type(stored.event) for stored in await journal.read("mine")]
    assert kinds.count(AskWithdrawn) == 1
    assert kinds.count(Decided) == 0


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_cli_that_asks_again_what_its_hook_was_told_gets_the_same_answer(
    restarted: bool, policies: Policies
) -> None:
    journal = MemoryJournal()
    edited = AllowAnswer(scope=Scope.SESSION, input=Raw(b'{ "command": "touch y" }'))
    hub, machines = hub_with(journal, policies=policies)
    async with hub.run():
        run = await holding(hub, machines)
        await answer(hub, await card_of(hub), edited)
        run.read()
        if not restarted:
            await run.say(asks(command="touch y"))
    if restarted:
        hub, machines = hub_with(journal, policies=policies)
        async with hub.run():
            run = machines.runs[-1]
            run.read()
            await run.say(asks(command="touch y"))
    request_id, body = response(run)
    assert (request_id, body["behavior"]) == ("q1", "allow")
    assert body["updatedInput"] == {"command": "touch y"}
    assert "updatedPermissions" not in body  # the grant is the hub's
    kinds = [type(stored.event) for stored in await journal.read("mine")]
    assert (kinds.count(AskOpened), kinds.count(Decided)) == (1, 1)


@pytest.mark.parametrize("again", [asks(command="touch z"), asks("q2", command="touch x")])
async def test_a_cli_that_asks_about_something_else_than_was_allowed_has_a_person_asked(
    again: bytes, policies: Policies
) -> None:
    hub, machines = hub_with(MemoryJournal(), policies=policies)
    async with hub.run():
        run = await holding(hub, machines)
        given = AllowAnswer(input=Raw(b'{"command":"touch y"}'))
        await answer(hub, await card_of(hub), given)
        run.read()
        await run.say(again)
        assert run.read() == []
        assert len(await hub.asks()) == 1


async def test_an_answer_to_a_hook_is_forgotten_with_its_call(policies: Policies) -> None:
    hub, machines = hub_with(MemoryJournal(), policies=policies)
    async with hub.run():
        run = await holding(hub, machines)
        await answer(hub, await card_of(hub), AllowAnswer())
        run.read()
        await run.say(call_ended(), asks())
        assert run.read() == []
        assert len(await hub.asks()) == 1


async def test_a_rule_that_denies_by_now_wins_over_what_a_hook_was_told(
    policies: Policies, tmp_path: Path
) -> None:
    hub, machines = hub_with(MemoryJournal(), policies=policies)
    async with hub.run():
        run = await holding(hub, machines)
        await answer(hub, await card_of(hub), AllowAnswer())
        run.read()
        (tmp_path / "policy.toml").write_text(ASKING.replace("ask", "deny"))
        await policies.refresh()
        await run.say(asks())
        assert response(run)[1]["behavior"] == "deny"


async def test_the_audit_names_the_person_alone_although_the_rules_and_the_hub_are_others_by_now(
    policies: Policies, tmp_path: Path
) -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal, policies=policies)
    async with hub.run():
        await holding(hub, machines)
    (tmp_path / "policy.toml").write_text("")
    hub, machines = hub_with(journal, policies=Policies(tmp_path))
    async with hub.run():
        await answer(hub, await card_of(hub), DenyAnswer())
        await machines.runs[-1].say(call_ended(), lines.result("r"))
        decided = [
            stored.event
            for stored in await hub.audit(session="mine")
            if isinstance(stored.event, Decided)
        ]
    assert [(one.by, one.verdict) for one in decided] == [("ada", "deny")]


async def test_an_answer_that_a_hook_does_not_react_to_is_said_again_as_it_was(
    policies: Policies,
) -> None:
    time = [1000.0]
    timeouts = Timeouts(answer=10)
    hub, machines = hub_with(
        MemoryJournal(), policies=policies, now=lambda: time[0], timeouts=timeouts
    )
    async with hub.run():
        run = await holding(hub, machines)
        await answer(hub, await card_of(hub), DenyAnswer(message="No."))
        first = run.read()
        time[0] += 11
        await run.owner.tick()
        assert run.read() == first
