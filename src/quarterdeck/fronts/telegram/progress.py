"""What an agent is doing, folded from a session's events into one short text. Pure.

A turn starts, has actions, and is completed exactly once: `SessionProgress.take` then gives a
`Completed`. A turn is known by the number of its first event, so that a fold which begins again
there after a restart gives the same names. Turns that nobody prompted have no prompts.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.chats import Verbosity
from quarterdeck.fronts.telegram.display import Leaves, safe, safe_line
from quarterdeck.fronts.telegram.text import Part, bold, code, join
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.coded_texts import end_text, with_texts
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import EventShape
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.messages import Assistant
from quarterdeck.wire.tools import ActionKind, describe

MOST_ACTIONS = 200
"""Actions of a turn that are kept; older ones are counted."""
SHOWN: dict[Verbosity, int] = {"quiet": 0, "normal": 5, "verbose": 15}
TITLE = 120
TAIL = 600
"""Characters of the text that is being written that a draft shows."""

ICONS: dict[ActionKind, str] = {
    ActionKind.COMMAND: "💻",
    ActionKind.FILE_CHANGE: "📝",
    ActionKind.TOOL: "🔧",
    ActionKind.WEB_SEARCH: "🌐",
    ActionKind.NOTE: "🗒",
}
_MARKS = {"running": "…", "done": "✓", "failed": "✗"}
_STATES: dict[SessionState, str] = {
    SessionState.STARTING: "starting",
    SessionState.WAITING: "waiting for an answer",
    SessionState.COMPACTING: "compacting the conversation",
    SessionState.RETRYING: "retrying",
    SessionState.LIMITED: "rate limited",
    SessionState.DISCONNECTED: "disconnected",
}


class Action(Struct):
    """A tool call of the turn."""

    call: str
    kind: ActionKind
    title: str
    state: Literal["running", "done", "failed"] = "running"
    inner: bool = False
    """A subagent made it."""


class Completed(Value):
    """The end of a turn."""

    turn: int
    prompts: tuple[str, ...]
    failed: bool
    text: str
    """The result, else the last text of the model."""
    reason: str
    """Why it failed; empty otherwise."""
    cost_usd: float
    seconds: float
    actions: int


class Turn(Struct):
    """A turn that is running."""

    first: int
    """The number of its first event."""
    began: int
    """In ms since 1970."""
    prompts: list[str] = msgspec.field(default_factory=list)
    actions: dict[str, Action] = msgspec.field(default_factory=dict)
    count: int = 0
    last_text: str = ""
    state: SessionState = SessionState.WORKING
    detail: str = ""
    asks: int = 0
    live: str = ""
    """The text that is being written."""

    @property
    def visible(self) -> bool:
        """Whether there is anything to tell: a prompt or an action."""
        return bool(self.prompts or self.count)


class SessionProgress:
    """The fold of one session."""

    def __init__(self) -> None:
        self.turn: Turn | None = None
        self.queued: list[str] = []
        """Prompts that are not sent yet, as far as they were seen."""

    def take(self, shape: EventShape) -> Completed | None:
        """The next event. Gives the end of a turn when one has ended."""
        match shape.event:
            case ev.PromptQueued(prompt=prompt):
                self.queued.append(prompt)
            case ev.PromptCancelled(prompt=prompt):
                self._dequeue(prompt)
            case ev.PromptSent(prompt=prompt) | ev.PromptTaken(prompt=prompt):
                self._dequeue(prompt)
                turn = self._begin(shape)
                if prompt not in turn.prompts:
                    turn.prompts.append(prompt)
            case ev.ToolStarted(call=call, tool=tool, title=title, agent=agent):
                self._start_call(self._begin(shape), call, tool, title, inner=agent is not None)
            case ev.ToolEnded(call=call, failed=failed) if self.turn is not None:
                action = self.turn.actions.get(call)
                if action is not None:
                    action.state = "failed" if failed else "done"
            case ev.StateChanged(state=state) as changed:
                if state is SessionState.WORKING:
                    self._begin(shape)
                if self.turn is not None:
                    self.turn.state, self.turn.detail = state, with_texts(changed).detail
                    if state is SessionState.IDLE and not self.turn.visible:
                        self.turn = None  # only its state had changed
            case ev.Said(line=line) | ev.Recalled(line=line) if self.turn is not None:
                if text := _text_of(line):
                    self.turn.last_text, self.turn.live = text, ""
            case ev.AskOpened() if self.turn is not None:
                self.turn.asks += 1
            case ev.AskAnswered() | ev.AskWithdrawn() if self.turn is not None:
                self.turn.asks = max(0, self.turn.asks - 1)
            case ev.TurnEnded() as ended:
                return self._end_turn(shape, ended)
            case ev.RunEnded() as ended if self.turn is not None:
                return self._cut_off(shape, end_text(ended))
            case _:
                pass
        return None

    def write(self, text: str, *, whole: bool = False) -> None:
        """Text is being written in the turn; `whole` replaces what was written before."""
        if self.turn is not None:
            live = text if whole else self.turn.live + text
            self.turn.live = live[-4 * TAIL :]

    def _dequeue(self, prompt: str) -> None:
        if prompt in self.queued:
            self.queued.remove(prompt)

    def _begin(self, shape: EventShape) -> Turn:
        if self.turn is None:
            self.turn = Turn(first=shape.seq, began=shape.at)
        return self.turn

    def _start_call(self, turn: Turn, call: str, tool: str, title: str, *, inner: bool) -> None:
        if call in turn.actions:
            return
        turn.count += 1
        kind = describe(tool, Raw(b"{}")).kind
        turn.actions[call] = Action(call=call, kind=kind, title=title or tool, inner=inner)
        while len(turn.actions) > MOST_ACTIONS:
            del turn.actions[next(iter(turn.actions))]

    def _end_turn(self, shape: EventShape, ended: ev.TurnEnded) -> Completed:
        turn, self.turn = self._begin(shape), None
        seconds = (shape.at - turn.began) / 1000
        if ended.duration_ms is not None and seconds <= 0:
            seconds = ended.duration_ms / 1000
        return Completed(
            turn=turn.first,
            prompts=ended.prompts or tuple(turn.prompts),
            failed=ended.failed,
            text=ended.text or turn.last_text,
            reason=ended.outcome if ended.failed else "",
            cost_usd=ended.cost_usd,
            seconds=seconds,
            actions=max(ended.tool_calls, turn.count),
        )

    def _cut_off(self, shape: EventShape, reason: str) -> Completed | None:
        turn, self.turn = self.turn, None
        if turn is None or not turn.visible:
            return None
        return Completed(
            turn=turn.first,
            prompts=tuple(turn.prompts),
            failed=True,
            text=turn.last_text,
            reason=reason,
            cost_usd=0.0,
            seconds=(shape.at - turn.began) / 1000,
            actions=turn.count,
        )


def _text_of(line: Raw) -> str:
    """The text of an assistant's message; empty for every other line."""
    if b'"assistant"' not in bytes(line)[:400]:
        return ""  # cheaper than decoding each line
    message = from_cli(bytes(line))
    if not isinstance(message, Assistant) or message.parent_tool_use_id is not None:
        return ""
    return message.text.strip()


