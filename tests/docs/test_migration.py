"""The guide from the official SDK: its examples do the same, and its table is true."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, query
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from quarterdeck import Agent, Hook, Options, SyncOutput
from quarterdeck.claude.environment import child_environment
from quarterdeck.claude.launch import to_argv
from quarterdeck.testing import RealCli, ScriptedModel, ToolUse, isolated_env
from quarterdeck.wire.hooks import PreToolUseInput
from support.bounds import SECONDS
from support.pages import page

pytestmark = pytest.mark.anyio

PAGE = page("docs/how-to/migrate-from-the-official-sdk.md")
BEFORE, AFTER, _ = PAGE.blocks("python")


def run(example: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, "example", "exec", dont_inherit=True), names)
    return names


@pytest.mark.real_cli
async def test_the_program_does_the_same_before_and_after(
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cli = clis["2.1.325"]
    printed: list[str] = []
    heard: list[str] = []
    for name, code in (("before", BEFORE.code), ("after", AFTER.code)):
        home = tmp_path / name
        home.mkdir()
        options = {"cwd": home, "env": isolated_env(home, model.url)}
        options["cli_path" if name == "before" else "claude"] = cli.command[-1]
        begun = len(model.turns)
        model.enqueue(
            ToolUse("Bash", {"command": "cat .env"}),
            ToolUse("mcp__shop__count", {"fruit": "apples"}),
            ToolUse("Bash", {"command": "touch made"}),
            "There are seven.",
        )
        with anyio.fail_after(SECONDS):
            await run(code)["main"](**options)
        printed.append(capsys.readouterr().out)
        turns = model.turns[begun:]
        assert "It holds secrets." in turns[1].body.decode()
        assert "7 of apples" in turns[2].body.decode()
        assert "Only the stock may be looked at." in turns[3].body.decode()
        assert "You are an interactive" not in turns[0].system
        heard.append(turns[0].system)
        assert not (home / "made").exists()
    assert printed == ["There are seven.\ndone\n"] * 2
    # Both have no system prompt of Claude Code. What is left names the way the CLI was started.
    assert [len(system) < 1000 for system in heard] == [True, True], heard


@pytest.mark.real_cli
async def test_a_hook_that_raises_denies_here_and_lets_pass_there(
    clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    cli = clis["2.1.325"]
    env = isolated_env(tmp_path, model.url)

    async def broken(*_: object) -> Any:
        raise RuntimeError("a defect of the hook")

    def broken_here(_: PreToolUseInput) -> SyncOutput | None:
        raise RuntimeError("a defect of the hook")

    theirs = ClaudeAgentOptions(
        cli_path=cli.command[-1],
        cwd=tmp_path,
        env=env,
        allowed_tools=["Bash"],
        hooks={"PreToolUse": [HookMatcher(hooks=[broken])]},
    )
    ours = Options(claude=cli.command, cwd=tmp_path, env=env, allowed_tools=("Bash",))
    with anyio.fail_after(SECONDS):
        model.enqueue(ToolUse("Bash", {"command": "touch theirs"}), "done")
        async for _message in query(prompt="x", options=theirs):
            pass
        model.enqueue(ToolUse("Bash", {"command": "touch ours"}), "done")
        async with Agent(ours, hooks=[Hook.pre_tool_use(broken_here)]) as agent:
            await agent.query("x").finish()
    assert (tmp_path / "theirs").exists()
    assert not (tmp_path / "ours").exists()


def _flags(argv: list[str]) -> set[str]:
    return {each.partition("=")[0] for each in argv if each.startswith("--")}


def test_the_flags_that_differ_are_those_of_the_table() -> None:
    """A new difference of defaults fails here, and belongs into the table."""
    theirs = SubprocessCLITransport("", ClaudeAgentOptions(cli_path="claude"))._build_command()
    ours = to_argv(Options())
    assert _flags(theirs) - _flags(ours) == {"--system-prompt"}
    assert _flags(ours) - _flags(theirs) == {
        "--include-partial-messages",
        "--replay-user-messages",
        "--permission-prompt-tool",  # without `decide` all is denied, as the CLI does without it
    }
    named = PAGE.text.partition("## Differences")[2]
    for words in ("system_prompt", "include_partial_messages", "is_replay", "api_billing", "env="):
        assert words in named
    skills = ClaudeAgentOptions(cli_path="claude", skills=["x"])
    more = _flags(SubprocessCLITransport("", skills)._build_command()) - _flags(theirs)
    assert more == {"--allowedTools", "--setting-sources"}
    assert _flags(to_argv(Options(skills=("x",)))) == _flags(ours)


def test_the_variables_that_differ_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "x")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    plain = Options()
    assert not {"SOME_SECRET", "ANTHROPIC_API_KEY"} & child_environment(env=plain.env).keys()
    billed = child_environment(env=plain.env, api_billing=True)
    assert billed["ANTHROPIC_API_KEY"] == "k"
    assert child_environment(env=dict(os.environ))["SOME_SECRET"] == "x"
