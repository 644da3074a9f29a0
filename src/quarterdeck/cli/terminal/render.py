"""Messages of the CLI as lines for a terminal.

Owns the look of every message, as pure functions from values to `rich.text.Text`. `screen` is above
and decides when and whether something is shown; nothing here prints or remembers anything. All text
from outside goes through `plain` or `one_line` first.
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec
from msgspec import Raw, Struct
from rich.text import Text

from quarterdeck.cli.terminal.diffs import Diff
from quarterdeck.cli.terminal.text import cost, count, head_lines, plain
from quarterdeck.wire.base import Malformed, Message, Number, Unknown
from quarterdeck.wire.content import ToolResultBlock
from quarterdeck.wire.messages import (
    AuthStatus,
    ConversationReset,
    PromptSuggestion,
    RateLimitEvent,
    Result,
    StreamlinedText,
    StreamlinedToolUseSummary,
    ToolUseSummary,
)
from quarterdeck.wire.notices import (
    HookResponse,
    Informational,
    LocalCommandOutput,
    Notification,
    PermissionDenied,
    PluginInstall,
    SessionWritesLost,
)
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.reports import RateLimitInfo, RateLimitStatus
from quarterdeck.wire.system import (
    ApiRetry,
    CompactBoundary,
    ModelRefusalFallback,
    ModelRefusalNoFallback,
    Status,
    WorkingStatus,
)
from quarterdeck.wire.tasks import TaskEnd, TaskNotification, TaskStarted
from quarterdeck.wire.tools import ActionKind, describe, one_line

KIND_STYLES = {
    ActionKind.COMMAND: "yellow",
    ActionKind.FILE_CHANGE: "green",
    ActionKind.TOOL: "cyan",
    ActionKind.WEB_SEARCH: "blue",
    ActionKind.NOTE: "magenta",
}
KIND_WIDTH = max(len(kind.value) for kind in ActionKind)
RESULT_LINES = 3
"""Lines of a tool's output that are shown, and of an error, which people look for."""
ERROR_LINES = 10
LONGEST_LINE = 500
"""Characters of one line of output, where no terminal's width cuts it."""
DIFF_LINES = 40
TODO_TOOLS = frozenset({"TaskCreate", "TaskUpdate", "TaskGet", "TaskList"})
"""Tools of newer CLIs that change the to-do list one entry at a time."""

_STATUS_MARKS = {
    "completed": ("[x]", "dim"),
    "in_progress": ("[>]", "bold"),
    "pending": ("[ ]", ""),
}
_TAGS = re.compile(r"</?tool_use_error>")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Todo(Struct):
    """One entry of a to-do list."""

    content: str = ""
    status: str = ""


class _Todos(Struct):
    todos: tuple[Todo, ...] = ()


_todos = msgspec.json.Decoder(_Todos).decode


# --- tools ------------------------------------------------------------------------------------


def tool_call(name: str, tool_input: Raw) -> Text:
    """One line for a tool call: its kind and its title."""
    action = describe(name, tool_input)
    kind = action.kind.value.replace("_", " ")
    line = Text.assemble(("• ", "dim"))
    line.append(f"{kind:<{KIND_WIDTH}}  ", style=KIND_STYLES[action.kind])
    tool = one_line(name, 80)
    if action.kind is ActionKind.TOOL and not action.title.startswith(tool):
        line.append(f"{tool} ", style="bold")
    line.append(action.title)
    if detail := _detail(name, tool_input):
        line.append(f"  # {detail}", style="dim")
    return line


class _Described(Struct):
    description: str = ""
    subagent_type: str = ""


_described = msgspec.json.Decoder(_Described).decode


def _detail(name: str, tool_input: Raw) -> str:
    """The model's description of the call, for tools that have one."""
    if name in TODO_TOOLS:
        return "" if name == "TaskCreate" else _todo_detail(tool_input)  # its title says it
    if name not in {"Bash", "Task", "Agent"}:
        return ""
    try:
        found = _described(tool_input)
    except _UNREADABLE:
        return ""
    parts = (one_line(found.subagent_type, 40), one_line(found.description, 100))
    return " · ".join(part for part in parts if part)


class _TodoChange(Struct, rename="camel"):
    """The input of the tools that change the to-do list one entry at a time."""

    task_id: str | int = ""
    subject: str = ""
    status: str = ""


_todo_change = msgspec.json.Decoder(_TodoChange).decode


