from typing import Any, TypeVar

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import RequestRefused, UsageError
from quarterdeck.wire.base import Part
from quarterdeck.wire.command_base import (
    Command,
    Empty,
    UnknownCommand,
    answer_type,
    decode_answer,
    decode_or_none,
)
from quarterdeck.wire.command_codec import decode_command, encode_command
from quarterdeck.wire.commands import (
    COMMANDS,
    CancelAsyncMessage,
    ContextUsage,
    EndSession,
    GenerateSessionTitle,
    GetContextUsage,
    GetSettings,
    GetUsage,
    Initialize,
    InitializeAnswer,
    Interrupt,
    InterruptReceipt,
    ListPermissionRules,
    McpCall,
    McpReconnect,
    McpServers,
    McpSetServers,
    McpStatus,
    McpToggle,
    ModeAnswer,
    ReadFile,
    RewindFiles,
    RewindResult,
    SetMaxThinkingTokens,
    SetModel,
    SetPermissionMode,
    Settings,
    UpdateSettings,
)
from quarterdeck.wire.hooks import HookMatcher
from quarterdeck.wire.info import (
    AgentDefinition,
    McpHttpServer,
    McpSdkServer,
    McpServerState,
    McpStdioServer,
    PluginConfig,
)
from quarterdeck.wire.permissions import PermissionMode

R = TypeVar("R")

PUBLIC = [
    "interrupt",
    "initialize",
    "set_permission_mode",
    "set_model",
    "set_max_thinking_tokens",
    "rename_session",
    "set_color",
    "mcp_status",
    "get_context_usage",
    "get_session_cost",
    "list_models",
    "get_usage",
    "get_binary_version",
    "mcp_call",
    "file_suggestions",
    "rewind_files",
    "cancel_async_message",
    "read_file",
    "seed_read_state",
    "mcp_set_servers",
    "register_repo_root",
    "reload_plugins",
    "reload_skills",
    "reload_output_styles",
    "mcp_reconnect",
    "mcp_toggle",
    "set_has_subscribers",
    "stop_task",
    "background_tasks",
    "get_task_output",
    "apply_flag_settings",
    "get_settings",
    "get_hooks_listing",
    "update_settings",
    "list_permission_rules",
    "mcp_read_resource",
]
UNDECLARED = [
    "end_session",
    "side_question",
    "generate_session_title",
    "mcp_authenticate",
    "mcp_oauth_callback_url",
    "mcp_clear_auth",
    "rewind_conversation",
    "fork_conversation",
    "set_proactivity_level",
    "add_directory",
    "remote_control",
    "get_status",
    "export_conversation",
    "get_plan",
    "get_workspace_diff",
    "get_memory_dialog",
    "get_skills_dialog",
    "set_cwd",
    "set_mcp_permission_mode_override",
    "set_prompt_suggestions_paused",
    "list_directory",
    "start_shell_task",
    "mcp_message",
]


def ask(command: Command[R], answer: bytes | None) -> R:
    """As a caller would: the type of what comes back follows from the command."""
    return decode_answer(command, None if answer is None else Raw(answer))


@pytest.mark.parametrize("subtype", [*PUBLIC, *UNDECLARED])
def test_the_protocols_commands_have_types(subtype: str) -> None:
    command = COMMANDS[subtype]

    assert issubclass(answer_type(command), Part)
    assert command.since is None or 37 <= command.since <= 325


@pytest.mark.parametrize("command", COMMANDS.values())
def test_every_answer_is_read_from_an_empty_object(command: type[Command[Any]]) -> None:
    shape = answer_type(command)

    assert isinstance(msgspec.json.decode(b"{}", type=shape), shape)


