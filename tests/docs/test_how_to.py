"""The how-to pages about hooks, structured output and WebSockets: their examples run as written.

The other how-to pages are tested beside what they are about.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from quarterdeck.testing import RealCli, ScriptedModel, ToolUse
from quarterdeck.wire.hooks import HookEvent
from support.bounds import SECONDS
from support.pages import Reader, page
from support.processes import Processes

HOOKS = page("docs/how-to/write-hooks.md").blocks("python")
STRUCTURED = page("docs/how-to/get-structured-output.md").blocks("python")
WEBSOCKET = page("docs/how-to/drive-a-cli-over-websocket.md").blocks("python")

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


@pytest.fixture
def reader(tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli]) -> Reader:
    """A reader with the newest CLI."""
    return Reader(tmp_path, model.url, clis["2.1.325"])


@pytest.fixture
def dialling_reader(tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli]) -> Reader:
    """A reader with the last CLI that dials."""
    return Reader(tmp_path, model.url, clis["2.1.120"])


async def test_hooks_deny_allow_report_and_remind(reader: Reader, model: ScriptedModel) -> None:
    model.enqueue(
        ToolUse("Bash", {"command": "cat .env > copied"}),
        ToolUse("Bash", {"command": "touch released --dry-run"}),
        ToolUse("Bash", {"command": "touch -- released --dry-run"}),
        "Both tried.",
    )

    said = await reader.run(HOOKS[0].code)

    # The first call was denied. The second was allowed and failed: it is not reported as done.
    assert said == "done: Bash\nBoth tried.\n"
    assert not (reader.cwd / "copied").exists()
    assert (reader.cwd / "released").exists()
    assert "The file .env holds secrets." in model.turns[1].body.decode()
    assert "Be brief." in model.turns[0].body.decode()


async def test_a_hook_changes_a_call(reader: Reader, model: ScriptedModel) -> None:
    more = """
import anyio
from quarterdeck import Agent, Hook, HookEvent

async def main() -> None:
    hook = Hook(event=HookEvent.PRE_TOOL_USE, function=quieter)
    async with Agent(hooks=[hook]) as agent:
        print(await agent.query("Build it.").text())

anyio.run(main)
"""
    model.enqueue(ToolUse("Bash", {"command": "make all"}), "Built.")
    (reader.cwd / "Makefile").write_text("first:\n\techo made > made\n")

    assert await reader.run(HOOKS[1].code + more) == "Built.\n"
    # Without `--silent`, and with another goal, it would have failed.
    assert (reader.cwd / "made").read_text() == "made\n"
    assert len(HOOKS) == 2


async def test_structured_output_comes_as_the_type(reader: Reader, model: ScriptedModel) -> None:
    finding = {"file": "a.py", "line": 3, "what": "a typo"}
    model.enqueue(
        # The first does not fit the schema: the CLI gives it back.
        ToolUse("StructuredOutput", {"verdict": 7}),
        ToolUse("StructuredOutput", {"verdict": "fine", "findings": [finding]}),
    )

    assert await reader.run(STRUCTURED[0].code) == "fine\na.py:3: a typo\n"
    # The docstring of the type is in the schema that the model reads.
    assert "What a reviewer found." in model.turns[0].body.decode()


async def test_structured_output_by_a_schema(reader: Reader, model: ScriptedModel) -> None:
    model.enqueue(ToolUse("StructuredOutput", {"lines": 42}))
    assert await reader.run(STRUCTURED[1].code) == "{'lines': 42}\n"
    assert len(STRUCTURED) == 2


@pytest.mark.parametrize("number", [0, 1])
async def test_a_cli_that_somebody_else_starts(
    number: int, dialling_reader: Reader, model: ScriptedModel, processes: Processes
) -> None:
    reader = dialling_reader
    model.enqueue("On another machine.")
    example = [sys.executable, str(reader.save(WEBSOCKET[number].code))]
    with anyio.fail_after(SECONDS):
        async with await anyio.open_process(
            example, cwd=reader.cwd, env=reader.env, stderr=None
        ) as program:
            processes.started(program.pid)
            assert program.stdout is not None
            said = BufferedByteReceiveStream(program.stdout)
            command = (await said.receive_until(b"\n", 4096)).decode()
            assert command.startswith("env CLAUDE_CODE_SESSION_ACCESS_TOKEN=")
            async with await anyio.open_process(
                ["bash", "-c", f"exec {command}"], cwd=reader.cwd, env=reader.env, stdout=None
            ) as cli:
                processes.started(cli.pid)
                assert b"".join([part async for part in said]) == b"On another machine.\n"
                await program.wait()
                await cli.wait()
    assert program.returncode == 0
    if number == 1:
        assert "Be brief." in model.turns[0].body.decode()


async def test_a_cli_that_is_started_to_dial(dialling_reader: Reader, model: ScriptedModel) -> None:
    model.enqueue("Here.")
    assert await dialling_reader.run(WEBSOCKET[2].code) == "Here.\nversion 2.1.120\n"
    assert len(WEBSOCKET) == 3


def test_every_event_that_the_page_names_exists() -> None:
    named = {"PreToolUse", "PermissionRequest", "UserPromptSubmit", "SessionStart", "Setup"}
    text = page("docs/how-to/write-hooks.md").text
    assert all(f"`{name}`" in text and HookEvent(name).known for name in named)
