"""The policies of this machine decide about the calls of a loop's agents, without a hub."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from quarterdeck.agent.asks import AnyAsk, Decision, ToolAsk
from quarterdeck.agent.service import Decide
from quarterdeck.domain.errors import ConfigError, UsageError
from quarterdeck.loop import AgentWorker, LoopState, Stops, run_loop
from quarterdeck.policy.grants import Grant
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.service.local_loops import local_agents
from quarterdeck.service.loop_policy import PolicyTurn
from quarterdeck.testing import (
    RealCli,
    ScriptedModel,
    ToolUse,
    fake,
    fake_cli_command,
    isolated_env,
)
from support.bounds import SECONDS
from support.loops import Bench

pytestmark = pytest.mark.anyio

LOOP = "0" * 26
RULES = """
[[rule]]
name = "no folders"
verdict = "deny"
command = "mkdir"

[[rule]]
name = "files are fine"
verdict = "allow"
command = "touch"

[[rule]]
name = "rights"
verdict = "ask"
command = "chmod"

[[rule]]
name = "for bob"
verdict = "ask"
command = "ln"
answered_by = ["bob"]

[[rule]]
name = "in the end"
verdict = "ask"
command = "cp"
wait = "1s"
then = "allow"
"""


def bash(command: str) -> ToolUse:
    return ToolUse("Bash", {"command": command, "description": "work"})


class Terminal:
    """Answers by the command that is asked about; says nothing about others."""

    def __init__(self, **answers: Callable[[ToolAsk], Decision]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str | None]] = []

    async def decide(self, ask: AnyAsk) -> Decision:
        assert isinstance(ask, ToolAsk)
        command = str(ask.arguments["command"])
        self.asked.append((command, ask.request.decision_reason))
        if (answer := self.answers.get(command.replace(" ", "_"))) is None:
            await anyio.sleep_forever()
            raise AssertionError
        return answer(ask)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder, with rules."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "policy.toml").write_text(RULES)
    monkeypatch.setenv("QUARTERDECK_HOME", str(folder))
    monkeypatch.delenv("QUARTERDECK_CONFIG", raising=False)
    return folder


async def run(
    bench: Bench, loop: LoopState, *, decide: Decide | None = None, **spec: Any
) -> LoopState:
    """Run a loop as `quarterdeck loop run --local` does."""
    env = isolated_env(bench.home, bench.model.url, CLAUDE_CODE_MAX_RETRIES="1")
    claude = str(bench.cli.command[-1])
    given = SessionSpec(directory=loop.spec.directory, claude=claude, env=env, **spec)
    agents = local_agents(loop.id, given, bench.store.folder.parent, "ann")
    worker = AgentWorker(agents.options, decide=decide, arbiter=agents.arbiter, box=agents.box)
    with anyio.fail_after(SECONDS):
        told = bench.told.append
        return await run_loop(loop, worker, bench.store, report=told, box=agents.box)


def audit(bench: Bench, loop: LoopState) -> list[tuple[str, str, str]]:
    return [(each.title, each.verdict, each.by) for each in bench.store.records(loop.id)]


@pytest.mark.real_cli
@pytest.mark.parametrize("version", ["2.1.325", "2.1.62"])
async def test_rules_decide_and_what_a_person_edits_is_judged_again(
    version: str, clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path, data: Path
) -> None:
    bench = Bench(clis[version], model, tmp_path)
    terminal = Terminal(
        chmod_600_made=lambda ask: ask.allow({"command": "mkdir edited"}),
        chmod_601_made=lambda ask: ask.allow({"command": "touch edited"}),
        chmod_602_made=lambda ask: ask.allow(),
        chmod_603_made=lambda ask: ask.deny("better not"),
    )
    calls = ["mkdir denied", "touch made", *(f"chmod {mode} made" for mode in range(600, 604))]
    bench.model.enqueue(*map(bash, (*calls, "ln made other", "cp made copied")), "ALL DONE")
    loop = bench.loop(Stops(phrase="ALL DONE", turns=1))
    state = await run(bench, loop, decide=terminal.decide)

    names = sorted(path.name for path in bench.work.iterdir() if path.name[0] != ".")
    assert names == ["copied", "edited", "inner", "made", "readme"]
    assert (bench.work / "made").stat().st_mode & 0o777 == 0o602
    assert [command for command, _ in terminal.asked] == [*calls[2:], "cp made copied"]
    assert all("rights" in (reason or "") for _, reason in terminal.asked[:-1])
    assert audit(bench, loop) == [
        ("mkdir denied", "deny", "policy"),
        ("touch made", "allow", "policy"),
        ("chmod 600 made", "deny", "policy"),
        ("touch edited", "allow", "ann"),
        ("chmod 602 made", "allow", "ann"),
        ("chmod 603 made", "deny", "ann"),
        ("ln made other", "deny", "policy"),
        ("cp made copied", "allow", "policy: in the end"),
    ]
    (turn,) = state.turns
    denied = turn.outcome.denied
    assert len(denied) == 4
    assert "no folders" in denied[0]
    assert "policy denies the edited input" in denied[1]
    assert "it needs an answer by bob" in denied[3]
    assert any(line.startswith("Denied: Bash: mkdir denied (") for line in bench.told)
    assert turn.outcome.sandbox == "protect"


@pytest.mark.real_cli
async def test_without_a_terminal_it_is_denied_and_rules_and_kernel_keep_agents_from_our_files(
    bench: Bench, data: Path
) -> None:
    """Even with permissions skipped, and in a worktree of the data folder."""
    outside = bench.home / "outside"
    bench.model.enqueue(
        bash("chmod 600 readme"),
        bash(f"cat {data}/policy.toml"),
        bash(f"python3 -c \"open('{outside}', 'w')\""),
        bash("touch made"),
        "ALL DONE",
    )
    check = f"test -e made && touch checked && ! touch {outside} && ! ls {data}/loops/0*"
    stops = Stops(command=check, turns=1)
    loop = bench.loop(stops, worktree="mended", proof=("cat checked",))
    state = await run(bench, loop, skip_permissions=True, policy="trusted-repo")
    (turn,) = state.turns
    assert turn.check is not None
    assert (turn.check.code, turn.check.sandbox) == (0, "protect"), turn.check.output
    assert not outside.exists()
    assert state.directory is not None
    assert await anyio.Path(state.directory, "checked").exists()
    chmod, private, _, touch = bench.store.records(loop.id)
    assert (chmod.verdict, chmod.rule) == ("deny", "rights")
    assert "nobody was there to allow it" in chmod.reasons
    assert (private.verdict, private.source) == ("deny", "built-in")
    assert touch.verdict == "allow"
    report = bench.store.path(loop.id, "report.md").read_text()
    assert "in the sandbox (protect)" in report
    assert "- denied: Bash: chmod 600 readme (" in report


def hook(command: object, id_: str, **more: object) -> fake.Line:
    """What the CLI's hook shows of a call."""
    given = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/", "tool_name": "Bash"}
    shown = {**given, "tool_use_id": id_, "tool_input": {"command": command}, **more}
    return fake.control_request(
        f"h-{id_}", subtype="hook_callback", callback_id="hook-0", input=shown
    )


