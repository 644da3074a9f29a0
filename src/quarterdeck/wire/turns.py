"""The turn of each message, the prompts of a turn, and its cost.

Results do not match prompts one to one. Prompts sent while a tool runs are added to the running
turn. Prompts queued while text streams run one by one on old versions, and in one turn on new ones.
A finished background task starts a turn without a prompt. A hook may drop a prompt. So the ledger
does not count. It uses the CLI's reports about each prompt, in this order of preference:

1. the result's own list of prompts (newest versions);
2. the prompt's echo (`--replay-user-messages`), which comes when a turn takes the prompt;
3. `command_lifecycle` (newest versions, for prompts with a uuid);
4. otherwise, a result that no background task explains ends the oldest prompt. Up to 2.1.120,
   commands that the CLI runs itself (`/cost`) and prompts that a hook dropped are not echoed, so
   this rule ends them.

Versions up to 2.1.112 lose what they say while their connection is down. The result of a turn may
be lost, too, so after such a loss the open turn is in doubt: another turn that begins ends it,
without a result.

Cost and model usage are totals of the process; `Totals` computes the difference for each turn. The
totals restart with each process, so also after a resume, and with `/clear`.
"""

from __future__ import annotations

import math

from msgspec import Struct, field

from quarterdeck.domain.structs import Mutable
from quarterdeck.wire.base import Message
from quarterdeck.wire.content import ToolResultBlock
from quarterdeck.wire.internal import CommandLifecycle
from quarterdeck.wire.messages import Assistant, ConversationReset, Result, StreamEvent, User
from quarterdeck.wire.reports import ModelUsage
from quarterdeck.wire.system import Init, SessionStateChanged
from quarterdeck.wire.tasks import TaskNotification
from quarterdeck.wire.versions import Version, starts_turns_itself

_TASK = "task-notification"
_NO_MODEL = "<synthetic>"
"""The model of an answer that the CLI wrote itself."""
MOST_REPORTS = 1000
"""A CLI that reports tasks and begins no turn for them must not fill the memory."""
_NEVER_RUN = frozenset({"cancelled", "discarded", "refused"})
OBSERVED = frozenset(
    {
        Init,
        StreamEvent,
        Assistant,
        User,
        CommandLifecycle,
        TaskNotification,
        Result,
        SessionStateChanged,
        ConversationReset,
    }
)
"""The messages that `TurnLedger.observe` reads. Others change no prompt and no turn."""


