"""Lines of a frontend: checked, and turned into what they ask for. Pure.

A CLI exits on most wrong lines and hangs on others. So no line of a frontend is ever passed on: it
is read here, and what it asks for becomes a command of the hub. Whatever cannot be read is an error
that says what is wrong and where.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS, Value
from quarterdeck.fronts.relay.answers import GivenAnswer, read_answer
from quarterdeck.fronts.relay.errors import BadLine
from quarterdeck.wire.outbound import PromptBody
from quarterdeck.wire.rawjson import dump, few_elements, has_type, is_null, is_object, members

MESSAGE_BYTES = 24 * 1024 * 1024
"""The largest message: a prompt may carry images. As much as over HTTP."""
LINE_BYTES = 2 * 1024 * 1024
"""The largest line that is no prompt. Many small members take a hundred times as long to read as
one long text."""
MOST_LINES = 1000
"""Lines in one message."""
_LONGEST_ID = 128


class _LargeLine(msgspec.Struct):
    """The members of a prompt that mean something here, undecoded."""

    type: Raw = ABSENT
    message: Raw = ABSENT
    parent_tool_use_id: Raw = ABSENT
    shouldQuery: Raw = ABSENT  # noqa: N815 - as the line has it
    isSynthetic: Raw = ABSENT  # noqa: N815
    uuid: Raw = ABSENT
    session_id: Raw = ABSENT
    priority: Raw = ABSENT


class _LargeMessage(msgspec.Struct):
    """The members of a prompt's message, undecoded."""

    role: Raw = ABSENT
    content: Raw = ABSENT


class PromptLine(Value):
    """A prompt."""

    content: Raw
    session_id: str = ""
    uuid: str = ""
    priority: str = ""


class RequestLine(Value):
    """A control request; `request` is its body."""

    request_id: str
    subtype: str
    request: Raw
    session_id: str = ""


class AnswerLine(Value):
    """An answer to a control request of the CLI."""

    given: GivenAnswer
    session_id: str = ""


class CancelLine(Value):
    """A control request that its sender wants no answer to any more."""

    request_id: str


class KeepAliveLine(Value):
    """A line that asks for nothing."""


FrontendLine = PromptLine | RequestLine | AnswerLine | CancelLine | KeepAliveLine


def split(message: str | bytes) -> list[bytes]:
    """The lines of a message: one or several, with or without a newline at the end.

    Raises `BadLine` for a message that is too large.
    """
    data = message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message
    if len(data) > MESSAGE_BYTES:
        raise BadLine("too_large", f"a message has at most {MESSAGE_BYTES} bytes")
    found = [line.strip(b" \t\r") for line in data.split(b"\n")]
    lines = [line for line in found if line]
    if len(lines) > MOST_LINES:
        raise BadLine("too_large", f"a message has at most {MOST_LINES} lines")
    return lines


def parse(line: bytes) -> FrontendLine:
    """What a line asks for. Raises `BadLine`."""
    try:
        line.decode()
        msgspec.json.decode(line, type=Raw)
    except UnicodeDecodeError as error:
        raise BadLine("not_json", f"not UTF-8 at byte {error.start}") from error
    except DECODE_ERRORS as error:
        raise BadLine("not_json", str(error)) from error
    raw = Raw(line)
    if not is_object(raw):
        raise BadLine("bad_line", "a line must be an object")
    large = len(line) > LINE_BYTES
    top = _some_members(raw, _LargeLine) if large else members(raw)
    kind = _text(top, "type")
    if large and kind != "user":
        raise BadLine("too_large", f"a line that is no prompt has at most {LINE_BYTES} bytes")
    match kind:
        case "user":
            return _prompt(top)
        case "control_request":
            return _call(top)
        case "control_response":
            return AnswerLine(given=read_answer(raw), session_id=_text(top, "session_id"))
        case "control_cancel_request":
            return CancelLine(request_id=_id(top))
        case "keep_alive":
            return KeepAliveLine()
        case "":
            raise BadLine("bad_line", "a line needs a type", "type")
        case "update_environment_variables":
            raise BadLine("not_allowed", "a frontend cannot change an agent's environment", "type")
        case _:
            raise BadLine(
                "unknown_type", f"{kind[:100]!r} is not a type that frontends send", "type"
            )


def _prompt(top: dict[str, Raw]) -> PromptLine:
    if "message" not in top or not is_object(top["message"]):
        raise BadLine("bad_line", "a prompt needs a message, which is an object", "message")
    message = _some_members(top["message"], _LargeMessage)
    if _text(message, "role", "message.") not in {"", "user"}:
        raise BadLine("bad_line", "must be user", "message.role")
    if "content" not in message:
        raise BadLine("bad_line", "a prompt needs content", "message.content")
    _check_content(message["content"])
    if "parent_tool_use_id" in top and not is_null(top["parent_tool_use_id"]):
        raise BadLine("not_allowed", "only a person's prompt is taken", "parent_tool_use_id")
    for name, wanted in (("shouldQuery", b"true"), ("isSynthetic", b"false")):
        if name in top and bytes(top[name]) not in {wanted, b"null"}:
            raise BadLine("not_allowed", "only a person's prompt is taken", name)
    uuid = _text(top, "uuid")
    if uuid and not _is_id(uuid):
        raise BadLine("bad_line", f"at most {_LONGEST_ID} printable ASCII characters", "uuid")
    priority = _text(top, "priority")
    if priority not in {"", "now", "next", "later"}:
        raise BadLine("bad_line", "must be now, next or later", "priority")
    return PromptLine(
        content=message["content"],
        session_id=_text(top, "session_id"),
        uuid=uuid,
        priority=priority,
    )


def _check_content(content: Raw) -> None:
    """A text, or blocks, as every version of the CLI takes them."""
    where = "message.content"
    try:
        PromptBody(content=dump(content))
    except UsageError as error:
        for number, block in enumerate(few_elements(content) or []):
            if not has_type(block):
                where = f"message.content[{number}].type"
                break
        raise BadLine("bad_line", str(error), where) from error


def _some_members(raw: Raw, kind: type[msgspec.Struct]) -> dict[str, Raw]:
    """The members that a struct names, as far as they are there, however many others are."""
    found = msgspec.json.decode(raw, type=kind)
    given = {name: getattr(found, name) for name in found.__struct_fields__}
    return {name: value for name, value in given.items() if value}


def _call(top: dict[str, Raw]) -> RequestLine:
    request_id = _id(top)
    if "request" not in top or not is_object(top["request"]):
        raise BadLine("bad_line", "a control request needs a request, an object", "request")
    subtype = _text(members(top["request"]), "subtype", "request.")
    if not subtype:
        raise BadLine("bad_line", "a request needs a subtype", "request.subtype")
    return RequestLine(
        request_id=request_id,
        subtype=subtype,
        request=top["request"],
        session_id=_text(top, "session_id"),
    )


def _id(top: dict[str, Raw]) -> str:
    request_id = _text(top, "request_id")
    if not _is_id(request_id):
        raise BadLine(
            "no_request_id",
            f"a request needs an id of at most {_LONGEST_ID} printable ASCII characters",
            "request_id",
        )
    return request_id


def _is_id(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_ID and all("!" <= letter <= "~" for letter in text)


def _text(place: dict[str, Raw], name: str, where: str = "") -> str:
    """A text; empty if it is not there or null. Raises `BadLine` for another type."""
    if name not in place or is_null(place[name]):
        return ""
    try:
        return msgspec.json.decode(place[name], type=str)
    except DECODE_ERRORS as error:
        raise BadLine("bad_line", "must be a text", where + name) from error
