"""The conversation on the terminal, as it happens.

Owns what was printed last, and so where a line must end, which block is being streamed, and what
waits during a dialogue. `render` is below, and knows how things look. It prints only to a Rich
console. At a terminal, answers are Markdown and words are wrapped, above the `footer` if there is
one. A console that is no terminal, or a dumb one, gets the text as the model wrote it, without
colours and cursor movements.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import msgspec
from rich.console import Console
from rich.text import Text

from quarterdeck.cli.terminal import diffs, render
from quarterdeck.cli.terminal.footer import Footer
from quarterdeck.cli.terminal.text import plain
from quarterdeck.wire.base import Message, UnknownPart
from quarterdeck.wire.content import (
    Block,
    McpToolUseBlock,
    ServerToolUseBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from quarterdeck.wire.messages import (
    Assistant,
    ConversationReset,
    Result,
    StreamEvent,
    User,
)
from quarterdeck.wire.stream import ContentBlockDelta, TextDelta, ThinkingDelta
from quarterdeck.wire.system import Init
from quarterdeck.wire.tools import ASK_USER_QUESTION, EXIT_PLAN_MODE, describe, one_line

if TYPE_CHECKING:
    from quarterdeck.cli.terminal.streamed_text import Writing

Kind = Literal["", "text", "thinking", "tool", "notice", "end"]

_APART: frozenset[Kind] = frozenset({"text", "thinking", "end"})
"""Kinds with a blank line around them; tools and notices follow each other closely."""
_THINKING = "dim italic"
_SUBAGENTS = frozenset({"Task", "Agent"})
_SUBAGENT = "  │ "
_LOCAL_OUTPUT = "<local-command-stdout>"
_INTERRUPTED = "[Request interrupted"
_CLEAR_LINE = "\r\x1b[K"


class Screen:
    """Shows messages in the order in which they come."""

    def __init__(self, console: Console, footer: Footer | None = None) -> None:
        self.console = console
        self.footer = footer
        self._styled = console.is_terminal and not console.is_dumb_terminal
        self._writing: tuple[Kind, Writing] | None = None
        self._printed: Writing | None = None
        self.in_turn = False
        self._fresh_line = True
        self._last: Kind = ""
        self._streamed: list[str] = []
        self._streaming: Kind = ""
        self._calls: dict[str, ToolUseBlock] = {}
        self._last_call: str | None = None
        self._seen_diffs: set[str] = set()
        self._held: list[Message] | None = None
        self._prompt: str | None = None
        self._prompt_shown = False
        self._total_cost = 0.0
        self._last_text: str = ""

    # --- what others do with it -----------------------------------------------------------

    def show(self, message: Message) -> None:
        """Show a message now, or after the current dialogue."""
        if self._held is not None:
            self._held.append(message)
            return
        with self._above():
            self._show(message)
        if self._prompt is not None and not self._prompt_shown and not self.in_turn:
            self.prompt(self._prompt)

    def hold(self) -> None:
        """Hold messages back until `resume`: a person reads a question."""
        if self._held is None:
            self.end_line()
            self._held = []
            if self.footer is not None:
                self.footer.hide()

    def resume(self) -> None:
        """Show the messages that were held back."""
        held, self._held = self._held, None
        self._last = "notice"
        if self.footer is not None:
            self.footer.unhide()
        for message in held or ():
            self.show(message)

    def prompt(self, text: str) -> None:
        """Show the prompt mark; later output goes above it."""
        self._gap("notice")
        self._prompt, self._prompt_shown = text, True
        self.console.print(Text(text, style="bold"), end="")

    def prompt_taken(self) -> None:
        """The person has pressed Enter."""
        self._prompt, self._prompt_shown = None, False
        self._last = ""

    def echo_prompt(self, text: str) -> None:
        """Show a prompt that was not typed here."""
        with self._above():
            for number, line in enumerate(plain(text).strip("\n").split("\n")):
                mark = "> " if number == 0 else "  "
                self._line("text" if number == 0 else "", Text(mark + line, "bold"), crop=False)
            self._last = "text"

    def diff_seen(self, tool_use_id: str) -> None:
        """The person has seen this change before it was made."""
        self._seen_diffs.add(tool_use_id)

    def note(self, text: str, style: str = "dim") -> None:
        """Print a line of our own."""
        with self._above():
            line = Text.assemble(("~ ", "dim"), (plain(text), style))
            self._line("notice", line, crop=not self._styled)

    def end_line(self) -> None:
        """Make sure that the next output begins on a new line."""
        if self._writing is not None and self.footer is None:
            self._end_writing()
        if not self._fresh_line:
            self.console.print()
            self._fresh_line = True
        self._streaming = ""

    # --- messages -------------------------------------------------------------------------

    def _show(self, message: Message) -> None:
        match message:
            case StreamEvent(parent_tool_use_id=None):
                self.in_turn = True
                self._stream(message)
            case StreamEvent():
                pass
            case Assistant():
                self.in_turn = self.in_turn or message.parent_tool_use_id is None
                for block in message.message.content:
                    self._block(block, message)
            case User():
                self._user(message)
            case Init():
                self.in_turn = True
            case Result():
                self._result(message)
            case ConversationReset():
                self._total_cost = 0.0
                self._notice(message)
            case _:
                self._notice(message)

    def _stream(self, message: StreamEvent) -> None:
        match message.event:
            case ContentBlockDelta(delta=TextDelta(text=text)):
                self._delta("text", text)
            case ContentBlockDelta(delta=ThinkingDelta(thinking=text)):
                self._delta("thinking", text)
            case _:
                pass

    def _delta(self, kind: Kind, text: str) -> None:
        if self._streaming != kind:
            self._streamed = []
        if not text:
            return
        if self._styled:
            self._write_on(kind, text)
            return
        if self._streaming != kind:
            self._gap(kind)
            self._streaming = kind
        self._streamed.append(text)
        self._write(plain(text), _THINKING if kind == "thinking" else "")

    def _block(self, block: Block | UnknownPart, message: Assistant) -> None:
        below = message.parent_tool_use_id is not None
        match block:
            case TextBlock(text=text):
                style = "red" if message.error is not None else ""
                self._finish("text", text, style, below)
                self._last_text = text if not below else self._last_text
            case ThinkingBlock(thinking=text):
                self._finish("thinking", text, _THINKING, below)
            case ToolUseBlock():
                self._call(block, below)
            case ServerToolUseBlock() | McpToolUseBlock():
                self._line("tool", render.tool_call(block.name, block.input), below=below)
            case UnknownPart(kind=kind):
                shown = one_line(kind, 80) or "unknown"
                self._line("notice", Text(f"~ (content of kind {shown})", "dim"), below=below)
            case _:
                pass

    def _finish(self, kind: Kind, text: str, style: str, below: bool) -> None:
        """Complete a block; its streamed part is on the screen already."""
        if below:
            if text.strip():
                for line in plain(text).strip("\n").split("\n"):
                    self._line(kind, Text(line, style or "dim"), below=True, crop=False)
            return
        if self._styled:
            self._finish_writing(kind, text, style)
            return
        streamed = "".join(self._streamed) if self._streaming == kind else ""
        self._streamed = []
        rest = text.removeprefix(streamed)
        if rest and not (rest.isspace() and not streamed):
            if rest == text:
                self._gap(kind)
            self._write(plain(rest), style)
        self.end_line()
        if text.strip():
            self._last = kind

    # --- text at a terminal ---------------------------------------------------------------

    def _write_on(self, kind: Kind, text: str) -> None:
        """Show text that is being written: what is final, and the rest in the footer."""
        from quarterdeck.cli.terminal.streamed_text import Writing

        if self._writing is None or self._writing[0] != kind:
            self._end_writing()
            thinking = kind == "thinking"
            self._writing = (
                kind,
                Writing(markdown=not thinking, style=_THINKING if thinking else ""),
            )
        self._print_text(*self._writing, self._writing[1].feed(text, self._width))
        if self.footer is not None:
            self.footer.set_tail(self._writing[1].tail)

    def _finish_writing(self, kind: Kind, text: str, style: str) -> None:
        """A whole text; its streamed part is on the screen already."""
        from quarterdeck.cli.terminal.streamed_text import Writing

        if (
            self._writing is None
            or self._writing[0] != kind
            or not text.startswith(self._writing[1].source)
        ):
            self._end_writing()
            self._writing = kind, Writing(markdown=kind == "text", style=style)
        writing = self._writing[1]
        more = text.removeprefix(writing.source)
        self._print_text(kind, writing, writing.feed(more, self._width))
        self._end_writing()
        if text.strip():
            self._last = kind

    def _end_writing(self) -> None:
        """Print what is left of a text."""
        if self._writing is None:
            return
        (kind, writing), self._writing = self._writing, None
        if self.footer is not None:
            self.footer.set_tail(None)
        self._print_text(kind, writing, writing.finish(self._width))

    def _print_text(self, kind: Kind, writing: Writing, lines: list[Text]) -> None:
        if not lines:
            return
        if self._printed is not writing:  # otherwise it is the next part of the same text
            self._space(kind)
            lines = lines[1:] if not lines[0].plain and self._last else lines
        self._printed = writing
        for line in lines:
            self.console.print(line, no_wrap=True, overflow="ignore", crop=False)

    @property
    def _width(self) -> int:
        return max(1, self.console.width)

    @contextmanager
    def _above(self) -> Iterator[None]:
        if self.footer is None:
            yield
        else:
            with self.footer.above():
                yield

    # --- tools and results ----------------------------------------------------------------

    def _call(self, block: ToolUseBlock, below: bool) -> None:
        self._calls[block.id] = block
        self._line("tool", render.tool_call(block.name, block.input), below=below)
        for line in render.todos(block.input) if block.name == "TodoWrite" else ():
            self._line("tool", line, below=below)
        self._last_call = block.id
        if self.footer is not None and not below:
            self.footer.say(describe(block.name, block.input).title or block.name)

    def _user(self, message: User) -> None:
        below = message.parent_tool_use_id is not None
        for block in message.message.blocks:
            match block:
                case ToolResultBlock():
                    self._outcome(block, message, below)
                case TextBlock(text=text) if text.startswith(_LOCAL_OUTPUT):
                    shown = text.removeprefix(_LOCAL_OUTPUT).replace("</local-command-stdout>", "")
                    self._finish("text", shown, "", below)
                case TextBlock(text=text) if text.startswith(_INTERRUPTED) and not below:
                    self._end_writing()
                    self.note("interrupted", "yellow")
                case _:
                    pass  # an echo of our prompt, or a message of the CLI to the model

    def _outcome(self, block: ToolResultBlock, message: User, below: bool) -> None:
        call = self._calls.pop(block.tool_use_id, None)
        if self.footer is not None and not self._calls:
            self.footer.say("working")
        if call is not None and call.name in render.TODO_TOOLS and not block.is_error:
            return  # its call has shown everything
        if call is not None and self._last_call != block.tool_use_id:
            # Something else was shown since: repeat the call.
            title = render.tool_call(call.name, call.input)
            title.stylize("dim")
            self._line("tool", title, below=below)
        self._last_call = None
        for line in self._outcome_lines(block, call, message):
            self._line("tool", line, below=below)

    def _outcome_lines(
        self, block: ToolResultBlock, call: ToolUseBlock | None, message: User
    ) -> list[Text]:
        if call is None or block.is_error:
            return render.tool_result(block)
        if call.name in diffs.EDITORS:
            change = diffs.of_result(message.tool_use_result) or diffs.of_call(
                call.name, call.input
            )
            if change is not None:
                seen = call.id in self._seen_diffs
                return render.diff(change, 0)[:1] if seen else render.diff(change)
        if call.name in _SUBAGENTS:
            return render.tool_result(block)[:1]  # the rest is for the model
        if call.name in {"TodoWrite", ASK_USER_QUESTION, EXIT_PLAN_MODE}:
            return []  # its call or the dialogue has shown everything
        return render.tool_result(block)

    def _result(self, result: Result) -> None:
        self.in_turn = False
        self._end_writing()  # an interrupt leaves a text unfinished
        self._calls.clear()
        spent = float(result.total_cost_usd or 0) - self._total_cost
        self._total_cost = float(result.total_cost_usd or 0)
        error = result.error_text
        if error and not result.interrupted and error != self._last_text:
            self._line("notice", Text(plain(error), "red"), crop=False)
        elif not result.failed and result.structured_output:
            shown = msgspec.json.format(bytes(result.structured_output), indent=2).decode()
            self._finish("text", shown, "", False)
        elif not result.failed and result.result and not self._last_text:
            self._finish("text", result.result, "", False)
        self._last_text = ""
        cost = spent if spent >= 0 else self._total_cost
        self._line("end", render.outcome(result, cost), crop=False)

    def _notice(self, message: Message) -> None:
        if (line := render.notice(message)) is not None:
            self._line("notice", line, crop=False)

    # --- printing -------------------------------------------------------------------------

    def _line(self, kind: Kind, text: Text, *, below: bool = False, crop: bool = True) -> None:
        self.end_line()
        self._gap(kind)
        if below:
            text = Text.assemble((_SUBAGENT, "dim"), text)
        if crop and self.console.is_terminal:
            text.truncate(self.console.width, overflow="ellipsis")
        # At a terminal words are wrapped; elsewhere a line stays a line.
        self.console.print(text, soft_wrap=not self._styled)
        if kind != "notice":
            self._last_call = None

    def _gap(self, kind: Kind) -> None:
        """End the line, and a blank line between different kinds of output."""
        if self._prompt_shown:
            self._prompt_shown = False
            self.console.file.write(_CLEAR_LINE if self.console.is_terminal else "\n")
            self._fresh_line = True
        self.end_line()
        self._space(kind)

    def _space(self, kind: Kind) -> None:
        self._printed = None
        if self._last and kind and (kind in _APART or self._last in _APART):
            self.console.print()
        self._last = kind or self._last

    def _write(self, text: str, style: str) -> None:
        if text:
            self.console.print(Text(text, style), end="", soft_wrap=True)
            self._fresh_line = text.endswith("\n")