def _todo_detail(tool_input: Raw) -> str:
    """Which entry of the to-do list is made or changed, and how."""
    try:
        found = _todo_change(tool_input)
    except _UNREADABLE:
        return ""
    number = one_line(str(found.task_id), 20)
    status = one_line(found.status.replace("_", " "), 40)
    parts = (f"to-do {number}" if number else "", one_line(found.subject, 200), status)
    return ": ".join(part for part in parts if part)


def tool_result(block: ToolResultBlock) -> list[Text]:
    """The first lines of a tool's result; more of them if it failed."""
    failed = bool(block.is_error)
    text = _TAGS.sub("", block.text).strip("\n")
    if not text.strip():
        if isinstance(block.content, tuple) and block.content:
            kinds = ", ".join(sorted({type(part).__name__ for part in block.content}))
            return [_below(Text(f"({kinds.replace('Block', '').lower()})", style="dim"))]
        return [_below(Text("failed without a message", style="red"))] if failed else []
    shown, more = head_lines(text, ERROR_LINES if failed else RESULT_LINES)
    style = "red" if failed else "dim"
    lines = [
        _below(Text(line[:LONGEST_LINE], style=style), first=number == 0)
        for number, line in enumerate(shown)
    ]
    if more:
        lines.append(_below(Text(f"… {count(more, 'more line')}", style="dim"), first=False))
    return lines


def _below(text: Text, *, first: bool = True) -> Text:
    """A line that belongs to the call above it."""
    return Text.assemble(("  └ " if first else "    ", "dim"), text)


def diff(change: Diff, limit: int = DIFF_LINES) -> list[Text]:
    """A coloured diff; the first line names the file and counts the lines."""
    head = Text("    ")
    head.append(one_line(change.path, 300) or "(no path)", style="bold")
    if change.lines:
        head.append(f"  +{change.added}", style="green")
        head.append(f" -{change.removed}", style="red")
    if change.note:
        head.append(f"  {change.note}", style="dim")
    lines = [head]
    lines += [
        Text.assemble("    ", (line, _DIFF_STYLES.get(line[:1], "")))
        for line in change.lines[:limit]
    ]
    if len(change.lines) > limit:
        lines.append(Text(f"    … {count(len(change.lines) - limit, 'more line')}", style="dim"))
    return lines


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def todos(tool_input: Raw) -> list[Text]:
    """The to-do list of a TodoWrite call; empty if there is none."""
    try:
        found = _todos(tool_input).todos
    except _UNREADABLE:
        return []
    lines = []
    for todo in found:
        mark, style = _STATUS_MARKS.get(todo.status, ("[?]", ""))
        lines.append(Text(f"    {mark} {one_line(todo.content, 300)}", style=style))
    return lines


# --- notices ----------------------------------------------------------------------------------


def notice(message: Message) -> Text | None:
    """A line for a message that only informs; None for one that means nothing to a person."""
    match message:
        case ApiRetry():
            return _note(_retry(message), "yellow")
        case RateLimitEvent(rate_limit_info=info):
            shown = _limit(info)
            return _note(shown, "yellow") if shown else None
        case Status(status=WorkingStatus.COMPACTING):
            return _note("compacting the conversation …")
        case Status(compact_error=str(error)):
            return _note(f"compacting failed: {one_line(error)}", "red")
        case CompactBoundary(compact_metadata=done):
            after = f" to {_tokens(done.post_tokens)}" if done.post_tokens else ""
            return _note(
                f"compacted ({one_line(done.trigger, 40)}): from {_tokens(done.pre_tokens)}{after}"
            )
        case Status(permission_mode=PermissionMode() as mode):
            return _note(f"permission mode: {one_line(mode.value, 40)}")
        case TaskStarted() | TaskNotification():
            return _task(message)
        case _:
            return _other_notice(message)


def _other_notice(message: Message) -> Text | None:
    match message:
        case ConversationReset():
            return _note("a new conversation begins")
        case PermissionDenied():
            why = one_line(message.message or message.decision_reason or "", 300)
            return _note(
                f"denied: {one_line(message.tool_name, 80)}" + (f": {why}" if why else ""), "red"
            )
        case ModelRefusalFallback():
            return _note(
                f"{one_line(message.original_model, 80)} refused;"
                f" {one_line(message.fallback_model, 80)} continues",
                "yellow",
            )
        case ModelRefusalNoFallback():
            return _note(f"{one_line(message.original_model, 80)} refused to answer", "red")
        case Informational(content=str(shown), level=level) if shown.strip():
            return _note(one_line(shown, 2000), "yellow" if level == "warning" else "")
        case Notification(text=shown) if shown.strip():
            return _note(one_line(shown, 500))
        case LocalCommandOutput(content=shown) | StreamlinedText(text=shown) if shown.strip():
            return Text(plain(shown).strip("\n"))
        case ToolUseSummary(summary=shown) | StreamlinedToolUseSummary(tool_summary=shown) if shown:
            return _note(one_line(shown, 500))
        case PromptSuggestion(suggestion=shown) if shown.strip():
            return _note(f"next, perhaps: {one_line(shown, 300)}")
        case _:
            return _fault(message)


