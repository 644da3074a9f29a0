"""What a program does to its own agent, by its requests and its hooks: for the audit log. Pure.

Owns which of it is told, in which words, and what a program may not do: undo what the hub forces on
its CLI. Values that may be secrets (variables, headers) are not told, only their names.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from quarterdeck.claude.forced_settings import SIMPLE, check_live_settings, is_simple
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.program.arguments import BYPASS, Given
from quarterdeck.program.lines import Reply
from quarterdeck.wire.hooks import HookEvent
from quarterdeck.wire.rawjson import dump, members
from quarterdeck.wire.requests import HookCallback
from quarterdeck.wire.tools import one_line

REQUEST, HOOK = "request", "hook"
LONGEST = 300
MALFORMED = "a message that only the CLI could read"
_READING = ("get_", "list_", "mcp_status", "file_suggestions", "initialize")
"""How the names of requests begin that change nothing."""
_SHOWN = frozenset({
    "mode", "model", "max_thinking_tokens", "serverName", "server_name", "enabled",
    "user_message_id", "task_id", "dry_run", "command",
})  # fmt: skip
"""Members whose values are told."""
_ENVIRONMENT = "update_environment_variables"
_SHELL = "bash_command"
_NULL = Raw(b"null")


class Act(Value):
    """One thing that a program did."""

    act: str
    """`request` or `hook`."""
    what: str
    """The subtype of the request, or the event of the hook."""
    detail: str = ""
    tool: str | None = None
    tool_use_id: str | None = None
    refused: bool = False


# --- requests ------------------------------------------------------------------------------------


def request_act(subtype: str, request: Raw, *, refused: str | None = None) -> Act | None:
    """The entry of a request; None for one that only reads."""
    if refused is None and subtype.startswith(_READING):
        return None
    words = [_word(name, value) for name, value in members(request).items() if name != "subtype"]
    if refused is not None:
        words.append(f"refused: {refused}")
    return Act(
        act=REQUEST,
        what=one_line(subtype, 100),
        detail=one_line(", ".join(words), LONGEST),
        refused=refused is not None,
    )


def message_act(kind: str, line: bytes, *, refused: str | None = None) -> Act | None:
    """The entry of a message that is no request and no prompt."""
    if kind not in (_ENVIRONMENT, _SHELL):
        return None
    found = members(Raw(line))
    found.pop("type", None)
    return request_act(kind, Raw(msgspec.json.encode(found)), refused=refused)


def malformed_act() -> Act:
    """The entry of a message that only the CLI could read. What is in it is not told."""
    return Act(act=REQUEST, what="malformed", detail=f"refused: {MALFORMED}", refused=True)


def _word(name: str, value: Raw) -> str:
    if name in _SHOWN:
        return f"{name} {_text(value)}"
    inner = members(value)
    return f"{name} ({', '.join(inner)})" if inner else name


def _text(value: Raw) -> str:
    try:
        found = msgspec.json.decode(value)
    except DECODE_ERRORS:
        return "?"
    return found if isinstance(found, str) else bytes(value).decode(errors="replace")


def check_request(subtype: str, request: Raw, given: Given) -> None:
    """Raise `UsageError` for a request that would undo what the hub forces on the CLI."""
    if subtype != "apply_flag_settings":
        return
    settings = members(request).get("settings", _NULL)
    check_live_settings(settings)
    wanted = members(members(settings).get("permissions", _NULL)).get("defaultMode", _NULL)
    if _text(wanted) == BYPASS and not given.skip_permissions:
        raise UsageError(f"settings: {BYPASS}: the agent was not started with permissions skipped")


def check_variables(line: bytes) -> None:
    """Raise `UsageError` for variables with which the CLI would call no hooks."""
    try:
        given = msgspec.json.decode(
            members(Raw(line)).get("variables", Raw(b"{}")), type=dict[str, object]
        )
    except DECODE_ERRORS as error:
        raise UsageError(f"variables: {error}") from error
    if is_simple({name: str(value) for name, value in given.items()}):
        raise UsageError(
            f"{SIMPLE}: with this variable the CLI calls no hooks, and the hub's rules would not"
            " hold"
        )


def is_environment(kind: str) -> bool:
    """Whether a message changes the variables of the CLI."""
    return kind == _ENVIRONMENT


# --- hooks ---------------------------------------------------------------------------------------


class _Shown(msgspec.Struct):
    hook_event_name: str = ""
    tool_name: str | None = None


def event_of(callback: HookCallback) -> str:
    """The event that a hook is called for."""
    return _hook_fields(callback).hook_event_name


def _hook_fields(callback: HookCallback) -> _Shown:
    try:
        return msgspec.json.decode(callback.input, type=_Shown)
    except DECODE_ERRORS:
        return _Shown()


def hook_act(callback: HookCallback, reply: Reply) -> Act | None:
    """The entry of what a hook of the program decided or changed; None if it did neither."""
    shown = _hook_fields(callback)
    words = _decision_words(reply)
    if not words:
        return None
    return Act(
        act=HOOK,
        what=one_line(shown.hook_event_name, 100),
        detail=one_line(", ".join(words), LONGEST),
        tool=shown.tool_name,
        tool_use_id=callback.tool_use_id,
    )


def _decision_words(reply: Reply) -> list[str]:
    if reply.subtype != "success":
        return [f"failed: {reply.error}"]
    output = members(reply.response)
    special = members(output.get("hookSpecificOutput", _NULL))
    decisions = (
        output.get("decision", _NULL),
        special.get("permissionDecision", _NULL),
        members(special.get("decision", _NULL)).get("behavior", _NULL),
    )
    words = [_text(value) for value in decisions if bytes(value).strip() != b"null"]
    if bytes(output.get("continue", _NULL)).strip() == b"false":
        words.append("ends the turn")
    if "updatedInput" in special or "updatedInput" in members(special.get("decision", _NULL)):
        words.append("changes the input")
    if "updatedMCPToolOutput" in special or "updatedToolOutput" in special:
        words.append("changes the output")
    if "additionalContext" in special:
        words.append("adds context")
    if "permissionDecisionReason" in special:
        words.append(_text(special["permissionDecisionReason"]))
    return words


def taken_decision(reply: Reply) -> tuple[Raw | None, dict[str, Raw]]:
    """What a hook for permission requests has decided, as an answer to such a request; and its
    output without that.
    """
    output = members(reply.response) if reply.subtype == "success" else {}
    rest = {name: value for name, value in output.items() if name != "hookSpecificOutput"}
    if _text(rest.get("decision", _NULL)) == "approve":
        del rest["decision"]
    decision = members(output.get("hookSpecificOutput", _NULL)).get("decision")
    if decision is None or "behavior" not in members(decision):
        return None, rest
    return decision, rest


def changed_input(reply: Reply) -> Raw | None:
    """The input that a hook puts in the place of the agent's, unless it denies the call."""
    if reply.subtype != "success":
        return None
    special = members(members(reply.response).get("hookSpecificOutput", _NULL))
    if _text(special.get("permissionDecision", _NULL)) == "deny":
        return None
    found = special.get("updatedInput")
    return None if found is None or bytes(found).strip() == b"null" else found


