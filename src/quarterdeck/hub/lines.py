"""Lines, as the journal keeps them and as the CLI takes them. Pure; below `run`.

What means something to us is what the journal has: a line that is no UTF-8 is mended first, so that
a restarted hub that reads it from the journal gets the same message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.events import Event, Said, SaidBroken
from quarterdeck.runtime.off_loop import LARGE, off_loop
from quarterdeck.wire import codec
from quarterdeck.wire.base import Malformed, Message
from quarterdeck.wire.commands import Initialize
from quarterdeck.wire.content import TextBlock, decode_content
from quarterdeck.wire.messages import Assistant, User
from quarterdeck.wire.outbound import PromptBody, Request
from quarterdeck.wire.rawjson import dump, has_lone_surrogate

_SLASH_COMMAND = re.compile(r"\s*/[\w:.-]+(\s|$)")


def mend(line: bytes) -> tuple[bytes, str | None]:
    """The line as UTF-8, and why it cannot be kept as JSON, if it cannot."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return line.decode("utf-8", "replace").encode(), str(error)
    if has_lone_surrogate(line):
        return line, "it has half a surrogate pair in it"
    return line, None


class ReadLine(NamedTuple):
    """A line of the CLI, as it is kept and what it means; and why it cannot be kept as JSON."""

    line: bytes
    flaw: str | None
    message: Message


def read_line(line: bytes) -> ReadLine:
    """Read a line, whatever it is. A large one is read off the event loop."""
    line, flaw = mend(line)
    message = codec.from_cli(line)
    if len(line) >= LARGE and isinstance(message, User | Assistant):
        # It is decoded on demand, and remembered: here and not on the event loop.
        message.blocks  # noqa: B018
    return ReadLine(line, flaw, message)


def line_event(run: str, number: int, line: bytes, message: Message, flaw: str | None) -> Event:
    """The event that keeps a line, which is UTF-8, whatever it means."""
    error = message.error if isinstance(message, Malformed) else flaw
    if error is None:
        return Said(run=run, number=number, line=Raw(line))
    return SaidBroken(run=run, number=number, text=line.decode(), error=error)


def uuid_of(line: Raw) -> str | None:
    """The uuid of a line that is a message of the conversation."""
    message = codec.from_cli(bytes(line))
    uuid = message.uuid if isinstance(message, User | Assistant) else None
    return uuid if isinstance(uuid, str) else None


def messages(lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """The lines that are messages of the conversation, each with its uuid."""
    for line in lines:
        if mend(line)[1] is not None:
            continue
        match codec.from_cli(line):
            case User(uuid=str(uuid)) | Assistant(uuid=str(uuid)):
                yield uuid, line
            case _:
                pass


async def take_content(content: Raw) -> Raw:
    """The same as `content_of`, for a content of any size."""
    return await off_loop(len(memoryview(content)), content_of, content)


def content_of(content: Raw) -> Raw:
    """What a prompt says, in a form that every version takes. Raises `UsageError` otherwise."""
    return PromptBody(content=dump(content)).content


async def check_steering(content: Raw) -> None:
    """Raise `UsageError` for a prompt that no running turn can take in.

    A slash command is none: 2.1.37 would show it to the model as text, and 2.1.325 runs it when the
    turn has ended.
    """
    if await off_loop(len(memoryview(content)), _has_slash_command, content):
        raise UsageError("steer: a slash command runs between turns; send it without steer")


def _has_slash_command(content: Raw) -> bool:
    given = decode_content(content)
    texts = (
        [given]
        if isinstance(given, str)
        else [block.text for block in given if isinstance(block, TextBlock)]
    )
    return any(_SLASH_COMMAND.match(text) for text in texts)


def is_greeting(line: bytes) -> bool:
    """Whether a line that was sent is `initialize`."""
    match codec.to_cli(line):
        case Request(request=Initialize()):
            return True
        case _:
            return False


def is_uuid(text: str) -> bool:
    """Whether this can be the uuid of a prompt on every version."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True