def _fault(message: Message) -> Text | None:
    """A failure around the conversation."""
    match message:
        case HookResponse(outcome="error"):
            shown = one_line(message.stderr or message.output, 300)
            return _note(f"the hook {one_line(message.hook_name, 80)} failed: {shown}", "red")
        case PluginInstall(status="failed"):
            return _note(
                f"the plugin {one_line(message.name or '', 80)} could not be installed:"
                f" {one_line(message.error or '', 300)}",
                "red",
            )
        case AuthStatus(error=str(error)):
            return _note(f"signing in failed: {one_line(error, 300)}", "red")
        case SessionWritesLost():
            lost = ", ".join(one_line(what, 80) for what in message.lost)
            return _note(f"the disk is full; lost: {lost}", "red")
        case Malformed():
            return _note(f"a line of the CLI could not be read: {one_line(message.error)}", "red")
        case Unknown(error=str(error)):
            name = "/".join(filter(None, (message.type, message.subtype)))
            return _note(f"a message {one_line(name, 80)!r} is invalid: {one_line(error)}", "dim")
        case _:
            return None


def _note(text: str, style: str = "") -> Text:
    return Text.assemble(("~ ", "dim"), (text, style or "dim"))


def _retry(retry: ApiRetry) -> str:
    why = " ".join(
        part
        for part in (
            str(int(retry.error_status)) if retry.error_status is not None else "",
            one_line(retry.error or "", 80),
        )
        if part
    )
    failed = f"the API failed ({why})" if why else "the API failed"
    again = f"retrying in {seconds(retry.retry_delay_ms)}"
    return f"{failed}; {again} ({retry.attempt} of {retry.max_retries})"


def _limit(info: RateLimitInfo) -> str:
    kind = one_line((info.rate_limit_type or "usage").replace("_", " "), 60)
    used = f" at {info.utilization:.0%}" if info.utilization is not None else ""
    match info.status:
        case RateLimitStatus.ALLOWED:
            return ""
        case RateLimitStatus.REJECTED:
            return f"the {kind} limit is reached{_until(info.resets_at)}"
        case _:
            return f"the {kind} limit is near{used}{_until(info.resets_at)}"


def _until(moment: Number | None) -> str:
    if moment is None:
        return ""
    try:
        at = datetime.fromtimestamp(moment).astimezone()
    except (OverflowError, OSError, ValueError):
        return ""
    return f"; it resets {at:%a %H:%M}"


def _task(message: TaskStarted | TaskNotification) -> Text | None:
    if message.ambient or message.skip_transcript:
        return None
    match message:
        case TaskStarted(task_type=kind):
            if kind == "local_bash" and not message.is_backgrounded:
                return None  # a shell in the foreground: its tool call is shown already
            what = "subagent" if kind == "local_agent" else one_line(kind or "task", 40)
            where = " in the background" if message.is_backgrounded else ""
            return _note(f"{what} started{where}: {one_line(message.description, 200)}")
        case TaskNotification(status=status):
            style = "red" if status is TaskEnd.FAILED else ""
            shown = one_line(message.summary, 300)
            return _note(f"task {one_line(status.value, 40)}: {shown}", style)


# --- the end of a turn ------------------------------------------------------------------------


def outcome(result: Result, cost_usd: float) -> Text:
    """One line: the outcome of the turn, its cost, its rounds and its duration."""
    if not result.failed:
        line = Text.assemble(("done", "bold green"))
    elif result.interrupted:
        line = Text.assemble(("interrupted", "bold yellow"))
    else:
        line = Text.assemble(("failed", "bold red"))
        line.append(f" ({one_line(result.outcome, 80).replace('_', ' ')})", style="red")
    parts = [cost(cost_usd), count(result.num_turns, "turn"), seconds(result.duration_ms)]
    if result.permission_denials:
        parts.append(f"{count(len(result.permission_denials), 'call')} denied")
    return line.append(f" · {' · '.join(parts)}", style="dim")


def seconds(milliseconds: Number) -> str:
    """A duration for people."""
    value = max(0.0, float(milliseconds) / 1000)
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _tokens(number: Number) -> str:
    return f"{number / 1000:.1f}k tokens" if number >= 1000 else count(int(number), "token")