class Turn(Struct, frozen=True):
    """A finished turn.

    `prompts` are the uuids of its prompts, oldest first; empty if the CLI started it by itself.
    `result` is missing if the CLI went idle without one. `cost_usd` and `models` (the usage of each
    model) are this turn's own.
    """

    prompts: tuple[str, ...]
    result: Result | None
    cost_usd: float
    models: dict[str, ModelUsage] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the turn ended in an error, of whatever kind."""
        return self.result is None or self.result.failed


class PromptTaken(Struct, frozen=True):
    """The turn that is open has taken in this prompt."""

    uuid: str


class PromptDropped(Struct, frozen=True):
    """A prompt will never run: it was cancelled in the queue, or lost with the link."""

    uuid: str
    state: str


class TurnEnded(Struct, frozen=True):
    """A turn is over."""

    turn: Turn


TurnEvent = PromptTaken | PromptDropped | TurnEnded


class Totals(Mutable):
    """The totals of one process, from its last result."""

    _cost: float = 0.0
    _models: dict[str, ModelUsage] = field(default_factory=dict)

    def reset(self) -> None:
        """The CLI counts from nothing again."""
        self._cost = 0.0
        self._models = {}

    def take(self, result: Result) -> tuple[float, dict[str, ModelUsage]]:
        """The usage since the last result: the cost, and the usage of each model."""
        total = _number(result.total_cost_usd)
        cost, self._cost = _since(self._cost, total), total
        used: dict[str, ModelUsage] = {}
        for name, model in result.model_usage.items():
            before = self._models.get(name, _NOTHING)
            if model.output_tokens < before.output_tokens or model.cost_usd < before.cost_usd:
                before = _NOTHING
            if (spent := _difference(before, model)) != _NOTHING:
                used[name] = spent
        if result.model_usage:
            self._models = dict(result.model_usage)
        return cost, used


class TurnLedger(Mutable):
    """Keeps the account of prompts and turns of one CLI process."""

    _queued: dict[str, None] = field(default_factory=dict)
    _taken: dict[str, None] = field(default_factory=dict)
    _open: bool = False
    _in_doubt: bool = False
    """Whether messages were lost since the open turn began, so that it may be over."""
    _model_spoke: bool = False
    _starts_turns: bool = True
    _reports: dict[str, None] = field(default_factory=dict)
    """Background tasks that have ended, and whose turn has not been seen yet."""
    _totals: Totals = field(default_factory=Totals)

    @property
    def in_turn(self) -> bool:
        """Whether a turn is open."""
        return self._open

    @property
    def queued(self) -> tuple[str, ...]:
        """The uuids of prompts that were sent and that no turn has taken in yet."""
        return tuple(self._queued)

    @property
    def taken(self) -> tuple[str, ...]:
        """The uuids of the prompts that the open turn has taken in."""
        return tuple(self._taken)

    @property
    def busy(self) -> bool:
        """Whether a turn is open, or a prompt waits for one."""
        return self._open or bool(self._queued) or bool(self._taken)

    def prompt(self, uuid: str) -> None:
        """A prompt is being sent."""
        self._queued[uuid] = None

    def cancel(self, uuid: str) -> list[TurnEvent]:
        """The CLI has confirmed that it took a queued prompt back."""
        return self._drop(uuid, "cancelled")

    def observe(self, message: Message) -> list[TurnEvent]:
        """Process a message; return its events for prompts and turns."""
        match message:
            case Init(claude_code_version=version):
                # Every turn begins with one, and has no second one.
                lost = self._end_without_result() if self._in_doubt and self._taken else []
                self._open = True
                self._in_doubt = False
                self._starts_turns = starts_turns_itself(Version.parse(version))
                return lost
            case StreamEvent(parent_tool_use_id=None):
                # Those of a subagent may come between turns.
                self._open = True
                self._in_doubt = False
            case Assistant(parent_tool_use_id=None):
                self._open = True
                self._in_doubt = False
                self._note_reply(message)
            case User(is_replay=True, uuid=str(uuid)):
                return self._take(uuid)
            case User() if self._reports:
                self._settle(message)
            case CommandLifecycle(state="started", command_uuid=uuid):
                return self._take(uuid)
            case CommandLifecycle(state=state, command_uuid=uuid) if state in _NEVER_RUN:
                return self._drop(uuid, state)
            case TaskNotification(tool_use_id=call, task_id=task) if self._starts_turns:
                self._reports[call or task] = None
                if len(self._reports) > MOST_REPORTS:
                    del self._reports[next(iter(self._reports))]
            case Result():
                return self._end(message)
            case SessionStateChanged(state="idle"):
                return self.idle()
            case ConversationReset():
                self._totals.reset()
            case _:
                pass
        return []

    def messages_lost(self) -> None:
        """Messages of the CLI are lost for good: the open turn may be over."""
        self._in_doubt = self._open

    def end_all(self) -> tuple[str, ...]:
        """The link has ended: no prompt will run. Returns the prompts that were not done."""
        undone = (*self._taken, *self._queued)
        self._queued.clear()
        self._taken.clear()
        self._open = False
        return undone

    def _take(self, uuid: str) -> list[TurnEvent]:
        if uuid not in self._queued:
            return []
        del self._queued[uuid]
        self._taken[uuid] = None
        self._open = True
        return [PromptTaken(uuid)]

    def _drop(self, uuid: str, state: str) -> list[TurnEvent]:
        if uuid not in self._queued:
            return []
        del self._queued[uuid]
        return [PromptDropped(uuid, state)]

    def _end(self, result: Result) -> list[TurnEvent]:
        events: list[TurnEvent] = []
        for uuid in result.prompts:
            events += self._take(uuid)
        if not self._taken and self._queued and not self._is_own_turn(result):
            events += self._take(next(iter(self._queued)))
        prompts = tuple(self._taken)
        if not prompts and self._reports:
            del self._reports[next(iter(self._reports))]
        self._close()
        return [*events, TurnEnded(Turn(prompts, result, *self._totals.take(result)))]

    def _note_reply(self, message: Assistant) -> None:
        """Note whether the model has spoken in this turn; asked only where it may matter."""
        if self._reports and not self._taken and not self._model_spoke:
            failed = message.error is not None
            self._model_spoke = failed or message.message.model != _NO_MODEL

    def _settle(self, message: User) -> None:
        """A task that ends before the result of its call ran in the foreground: no turn follows."""
        for block in message.message.blocks:
            if isinstance(block, ToolResultBlock):
                self._reports.pop(block.tool_use_id, None)

    def _is_own_turn(self, result: Result) -> bool:
        """Whether a result without a prompt belongs to a background task.

        The newest CLI reports it. For 2.1.62 to 2.1.120 it is a guess: a task has ended, and the
        model was called, which it is not for prompts without an echo.
        """
        if result.origin is not None:
            return getattr(result.origin, "kind", None) == _TASK
        return bool(self._reports) and (self._model_spoke or result.failed)

    def idle(self) -> list[TurnEvent]:
        """The CLI is idle: a turn that is still open has ended."""
        self._reports.clear()
        # `idle` comes after the result. If a turn is still open, its result was lost.
        if not self._taken:
            self._close()
            return []
        return self._end_without_result()

    def _end_without_result(self) -> list[TurnEvent]:
        prompts = tuple(self._taken)
        self._close()
        return [TurnEnded(Turn(prompts, None, 0.0))]

    def _close(self) -> None:
        self._taken.clear()
        self._open = False
        self._in_doubt = False
        self._model_spoke = False


_NOTHING = ModelUsage()


def _since(before: float, total: float) -> float:
    # A total below the last one means that the CLI restarted its count.
    return total - before if total >= before else total


def _difference(before: ModelUsage, now: ModelUsage) -> ModelUsage:
    return ModelUsage(
        input_tokens=_count(now.input_tokens - before.input_tokens),
        output_tokens=_count(now.output_tokens - before.output_tokens),
        cache_read_input_tokens=_count(
            now.cache_read_input_tokens - before.cache_read_input_tokens
        ),
        cache_creation_input_tokens=_count(
            now.cache_creation_input_tokens - before.cache_creation_input_tokens
        ),
        web_search_requests=_count(now.web_search_requests - before.web_search_requests),
        cost_usd=max(_number(now.cost_usd) - _number(before.cost_usd), 0.0),
    )


def _number(value: float | None) -> float:
    number = float(value or 0)
    return number if math.isfinite(number) and number >= 0 else 0.0


def _count(value: float) -> int:
    return int(value) if math.isfinite(value) and value > 0 else 0
