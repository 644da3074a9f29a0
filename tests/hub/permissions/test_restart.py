"""After a restart of the hub no old call is decided again: the journal says what was decided."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    CreateSession,
    RenameSession,
    SendPrompt,
)
from quarterdeck.protocol.events import Decided
from quarterdeck.protocol.sessions import SessionSpec
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio

CALL = "toolu_1"
NOTHING = ""
ALLOWING = '[[rule]]\nname = "touching"\nverdict = "allow"\ncommand = "touch"\n'
ASKING = ALLOWING.replace("allow", "ask")
REWRITING = (
    '[[rule]]\nname = "quiet"\nverdict = "rewrite"\ncommand = "touch"\n'
    'rewrite = { add_flags = ["--no-create"] }\n'
)


def hook(command: str = "touch x", folder: Path | None = None, *, request: str = "h1") -> bytes:
    seen = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": CALL,
    }
    if folder is not None:
        seen["cwd"] = str(folder)
    return lines.requests(
        request, subtype="hook_callback", callback_id="quarterdeck-watch", input=seen
    )


def asks(command: str = "touch x") -> bytes:
    return lines.requests(
        "q1",
        subtype="can_use_tool",
        tool_name="Bash",
        input={"command": command},
        tool_use_id=CALL,
    )


def call_ended(uuid: str = "u1") -> bytes:
    content = [{"type": "tool_result", "tool_use_id": CALL, "content": "text"}]
    return lines.line(type="user", message={"role": "user", "content": content}, uuid=uuid)


def policies(folder: Path, text: str) -> Policies:
    folder.mkdir(exist_ok=True)
    (folder / "policy.toml").write_text(text)
    return Policies(folder)


def check_out(repository: Path, branch: str) -> None:
    (repository / ".git").mkdir(exist_ok=True)
    (repository / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")


async def working(hub: Hub, machines: TestMachines, folder: Path, version: str) -> TestRun:
    spec = SessionSpec(directory=str(folder))
    await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada"))
    run = machines.runs[-1]
    await run.greet(version, str(folder))
    await run.take_prompt(version)
    return run


async def decided(hub: Hub) -> list[Decided]:
    stored = await hub.audit(session="mine")
    return [each.event for each in stored if isinstance(each.event, Decided)]


@pytest.mark.parametrize("later", [ALLOWING, ASKING, REWRITING])
@pytest.mark.parametrize("version", ["2.1.92", "2.1.325"])
async def test_a_call_that_the_cli_decided_has_its_entry_although_a_rule_would_decide_it_now(
    tmp_path: Path, later: str, version: str
) -> None:
    journal = MemoryJournal()
    check_out(tmp_path, "topic")
    hub, machines = hub_with(journal, policies=policies(tmp_path / "a", NOTHING))
    async with hub.run():
        run = await working(hub, machines, tmp_path, version)
        await run.say(hook())
    check_out(tmp_path, "main")
    hub, machines = hub_with(journal, policies=policies(tmp_path / "b", later))
    async with hub.run():
        await machines.runs[-1].say(call_ended(), lines.result("r1"))
        (entry,) = await decided(hub)
    assert (entry.by, entry.verdict, entry.tool_use_id) == ("cli", "allow", CALL)
    assert entry.branch == "topic", "the branch that was checked out when the call was made"
    assert not entry.rewritten


async def test_a_call_that_was_rewritten_stays_so_although_no_rule_rewrites_it_now(
    tmp_path: Path,
) -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal, policies=policies(tmp_path / "a", REWRITING))
    async with hub.run():
        run = await working(hub, machines, tmp_path, "2.1.325")
        await run.say(hook())
        (line,) = run.read()
        assert "--no-create" in str(line)
    hub, machines = hub_with(journal, policies=policies(tmp_path / "b", NOTHING))
    async with hub.run():
        await machines.runs[-1].say(call_ended(), lines.result("r1"))
        (entry,) = await decided(hub)
    assert (entry.by, entry.rewritten) == ("cli", True)


@pytest.mark.parametrize("first", [ALLOWING, ASKING])
async def test_a_call_that_policy_or_a_person_decided_has_one_entry_whatever_the_rules_say_now(
    tmp_path: Path, first: str
) -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal, policies=policies(tmp_path / "a", first))
    async with hub.run():
        run = await working(hub, machines, tmp_path, "2.1.325")
        await run.say(hook())
        if first == ASKING:
            await run.say(asks())
            (card,) = await hub.asks()
            answer = AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada")
            await hub.submit(answer)
        (before,) = await decided(hub)
    hub, machines = hub_with(journal, policies=policies(tmp_path / "b", NOTHING))
    async with hub.run():
        await machines.runs[-1].say(call_ended(), lines.result("r1"))
        assert await decided(hub) == [before]


async def test_what_a_rule_made_of_an_edited_input_is_what_a_cli_that_asks_again_is_answered(
    tmp_path: Path,
) -> None:
    journal = MemoryJournal()
    both = policies(tmp_path / "a", f"{ASKING.replace('touch', 'mkdir')}{REWRITING}")
    hub, machines = hub_with(journal, policies=both)
    async with hub.run():
        run = await working(hub, machines, tmp_path, "2.1.92")
        await run.say(hook("mkdir x"))
        (card,) = await hub.asks()
        edited = AllowAnswer(input=Raw(b'{"command":"mkdir y; touch z"}'))
        await hub.submit(AnswerAsk(ask=card.opened.ask, answer=edited, by="ada"))
        (told,) = run.read()
        output = told["response"]["response"]["hookSpecificOutput"]
        assert output["updatedInput"] == {"command": "mkdir y; touch --no-create z"}
    hub, machines = hub_with(journal, policies=policies(tmp_path / "b", NOTHING))
    async with hub.run():
        run = machines.runs[-1]
        run.read()
        await run.say(asks("mkdir y; touch --no-create z"))
        assert await hub.asks() == []
        (again,) = run.read()
        assert again["response"]["response"]["updatedInput"] == output["updatedInput"]


SCRIPTS = (
    'default = "ask"\n[claude]\n'
    'allow = ["Bash(./x.sh)", "Bash(echo:*)", "Edit(./**)", "Bash(ls:*)"]\n'
)
"""Rules that allow a script, which is trusted as long as the agent has not written it."""


async def answered(run: TestRun, command: str, folder: Path) -> str:
    """What the hook is answered about a command."""
    run.read()
    await run.say(hook(command, folder, request=command))
    (told,) = run.read()
    decision: str = told["response"]["response"]["hookSpecificOutput"]["permissionDecision"]
    return decision


async def wake(hub: Hub, machines: TestMachines, folder: Path) -> TestRun:
    """The session's next process."""
    await hub.submit(SendPrompt(session="mine", content=Raw(b'"go on"'), by="ada"))
    run = machines.runs[-1]
    await run.greet("2.1.325", str(folder))
    await run.take_prompt()
    return run


