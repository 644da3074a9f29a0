"""The searchable texts of an event: prompts, answers, tool calls. Pure.

The one place that knows which parts of the CLI's lines are searchable. The journal below knows
nothing of lines. Results of tools are left out: they are mostly files and logs.
"""

from __future__ import annotations

from quarterdeck.history.story import moment_of, prompt_body
from quarterdeck.journal.search import Text
from quarterdeck.protocol.events import (
    IMPORTED,
    AskOpened,
    PromptChanged,
    PromptQueued,
    Recalled,
    Said,
    TurnEnded,
)
from quarterdeck.protocol.search import TextKind
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.content import TextBlock, ToolUseBlock
from quarterdeck.wire.messages import Assistant, User

LONGEST_ARGUMENT = 2000
"""A longer argument of a tool is probably the content of a file."""


def texts_of(stored: Stored) -> tuple[Text, ...]:
    """The searchable texts of an event."""
    match stored.event:
        case PromptQueued(content=content) | PromptChanged(content=content):
            return (Text(kind=TextKind.PROMPT, text=prompt_body(content).text),)
        case Said(line=line):
            return _texts_of_line(bytes(line), imported=False)
        case Recalled(run=run, line=line):
            return _texts_of_line(bytes(line), imported=run == IMPORTED)
        case TurnEnded(text=text) if text:
            return (Text(kind=TextKind.ANSWER, text=text),)
        case AskOpened(plan=str(plan)):
            return (Text(kind=TextKind.ANSWER, text=plan),)
        case _:
            return ()


def _texts_of_line(line: bytes, *, imported: bool) -> tuple[Text, ...]:
    if not imported and b'"assistant"' not in line:
        return ()  # nearly every line is of another kind, and decoding is expensive
    match from_cli(line):
        case Assistant() as message:
            at = moment_of(message.timestamp) if imported else None
            found = [_block(block, at) for block in message.blocks]
            return tuple(text for text in found if text is not None)
        case User(is_replay=True) as message if imported:
            # Any other prompt is an event of its own.
            at = moment_of(message.timestamp)
            return (Text(kind=TextKind.PROMPT, text=message.text, at=at),)
        case _:
            return ()


def _block(block: object, at: int | None) -> Text | None:
    match block:
        case TextBlock(text=text):
            return Text(kind=TextKind.ANSWER, text=text, at=at)
        case ToolUseBlock(name=name) as call:
            short = (
                value
                for value in call.arguments.values()
                if isinstance(value, str) and len(value) <= LONGEST_ARGUMENT
            )
            text = "\n".join([name, *short])
            return Text(kind=TextKind.TOOL, text=text, tool=name, at=at)
        case _:
            return None