# --- words ---------------------------------------------------------------------------------------


def progress_text(
    turn: Turn,
    *,
    name: str,
    now: int,
    verbose: Verbosity = "normal",
    leaves: Leaves | None = None,
    cost_usd: float = 0.0,
) -> Part:
    """The text of the message that is edited in place, or of a draft."""
    leaves = leaves or Leaves()
    head = _STATES.get(turn.state, "working")
    pieces: list[Part | str] = [
        bold(safe_line(name, 60)),
        f" · {head} · ",
        duration(now - turn.began),
    ]
    if turn.detail and turn.state in _STATES:
        pieces.append(f" · {safe_line(turn.detail, 100)}")
    if cost_usd:
        pieces.append(f" · {money(cost_usd)}")
    if turn.asks:
        pieces.append(f"\n❓ open questions: {turn.asks}")
    pieces += _actions(turn, SHOWN[verbose], leaves)
    if turn.live.strip() and leaves.answers and verbose != "quiet":
        pieces += ["\n\n", safe_tail(turn.live)]
    return join(pieces)


def _actions(turn: Turn, most: int, leaves: Leaves) -> list[Part | str]:
    if not most or not turn.count:
        return [f"\n{turn.count} actions"] if turn.count else []
    kept = list(turn.actions.values())[-most:]
    pieces: list[Part | str] = []
    if turn.count > len(kept):
        pieces.append(f"\n({turn.count - len(kept)} actions before)")
    for action in kept:
        indent = "   " if action.inner else ""
        pieces.append(f"\n{indent}{ICONS[action.kind]} {_MARKS[action.state]} ")
        pieces.append(_title(action, leaves))
    return pieces


def _title(action: Action, leaves: Leaves) -> Part | str:
    if not leaves.commands and action.kind in {ActionKind.COMMAND, ActionKind.WEB_SEARCH}:
        return action.kind.value.replace("_", " ")
    title = safe_line(action.title, TITLE)
    return code(title) if action.kind is ActionKind.COMMAND else title


def completed_line(done: Completed) -> str:
    """The end of a turn in one line, without its text."""
    facts = [duration(int(done.seconds * 1000))]
    if done.actions:
        facts.append(f"{done.actions} {'action' if done.actions == 1 else 'actions'}")
    if done.cost_usd:
        facts.append(money(done.cost_usd))
    mark = f"❌ failed ({safe_line(done.reason, 200)})" if done.failed else "✅ done"
    return " · ".join([mark, *facts])


def duration(milliseconds: int) -> str:
    """A time as people say it: `12 s`, `3 min 5 s`, `2 h 10 min`."""
    seconds = max(0, milliseconds // 1000)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def money(usd: float) -> str:
    """An amount: cents where it matters."""
    return f"${usd:.2f}" if usd >= 0.095 else f"${usd:.4f}".rstrip("0").rstrip(".")


def safe_tail(text: str) -> str:
    """The end of a text that is being written."""
    text = text.strip()
    if len(text) <= TAIL:
        return safe(text)
    # Cut after it is masked: without its beginning, a secret is not recognised.
    return "…" + safe(text[-4 * TAIL :])[-TAIL:]
