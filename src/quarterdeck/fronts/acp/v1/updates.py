"""What happens in a session, as the session updates of ACP. Pure.

`Translator` takes the hub's events, views and live text of one session in their order. Text is sent
as it is generated; the message that follows adds what was not sent yet. What an event means to a
person is decided by `history.story`; here it gets the form that editors show.
"""

from __future__ import annotations

from collections.abc import Callable

from acp import schema
from msgspec.structs import replace

from quarterdeck.fronts.acp.v1 import settings
from quarterdeck.fronts.acp.v1.settings import Known
from quarterdeck.fronts.acp.v1.tool_calls import (
    diffs_of,
    kind_of,
    locations_of,
    members_of,
    text_content,
)
from quarterdeck.history import story
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.holds import Offers, Todo
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import Deltas, EventShape, SessionShape
from quarterdeck.wire.tools import one_line

Update = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.AvailableCommandsUpdate
    | schema.CurrentModeUpdate
    | schema.ConfigOptionUpdate
    | schema.SessionInfoUpdate
    | schema.UsageUpdate
)

META = "quarterdeck"
"""The key of our own members in `_meta`."""
_TOLD = frozenset(
    {
        ev.RunEnded, ev.RateLimited, ev.StartAfresh, ev.BudgetReached, ev.PeerPrompted, ev.Alarmed,
        ev.AlarmEnded, ev.LinkLost, ev.LinkFound, ev.SandboxStarted, ev.SandboxRefused,
        ev.SaidBroken, ev.Noted, ev.SessionDeleted, ev.WorktreeSettled,
    }
)  # fmt: skip
"""Events whose notice an editor shows. Others have a form of their own, or only a person in front
of the whole hub needs them."""


