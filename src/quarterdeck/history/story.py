"""What a session's events mean to a person: events in, entries out. Pure.

The one place in Python that decides it, for every output: the terminal, exported files, and fronts
that send text. An output chooses the entries that it shows, and how they look. The web app folds
the same events in `web/src/state/story.ts`; the golden files are in `tests/fixtures/story`.

`read_event` takes one event. `StoryFold` takes events in order, splits the CLI's messages into
entries, and gives each result the title of its call.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.history.cli_lines import (
    Tone,
    Turns,
    cli_notice,
    command_in,
    command_of,
    command_output,
)
from quarterdeck.hub.supervision.budgets import sentence
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.wire.base import Message, UnknownPart
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.content import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserBody,
    decode_user_body,
)
from quarterdeck.wire.messages import Assistant, User
from quarterdeck.wire.notices import LocalCommandOutput
from quarterdeck.wire.tools import describe, one_line

CLI_TEXT = "cli.text"
"""The code of a notice with text that the CLI put into the conversation itself."""
CLI_NOTICE = "cli.notice"
"""The code of a notice that the CLI's own terminal would show."""
TURN_CAUSE = "turn.cause"
"""The code of a notice about why a turn begins that nobody prompted."""
NAME, REASON = 60, 300
"""Characters that a notice has of a name, and of a reason."""


class Entry(Value, tag_field="kind"):
    """The base of all entries. `at` is in ms since 1970; `inner`: a subagent did it."""

    at: int
    inner: bool = False


class Prompt(Entry, tag="prompt"):
    """A person's prompt. `others` counts the blocks without text: images, files.

    `id` is empty for a prompt that the CLI took before the session was ours.
    """

    text: str
    id: str = ""
    by: str = ""
    others: int = 0


class Answer(Entry, tag="text"):
    """Text of the model, or the output of the slash command `command`."""

    text: str
    command: str = ""


class Thinking(Entry, tag="thinking"):
    """Thoughts of the model."""

    text: str


class Call(Entry, tag="call"):
    """A tool call."""

    id: str
    tool: str
    title: str
    input: Raw


class Outcome(Entry, tag="outcome"):
    """The result of a tool call; `tool` and `title` are empty if the call is unknown."""

    id: str
    tool: str
    title: str
    text: str
    failed: bool = False


class Notice(Entry, tag="notice"):
    """Something that happened. `code` is the event's kind, or one of those above.

    `text` begins with a small letter and ends without a full stop, for any output to frame.
    `subject` is the question that it is about; `until` is a time in ms since 1970; `details` are
    more lines.
    """

    code: str
    text: str
    tone: Tone = "plain"
    subject: str = ""
    until: int | None = None
    details: tuple[str, ...] = ()


class Line(Entry, tag="line"):
    """A message of the CLI, whole, for outputs that show messages themselves."""

    message: Message


AnyEntry = Prompt | Answer | Thinking | Call | Outcome | Notice


