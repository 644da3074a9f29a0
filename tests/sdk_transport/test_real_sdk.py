"""Programs for the official SDK, over our links, with the real CLI and the scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    ProcessError,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolPermissionContext,
    ToolResultBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

from quarterdeck.claude.launch import Launch, to_argv
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.links.websocket import CliEndpoint, LinkAccess, WebSocketLink, serve_endpoint
from quarterdeck.sdk_transport import QuarterdeckTransport
from quarterdeck.testing.clis import RealCli, isolated_env
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import ApiError, Gate, ToolUse, play, reply
from support.bounds import SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

NEWEST = "2.1.325"
DIALS = "2.1.120"


class Program:
    """What a program for the SDK has: its options, and a transport made for them."""

    def __init__(self, cli: RealCli, home: Path, model: ScriptedModel) -> None:
        self._cli = cli
        self.cwd = home / "work"
        self.cwd.mkdir()
        self._env = isolated_env(home, model.url)

    def options(self, **chosen: Any) -> ClaudeAgentOptions:
        return ClaudeAgentOptions(cli_path=self._cli.command[0], cwd=self.cwd, **chosen)

    def transport(self, options: ClaudeAgentOptions) -> QuarterdeckTransport:
        return QuarterdeckTransport.for_options(options, parent_env=self._env)

    async def ask(
        self, prompt: str | AsyncIterator[dict[str, Any]], **chosen: Any
    ) -> list[Message]:
        """Run `query()` to its end."""
        options = self.options(**chosen)
        with anyio.fail_after(SECONDS):
            running = query(prompt=prompt, options=options, transport=self.transport(options))
            return [message async for message in running]


@pytest.fixture
def program(clis: dict[str, RealCli], tmp_path: Path, model: ScriptedModel) -> Program:
    return Program(clis[NEWEST], tmp_path, model)


def text_of(messages: list[Message]) -> str:
    return "".join(
        block.text
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, TextBlock)
    )


def tool_results(messages: list[Message]) -> list[ToolResultBlock]:
    return [
        block
        for message in messages
        if isinstance(message, UserMessage) and isinstance(message.content, list)
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]


async def test_a_query_runs_to_its_end(program: Program, model: ScriptedModel) -> None:
    messages = await program.ask(
        play("hello there"), system_prompt="Speak like a pirate.", include_partial_messages=True
    )
    assert text_of(messages) == "hello there"
    assert isinstance(messages[-1], ResultMessage)
    assert not messages[-1].is_error
    assert any(isinstance(message, StreamEvent) for message in messages)
    assert any(isinstance(message, SystemMessage) for message in messages)
    assert "Speak like a pirate." in model.turns[0].system


async def test_prompts_of_a_stream_are_all_answered(program: Program) -> None:
    async def prompts() -> AsyncIterator[dict[str, Any]]:
        for text in ("one", "two"):
            yield {"type": "user", "message": {"role": "user", "content": text}}

    messages = await program.ask(prompts())
    assert "one" in text_of(messages)
    assert "two" in text_of(messages)


async def test_hooks_and_permissions_are_the_programs(program: Program) -> None:
    hooked: list[str] = []
    asked: list[tuple[str, object]] = []

    async def before(
        given: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        hooked.append(given["hook_event_name"])
        return {}

    async def decide(
        name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        asked.append((name, arguments["command"]))
        if "forbidden" in arguments["command"]:
            return PermissionResultDeny(message="not here")
        return PermissionResultAllow(updated_input={**arguments, "command": "echo changed"})

    messages = await program.ask(
        play(
            ToolUse("Bash", {"command": "touch wished"}),
            ToolUse("Bash", {"command": "touch forbidden"}),
            "done",
        ),
        can_use_tool=decide,
        hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[before])]},
    )
    assert asked == [("Bash", "touch wished"), ("Bash", "touch forbidden")]
    assert hooked == ["PreToolUse", "PreToolUse"]
    first, second = tool_results(messages)
    assert first.content == "changed"
    assert second.is_error
    assert "not here" in str(second.content)
    assert list(program.cwd.iterdir()) == []


async def test_an_in_process_mcp_server_of_the_program_is_called(program: Program) -> None:
    @tool("add", "Add two numbers", {"a": int, "b": int})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}

    messages = await program.ask(
        play(ToolUse("mcp__calc__add", {"a": 2, "b": 40}), "done"),
        mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
        allowed_tools=["mcp__calc__add"],
    )
    (result,) = tool_results(messages)
    assert "42" in str(result.content)
    assert not result.is_error


async def test_a_client_interrupts_switches_models_and_goes_on(
    program: Program, model: ScriptedModel
) -> None:
    options = program.options()
    with anyio.fail_after(SECONDS):
        async with ClaudeSDKClient(options, program.transport(options)) as client:
            await client.query(play(reply("begun ", Gate("never"))))
            await model.wait_at_gate("never")
            await client.interrupt()
            interrupted = [message async for message in client.receive_response()]
            assert isinstance(interrupted[-1], ResultMessage)
            assert interrupted[-1].subtype == "error_during_execution"
            await client.set_model("claude-haiku-4-5")
            await client.query("and now")
            after = [message async for message in client.receive_response()]
            assert "and now" in text_of(after)
            assert model.turns[-1].model == "claude-haiku-4-5"
            assert (await client.get_mcp_status())["mcpServers"] == []


async def test_an_error_result_is_the_sdks_result_error(program: Program) -> None:
    with pytest.raises(ResultError) as raised:
        await program.ask(play(ApiError(400, "bad thing")))
    assert "bad thing" in str(raised.value)


async def test_a_cli_that_refuses_its_flags_says_why(program: Program) -> None:
    lines: list[str] = []
    with pytest.raises(ProcessError, match="unknown option") as raised:
        await program.ask("hi", extra_args={"no-such-flag": None}, stderr=lines.append)
    assert raised.value.exit_code == 1
    assert any("no-such-flag" in line for line in lines)


# --- a CLI that dialled us ------------------------------------------------------------------------


@asynccontextmanager
async def dialled(cli: RealCli, home: Path, model: ScriptedModel) -> AsyncIterator[WebSocketLink]:
    """A CLI started by somebody, which dials a WebSocket of ours."""
    link, folder = WebSocketLink(), home / "work"
    folder.mkdir()
    endpoint = CliEndpoint(
        lambda path: LinkAccess(link, "secret") if path == "/v1/ws/one" else None
    )
    sdk = '{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}'
    env = isolated_env(home, model.url, CLAUDE_CODE_SESSION_ACCESS_TOKEN="secret")
    with anyio.fail_after(SECONDS):
        async with serve_endpoint(endpoint) as port:
            url = f"ws://127.0.0.1:{port}/v1/ws/one"
            argv = to_argv(Launch(sdk_url=url, mcp_config=(sdk,), replay_user_messages=False))
            async with await SubprocessLink.start(cli.command, argv, cwd=folder, env=env), link:
                await link.wait_connected()
                yield link


async def test_a_query_over_a_websocket_runs_to_its_end(
    clis: dict[str, RealCli], tmp_path: Path, model: ScriptedModel
) -> None:
    @tool("add", "Add two numbers", {"a": int, "b": int})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}

    asked: list[str] = []

    async def allow(
        name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow:
        asked.append(name)
        return PermissionResultAllow(updated_input=arguments)

    async with dialled(clis[DIALS], tmp_path, model) as link:
        options = ClaudeAgentOptions(
            can_use_tool=allow, mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])}
        )
        prompt = play(ToolUse("mcp__calc__add", {"a": 2, "b": 40}), "done")
        running = query(prompt=prompt, options=options, transport=QuarterdeckTransport(link))
        messages = [message async for message in running]
    assert asked == ["mcp__calc__add"]
    assert ["42" in str(result.content) for result in tool_results(messages)] == [True]
    assert isinstance(messages[-1], ResultMessage)
    assert text_of(messages) == "done"


async def test_a_dropped_connection_is_not_seen_by_the_program(
    clis: dict[str, RealCli], tmp_path: Path, model: ScriptedModel
) -> None:
    asked: list[str] = []
    async with dialled(clis[DIALS], tmp_path, model) as link:

        async def allow_after_a_drop(
            name: str, arguments: dict[str, Any], context: ToolPermissionContext
        ) -> PermissionResultAllow:
            asked.append(name)
            old = link.current
            assert old is not None
            await old.end(1012, "a restart")
            await old.ended.wait()
            return PermissionResultAllow(updated_input=arguments)

        options = ClaudeAgentOptions(can_use_tool=allow_after_a_drop)
        async with ClaudeSDKClient(options, QuarterdeckTransport(link)) as client:
            await client.query(play("first"))
            first = [message async for message in client.receive_response()]
            await client.query(play(ToolUse("Bash", {"command": "touch made"}), "second"))
            second = [message async for message in client.receive_response()]
            await client.set_model("claude-haiku-4-5")
            await client.query("third")
            third = [message async for message in client.receive_response()]
            assert model.turns[-1].model == "claude-haiku-4-5"
    assert asked == ["Bash"]
    assert (text_of(first), text_of(second)) == ("first", "second")
    assert "third" in text_of(third)
    assert (tmp_path / "work" / "made").exists()
