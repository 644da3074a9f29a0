"""An answer with another input: the rules decide about what runs, and the audit names it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Forbidden, QuarterdeckError, UsageError
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.edits import MOST_BYTES
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    AnswerAsk,
    CreateSession,
    DenyAnswer,
    Scope,
)
from quarterdeck.protocol.events import AskAnswered, Decided
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import AskView
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio

POLICY = """
[[rule]]
name = "no rm"
verdict = "deny"
command = "rm"
message = "Nothing is removed here."

[[rule]]
name = "owners push"
verdict = "ask"
command = "git push"
answered_by = "role:owner"

[[rule]]
name = "quiet"
verdict = "rewrite"
command = "touch"
rewrite = { add_flags = ["--no-create"] }

[[rule]]
name = "not in etc"
verdict = "deny"
path = "//etc/**"
"""

CALL = "toolu_q1"


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[tuple[Hub, TestMachines, TestRun]]:
    """A session whose CLI asks whether it may run `make`."""
    (tmp_path / "policy.toml").write_text(POLICY)
    hub, machines = hub_with(MemoryJournal(), policies=Policies(tmp_path))
    async with hub.run():
        yield hub, machines, await asking(hub, machines)


async def asking(hub: Hub, machines: TestMachines) -> TestRun:
    spec = SessionSpec(directory="/work")
    await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada"))
    run = machines.runs[-1]
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1", command="make"))
    assert run.read() == []
    return run


async def card_of(hub: Hub) -> AskView:
    (card,) = await hub.asks()
    return card


async def edit(hub: Hub, given: bytes, role: str = "operator", **more: Any) -> None:
    answer = AllowAnswer(input=Raw(given), **more)
    ask = (await card_of(hub)).opened.ask
    await hub.submit(AnswerAsk(ask=ask, answer=answer, by="bob", role=role))


async def audit(hub: Hub) -> list[Decided]:
    stored = await hub.audit(session="mine")
    return [each.event for each in stored if isinstance(each.event, Decided)]


def told(run: TestRun) -> dict[str, Any]:
    (line,) = run.read()
    body: dict[str, Any] = line["response"]["response"]
    return body


async def test_an_edited_call_is_in_the_audit_as_what_runs(
    asked: tuple[Hub, TestMachines, TestRun],
) -> None:
    hub, _, run = asked
    await edit(hub, b'{"command": "make test"}')
    assert told(run) == {"behavior": "allow", "updatedInput": {"command": "make test"}}
    (entry,) = await audit(hub)
    assert (entry.title, entry.verdict, entry.by) == ("make test", "allow", "bob")
    assert entry.rewritten
    assert with_texts(entry).reasons == ("allowed (once), with another input",)


async def test_the_same_input_written_otherwise_is_no_edit(
    asked: tuple[Hub, TestMachines, TestRun],
) -> None:
    hub, _, run = asked
    await edit(hub, b'{ "command" : "\\u006dake" }')
    assert told(run) == {"behavior": "allow", "updatedInput": {"command": "make"}}
    (entry,) = await audit(hub)
    assert (entry.title, entry.rewritten) == ("make", False)
    assert with_texts(entry).reasons == ("allowed (once)",)


REFUSED = [
    (b'{"command":"rm -rf x"}', "owner", Forbidden, "no rm"),
    (b'{"command":"quarterdeck answer a.b allow"}', "owner", Forbidden, "built-in"),
    (b'{"command":"true && rm x"}', "owner", Forbidden, "no rm"),
    (b'{"command":"make","command":"rm x"}', "owner", Forbidden, "no rm"),
    (b'{"command":"git push --force"}', "operator", Forbidden, "role:owner"),
    (b'{"command":"git push"}', "", Forbidden, "role:owner"),
    (b'{"command":"eval \\"$X\\""}', "operator", Forbidden, "role:owner"),
    (b'{"command":["git","push"]}', "operator", Forbidden, "role:owner"),
    (b"{}", "operator", Forbidden, "role:owner"),
    (b'{"command":"git \\ud800 push"}', "operator", Forbidden, "role:owner"),
    (b"[]", "owner", UsageError, "JSON object"),
    (b"null", "owner", UsageError, "JSON object"),
    (b'"rm"', "owner", UsageError, "JSON object"),
    (b'{"command":', "owner", UsageError, "input"),
    (b'{"command":"\xff"}', "owner", UsageError, "input"),
    (b'{"a":' * 5000 + b"1" + b"}" * 5000, "owner", UsageError, "input"),
    (b'{"command":"' + b"x" * MOST_BYTES + b'"}', "owner", UsageError, "at most"),
]


@pytest.mark.parametrize(
    ("given", "role", "error", "why"), REFUSED, ids=[str(case[0][:40]) for case in REFUSED]
)
async def test_an_edit_that_may_not_run_is_refused_and_the_question_stays_open(
    given: bytes,
    role: str,
    error: type[QuarterdeckError],
    why: str,
    asked: tuple[Hub, TestMachines, TestRun],
) -> None:
    hub, _, run = asked
    with pytest.raises(error, match=why):
        await edit(hub, given, role)
    assert (await card_of(hub)).opened.title == "make"
    assert run.read() == []
    assert await audit(hub) == []
    # It can still be answered.
    await edit(hub, b'{"command":"make"}', role)
    assert told(run)["updatedInput"] == {"command": "make"}


async def test_whom_the_rule_for_the_edited_call_names_may_have_it_run_and_the_audit_names_the_rule(
    asked: tuple[Hub, TestMachines, TestRun],
) -> None:
    hub, _, run = asked
    await edit(hub, b'{"command":"git push"}', "owner")
    assert told(run)["updatedInput"] == {"command": "git push"}
    (entry,) = await audit(hub)
    assert (entry.title, entry.rule, entry.by) == ("git push", "owners push", "bob")
    assert entry.rewritten


async def test_a_rule_that_rewrites_does_so_with_the_edited_call_too(
    asked: tuple[Hub, TestMachines, TestRun],
) -> None:
    hub, _, run = asked
    await edit(hub, b'{"command":"touch x"}')
    assert told(run)["updatedInput"] == {"command": "touch --no-create x"}
    (entry,) = await audit(hub)
    assert (entry.title, entry.rewritten) == ("touch --no-create x", True)


async def test_an_edited_path_is_read_where_the_call_would_run(
    asked: tuple[Hub, TestMachines, TestRun],
) -> None:
    hub, _, run = asked
    await edit(hub, b'{"command":"make"}')
    seen = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_use_id": "toolu_q2",
        "cwd": "/etc",
    }
    await run.say(
        lines.requests("h", subtype="hook_callback", callback_id="quarterdeck-watch", input=seen),
        lines.asks_permission("q2", command="make"),
    )
    with pytest.raises(Forbidden, match="not in etc"):
        await edit(hub, b'{"command":"tee passwd"}', "owner")


async def test_an_edit_for_always_grants_what_runs_and_not_what_was_asked_about(
    tmp_path: Path,
) -> None:
    policies = Policies(tmp_path)
    hub, machines = hub_with(MemoryJournal(), policies=policies)
    async with hub.run():
        await asking(hub, machines)
        await edit(hub, b'{"command":"make test"}', "owner", scope=Scope.ALWAYS)
        (grant,) = policies.grants
    assert "make test" in str(grant.rules)


async def test_a_late_edit_is_decided_about_too_and_the_session_is_told_of_it(
    asked: tuple[Hub, TestMachines, TestRun],
) -> None:
    hub, machines, run = asked
    ask = (await card_of(hub)).opened.ask
    await run.end("It was killed.")

    async def late(command: bytes, role: str = "operator") -> None:
        answer = AllowAnswer(input=Raw(b'{"command":"%b"}' % command))
        await hub.submit(AnswerAsk(ask=ask, answer=answer, by="bob", role=role))

    with pytest.raises(Forbidden, match="no rm"):
        await late(b"rm x", "owner")
    with pytest.raises(Forbidden, match="role:owner"):
        await late(b"git push")
    assert len(machines.runs) == 1
    await late(b"make test")
    await machines.runs[-1].greet()
    (prompt,) = [line for line in machines.runs[-1].read() if line["type"] == "user"]
    assert '{"command":"make test"}' in prompt["message"]["content"]
    answered = [
        stored.event
        for stored in await hub.audit(session="mine")
        if isinstance(stored.event, AskAnswered)
    ]
    assert [one.by for one in answered] == ["bob"]


@pytest.mark.parametrize("answer", [DenyAnswer(), AllowAnswer()])
async def test_an_answer_without_an_input_is_no_edit(
    answer: Answer, asked: tuple[Hub, TestMachines, TestRun]
) -> None:
    hub, _, _ = asked
    ask = (await card_of(hub)).opened.ask
    await hub.submit(AnswerAsk(ask=ask, answer=answer, by="bob", role="operator"))
    (entry,) = await audit(hub)
    assert (entry.title, entry.rewritten) == ("make", False)