@pytest.mark.parametrize(
    ("command", "json"),
    [
        (Interrupt(), '{"subtype":"interrupt"}'),
        (Interrupt(cancel_queued=True), '{"subtype":"interrupt","cancel_queued":true}'),
        (SetModel(), '{"subtype":"set_model","model":null}'),
        (SetModel(model="opus"), '{"subtype":"set_model","model":"opus"}'),
        (
            SetPermissionMode(mode=PermissionMode.PLAN),
            '{"subtype":"set_permission_mode","mode":"plan"}',
        ),
        (
            SetMaxThinkingTokens(),
            '{"subtype":"set_max_thinking_tokens","max_thinking_tokens":null}',
        ),
        (
            SetMaxThinkingTokens(max_thinking_tokens=0),
            '{"subtype":"set_max_thinking_tokens","max_thinking_tokens":0}',
        ),
        (McpReconnect(server_name="s"), '{"subtype":"mcp_reconnect","serverName":"s"}'),
        (
            McpToggle(server_name="s", enabled=False),
            '{"subtype":"mcp_toggle","serverName":"s","enabled":false}',
        ),
        (McpSetServers(servers={}), '{"subtype":"mcp_set_servers","servers":{}}'),
        (
            McpSetServers(
                servers={
                    "a": McpStdioServer(command="x", args=("y",), env={"K": "V"}),
                    "b": McpHttpServer(url="http://h"),
                    "c": McpSdkServer(name="c"),
                }
            ),
            (
                '{"subtype":"mcp_set_servers","servers":{"a":{"type":"stdio","command":"x","args":["y"],'
                '"env":{"K":"V"}},"b":{"type":"http","url":"http://h"},"c":{"type":"sdk","name":"c"}}}'
            ),
        ),
        (
            RewindFiles(user_message_id="u", dry_run=True),
            '{"subtype":"rewind_files","user_message_id":"u","dry_run":true}',
        ),
        (EndSession(), '{"subtype":"end_session"}'),
        (
            GenerateSessionTitle(description="d", persist=False),
            '{"subtype":"generate_session_title","description":"d","persist":false}',
        ),
        (
            CancelAsyncMessage(message_uuid="u"),
            '{"subtype":"cancel_async_message","message_uuid":"u"}',
        ),
        (
            Initialize(
                hooks={"PreToolUse": (HookMatcher(hook_callback_ids=("h",), matcher="Bash"),)},
                sdk_mcp_servers=("calc",),
                json_schema=Raw(b'{"type":"object"}'),
                system_prompt="Be brief.",
                agents={"a": AgentDefinition(description="d", prompt="p", disallowed_tools=("X",))},
                plugins=(PluginConfig(path="/p"),),
            ),
            (
                '{"subtype":"initialize","hooks":{"PreToolUse":[{"hookCallbackIds":["h"],'
                '"matcher":"Bash"}]},"sdkMcpServers":["calc"],"jsonSchema":{"type":"object"},'
                '"systemPrompt":"Be brief.","agents":{"a":{"description":"d","prompt":"p",'
                '"disallowedTools":["X"]}},"plugins":[{"type":"local","path":"/p"}]}'
            ),
        ),
    ],
)
def test_a_command_is_written_and_read_back_the_same(command: Command[Any], json: str) -> None:
    body = encode_command(command)

    assert bytes(body).decode() == json
    assert decode_command(body) == command


# What a caller without a type checker may pass: a list where all versions but the newest take a
# text only, and hooks of the shape that makes old versions deaf.
ODD: Any = [1, 2]


@pytest.mark.parametrize(
    "command",
    [
        Initialize(system_prompt=ODD),
        Initialize(hooks=ODD),
        Initialize(hooks={"Stop": ODD}),
        Initialize(agents={"a": ODD}),
        SetModel(model=ODD),
    ],
)
def test_a_command_that_does_not_fit_its_type_is_never_written(command: Command[Any]) -> None:
    with pytest.raises(UsageError, match="cannot be sent"):
        encode_command(command)