@pytest.mark.parametrize("ended", [True, False], ids=["it ended", "it was killed in the midst"])
@pytest.mark.parametrize("restart", ["none", "while it runs", "after its end"])
async def test_what_a_run_has_written_is_not_trusted_by_the_runs_after_it(
    tmp_path: Path, restart: str, ended: bool
) -> None:
    journal = MemoryJournal()
    rules = policies(tmp_path / "a", SCRIPTS)
    hub, machines = hub_with(journal, policies=rules)
    async with AsyncExitStack() as open_hub:

        async def restarted(when: str) -> tuple[Hub, TestMachines]:
            if when != restart:
                return hub, machines
            await open_hub.aclose()
            made = hub_with(journal, policies=rules)
            await open_hub.enter_async_context(made[0].run())
            return made

        await open_hub.enter_async_context(hub.run())
        run = await working(hub, machines, tmp_path, "2.1.325")
        assert await answered(run, "./x.sh", tmp_path) == "allow"
        await run.say(call_ended("u0"))
        assert await answered(run, "echo text > x.sh", tmp_path) == "allow"
        if ended:
            await run.say(call_ended("u1"))
        hub, machines = await restarted("while it runs")
        await machines.runs[-1].end()
        hub, machines = await restarted("after its end")
        for _ in range(2):  # the next run, and the one after it, which has no calls before it
            run = await wake(hub, machines, tmp_path)
            assert await answered(run, "./x.sh", tmp_path) == "ask"
            assert await answered(run, "ls src", tmp_path) == "allow"
            await run.end()


async def test_a_run_that_could_not_start_does_not_forget_what_was_written(tmp_path: Path) -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal, policies=policies(tmp_path / "a", SCRIPTS))
    async with hub.run():
        run = await working(hub, machines, tmp_path, "2.1.325")
        await answered(run, "echo text > x.sh", tmp_path)
        await run.say(call_ended())
        await run.end()
        # Events after its end, more than are read at once.
        for number in range(50):
            await hub.submit(RenameSession(session="mine", name=f"name {number}", by="ada"))
        run = await wake(hub, machines, tmp_path)
        await run.end("It was not started.")
        run = await wake(hub, machines, tmp_path)
        assert await answered(run, "./x.sh", tmp_path) == "ask"
