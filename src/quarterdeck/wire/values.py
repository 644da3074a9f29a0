"""Values with behaviour of their own, as members of declared structs.

`tasks` and `permissions` declare the structs that hold them.
"""

from __future__ import annotations

from quarterdeck.wire.base import OpenEnum, Part


class PermissionRule(Part, rename="camel"):
    """A tool, or only such calls of it as `rule_content` matches: `Bash(git status:*)`."""

    tool_name: str
    rule_content: str | None = None

    def __str__(self) -> str:
        content = self.rule_content
        return self.tool_name if content is None else f"{self.tool_name}({content})"


class TaskStatus(OpenEnum):
    """The status of a task."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of the task."""
        return self in {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.KILLED}
