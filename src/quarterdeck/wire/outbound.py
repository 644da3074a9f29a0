"""The messages that we send to a CLI.

Owns prompts and the envelopes of our control messages; `commands` and `answers` have the bodies.
`codec` decodes lines for a CLI with the union `TO_CLI`.

Invalid messages cannot be made: the constructors raise `UsageError`, and such a line decodes to an
`Unknown` with its error. A CLI does not report a bad line. Every version exits on a prompt without
a message and on a request without a body; 2.1.37 hangs on a prompt with an empty list of blocks;
versions up to 2.1.120 exit on a response without a body or an environment update without variables.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec import Raw, Struct, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Message, OpenEnum, Part
from quarterdeck.wire.command_base import Command, UnknownCommand
from quarterdeck.wire.command_codec import decode_command, encode_command
from quarterdeck.wire.content import DocumentBlock, ImageBlock, Source, TextBlock
from quarterdeck.wire.control import Outcome, Reply, decode_reply
from quarterdeck.wire.rawjson import (
    MOST_BLOCKS,
    always,
    are_few_typed,
    dump,
    few_elements,
    has_type,
    is_object,
    members,
)


class Priority(OpenEnum):
    """When a prompt runs that is sent into a turn. 2.1.37 and 2.1.62 ignore it.

    `now` aborts the running turn, `next` may be folded into it, `later` waits for its end.
    """

    NOW = "now"
    NEXT = "next"
    LATER = "later"


HUMAN = Raw(b'{"kind":"human"}')
"""The origin of a prompt that a person wrote."""


def text_block(text: str) -> TextBlock:
    """Text in a prompt."""
    return TextBlock(text=text)


def image_block(data: bytes, media_type: str) -> ImageBlock:
    """An image in a prompt, such as `image/png`."""
    return ImageBlock(source=_base64(data, media_type, "image/"))


def document_block(
    data: bytes, media_type: str = "application/pdf", *, title: str | None = None
) -> DocumentBlock:
    """A document in a prompt."""
    return DocumentBlock(source=_base64(data, media_type, ""), title=title)


def _base64(data: bytes, media_type: str, prefix: str) -> Source:
    if not data:
        raise UsageError("a block without data")
    if "/" not in media_type or not media_type.startswith(prefix):
        raise UsageError(f"{media_type!r} is not a media type for this block")
    encoded = base64.b64encode(data).decode("ascii")
    return Source(kind="base64", media_type=media_type, data=encoded)


_TEXT = re.compile(rb'[ \t\r\n]*"')


class PromptBody(Part):
    """The content of a prompt: text, or blocks. Every version exits on a role other than `user`."""

    role: Literal["user"] = field(default_factory=lambda: "user")
    content: Raw

    def __post_init__(self) -> None:
        if _TEXT.match(memoryview(self.content)):  # no copy: it may be large
            return
        if are_few_typed(self.content):
            return
        blocks = few_elements(self.content)
        if blocks is None:
            raise UsageError(f"a prompt must be a text or a list of at most {MOST_BLOCKS} blocks")
        if not blocks:
            raise UsageError("a prompt needs at least one block")
        if not all(has_type(block) for block in blocks):
            raise UsageError("a block of a prompt must be an object with a type")


class CheckedBody(PromptBody):
    """The same of a content that was checked before: a large one is not read again."""

    def __post_init__(self) -> None:
        """Nothing is checked."""


class Prompt(Message, tag="user"):
    """A task for the model.

    `uuid` identifies the prompt: a CLI drops a prompt whose uuid it has seen, reports on it, and
    rewinds to it. `should_query=False` adds to the conversation without asking the model. With
    `client_composed` a text that begins with a slash is not a command (2.1.280 and newer).
    """

    message: PromptBody
    parent_tool_use_id: str | None = always(None)
    uuid: str | None = None
    session_id: str | None = None
    priority: Priority | None = None
    origin: Raw = ABSENT
    should_query: bool | None = field(name="shouldQuery", default=None)
    client_composed: bool | None = None
    is_synthetic: bool | None = field(name="isSynthetic", default=None)
    timestamp: str | None = None
    pasted_content: tuple[Raw, ...] | None = None
    inline_pastes: tuple[str, ...] | None = None
    tool_use_result: Raw = ABSENT
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None

    @classmethod
    def of(
        cls,
        content: str | Iterable[Part | Raw],
        *,
        uuid: str | None = None,
        priority: Priority | None = None,
        origin: Raw = ABSENT,
        should_query: bool | None = None,
        client_composed: bool | None = None,
    ) -> Prompt:
        """Make a prompt of a text, or of blocks in their order."""
        if not isinstance(content, str):
            content = [dump(block) for block in content]
        return cls(
            message=PromptBody(content=dump(content)),
            uuid=uuid,
            priority=priority,
            origin=origin,
            should_query=should_query,
            client_composed=client_composed,
        )


class Request(Message, tag="control_request"):
    """We ask the CLI for something."""

    request_id: str
    request_json: Raw = field(name="request")

    def __post_init__(self) -> None:
        if not self.request_id:
            raise UsageError("a request needs an id")
        if "subtype" not in members(self.request_json):
            raise UsageError("a request must be an object with a subtype")

    @classmethod
    def of(cls, request_id: str, command: Command[Any]) -> Request:
        """Put a command into its envelope. Raises `UsageError` if it does not fit its own type."""
        return cls(request_id=request_id, request_json=encode_command(command))

    @cached_property
    def request(self) -> Command[Any] | UnknownCommand:
        """The command, typed by its subtype. Never raises."""
        return decode_command(self.request_json)


class Answer(Message, tag="control_response"):
    """We answer a request of the CLI."""

    response_json: Raw = field(name="response")

    def __post_init__(self) -> None:
        if not is_object(self.response_json):
            raise UsageError("a response must be an object")

    @classmethod
    def success(cls, request_id: str, body: Struct | Raw | Mapping[str, Any]) -> Answer:
        """An answer with a body, such as an `AllowResult`."""
        json = dump(body)
        if not is_object(json):
            raise UsageError("the body of an answer must be an object")
        return cls(
            response_json=dump(
                Reply(subtype=Outcome.SUCCESS, request_id=_id(request_id), body_json=json)
            )
        )

    @classmethod
    def error(cls, request_id: str, error: str) -> Answer:
        """An error as the answer. The CLI continues as after a denial."""
        return cls(
            response_json=dump(
                Reply(subtype=Outcome.ERROR, request_id=_id(request_id), error=error or "failed")
            )
        )

    @cached_property
    def response(self) -> Reply:
        """The answer. Never raises."""
        return decode_reply(self.response_json)


class CancelRequest(Message, tag="control_cancel_request"):
    """Withdraw a request of ours. 2.1.37 exits on it: check `versions` first."""

    request_id: str


class KeepAlive(Message, tag="keep_alive"):
    """Says nothing; consumed without an answer."""


class UpdateEnvironment(Message, tag="update_environment_variables"):
    """Change the environment of the CLI. The newest versions take a few tokens only.

    With a `request_id` these newest versions answer.
    """

    variables: dict[str, str]
    request_id: str | None = None


class BashCommand(Message, tag="bash_command"):
    """Run a shell command in the session. In no published type; here to be read, not sent."""

    command: str
    cwd: str | None = None
    uuid: str | None = None
    session_id: str | None = None


class QueuedNotification(Message, tag="queued_notification"):
    """A notification for the model. In no published type; here to be read, not sent."""

    notification: Raw
    uuid: str | None = None
    session_id: str | None = None


class SessionNotice(Message, tag="session_notice"):
    """A notice from another session. In no published type; here to be read, not sent."""

    uuid: str = ""
    notice_class: str = ""
    from_session_id: str = ""
    content: str = ""
    session_id: str | None = None


def _id(request_id: str) -> str:
    if not request_id:
        raise UsageError("an answer needs the id of its request")
    return request_id


TO_CLI = (
    Prompt
    | Request
    | Answer
    | CancelRequest
    | KeepAlive
    | UpdateEnvironment
    | BashCommand
    | QueuedNotification
    | SessionNotice
)