@pytest.mark.parametrize(
    "make",
    [
        lambda: McpCall(tool=""),
        lambda: McpCall(tool="t", arguments=Raw(b"[]")),
        lambda: Initialize(json_schema=Raw(b"5")),
        lambda: SetMaxThinkingTokens(max_thinking_tokens=-1),
        lambda: UpdateSettings(source="policySettings", settings=Raw(b"{}")),
    ],
)
def test_a_command_that_cannot_be_right_is_never_made(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


def test_a_command_of_a_new_subtype_is_passed_on_as_it_is() -> None:
    json = Raw(b'{"subtype":"frobnicate", "x":1}')

    command = decode_command(json)

    assert command == UnknownCommand(name="frobnicate", json=json)
    assert command.subtype == "frobnicate"
    assert encode_command(command) == json
    assert ask(UnknownCommand(name="frobnicate", json=json), b'{"y":2}') == Raw(b'{"y":2}')


@pytest.mark.parametrize(
    "json",
    [b'{"subtype":"initialize","hooks":[1,2]}', b'{"subtype":"mcp_call"}', b"null", b"junk"],
)
def test_a_command_that_cannot_be_read_is_unknown(json: bytes) -> None:
    assert isinstance(decode_command(Raw(json)), UnknownCommand)


def test_members_that_we_do_not_know_do_not_matter() -> None:
    command = decode_command(Raw(b'{"subtype":"interrupt","protocolVersion":"1"}'))

    assert command == Interrupt()


def test_an_answer_has_the_type_that_its_command_names() -> None:
    # The annotations are the test: the type checker sees what the command promises.
    receipt: InterruptReceipt = ask(Interrupt(), b'{"still_queued":["u1"]}')
    mode: ModeAnswer = ask(SetPermissionMode(mode=PermissionMode.PLAN), b'{"mode":"plan"}')
    done: Empty = ask(EndSession(), None)
    any_command: Command[object] = Interrupt()

    assert receipt.still_queued == ("u1",)
    assert mode.mode is PermissionMode.PLAN
    assert done == Empty()
    assert any_command.subtype == "interrupt"


@pytest.mark.parametrize("body", [None, b"null", b"{}"])
def test_no_body_is_an_empty_answer(body: bytes | None) -> None:
    assert ask(Interrupt(), body) == InterruptReceipt()


@pytest.mark.parametrize("body", [b'{"still_queued":5}', b"[]", b'"ok"', b"7"])
def test_an_answer_that_does_not_fit_is_an_error_that_shows_it(body: bytes) -> None:
    with pytest.raises(RequestRefused, match="does not fit") as caught:
        ask(Interrupt(), body)

    assert caught.value.subtype == "interrupt"
    assert caught.value.__notes__ == [body.decode()]
    assert decode_or_none(Raw(body), InterruptReceipt) is None


def test_the_answer_to_initialize_is_read_in_every_version() -> None:
    old = ask(
        Initialize(),
        b'{"commands":[{"name":"compact","description":"d","argumentHint":""}],'
        b'"output_style":"default","available_output_styles":["default"],'
        b'"models":[{"value":"default","displayName":"Default","description":"d"}],'
        b'"account":{"tokenSource":"none","apiKeySource":"ANTHROPIC_API_KEY"}}',
    )
    new = ask(
        Initialize(),
        b'{"commands":[],"agents":[{"name":"a","description":"d","model":"opus"}],"models":[],'
        b'"claude_code_version":"2.1.325","current_permission_mode":"default",'
        b'"session_state":"idle","capabilities":["ui_surface_v1"],"pid":7,'
        b'"feedback_mode":{"kind":"post"},"brand_new":{"x":1}}',
    )

    assert old.commands[0].name == "compact"
    assert old.models[0].display_name == "Default"
    assert old.account is not None
    assert old.account.api_key_source == "ANTHROPIC_API_KEY"
    assert old.claude_code_version is None
    assert new.agents[0].model == "opus"
    assert new.claude_code_version == "2.1.325"
    assert new.current_permission_mode is PermissionMode.DEFAULT
    assert new.feedback_mode == Raw(b'{"kind":"post"}')


def test_a_session_does_not_fail_for_a_new_kind_of_model() -> None:
    answer = ask(
        Initialize(),
        b'{"models":[{"value":{"family":"x"}}],"claude_code_version":"2.1.400","pid":"?"}',
    )

    assert answer == InitializeAnswer(claude_code_version="2.1.400")


def test_the_answers_that_people_use_are_typed() -> None:
    servers: McpServers = ask(
        McpStatus(),
        b'{"mcpServers":[{"name":"calc","status":"connected","serverInfo":{"name":"c","version":"1"},'
        b'"tools":[{"name":"add","annotations":{}}],"config":{"type":"stdio","command":"x"}},'
        b'{"name":"b","status":"asleep"}]}',
    )
    rewind: RewindResult = ask(
        RewindFiles(user_message_id="u"),
        b'{"canRewind":true,"filesChanged":["/a"],"insertions":1,"deletions":2}',
    )
    context: ContextUsage = ask(
        GetContextUsage(),
        b'{"categories":[{"name":"Messages","tokens":9,"color":"c","kind":"used"}],"totalTokens":9,'
        b'"maxTokens":100,"rawMaxTokens":100,"percentage":9,"gridRows":[[]],"model":"m",'
        b'"memoryFiles":[],"mcpTools":[],"agents":[],"isAutoCompactEnabled":true,"apiUsage":null}',
    )
    settings: Settings = ask(
        GetSettings(), b'{"effective":{"a":1},"sources":[],"applied":{"model":"m","effort":null}}'
    )
    usage = ask(
        GetUsage(), b'{"session":{"total_cost_usd":0.5,"model_usage":{}},"rate_limits":null}'
    )
    rules = ask(
        ListPermissionRules(),
        b'{"state":{"rules":[{"behavior":"allow","source":"session","rule":"Bash(ls:*)",'
        b'"editability":"session"}],"workspaceDirectories":[],"originalCwd":"/c","managedOnly":false}}',
    )
    file = ask(ReadFile(path="x"), b'{"contents":"hi","absPath":"/c/x","truncated":false}')

    assert servers.mcp_servers[0].status is McpServerState.CONNECTED
    assert not servers.mcp_servers[1].status.known
    assert rewind.files_changed == ("/a",)
    assert context.percentage == 9
    assert context.grid_rows == Raw(b"[[]]")
    assert settings.applied is not None
    assert settings.effective == Raw(b'{"a":1}')
    assert usage.session.total_cost_usd == 0.5
    assert rules.state.rules[0].rule == "Bash(ls:*)"
    assert file.abs_path == "/c/x"