def both_outputs(program: Raw, hub: Reply) -> Raw:
    """What the CLI is told of a changed input: the program's output, as far as the hub's rules on
    the changed input let it.
    """
    if hub.subtype != "success":
        return _denial(f"the hub's rules were not asked: {hub.error}")
    ruled = members(members(hub.response).get("hookSpecificOutput", _NULL))
    decision = _text(ruled.get("permissionDecision", _NULL))
    if decision == "deny":
        return hub.response
    output = members(program)
    special = members(output["hookSpecificOutput"])
    if "updatedInput" in ruled:
        special["updatedInput"] = ruled["updatedInput"]
    if decision == "ask":
        special["permissionDecision"] = ruled["permissionDecision"]
        special["permissionDecisionReason"] = ruled.get("permissionDecisionReason", Raw(b'""'))
    return dump({**output, "hookSpecificOutput": special})


def _denial(reason: str) -> Raw:
    special = {
        "hookEventName": HookEvent.PRE_TOOL_USE.value,
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    return dump({"hookSpecificOutput": special})


def with_input(callback: HookCallback, callback_id: str, changed: Raw, request_id: str) -> bytes:
    """The request with which the CLI would call another hook about a changed input."""
    request = {
        "subtype": "hook_callback",
        "callback_id": callback_id,
        "input": {**members(callback.input), "tool_input": changed},
        "tool_use_id": callback.tool_use_id,
    }
    line = {"type": "control_request", "request_id": request_id, "request": request}
    return msgspec.json.encode(line)
