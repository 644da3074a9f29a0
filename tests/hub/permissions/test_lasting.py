"""Answers for longer than one call: they grant exactly what was chosen, and the audit names it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Forbidden, QuarterdeckError, UsageError
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.policy.grants import Grant
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    CreateSession,
    DeleteSession,
    Scope,
    StopSession,
)
from quarterdeck.protocol.events import AskOpened, Decided
from quarterdeck.protocol.projects import Project
from quarterdeck.protocol.sessions import SessionSpec
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio

SUGGESTED = [
    {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    {"type": "addDirectories", "directories": ["/etc"], "destination": "session"},
    {
        "type": "addRules",
        "rules": [{"toolName": "Bash", "ruleContent": "npm:*"}],
        "behavior": "allow",
        "destination": "localSettings",
    },
]


class Asked(NamedTuple):
    """A hub whose session `mine` asks whether it may run `npm test`."""

    hub: Hub
    machines: TestMachines
    policies: Policies
    run: TestRun


async def start(hub: Hub, machines: TestMachines, name: str, **spec: Any) -> TestRun:
    made = SessionSpec(directory="/work", **spec)
    await hub.submit(CreateSession(spec=made, session=name, prompt=Raw(b'"go"'), by="ada"))
    run = machines.runs[-1]
    await run.greet()
    await run.take_prompt()
    return run


async def ask(run: TestRun, request_id: str = "q1", command: str = "npm test") -> None:
    """The CLI asks about a command, with its suggestions."""
    await run.say(
        lines.requests(
            request_id,
            subtype="can_use_tool",
            tool_name="Bash",
            input={"command": command},
            permission_suggestions=SUGGESTED,
            tool_use_id=f"toolu_{request_id}",
        )
    )


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[Asked]:
    policies = Policies(tmp_path)
    hub, machines = hub_with(MemoryJournal(), policies=policies)
    async with hub.run():
        run = await start(hub, machines, "mine")
        await ask(run)
        yield Asked(hub, machines, policies, run)


async def card(hub: Hub) -> AskOpened:
    (found,) = await hub.asks()
    return found.opened


async def allow(hub: Hub, role: str = "owner", **given: Any) -> None:
    command = AnswerAsk(ask=(await card(hub)).ask, answer=AllowAnswer(**given), by="bob", role=role)
    await hub.submit(command)


def told(run: TestRun) -> dict[str, Any]:
    (line,) = run.read()
    body: dict[str, Any] = line["response"]["response"]
    return body


async def reasons(hub: Hub) -> tuple[str, ...]:
    stored = await hub.audit(session="mine")
    return with_texts(
        [each.event for each in stored if isinstance(each.event, Decided)][-1]
    ).reasons


def only(policies: Policies) -> Grant:
    (grant,) = policies.grants
    return grant


async def test_the_card_has_the_narrowest_rule(asked: Asked) -> None:
    opened = await card(asked.hub)
    assert opened.narrowest == ("Bash(npm test)",)
    assert opened.lasting


@pytest.mark.parametrize("command", ["ls *", f"echo {'x' * 5000}"], ids=["wildcard", "long"])
async def test_a_call_that_no_rule_can_name_has_none_and_is_allowed_once_only(
    tmp_path: Path, command: str
) -> None:
    hub, machines = hub_with(MemoryJournal(), policies=Policies(tmp_path))
    async with hub.run():
        run = await start(hub, machines, "mine")
        await ask(run, command=command)
        assert (await card(hub)).narrowest == ()
        with pytest.raises(UsageError, match="cannot be named by a rule"):
            await allow(hub, scope=Scope.SESSION)
        await allow(hub)
        assert told(run)["behavior"] == "allow"


async def test_a_question_of_a_rule_is_told_to_come_again_whatever_is_granted(
    tmp_path: Path,
) -> None:
    (tmp_path / "policy.toml").write_text("[[rule]]\nverdict='ask'\ncommand='npm'\n")
    hub, machines = hub_with(MemoryJournal(), policies=Policies(tmp_path))
    async with hub.run():
        run = await start(hub, machines, "mine")
        await ask(run)
        opened = await card(hub)
        assert opened.narrowest
        assert not opened.lasting
        await allow(hub, scope=Scope.ALWAYS)
        run.read()
        await ask(run, "q2")
        assert not (await card(hub)).lasting


@pytest.mark.parametrize("scope", list(Scope))
async def test_no_suggestion_of_the_cli_is_taken_unless_it_is_chosen(
    asked: Asked, scope: Scope
) -> None:
    await allow(asked.hub, scope=scope)
    assert told(asked.run) == {"behavior": "allow", "updatedInput": {"command": "npm test"}}


@pytest.mark.parametrize("scope", [Scope.ONCE, Scope.SESSION])
@pytest.mark.parametrize(
    ("index", "audited"),
    [
        (0, "setMode acceptEdits (session)"),
        (1, "addDirectories /etc (session)"),
        (2, "addRules allow Bash(npm:*) (localSettings)"),
    ],
)
async def test_a_chosen_suggestion_is_taken_alone_and_as_it_was_listed(
    asked: Asked, scope: Scope, index: int, audited: str
) -> None:
    await allow(asked.hub, scope=scope, updates=(index,))
    assert told(asked.run)["updatedPermissions"] == [SUGGESTED[index]]
    assert f"the CLI changes: {audited}" in await reasons(asked.hub)
    assert sum("the CLI changes" in each for each in await reasons(asked.hub)) == 1


async def test_an_answer_for_the_session_grants_the_narrowest_rule_in_this_session(
    asked: Asked,
) -> None:
    hub, machines, policies, run = asked
    await allow(hub, "operator", scope=Scope.SESSION)
    grant = only(policies)
    assert (grant.rules, grant.session) == (("Bash(npm test)",), "mine")
    assert (grant.directory, grant.project, grant.until) == (None, None, None)
    assert await reasons(hub) == (
        "allowed (session)",
        f"granted Bash(npm test) in this session (grant {grant.id})",
    )
    run.read()
    await ask(run, "q2")
    assert told(run)["behavior"] == "allow"
    await ask(run, "q3", "npm test --all")
    await allow(hub)
    other = await start(hub, machines, "other")
    await ask(other)
    assert (await card(hub)).title == "npm test"


@pytest.mark.parametrize(
    ("scope", "spec", "where", "audited"),
    [
        (Scope.ALWAYS, {}, {"directory": "/work"}, "in /work"),
        (Scope.ALWAYS, {"project": "shop"}, {"project": "shop"}, "in the project shop"),
        (Scope.EVERYWHERE, {"project": "shop"}, {}, "in all sessions"),
    ],
)
async def test_a_grant_holds_where_the_answer_says(
    tmp_path: Path, scope: Scope, spec: dict[str, str], where: dict[str, str], audited: str
) -> None:
    policies = Policies(tmp_path)
    hub, machines = hub_with(MemoryJournal(), policies=policies)
    hub.worktree_service.change({"shop": Project(directory="/work")} if spec else {}, ())
    async with hub.run():
        run = await start(hub, machines, "mine", **spec)
        await ask(run)
        await allow(hub, scope=scope)
        grant = only(policies)
        for name in ("session", "project", "directory"):
            assert getattr(grant, name) == where.get(name)
        said = f"granted Bash(npm test) {audited} (grant {grant.id})"
        assert said in await reasons(hub)


@pytest.mark.parametrize(
    ("seconds", "said"), [(3600.0, "1 h"), (86_400.0, "1 d"), (90.0, "90 s"), (120.0, "2 min")]
)
@pytest.mark.parametrize("scope", [Scope.SESSION, Scope.ALWAYS])
async def test_a_grant_ends_after_the_time_of_the_answer(
    asked: Asked, scope: Scope, seconds: float, said: str
) -> None:
    await allow(asked.hub, scope=scope, seconds=seconds)
    grant = only(asked.policies)
    assert grant.until == grant.at + seconds * 1000
    assert any(f" for {said} (grant" in each for each in await reasons(asked.hub))


async def test_a_person_may_change_the_rule(asked: Asked) -> None:
    await allow(asked.hub, scope=Scope.ALWAYS, rules=("Bash(npm test:*)", "Bash(npm run lint)"))
    assert only(asked.policies).rules == ("Bash(npm test:*)", "Bash(npm run lint)")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"rules": ("Bash(npm install)",)}, UsageError, "would not allow this call"),
        ({"rules": ("Read",)}, UsageError, "would not allow this call"),
        ({"rules": ("Bash(",)}, UsageError, "is not a rule"),
        ({"rules": ("Bash(npm:*)",), "scope": Scope.ONCE}, UsageError, "grants nothing"),
        ({"seconds": 60.0, "scope": Scope.ONCE}, UsageError, "grants nothing"),
        ({"updates": (3,)}, UsageError, "made 3 suggestions"),
        ({"updates": (-1,)}, UsageError, "made 3 suggestions"),
    ],
)
async def test_a_wrong_answer_is_refused_and_the_question_stays(
    asked: Asked, given: dict[str, Any], error: type[QuarterdeckError], said: str
) -> None:
    with pytest.raises(error, match=said):
        await allow(asked.hub, **{"scope": Scope.ALWAYS, **given})
    assert asked.run.read() == []
    assert asked.policies.grants == ()
    await allow(asked.hub)


@pytest.mark.parametrize(
    ("scope", "rules", "may"),
    [
        (Scope.SESSION, ("Bash",), True),
        (Scope.SESSION, (), True),
        (Scope.ALWAYS, (), False),
        (Scope.ALWAYS, ("Bash(npm test)",), False),
        (Scope.ALWAYS, ("Bash(npm:*)",), False),  # the CLI suggests it
        (Scope.ALWAYS, ("Bash",), False),
        (Scope.EVERYWHERE, (), False),
    ],
)
async def test_an_operator_grants_for_the_session_and_an_owner_anything(
    asked: Asked, scope: Scope, rules: tuple[str, ...], may: bool
) -> None:
    if not may:
        with pytest.raises(Forbidden, match="only an owner"):
            await allow(asked.hub, "operator", scope=scope, rules=rules)
    await allow(asked.hub, "operator" if may else "owner", scope=scope, rules=rules)
    assert only(asked.policies).rules == (rules or ("Bash(npm test)",))


async def test_an_edited_call_grants_itself_and_rules_must_allow_it(asked: Asked) -> None:
    edited = Raw(b'{"command":"npm run lint"}')
    with pytest.raises(UsageError, match="would not allow this call"):
        await allow(asked.hub, scope=Scope.SESSION, input=edited, rules=("Bash(npm test)",))
    await allow(asked.hub, scope=Scope.SESSION, input=edited)
    assert only(asked.policies).rules == ("Bash(npm run lint)",)


async def test_grants_of_a_session_outlive_the_hub_and_end_with_the_session(
    tmp_path: Path,
) -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal, policies=Policies(tmp_path))
    async with hub.run():
        run = await start(hub, machines, "mine")
        await ask(run)
        await allow(hub, scope=Scope.SESSION)
        run.read()
    policies = Policies(tmp_path)
    hub, machines = hub_with(journal, policies=policies)
    async with hub.run():
        run = machines.runs[-1]
        run.read()
        await ask(run, "q2")
        assert told(run)["behavior"] == "allow"
        await hub.submit(StopSession(session="mine", by="ada"))
        await run.end("It was stopped.")
        await hub.submit(DeleteSession(session="mine", by="ada"))
        assert policies.grants == ()


async def test_a_late_answer_grants_too(asked: Asked) -> None:
    opened = await card(asked.hub)
    await asked.run.end("It was killed.")
    answer = AllowAnswer(scope=Scope.SESSION)
    await asked.hub.submit(AnswerAsk(ask=opened.ask, answer=answer, by="bob", role="owner"))
    assert only(asked.policies).rules == ("Bash(npm test)",)


async def test_the_narrowest_rule_is_for_the_tool_of_the_call(asked: Asked, tmp_path: Path) -> None:
    await allow(asked.hub)
    asked.run.read()
    await asked.run.say(lines.asks_permission("q2", "Monitor", command="npm test"))
    assert (await card(asked.hub)).narrowest == ("Monitor(npm test)",)
    await allow(asked.hub, scope=Scope.SESSION)
    asked.run.read()
    await asked.run.say(lines.asks_permission("q3", "Monitor", command="npm test"))
    assert told(asked.run)["behavior"] == "allow"


async def test_a_rule_that_would_not_allow_the_call_is_not_offered(tmp_path: Path) -> None:
    # The same file under two names: no rule of the CLI's syntax is for both.
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "elsewhere")
    hub, machines = hub_with(MemoryJournal(), policies=Policies(tmp_path))
    async with hub.run():
        spec = SessionSpec(directory=str(tmp_path / "work"))
        await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada"))
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        path = str(tmp_path / "work" / "link" / "a")
        await run.say(lines.asks_permission("q1", "Write", file_path=path, content=""))
        assert (await card(hub)).narrowest == ()
        assert (await card(hub)).lasting
