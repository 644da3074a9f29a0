"""Whether a run is alive: its last sign of life, and what explains its silence. Pure.

Owns the alarms of a run that goes on. A line of any kind is life: a delta, a keep-alive, the
progress of a task. Silence is no alarm while something explains it: a question that is open, a tool
that runs, a background task, a retry of the API, a limit of the account. What is left is a CLI that
should have said something:

- `silent_after_tool`: a tool gave its result, and then nothing came;
- `no_reaction`: a permission was answered, and the CLI does nothing with it;
- `no_result`: a turn is open, and neither a word nor its end comes;
- `no_exit`: it was stopped, and does not end.

Each is answered in steps, and only with what is safe: an answer may be said twice, a turn that says
nothing may be interrupted, and what does not take that either may be ended, for a session can be
resumed. `supervisor` does these things and journals them, so that the next hub goes on at the same
step; `crashes` checks the ends of runs.
"""

from __future__ import annotations

from msgspec import field

from quarterdeck.domain.coded import AlarmAct, CodedText, TextCode
from quarterdeck.domain.structs import Mutable, Value
from quarterdeck.protocol.accounts import Account
from quarterdeck.protocol.events import AskOpened
from quarterdeck.wire.base import Message
from quarterdeck.wire.content import ToolResultBlock, ToolUseBlock
from quarterdeck.wire.messages import Assistant, RateLimitEvent, Result, User
from quarterdeck.wire.reports import RateLimitStatus
from quarterdeck.wire.system import ApiRetry
from quarterdeck.wire.tasks import (
    BackgroundTasksChanged,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
)

SILENT_AFTER_TOOL = "silent_after_tool"
NO_REACTION = "no_reaction"
NO_RESULT = "no_result"
NO_EXIT = "no_exit"
UNSTOPPABLE = "unstoppable"
"""Its turn was interrupted for a budget, and went on."""

_OF_SILENCE = frozenset({SILENT_AFTER_TOOL, NO_REACTION, NO_RESULT})

QUICK_TOOLS = frozenset(
    {
        "AskUserQuestion",
        "Edit",
        "EnterPlanMode",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "LS",
        "MultiEdit",
        "NotebookEdit",
        "NotebookRead",
        "Read",
        "TodoWrite",
        "Write",
    }
)
"""Tools that have ended a moment after they were allowed. All others may run for hours."""

_OF_TASKS = frozenset(
    {TaskStarted, TaskProgress, TaskNotification, TaskUpdated, BackgroundTasksChanged}
)
_OF_TURNS = frozenset({Assistant, User, Result, ApiRetry, RateLimitEvent})
MOST_CALLS = 1000
"""Tools and tasks that run at the same time. A CLI that never reports an end must not fill the
memory."""

NO_CONVERSATION = "No conversation found"
"""What the CLI says to `--resume` with an id that it does not know."""

_LOCAL_OUTPUT = "<local-command-stdout>"


class Timeouts(Value, forbid_unknown_fields=True):
    """How long silence is borne before it is an alarm, in seconds."""

    after_tool: float = 600.0
    """After a tool's result. Old CLIs say nothing while they try the API again, for minutes."""
    result: float = 900.0
    """In the midst of a turn, or at its end."""
    answer: float = 60.0
    """After a permission was answered, where the CLI has to do something at once."""
    exit: float = 60.0
    """After a stop. The machine has means of its own, which take less."""
    recover: bool = True
    """Whether something is done about an alarm: first the turn is interrupted, then the run is
    ended, each after as long again. Without it, alarms only ring."""


_STEPS = {
    SILENT_AFTER_TOOL: (AlarmAct.RING, AlarmAct.TURN_INTERRUPTED, AlarmAct.RUN_ENDED),
    NO_REACTION: (AlarmAct.ANSWER_REPEATED, AlarmAct.TURN_INTERRUPTED, AlarmAct.RUN_ENDED),
    NO_RESULT: (AlarmAct.RING, AlarmAct.TURN_INTERRUPTED, AlarmAct.RUN_ENDED),
    NO_EXIT: (AlarmAct.RUN_KILLED,),
}


class Finding(Value):
    """An alarm, and what is to be done about it now."""

    alarm: str
    coded: CodedText
    act: AlarmAct


class _Answer(Value):
    request_id: str
    tool: str
    allowed: bool

    @property
    def quick(self) -> bool:
        """Whether the CLI has to do something at once."""
        return not self.allowed or self.tool in QUICK_TOOLS