Play = Callable[..., Awaitable[dict[str, Any]]]


def answers(record: Path) -> dict[str, Any]:
    """What the fake CLI was answered, by the ids of its requests."""
    lines = [json.loads(line) for line in record.read_bytes().splitlines()[1:]]
    found = [line["response"] for line in lines if line["type"] == "control_response"]
    assert len({each["request_id"] for each in found}) == len(found)
    return {each["request_id"]: each.get("response") for each in found}


def hook_verdict(answer: Any) -> str | None:
    specific = answer.get("hookSpecificOutput") or {}
    found: str | None = specific.get("permissionDecision")
    return found


@pytest.fixture
def play(bench: Bench, data: Path, tmp_path: Path) -> Play:
    """Runs one turn with a fake CLI that says some lines, and gives what it was answered."""

    async def run(loop: LoopState, *said: fake.Line) -> dict[str, Any]:
        record = tmp_path / "record"
        script = [
            fake.Initialize(),
            fake.Expect("user"),
            *(step for line in said for step in (fake.say(line), fake.Expect("control_response"))),
            fake.say(fake.assistant("ALL DONE"), fake.result("ALL DONE")),
            fake.Serve(),
        ]
        agents = local_agents(loop.id, SessionSpec(directory=str(bench.work)), data, "ann")
        command = fake_cli_command(script, folder=tmp_path, record=record)
        worker = AgentWorker(replace(agents.options, claude=command), arbiter=agents.arbiter)
        with anyio.fail_after(SECONDS):
            await run_loop(loop, worker, bench.store)
        return answers(record)

    return run


@pytest.mark.process
async def test_a_cli_that_asks_oddly_gets_no_more_than_the_rules_allow(
    bench: Bench, play: Play
) -> None:
    """Without its hook, twice, with another input than the hook showed, with no command at all, and
    with a call that nobody can read.
    """
    loop = bench.loop(Stops(phrase="ALL DONE", turns=1))
    asks = {"unshown": "mkdir x", "again": "mkdir x", "other": "mkdir y", "good": "touch z"}
    found = await play(
        loop,
        *(hook("touch z", "t1"), hook("mkdir x", "t2"), hook(17, "t3"), hook("chmod 1 x", "t4")),
        hook("touch z", "t5", tool_name=["Bash"]),
        *(fake.can_use_tool("Bash", {"command": given}, name) for name, given in asks.items()),
    )
    verdicts = [hook_verdict(found[f"h-t{number}"]) for number in range(1, 6)]
    assert [verdicts[0], verdicts[1], *verdicts[3:]] == ["allow", "deny", "ask", "deny"]
    assert verdicts[2] in {"ask", "deny"}
    behaviours = {name: found[name]["behavior"] for name in asks}
    assert behaviours == {"unshown": "deny", "again": "deny", "other": "deny", "good": "allow"}


