"""The `system` messages."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import pytest

from quarterdeck.wire import codec
from quarterdeck.wire.base import Unknown
from quarterdeck.wire.envelope import System
from quarterdeck.wire.internal import SessionTitleChanged
from quarterdeck.wire.notices import Informational, PermissionDenied
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.reports import FastModeState
from quarterdeck.wire.system import (
    SYSTEM,
    ApiRetry,
    CommandsChanged,
    CompactBoundary,
    Init,
    SessionState,
    SessionStateChanged,
    Status,
    WorkingStatus,
)
from quarterdeck.wire.tasks import (
    BackgroundTasksChanged,
    TaskEnd,
    TaskNotification,
    TaskStarted,
    TaskUpdated,
)
from quarterdeck.wire.values import TaskStatus

S = TypeVar("S", bound=System)


def read(kind: type[S], **members: Any) -> S:
    subtype = kind.__struct_config__.tag
    message = codec.from_cli(json.dumps({**members, "type": "system", "subtype": subtype}).encode())
    assert isinstance(message, kind), message
    return message


# What 2.1.37 says at the start of a turn.
OLDEST_INIT = {
    "cwd": "/w",
    "session_id": "s",
    "tools": ["Task", "Bash"],
    "mcp_servers": [{"name": "calc", "status": "connected"}],
    "model": "claude-x",
    "permissionMode": "default",
    "slash_commands": ["compact"],
    "apiKeySource": "ANTHROPIC_API_KEY",
    "claude_code_version": "2.1.37",
    "output_style": "default",
    "agents": ["Bash"],
    "skills": [],
    "plugins": [],
    "uuid": "u",
}


def test_the_start_of_a_turn_is_read_from_the_oldest_version() -> None:
    init = read(Init, **OLDEST_INIT)
    assert init.claude_code_version == "2.1.37"
    assert init.permission_mode is PermissionMode.DEFAULT
    assert init.mcp_servers[0].name == "calc"
    assert init.capabilities == ()
    assert init.fast_mode_state is None


def test_the_start_of_a_turn_is_read_from_the_newest_version() -> None:
    newest = {
        "claude_code_version": "2.1.325",
        "capabilities": ["interrupt_receipt"],
        "fast_mode_state": "off",
        "effort": None,
        "memory_paths": {"auto": "/m"},
        "user_message_uuids": ["p"],
        "plugins": [{"name": "p", "path": "/p", "source": "builtin"}],
    }
    init = read(Init, **{**OLDEST_INIT, **newest})
    assert init.capabilities == ("interrupt_receipt",)
    assert init.fast_mode_state is FastModeState.OFF
    assert init.memory_paths is not None
    assert init.memory_paths.auto == "/m"
    assert init.plugins[0].source == "builtin"


def test_an_old_cli_may_be_in_a_mode_that_nobody_knows() -> None:
    init = read(Init, **{**OLDEST_INIT, "permissionMode": "nonsense"})
    assert init.permission_mode == "nonsense"
    assert not init.permission_mode.known


def test_a_status_tells_a_mode_or_what_is_going_on() -> None:
    changed = read(Status, status=None, permissionMode="plan")
    assert changed.status is None
    assert changed.permission_mode is PermissionMode.PLAN
    busy = read(Status, status="compacting")
    assert busy.status is WorkingStatus.COMPACTING
    assert busy.permission_mode is None


def test_a_compaction_tells_what_it_kept() -> None:
    metadata = {
        "trigger": "auto",
        "pre_tokens": 1000,
        "preserved_messages": {"anchor_uuid": "a", "uuids": ["b"]},
    }
    boundary = read(CompactBoundary, compact_metadata=metadata)
    assert boundary.compact_metadata.pre_tokens == 1000
    assert boundary.compact_metadata.preserved_messages is not None
    assert boundary.compact_metadata.preserved_messages.uuids == ("b",)


def test_a_retry_may_have_a_delay_with_a_fraction_and_no_status() -> None:
    retry = read(ApiRetry, attempt=1, max_retries=10, retry_delay_ms=512.25, error_status=None)
    assert retry.retry_delay_ms == 512.25
    assert retry.error_status is None


def test_a_task_begins_changes_and_ends() -> None:
    started = read(TaskStarted, task_id="b1", description="sleep", is_backgrounded=True)
    assert started.is_backgrounded
    updated = read(TaskUpdated, task_id="b1", patch={"status": "killed", "end_time": 5})
    assert updated.patch.status is TaskStatus.KILLED
    assert updated.patch.status.ended
    ended = read(TaskNotification, task_id="b1", status="stopped", output_file="/o", summary="s")
    assert ended.status is TaskEnd.STOPPED


@pytest.mark.parametrize(
    ("status", "ended"),
    [("running", False), ("paused", False), ("completed", True), ("failed", True), ("odd", False)],
)
def test_a_task_has_ended_or_not(status: str, ended: bool) -> None:
    assert TaskStatus(status).ended is ended


def test_the_background_tasks_come_as_a_whole() -> None:
    tasks = [{"task_id": "b1", "task_type": "local_bash", "description": "d"}]
    assert read(BackgroundTasksChanged, tasks=tasks).tasks[0].task_id == "b1"
    assert read(BackgroundTasksChanged, tasks=[]).tasks == ()


def test_idle_is_a_state_of_the_session() -> None:
    assert read(SessionStateChanged, state="idle").state is SessionState.IDLE


def test_commands_come_as_a_whole() -> None:
    commands = [{"name": "review", "description": "d", "argumentHint": "[pr]"}]
    (command,) = read(CommandsChanged, commands=commands).commands
    assert command.argument_hint == "[pr]"


def test_a_refusal_without_a_question_tells_why() -> None:
    denied = read(
        PermissionDenied,
        tool_name="Bash",
        tool_use_id="t",
        message="no",
        decision_reason_type="rule",
    )
    assert denied.decision_reason_type == "rule"


def test_what_a_hook_did_to_a_prompt_is_told() -> None:
    outcome = {"kind": "blocked_by_hook", "prompt_kept": False, "reason": "r"}
    message = read(Informational, content="c", level="warning", prompt_submit_outcome=outcome)
    assert message.prompt_submit_outcome is not None
    assert message.prompt_submit_outcome.reason == "r"


def test_a_new_title_is_read_although_it_is_internal() -> None:
    assert read(SessionTitleChanged, title="Fix it").title == "Fix it"


@pytest.mark.parametrize("subtype", sorted(SYSTEM))
def test_every_subtype_is_encoded_with_type_and_subtype(subtype: str) -> None:
    struct = SYSTEM[subtype]
    needed = {"task_id": "t", "request_id": "r", "state": "idle"}
    line = json.dumps({"type": "system", "subtype": subtype, **needed}).encode()
    message = codec.from_cli(line)
    assert type(message) is struct
    assert isinstance(message, System)
    message.__dict__.pop("raw")
    encoded = json.loads(codec.encode(message))
    assert encoded["type"] == "system"
    assert encoded["subtype"] == subtype


def test_a_subtype_never_says_another_type() -> None:
    message = codec.from_cli(b'{"type":"system","subtype":"task_started"}')
    assert isinstance(message, Unknown)
    assert message.error
