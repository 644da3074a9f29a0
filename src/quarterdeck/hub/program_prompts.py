"""Prompts that a program has given to its own CLI. Pure; below `run`.

The hub did not send them. The CLI gives each back when a turn takes it in, and there it is recorded
as a prompt that was queued, sent and taken at once: so it is shown, found and never sent again.
"""

from __future__ import annotations

from msgspec import Raw

from quarterdeck.protocol.events import Event, PromptQueued, PromptSent, PromptTaken
from quarterdeck.wire.base import Message
from quarterdeck.wire.info import OriginKind
from quarterdeck.wire.messages import User
from quarterdeck.wire.rawjson import members

_OUTPUT = b"<local-command-"
"""How the output of a command begins, which the CLI gives back in the same way."""


def program_prompts(
    run: str, message: Message, known: tuple[str, ...], by: str
) -> tuple[Event, ...]:
    """What a line tells about a prompt of the program; `known` are the uuids of our own."""
    match message:
        case User(is_replay=True, uuid=str(uuid), parent_tool_use_id=None) if uuid not in known:
            pass
        case _:
            return ()
    if message.origin is not None and message.origin.kind is not OriginKind.HUMAN:
        return ()
    content = members(members(Raw(message.raw)).get("message", Raw(b"{}"))).get("content")
    if content is None or _OUTPUT in bytes(content)[: len(_OUTPUT) + 1]:
        return ()
    return (
        PromptQueued(prompt=uuid, content=content, by=by),
        PromptSent(prompt=uuid, run=run),
        PromptTaken(prompt=uuid),
    )
