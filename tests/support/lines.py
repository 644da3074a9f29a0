"""Lines as a CLI would send them, for tests that need no CLI."""

from __future__ import annotations

import json

SESSION = "11111111-2222-4333-8444-555555555555"


def line(**members: object) -> bytes:
    """One line, with its newline."""
    return json.dumps(members).encode() + b"\n"


def init(version: str = "2.1.325", uuid: str = "init-1") -> bytes:
    """The start of a turn."""
    return line(
        type="system",
        subtype="init",
        session_id=SESSION,
        uuid=uuid,
        claude_code_version=version,
        model="claude",
        cwd="/work",
        tools=[],
        permissionMode="default",
    )


def assistant(text: str, uuid: str, parent: str | None = None) -> bytes:
    """A block of the model's answer."""
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": text}]}
    return line(
        type="assistant",
        message=message,
        parent_tool_use_id=parent,
        session_id=SESSION,
        uuid=uuid,
    )


def delta(text: str, uuid: str) -> bytes:
    """A piece of the model's answer."""
    event = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    }
    return line(
        type="stream_event", event=event, parent_tool_use_id=None, session_id=SESSION, uuid=uuid
    )


def echo(prompt: str) -> bytes:
    """The echo of a prompt, by its uuid."""
    message = {"role": "user", "content": "text"}
    return line(type="user", message=message, session_id=SESSION, uuid=prompt, isReplay=True)


def result(uuid: str, *, cost: float = 0.0, **more: object) -> bytes:
    """The end of a turn."""
    members: dict[str, object] = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "done",
        "total_cost_usd": cost,
        "session_id": SESSION,
        "uuid": uuid,
        **more,
    }
    return line(**members)


def asks_permission(request_id: str, tool: str = "Bash", **tool_input: object) -> bytes:
    """A permission request."""
    request = {
        "subtype": "can_use_tool",
        "tool_name": tool,
        "input": tool_input or {"command": "ls"},
        "tool_use_id": f"toolu_{request_id}",
    }
    return line(type="control_request", request_id=request_id, request=request)


def requests(request_id: str, **request: object) -> bytes:
    """Any control request."""
    return line(type="control_request", request_id=request_id, request=request)


def cancels(request_id: str) -> bytes:
    """The withdrawal of a request."""
    return line(type="control_cancel_request", request_id=request_id)


def success_answer(request_id: str, body: object = None, **more: object) -> bytes:
    """The answer to a request of ours."""
    response = {"subtype": "success", "request_id": request_id, "response": body or {}, **more}
    return line(type="control_response", response=response)


def error_answer(request_id: str, error: str, **more: object) -> bytes:
    """A refusal."""
    response = {"subtype": "error", "request_id": request_id, "error": error, **more}
    return line(type="control_response", response=response)