class Translator:
    """Translates one session, as one editor sees it."""

    def __init__(self, known: Known, is_own: Callable[[str], bool] = lambda _: False) -> None:
        self.known = known
        self._is_own = is_own
        """Whether a prompt was sent by this editor, which shows it itself."""
        self._story = story.StoryFold()
        self._edits: set[str] = set()
        self._live: dict[tuple[str, int], _Written] = {}
        self._missed = False
        self._broken: str | None = None
        """A message of whose live text a part was missed."""

    # --- what holds ------------------------------------------------------------------------------

    def first_updates(self) -> list[Update]:
        """What an editor is told when it has opened the session."""
        shape = self.known.shape
        found: list[Update] = [settings.commands_update(self.known), settings.info_update(shape)]
        if (usage := settings.usage_update(shape)) is not None:
            found.append(usage)
        if shape.holds.todos:
            found.append(plan_update(shape.holds.todos))
        return found

    def _offer_updates(self, offers: Offers) -> list[Update]:
        """Other commands or models can be chosen."""
        if offers == self.known.offers:
            return []
        self.known.offers = offers
        return [settings.commands_update(self.known), settings.config_update(self.known)]

    def view(self, shape: SessionShape) -> list[Update]:
        """The session has changed: what an editor shows of that."""
        before, chosen, mode = (
            self.known.shape,
            self._selected_options(),
            settings.mode_update(self.known),
        )
        self.known.shape = shape
        found: list[Update] = []
        if self._selected_options() != chosen:
            found.append(settings.config_update(self.known))
        if settings.mode_update(self.known) != mode:
            found.append(settings.mode_update(self.known))
        usage = settings.usage_update(shape)
        if usage is not None and usage != settings.usage_update(before):
            found.append(usage)
        if (shape.name, shape.last_turn) != (before.name, before.last_turn):
            found.append(settings.info_update(shape))
        return found

    def _selected_options(self) -> list[schema.SessionConfigOptionSelect]:
        return settings.config_options(self.known)

    # --- what happens ----------------------------------------------------------------------------

    def event(self, shape: EventShape) -> list[Update]:
        """The updates of the next event."""
        event = shape.event
        found: list[Update] = []
        for entry in self._story.entries(event, shape.at):
            found += self._entry(entry, event)
        match event:
            case ev.TodosChanged(todos=todos):
                found.append(plan_update(todos))
            case ev.Decided(verdict="allow", tool_use_id=str() as call):
                found.append(_progress(call, "in_progress"))
            case ev.TurnEnded() | ev.RunEnded():
                self._live.clear()
            case _:
                pass
        return found

    def offers_in(self, event: ev.OffersChanged) -> list[Update]:
        """The updates of changed offers."""
        given = {
            name: value
            for name in ("commands", "models", "agents")
            if (value := getattr(event, name)) is not None
        }
        return self._offer_updates(replace(self.known.offers, **given))

    def _entry(self, entry: story.AnyEntry, event: ev.Event) -> list[Update]:
        match entry:
            case story.Prompt(id=id_) if id_ and self._is_own(id_):
                return []
            case story.Prompt(text=text, by=by, others=others):
                more = f" (and {others} file{'s' if others > 1 else ''})" if others else ""
                return [_said_by_user(text + more, by)]
            case story.Answer(inner=False, text=text):
                return self._unsent_text(text, thinking=False)
            case story.Thinking(inner=False, text=text):
                return self._unsent_text(text, thinking=True)
            case story.Call():
                return [self._call(entry)]
            case story.Outcome():
                return [self._outcome(entry)]
            case story.Notice(code=story.CLI_TEXT, inner=False, text=text):
                return [agent_text(text)]
            case story.Notice(text=text, code=code) if _is_reported(event):
                return [notice(text, code)]
            case _:
                return []

    def _call(self, call: story.Call) -> Update:
        given = members_of(call.input)
        diffs = diffs_of(call.tool, given)
        if diffs:
            self._edits.add(call.id)
        return schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id=call.id,
            title=call.title,
            kind=kind_of(call.tool),
            status="pending",
            raw_input=given,
            locations=locations_of(given) or None,
            content=diffs or None,
            field_meta={META: {"tool": call.tool}},
        )

    def _outcome(self, outcome: story.Outcome) -> Update:
        """A result. The diff of a change stays where it succeeded: content replaces content."""
        is_edit = outcome.id in self._edits
        self._edits.discard(outcome.id)
        shown = outcome.text and (outcome.failed or not is_edit)
        return schema.ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=outcome.id,
            status="failed" if outcome.failed else "completed",
            content=[text_content(outcome.text)] if shown else None,
        )

    # --- text that is being generated ------------------------------------------------------------

    def live(self, frame: Live) -> list[Update]:
        """The updates of text that is being generated."""
        found: list[Update] = []
        for delta in frame.deltas:
            text = self._new_in(delta, whole=frame.whole)
            if text:
                found.append(_chunk(text, thinking=delta.thinking))
        return found

    def begun_by(self, frame: Live) -> set[str]:
        """The messages of which this is the first text that is told."""
        told = {message for message, _ in self._live}
        return {delta.message for delta in frame.deltas} - told - {self._broken}

    def miss_live(self) -> None:
        """Live text was missed: the message that is being generated is told when it is complete."""
        self._missed = True

    def _new_in(self, delta: Deltas, *, whole: bool) -> str:
        if self._missed:
            self._missed, self._broken = False, delta.message
        if delta.message == self._broken:
            return ""
        key = (delta.message, delta.block)
        written = self._live.setdefault(key, _Written(delta.thinking))
        if not whole:
            new = delta.text
        elif delta.text.startswith(written.text):
            new = delta.text[len(written.text) :]
        else:
            new = ""  # something was lost; the message will tell
        written.text += new
        return new

    def _unsent_text(self, text: str, *, thinking: bool) -> list[Update]:
        """A block is complete: the part of it that was not sent yet."""
        for key, written in self._live.items():
            if written.thinking is thinking and written.text and text.startswith(written.text):
                del self._live[key]
                rest = text[len(written.text) :]
                return [_chunk(rest, thinking=thinking)] if rest else []
        return [_chunk(text, thinking=thinking)]