@pytest.mark.process
async def test_what_cannot_be_recorded_is_denied(bench: Bench, play: Play) -> None:
    loop = bench.loop(Stops(phrase="ALL DONE", turns=1))
    bench.store.save(loop)
    bench.store.path(loop.id, "audit.jsonl").mkdir()
    touch: fake.Line = {"command": "touch z"}
    found = await play(loop, hook("touch z", "t1"), fake.can_use_tool("Bash", touch, "ask"))
    assert hook_verdict(found["h-t1"]) == "deny"
    assert found["ask"]["behavior"] == "deny"


@pytest.mark.process
async def test_rules_and_grants_that_change_during_a_turn_hold_from_the_next_call_on(
    bench: Bench, play: Play, data: Path
) -> None:
    loop = bench.loop(Stops(phrase="ALL DONE", turns=1))
    grant = Grant(id="g", rules=("Bash(rmdir *)",), by="ann", at=0)
    (data / "grants.json").write_bytes(msgspec.json.encode((grant,)))
    seen = PolicyTurn.show

    async def change(self: PolicyTurn, given: Any, version: Any) -> Any:
        answer = await seen(self, given, version)
        (data / "policy.toml").write_text(RULES.replace("mkdir", "touch"))
        (data / "grants.json").write_bytes(b"[]")
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PolicyTurn, "show", change)
        found = await play(
            loop, hook("rmdir x", "t1"), hook("rmdir x", "t2"), hook("touch x", "t3")
        )
    verdicts = [hook_verdict(found[f"h-t{number}"]) for number in range(1, 4)]
    assert verdicts == ["allow", None, "deny"]


@pytest.mark.parametrize(
    ("name", "text", "error", "says"),
    [
        ("quarterdeck.toml", "[policy]\nfile = 3\n", ConfigError, "file"),
        ("quarterdeck.toml", "[sandbox]\nmode = 'none'\n", ConfigError, "mode"),
        ("none.toml", "", UsageError, "there is no policy 'none'"),
    ],
)
def test_rules_that_cannot_be_found_start_nothing(
    data: Path, name: str, text: str, error: type[Exception], says: str
) -> None:
    (data / name).write_text(text)
    with pytest.raises(error, match=says):
        local_agents(LOOP, SessionSpec(directory=str(data), policy="none"), data, "ann")


def test_a_damaged_policy_is_told_and_asks_about_everything(data: Path) -> None:
    (data / "policy.toml").write_text("[[rule]]\nverdict = 'perhaps'\n")
    agents = local_agents(LOOP, SessionSpec(directory=str(data)), data, "ann")
    (warning,) = agents.warnings
    assert warning.endswith("everything is asked")


@pytest.mark.process
async def test_a_project_of_the_configuration_brings_its_defaults_policy_and_sandbox(
    bench: Bench, play: Play, data: Path
) -> None:
    project = f"[projects.p]\ndirectory = '{bench.work}'\npolicy = 'read-only'\nmodel = 'm'\n"
    (data / "quarterdeck.toml").write_text(f"{project}sandbox = 'strict'\n")
    agents = local_agents(LOOP, SessionSpec(directory=str(bench.work / "inner")), data, "ann")
    assert agents.options.model == "m"
    async with agents.box(("/bin/true",), {}, str(bench.work)) as boxed:
        assert boxed.sandbox == "strict"
    loop = bench.loop(Stops(phrase="ALL DONE", turns=1))
    found = await play(loop, hook("touch z", "t1"), hook("tee z", "t2"))
    verdicts = [hook_verdict(found[f"h-t{number}"]) for number in (1, 2)]
    assert "allow" not in verdicts


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of an agent, as a loop that was killed leaves it."""
    folder = tmp_path / "temporary" / f"quarterdeck-run-{LOOP}-left"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(folder.parent))
    return folder


@pytest.mark.process
async def test_what_a_killed_loop_left_is_removed_by_the_first_sandbox_of_the_next_process(
    bench: Bench, data: Path, left: Path
) -> None:
    agents = local_agents(LOOP, SessionSpec(directory=str(bench.work)), data, "ann")
    assert (left / "file").exists()  # another process may run the loop
    async with agents.box(("/bin/true",), {}, str(bench.work)) as boxed:
        assert boxed.sandbox == "protect"
        (folder,) = left.parent.glob("quarterdeck-run-*")
        assert folder != left
    assert not list(left.parent.glob("quarterdeck-run-*"))
