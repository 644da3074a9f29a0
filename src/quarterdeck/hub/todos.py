"""The agent's to-do list, from its tool calls. Pure; below `holdings`.

Owns both ways to keep one: TodoWrite gives the whole list with each call; the newest versions have
TaskCreate, TaskUpdate and TaskList, whose results have ids and statuses. Inputs and results come
from the model, so they may be anything: what does not fit changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.hub.clip import first, name_of, text_of
from quarterdeck.protocol.events import Event, TodosChanged
from quarterdeck.protocol.holds import Holds, Todo
from quarterdeck.wire.command_base import decode_or_none
from quarterdeck.wire.content import ToolUseBlock

MOST_TODOS = 100

WITH_RESULTS = frozenset({"TaskCreate", "TaskUpdate", "TaskList"})
"""Tools whose results have more than their inputs."""
_DELETED = "deleted"


class _Written(msgspec.Struct):
    content: str = ""
    status: str = "pending"
    active: str = msgspec.field(name="activeForm", default="")


class _WriteInput(msgspec.Struct):
    todos: tuple[_Written, ...]


class _UpdateInput(msgspec.Struct):
    task: str = msgspec.field(name="taskId")
    subject: str | None = None
    active: str | None = msgspec.field(name="activeForm", default=None)


class _Listed(msgspec.Struct):
    id: str
    subject: str = ""
    status: str = "pending"


class _StatusChange(msgspec.Struct):
    to: str


class _Outcome(msgspec.Struct):
    """The members of `tool_use_result` that are about to-dos."""

    task: _Listed | None = None
    tasks: tuple[_Listed, ...] | None = None
    id: str = msgspec.field(name="taskId", default="")
    change: _StatusChange | None = msgspec.field(name="statusChange", default=None)


def call_events(holds: Holds, block: ToolUseBlock) -> Iterator[Event]:
    """What a tool call of the main agent changes at once."""
    match block.name:
        case "TodoWrite":
            if (written := decode_or_none(block.input, _WriteInput)) is not None:
                yield from todo_events(holds, _number(written.todos))
        case "TaskUpdate":
            # The result has the new status; only the input has the new text.
            if (update := decode_or_none(block.input, _UpdateInput)) is not None:
                yield from todo_events(holds, (_reword(todo, update) for todo in holds.todos))
        case _:
            pass


def result(holds: Holds, tool: str, outcome: Raw) -> Iterator[Event]:
    """What the result of a tool call of the main agent changes."""
    found = decode_or_none(outcome, _Outcome) or _Outcome()
    match tool:
        case "TaskCreate" if found.task is not None:
            others = (todo for todo in holds.todos if todo.todo != found.task.id)
            yield from todo_events(
                holds, (*others, Todo(todo=found.task.id, text=found.task.subject))
            )
        case "TaskUpdate" if found.change is not None:
            status = found.change.to
            moved = (
                replace(todo, status=status) if todo.todo == found.id else todo
                for todo in holds.todos
                if todo.todo != found.id or status != _DELETED
            )
            yield from todo_events(holds, moved)
        case "TaskList" if found.tasks is not None:
            doing = {todo.todo: todo.doing for todo in holds.todos}
            listed = (
                Todo(todo=one.id, text=one.subject, status=one.status, doing=doing.get(one.id, ""))
                for one in found.tasks
            )
            yield from todo_events(holds, listed)
        case _:
            pass


def todo_events(holds: Holds, todos: Iterable[Todo]) -> Iterator[Event]:
    """The event for a changed list, within its limits."""
    given, cut = first(todos, MOST_TODOS)
    kept = tuple(
        Todo(
            todo=name_of(todo.todo),
            text=text_of(todo.text),
            status=name_of(todo.status),
            doing=text_of(todo.doing),
        )
        for todo in given
    )
    if kept != holds.todos or cut != holds.cut.get("todos", 0):
        yield TodosChanged(todos=kept, cut=cut)


def _number(written: Iterable[_Written]) -> Iterator[Todo]:
    for place, one in enumerate(written, 1):
        yield Todo(todo=str(place), text=one.content, status=one.status, doing=one.active)


def _reword(todo: Todo, update: _UpdateInput) -> Todo:
    if todo.todo != update.task:
        return todo
    return replace(todo, text=update.subject or todo.text, doing=update.active or todo.doing)