class _Written:
    """A block that is being generated, and what was sent of it."""

    def __init__(self, thinking: bool) -> None:
        self.thinking = thinking
        self.text = ""


def is_of(message: str, event: ev.Event) -> bool:
    """Whether an event may be the message with this id, or a part of it."""
    return isinstance(event, ev.Said) and message.encode() in bytes(event.line)


def _is_reported(event: ev.Event) -> bool:
    match event:
        case ev.Decided(by="policy", verdict="deny", caller=None):
            return True
        case ev.RunEnded(clean=clean):
            return not clean
        case _:
            return type(event) in _TOLD


def answered_update(event: ev.AskAnswered | ev.AskWithdrawn, opened: ev.AskOpened) -> list[Update]:
    """A question was settled elsewhere: who did it, and how."""
    what = one_line(opened.title, 200) or one_line(opened.tool, 80)
    if isinstance(event, ev.AskWithdrawn):
        text = f"the question was withdrawn: {what} ({one_line(with_texts(event).reason, 300)})"
        return [notice(text, "ask.withdrawn", ask=event.ask)]
    verb = "allowed" if event.allowed else "denied"
    if opened.ask_kind in {ev.AskKind.QUESTIONS, ev.AskKind.ELICITATION}:
        verb = "answered" if event.allowed else "declined"
    by = one_line(event.by, 80)
    text = f"{verb} by {by}, elsewhere: {what}"
    return [notice(text, "ask.answered", ask=event.ask, by=by, allowed=event.allowed)]


def notice(text: str, code: str, **more: object) -> schema.AgentMessageChunk:
    """Something that happened, in the conversation. `code` tells programs what it is."""
    found = agent_text(f"\n*{text[:1].upper()}{text[1:]}.*\n")
    found.field_meta = {META: {"notice": code, **more}}
    return found


def agent_text(text: str) -> schema.AgentMessageChunk:
    """Text of the agent."""
    block = schema.TextContentBlock(type="text", text=text)
    return schema.AgentMessageChunk(session_update="agent_message_chunk", content=block)


def _chunk(text: str, *, thinking: bool) -> Update:
    if not thinking:
        return agent_text(text)
    block = schema.TextContentBlock(type="text", text=text)
    return schema.AgentThoughtChunk(session_update="agent_thought_chunk", content=block)


def _said_by_user(text: str, by: str) -> schema.UserMessageChunk:
    block = schema.TextContentBlock(type="text", text=text)
    return schema.UserMessageChunk(
        session_update="user_message_chunk", content=block, field_meta={META: {"by": by}}
    )


def _progress(call: str, status: schema.ToolCallStatus) -> schema.ToolCallProgress:
    return schema.ToolCallProgress(
        session_update="tool_call_update", tool_call_id=call, status=status
    )


def plan_update(todos: tuple[Todo, ...]) -> schema.AgentPlanUpdate:
    """The agent's to-do list, whole."""
    return schema.AgentPlanUpdate(
        session_update="plan", entries=[_plan_entry(each) for each in todos]
    )


def _plan_entry(todo: Todo) -> schema.PlanEntry:
    status: schema.PlanEntryStatus = "pending"
    if todo.status == "in_progress":
        status = "in_progress"
    elif todo.status == "completed":
        status = "completed"
    text = todo.doing if status == "in_progress" and todo.doing else todo.text
    return schema.PlanEntry(content=text, priority="medium", status=status)


def stop_reason(turn: ev.TurnEnded) -> schema.StopReason | None:
    """Why a turn ended, in the words of ACP; None for a failure, which is an error there."""
    if turn.problem == "interrupted" or turn.outcome.startswith("aborted"):
        return "cancelled"  # by a person, or by an answer that ends the turn
    if "max_turns" in turn.outcome:
        return "max_turn_requests"
    if turn.outcome == "refusal" or turn.problem == "refusal":
        return "refusal"
    return None if turn.failed else "end_turn"
