"""The `system` messages about tasks: shells, subagents and workflows of the CLI.

Owns the events of a task; `system` has the other subtypes. From about 2.1.240 on foreground tasks
are reported as well. A task's end may come as `TaskNotification`, as `TaskUpdated`, or as both:
readers must accept either.

Written by tools/write_wire.py from tools/wire/tasks.toml; do not edit.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Raw

from quarterdeck.domain.structs import ABSENT, name_set
from quarterdeck.wire.base import Number, OpenEnum, Part
from quarterdeck.wire.envelope import System
from quarterdeck.wire.values import TaskStatus


class TaskEnd(OpenEnum):
    """How a task ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


class TaskUsage(Part):
    """A task's usage so far."""

    total_tokens: Number = 0
    tool_uses: Number = 0
    duration_ms: Number = 0


class ResourceLink(Part, rename="camel"):
    """Something that an MCP server offers to read."""

    uri: str = ""
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: Number | None = None
    annotations: Raw = ABSENT


class TaskStarted(System, tag="task_started"):
    """A shell, subagent or workflow has begun. `tool_use_id` is the call that began it."""

    untyped: ClassVar[frozenset[str]] = name_set("awaited")

    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    description: str = ""
    subagent_type: str | None = None
    is_backgrounded: bool | None = None
    spawn_depth: Number | None = None
    parent_task_id: str | None = None
    task_type: str | None = None
    workflow_name: str | None = None
    prompt: str | None = None
    skip_transcript: bool | None = None
    ambient: bool | None = None


class TaskProgress(System, tag="task_progress"):
    """A subagent has used a tool."""

    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    description: str = ""
    subagent_type: str | None = None
    usage: TaskUsage | None = None
    last_tool_name: str | None = None
    summary: str | None = None


class TaskPatch(Part):
    """The members of a task that have changed."""

    status: TaskStatus | None = None
    description: str | None = None
    end_time: Number | None = None
    total_paused_ms: Number | None = None
    error: str | None = None
    is_backgrounded: bool | None = None


class TaskUpdated(System, tag="task_updated"):
    """A task has changed. Its end may be reported only here."""

    task_id: str
    run_id: str | None = None
    patch: TaskPatch = TaskPatch()


class TaskNotification(System, tag="task_notification"):
    """A task has ended. From 2.1.62 on the CLI then begins a turn that no prompt asked for."""

    untyped: ClassVar[frozenset[str]] = name_set("handback handback_report")

    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    status: TaskEnd = TaskEnd.COMPLETED
    reason: str | None = None
    output_file: str = ""
    summary: str = ""
    usage: TaskUsage | None = None
    resource_links: tuple[ResourceLink, ...] = ()
    skip_transcript: bool | None = None
    ambient: bool | None = None


class BackgroundTask(Part):
    """A task that runs in the background."""

    task_id: str = ""
    run_id: str | None = None
    task_type: str = ""
    subagent_type: str | None = None
    description: str = ""
    parent_task_id: str | None = None
    ambient: bool | None = None


class BackgroundTasksChanged(System, tag="background_tasks_changed"):
    """The complete set of background tasks."""

    tasks: tuple[BackgroundTask, ...] = ()