class StoryFold:
    """Folds one session's events, in their order."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, str]] = {}
        self._command = ""
        self._silent = False
        self._turns = Turns()

    def entries(self, event: ev.Event, at: int) -> Iterator[AnyEntry]:
        """The entries of the next event."""
        found = read_event(event, at)
        message = found.message if isinstance(found, Line) else None
        if cause := self._turns.begins(event, message):
            yield Notice(at=at, code=TURN_CAUSE, text=cause)
        match found:
            case Line(message=message, at=at):
                for entry in self._line(message, at):
                    self._silent = self._silent and not isinstance(entry, Answer)
                    yield entry
            case Prompt(text=text):
                self._command, self._silent = command_in(text), True
                yield found
            case None:
                return
            case entry:
                if isinstance(event, ev.TurnEnded):
                    yield from self._only_result(event, at)
                yield entry

    def _line(self, message: Message, at: int) -> Iterator[AnyEntry]:
        match message:
            case Assistant():
                inner = message.parent_tool_use_id is not None
                command = command_of(message, self._command)
                for block in message.blocks:
                    yield from self._block(block, at, inner=inner, command=command)
            case User(is_replay=True):
                if output := command_output(message.text):
                    yield Answer(at=at, text=output, command=self._command)
            case User():
                inner = message.parent_tool_use_id is not None
                for block in message.blocks:
                    if isinstance(block, TextBlock):
                        yield Notice(at=at, code=CLI_TEXT, text=block.text, inner=inner)
                    else:
                        yield from self._block(block, at, inner=inner)
            case LocalCommandOutput(content=content):
                if output := command_output(content) or content.strip():
                    yield Answer(at=at, text=output, command=self._command)
            case _:
                if notice := cli_notice(message):
                    text, tone = notice
                    yield Notice(at=at, code=CLI_NOTICE, text=text, tone=tone)

    def _only_result(self, event: ev.TurnEnded, at: int) -> Iterator[AnyEntry]:
        """Some slash commands only have a result: an unknown one, for example."""
        if self._silent and self._command and event.text and not event.failed:
            yield Answer(at=at, text=event.text, command=self._command)
        self._silent = False

    def _block(
        self, block: Block | UnknownPart, at: int, *, inner: bool, command: str = ""
    ) -> Iterator[AnyEntry]:
        match block:
            case TextBlock(text=text) if text.strip():
                yield Answer(at=at, text=text, inner=inner, command=command)
            case ThinkingBlock(thinking=text) if text.strip():
                yield Thinking(at=at, text=text, inner=inner)
            case ToolUseBlock(id=id_, name=name, input=input_):
                title = describe(name, input_).title
                self._calls[id_] = (name, title)
                yield Call(at=at, id=id_, tool=name, title=title, input=input_, inner=inner)
            case ToolResultBlock(tool_use_id=id_) as result:
                tool, title = self._calls.pop(id_, ("", ""))
                yield Outcome(
                    at=at,
                    id=id_,
                    tool=tool,
                    title=title,
                    text=result.text,
                    failed=result.is_error is True,
                    inner=inner,
                )
            case _:
                return


def read_event(event: ev.Event, at: int) -> Prompt | Notice | Line | None:
    """What an event means to a person; None if it means nothing to them."""
    match event:
        case ev.PromptQueued(prompt=id_, content=content, by=by):
            return _prompt(prompt_body(content), at, id_=id_, by=by)
        case ev.Said(line=line):
            return Line(at=at, message=from_cli(bytes(line)))
        case ev.Recalled(run=run, line=line):
            message = from_cli(bytes(line))
            if is_placeholder(message):
                return None
            if run != ev.IMPORTED:
                return Line(at=at, message=message)
            if isinstance(message, Assistant | User):
                at = moment_of(message.timestamp) or at
            if isinstance(message, User) and message.is_replay:
                # Other prompts are events of their own; of this one there is only the echo.
                return _prompt(message.message, at)
            return Line(at=at, message=message)
        case _:
            return _notice(event, at)


def is_placeholder(message: Message) -> bool:
    """Whether this is the answer that the CLI puts behind a turn that was cut off.

    It is in the transcript of a resumed session, for the model only.
    """
    return (
        isinstance(message, Assistant)
        and message.message.model == "<synthetic>"
        and message.text == "No response requested."
    )


def _prompt(body: UserBody, at: int, *, id_: str = "", by: str = "") -> Prompt:
    others = sum(not isinstance(block, TextBlock) for block in body.blocks)
    return Prompt(at=at, id=id_, text=body.text, by=by, others=others)


def _notice(event: ev.Event, at: int) -> Notice | None:
    code = str(event.__struct_config__.tag)

    def notice(text: str, tone: Tone = "plain", subject: str = "") -> Notice:
        return Notice(at=at, code=code, text=text, tone=tone, subject=subject)

    event = with_texts(event)
    match event:
        case ev.RunEnded(reason=reason, clean=clean, stderr=stderr):
            return Notice(
                at=at,
                code=code,
                text=f"the agent has ended: {reason}",
                tone="plain" if clean else "warn",
                details=() if clean else stderr,
            )
        case ev.RateLimited(status="rejected", limit=limit, resets_at=resets_at):
            name = one_line(limit or "account", NAME)
            text = f"the {name} limit is reached"
            return Notice(at=at, code=code, text=text, tone="warn", until=resets_at)
        case ev.StartAfresh(by=by):
            return notice(f"a new conversation was started by {one_line(by, NAME)}")
        case ev.BudgetReached():
            return notice(sentence(event), "bad")
        case ev.PeerPrompted(text=text):
            return notice(f"another Claude session ({peer_of(event)}) prompted: {text}", "warn")
        case ev.Alarmed(text=text, action=action):
            done = f" ({one_line(action, REASON)})" if action else ""
            return notice(f"{one_line(text, REASON)}{done}", "bad")
        case ev.AlarmEnded():
            return notice("the agent responds again", "good")
        case ev.LinkLost(reason=reason):
            return notice(reason, "warn")
        case ev.LinkFound(lost=True):
            return notice("the connection is restored; some output was lost", "bad")
        case ev.LinkFound():
            return notice("the connection is restored", "good")
        case ev.AskOpened(ask=ask, title=title, tool=tool):
            text = f"asks: {one_line(tool, NAME)}: {one_line(title, REASON)}"
            return notice(text, "warn", ask)
        case ev.AskAnswered(ask=ask, by=by, allowed=allowed):
            verb = "allowed" if allowed else "denied"
            return notice(f"{verb} by {one_line(by, NAME)}", subject=ask)
        case ev.AskWithdrawn(ask=ask, reason=reason):
            text = f"the question was withdrawn: {one_line(reason, REASON)}"
            return notice(text, subject=ask)
        case ev.Decided(by="policy", verdict=verdict, title=title, reasons=reasons):
            why = one_line("; ".join(reasons), REASON)
            return notice(f"{verdict} by policy: {one_line(title, REASON)} ({why})")
        case ev.TurnEnded(failed=True, outcome=outcome, text=text):
            return notice(f"the turn failed: {outcome}. {text}".rstrip(), "bad")
        case ev.TurnEnded(cost_usd=cost):
            return notice(f"the turn ended (${cost:.4f})" if cost else "the turn ended")
        case ev.SandboxStarted(state=state) if state.mode != state.wanted:
            why = f": {one_line(state.detail, REASON)}" if state.detail else ""
            return notice(f"the agent runs without a sandbox ({state.reason}){why}", "warn")
        case ev.SandboxRefused(access=access, target=target):
            verb = {"write": "write", "read": "read", "connect": "connect to"}.get(access, access)
            return notice(f"the sandbox refused to {verb} {one_line(target, REASON)}", "warn")
        case ev.WorktreeSettled(text=text, by=by) | ev.FolderChanged(text=text, by=by):
            return notice(f"{one_line(text, 500)} ({one_line(by, NAME)})")
        case ev.SessionRewound(by=by, files=files, conversation=conversation):
            both = {"the files": files, "the conversation": conversation}
            what = " and ".join(name for name, is_so in both.items() if is_so)
            return notice(f"{one_line(by, NAME)} went back with {what} to before a prompt")
        case ev.SaidBroken(error=error):
            return notice(f"a line of the CLI could not be read: {one_line(error)}", "bad")
        case ev.Noted(level=level, text=text):
            tones: dict[str, Tone] = {"error": "bad", "warning": "warn"}
            return notice(text, tones.get(level, "plain"))
        case _:
            text_ = _change(event)
            return None if text_ is None else notice(*text_)


def _change(event: ev.Event) -> tuple[str, Tone] | None:
    """A change of the session or of its queue by a person."""
    match event:
        case ev.SessionCreated(by=by, parent=None):
            return f"the session was created by {one_line(by, NAME)}", "plain"
        case ev.SessionCreated(by=by, parent=parent):
            return f"the session was forked from {parent} by {one_line(by, NAME)}", "plain"
        case ev.SessionRenamed(name=name, by=by):
            return f"renamed to «{one_line(name, 100)}» by {one_line(by, NAME)}", "plain"
        case ev.SessionDeleted(by=by):
            return f"the session was deleted by {one_line(by, NAME)}", "warn"
        case ev.PromptChanged(content=content, by=by):
            text = prompt_body(content).text
            return f"a prompt was changed by {one_line(by, NAME)}: {text}", "plain"
        case ev.PromptCancelled(by=by):
            return f"a prompt was cancelled by {one_line(by, NAME)}", "plain"
        case _:
            return None


def peer_of(event: ev.PeerPrompted) -> str:
    """Who has sent a prompt without the hub, in a few words."""
    process = f"process {event.pid}" if event.pid is not None else "an unknown process"
    return f"{event.name}, {process}" if event.name else process


def prompt_body(content: Raw) -> UserBody:
    """A prompt's content, which is a text or content blocks."""
    return decode_user_body(Raw(b'{"role":"user","content":%b}' % bytes(content)))


def moment_of(timestamp: str | None) -> int | None:
    """A line's own timestamp, in ms since 1970."""
    if not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        at = int(aware.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return at if at >= 0 else None
