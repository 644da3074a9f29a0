"""Commands about tasks that run beside the conversation."""

from __future__ import annotations

from typing import ClassVar

from quarterdeck.wire.base import Number, Part
from quarterdeck.wire.commands.base import Command, Empty


class StopTask(Command[Empty], tag="stop_task"):
    """Stop a task. An id that is not known is an error up to 2.1.150, and a success later."""

    since: ClassVar[int | None] = 52

    task_id: str


class BackgroundAnswer(Part):
    """Whether anything went to the background."""

    backgrounded: bool | None = None


class BackgroundTasks(Command[BackgroundAnswer], tag="background_tasks"):
    """Move foreground tasks to the background: one call, or all."""

    since: ClassVar[int | None] = 150

    tool_use_id: str | None = None


class TaskOutput(Part):
    """The end of a task's output, at most 8 KiB."""

    output: str = ""
    total_bytes: Number = 0
    truncated: bool = False


class GetTaskOutput(Command[TaskOutput], tag="get_task_output"):
    """Ask for the output of a shell task."""

    since: ClassVar[int | None] = 325

    task_id: str


class ShellTaskAnswer(Part):
    """`status` is `started` or `denied`."""

    status: str = ""
    task_id: str | None = None
    message: str | None = None


class StartShellTask(Command[ShellTaskAnswer], tag="start_shell_task"):
    """Run a command as a task. Answered in the maker's cloud only, never over a pipe."""

    since: ClassVar[int | None] = None

    command: str
    args: tuple[str, ...] | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    timeout_ms: Number | None = None
    description: str | None = None
