"""What still runs after a turn: background shells, subagents, and turns that they start.

Tracks it from the messages of the CLI alone. A command or a loop that runs an agent goes on only
when nothing is left.
"""

from __future__ import annotations

import anyio

from quarterdeck.wire.base import Message
from quarterdeck.wire.content import ToolResultBlock
from quarterdeck.wire.messages import Assistant, Result, User
from quarterdeck.wire.system import Init, SessionState, SessionStateChanged
from quarterdeck.wire.tasks import (
    BackgroundTasksChanged,
    TaskNotification,
    TaskStarted,
    TaskUpdated,
)
from quarterdeck.wire.tools import one_line


class Background:
    """The running tasks of one CLI."""

    def __init__(self) -> None:
        self.running: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._spoken: set[str] = set()
        self._idle: bool | None = None
        self._in_turn = False
        self._owed = False
        self._changed = anyio.Event()

    @property
    def quiet(self) -> bool:
        """Whether nothing runs, as far as is known: old versions do not say so."""
        return not self.running and not self._owed and self._idle is not False

    def observe(self, message: Message) -> None:
        """Track a message."""
        before = len(self.running)
        match message:
            case Init():
                self._in_turn = True
            case Result():
                self._in_turn = self._owed = False
            case TaskStarted(task_id=task_id, ambient=ambient) if not ambient:
                self.running[task_id] = one_line(message.description, 80)
                if message.tool_use_id:
                    self._calls[message.tool_use_id] = task_id
            case Assistant(parent_tool_use_id=str(call)) | User(parent_tool_use_id=str(call)):
                self._spoken.add(call)
                return
            case User():
                self._end_foreground(message)
                return
            case TaskNotification(task_id=task_id):
                self.running.pop(task_id, None)
            case TaskUpdated(task_id=task_id, patch=patch) if patch.status and patch.status.ended:
                self.running.pop(task_id, None)
            case BackgroundTasksChanged(tasks=tasks):
                self.running = {
                    task.task_id: one_line(task.description, 80)
                    for task in tasks
                    if not task.ambient
                }
            case SessionStateChanged(state=state):
                self._idle = state is SessionState.IDLE
            case _:
                return
        if before and not self.running and not self._in_turn:
            # From 2.1.62 on the CLI starts a turn to report on finished tasks.
            self._owed = True
        self._changed.set()
        self._changed = anyio.Event()

    def _end_foreground(self, message: User) -> None:
        """A call with messages before its result ran in the foreground, and has ended with it.

        2.1.62 reports the end of a subagent in no other way. A background task has it first.
        """
        for block in message.blocks:
            if isinstance(block, ToolResultBlock) and block.tool_use_id in self._spoken:
                self.running.pop(self._calls.pop(block.tool_use_id, ""), None)

    async def change(self, seconds: float | None) -> bool:
        """Wait until something has changed, or for so long; False if nothing has."""
        changed = self._changed
        with anyio.move_on_after(seconds):
            await changed.wait()
        return changed.is_set()
