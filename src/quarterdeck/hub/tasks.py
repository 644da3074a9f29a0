"""Shells, subagents and workflows that run, from the CLI's messages. Pure; below `holdings`.

Owns what starts a task, what changes it and what ends it. Versions differ: 2.1.37 reports only the
end of a background task, so that a task is also known by the tool call that started it; the newest
version reports the whole set of background tasks.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from quarterdeck.hub.clip import count_of, id_of, name_of, text_of
from quarterdeck.journal.holds import evolve_holds
from quarterdeck.protocol.events import Event, TaskChanged, TaskEnded
from quarterdeck.protocol.holds import Holds, Task
from quarterdeck.wire.content import ToolUseBlock
from quarterdeck.wire.tasks import (
    BackgroundTask,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
)

MOST_TASKS = 50

SUBAGENT_TOOLS = frozenset({"Task", "Agent"})
_KINDS = {"local_agent": "agent", "local_bash": "shell"}
_LAUNCHED = "async_launched"
"""The status in the result of a subagent's call that runs in the background."""


class Outcome(msgspec.Struct):
    """The members of `tool_use_result` that are about a task."""

    status: str = ""
    agent_id: str = msgspec.field(name="agentId", default="")
    background_task: str = msgspec.field(name="backgroundTaskId", default="")


def subagent_called(holds: Holds, block: ToolUseBlock) -> Iterator[Event]:
    """The model starts a subagent. Versions before 2.1.62 send no other message about it."""
    given = block.arguments
    task = Task(
        task=block.id,
        call=block.id,
        title=text_of(given.get("description")),
        agent=name_of(given.get("subagent_type")) or None,
    )
    yield from task_events(holds, task)


def task_report_events(
    holds: Holds, message: TaskStarted | TaskProgress | TaskUpdated | TaskNotification
) -> Iterator[Event]:
    """What a message about a task changes."""
    id_ = message.task_id
    known = known_task(holds, id_, getattr(message, "tool_use_id", None))
    match message:
        case TaskStarted():
            old = known or Task(task=id_)
            started = replace(
                old,
                task=id_,
                kind=_kind(message.task_type) if message.task_type else old.kind,
                title=text_of(message.description) or old.title,
                agent=name_of(message.subagent_type) or old.agent,
                call=id_of(message.tool_use_id) or old.call,
                background=old.background
                if message.is_backgrounded is None
                else message.is_backgrounded,
            )
            yield from task_events(holds, started)
        case TaskProgress(usage=usage) if known is not None:
            after = replace(known, task=id_, last_tool=name_of(message.last_tool_name) or None)
            if usage is not None:
                tokens, calls = count_of(usage.total_tokens), count_of(usage.tool_uses)
                after = replace(after, tokens=tokens, tool_calls=calls)
            yield from task_events(holds, after)
        case TaskUpdated(patch=patch) if known is not None:
            if patch.status is not None and patch.status.ended:
                yield TaskEnded(task=known.task, status=name_of(str(patch.status.value)))
                return
            status = known.status if patch.status is None else name_of(str(patch.status.value))
            after = replace(known, status=status, title=text_of(patch.description) or known.title)
            if patch.is_backgrounded is not None:
                after = replace(after, background=patch.is_backgrounded)
            yield from task_events(holds, after)
        case TaskNotification(status=ended) if known is not None:
            yield TaskEnded(task=known.task, status=name_of(str(ended.value)))
        case _:
            pass


def background_set(holds: Holds, tasks: tuple[BackgroundTask, ...]) -> Iterator[Event]:
    """The whole set of background tasks: others that were in the background have ended."""
    listed = {each.task_id for each in tasks}
    for known in holds.tasks:
        if known.background and known.task not in listed:
            yield TaskEnded(task=known.task)
    for each in tasks:
        old = known_task(holds, each.task_id, None)
        after = replace(
            old or Task(task=each.task_id, title=text_of(each.description)),
            kind=_kind(each.task_type),
            agent=name_of(each.subagent_type) or None,
            background=True,
        )
        for event in task_events(holds, after):
            holds = evolve_holds(holds, event, 0)
            yield event


def result(holds: Holds, call: str, outcome: Outcome) -> Iterator[Event]:
    """A call has its result: a subagent has ended, or it or a shell runs in the background."""
    known = known_task(holds, call, call)
    if outcome.background_task:
        if known_task(holds, outcome.background_task, call) is None:
            started = Task(task=outcome.background_task, kind="shell", background=True, call=call)
            tool = next((one for one in holds.tools if one.call == call), None)
            yield from task_events(holds, replace(started, title=tool.title if tool else ""))
        elif known is not None and not known.background:
            yield from task_events(holds, replace(known, background=True))
    elif known is None:
        return
    elif outcome.status == "async_launched":
        id_ = id_of(outcome.agent_id) or known.task
        yield from task_events(holds, replace(known, task=id_, background=True))
    elif not known.background:
        yield TaskEnded(task=known.task, status=name_of(outcome.status))


def task_events(holds: Holds, task: Task) -> Iterator[Event]:
    """The event for a task, if it has changed and there is room for it."""
    if id_of(task.task) is None:
        return
    known = known_task(holds, task.task, task.call)
    if known is None and len(holds.tasks) >= MOST_TASKS:
        return
    after = replace(task, since=0)
    if known is None or replace(known, since=0) != after:
        yield TaskChanged(task=after)


def known_task(holds: Holds, id_: str, call: str | None) -> Task | None:
    """The task with this id, or of this tool call."""
    for each in holds.tasks:
        if each.task == id_ or (call is not None and each.call == call):
            return each
    return None


def _kind(task_type: str) -> str:
    return _KINDS.get(task_type) or name_of(task_type) or "agent"