class Watch(Mutable):
    """The signs of life of one run."""

    _last: int = 0
    _tools: dict[str, str] = field(default_factory=dict)
    _tasks: dict[str, None] = field(default_factory=dict)
    _explained: int = 0
    _after_tool: bool = False
    _answer: _Answer | None = None
    _asks: dict[str, tuple[str, str]] = field(default_factory=dict)
    answered_for: bool = False
    """Whether a turn of this run has had an answer, or was interrupted."""
    found_nothing: bool = False
    """Whether the CLI does not know the conversation that it was to resume."""

    def receive(self, message: Message, at: int) -> None:
        """Take note of a message, at a time in ms. The CLI lives."""
        self.lives(at)
        kind = type(message)
        if kind in _OF_TASKS:
            self._receive_task(message)
        elif kind in _OF_TURNS:
            self._receive_turn(message, at)

    def _receive_turn(self, message: Message, at: int) -> None:
        match message:
            case Assistant():
                self._after_tool = False
                self.answered_for = True
                for block in message.blocks:
                    if isinstance(block, ToolUseBlock):
                        self._tools[block.id] = block.name
                        if len(self._tools) > MOST_CALLS:
                            del self._tools[next(iter(self._tools))]
            case User():
                done = [b.tool_use_id for b in message.blocks if isinstance(b, ToolResultBlock)]
                for call in done:
                    self._tools.pop(call, None)
                self._after_tool = self._after_tool or bool(done)
                if _LOCAL_OUTPUT in message.text:  # how old versions tell what a command printed
                    self.answered_for = True
            case Result():
                self.found_nothing = any(NO_CONVERSATION in each for each in message.errors)
                self._tools.clear()
                self._after_tool = False
                self._explained = 0
            case ApiRetry(retry_delay_ms=delay):
                self._explained = max(self._explained, at + int(delay))
            case RateLimitEvent(rate_limit_info=info):
                if info.status is RateLimitStatus.REJECTED and info.resets_at:
                    self._explained = max(self._explained, int(info.resets_at) * 1000)
            case _:
                pass

    def lives(self, at: int) -> None:
        """It has said something, at a time in ms, and be it a piece of text."""
        if at > self._last:
            self._last = at
        self._answer = None

    def asked_to(self, subtype: str) -> None:
        """A request is sent: a turn that is interrupted need not have an answer."""
        self.answered_for = self.answered_for or subtype == "interrupt"

    def touch(self, at: int) -> None:
        """Silence is counted from now on: we did something, or the link was down."""
        self._last = max(self._last, at)

    def note_ask(self, opened: AskOpened) -> None:
        """A person is asked."""
        self._asks[opened.ask] = (opened.request_id, opened.tool)

    def note_answer(self, ask: str, at: int, *, allowed: bool) -> None:
        """A person has answered; of questions of other runs nothing is known here."""
        if (asked := self._asks.pop(ask, None)) is not None:
            self.note_settled(*asked, at, allowed=allowed)

    def withdrawn(self, ask: str) -> None:
        """A question is withdrawn."""
        self._asks.pop(ask, None)

    def note_settled(self, request_id: str, tool: str, at: int, *, allowed: bool) -> None:
        """A permission was answered, by a person or by policy."""
        self.touch(at)
        self._answer = _Answer(request_id=request_id, tool=tool, allowed=allowed)

    @property
    def unheeded(self) -> str | None:
        """The request whose answer the CLI has not reacted to."""
        return None if self._answer is None else self._answer.request_id

    def ended_alarms(self, account: Account) -> list[str]:
        """The alarms that are over, since the CLI has shown life again."""
        return [
            name
            for name, alarm in account.alarms.items()
            if name in _OF_SILENCE and alarm.at < self._last
        ]

    def check(
        self, now: int, timeouts: Timeouts, account: Account, *, in_turn: bool, asking: bool
    ) -> list[Finding]:
        """What is wrong at a time in ms, and was not done before."""
        if account.stopping:
            return self._step(NO_EXIT, account, now, account.stopping, timeouts.exit, timeouts)
        if not in_turn or asking or self._tasks or now < self._explained:
            return []
        since = max(self._last, self._explained)
        if self._answer is not None and self._answer.quick:
            return self._step(NO_REACTION, account, now, since, timeouts.answer, timeouts)
        if self._tools:
            return []  # a tool that runs long is no silence
        if self._after_tool:
            return self._step(SILENT_AFTER_TOOL, account, now, since, timeouts.after_tool, timeouts)
        return self._step(NO_RESULT, account, now, since, timeouts.result, timeouts)

    def _step(
        self,
        alarm: str,
        account: Account,
        now: int,
        since: int,
        seconds: float,
        timeouts: Timeouts,
    ) -> list[Finding]:
        """The next step of an alarm that is due: the first after `seconds`, then as long again."""
        steps = _STEPS[alarm]
        if not timeouts.recover and alarm in _OF_SILENCE:
            steps = (AlarmAct.RING,)
        ringing = account.alarms.get(alarm)
        done = 0
        if ringing is not None and ringing.at >= since:
            done = next((i + 1 for i, step in enumerate(steps) if step == ringing.act), 1)
        if done >= len(steps) or now < since + (done + 1) * seconds * 1000:
            return []
        coded = CodedText(code=_CODES[alarm], seconds=(now - since) // 1000)
        return [Finding(alarm=alarm, coded=coded, act=steps[done])]

    def _receive_task(self, message: Message) -> None:
        match message:
            case TaskProgress(task_id=task) | TaskStarted(task_id=task):
                self._tasks[task] = None
                if len(self._tasks) > MOST_CALLS:
                    del self._tasks[next(iter(self._tasks))]
            case TaskNotification(task_id=task):
                self._tasks.pop(task, None)
            case TaskUpdated(task_id=task, patch=patch):
                if patch.status is not None and patch.status.ended:
                    self._tasks.pop(task, None)
            case BackgroundTasksChanged(tasks=tasks):
                self._tasks = {task.task_id: None for task in tasks}
            case _:
                pass


_CODES = {
    SILENT_AFTER_TOOL: TextCode.SILENT_AFTER_TOOL,
    NO_REACTION: TextCode.NO_REACTION,
    NO_RESULT: TextCode.NO_RESULT,
    NO_EXIT: TextCode.STILL_RUNS,
}
