"""Return values of tools, as MCP results.

Owns the conversion of a Python value to text, content blocks or structured content. Pure.

Structured content is made only of values that are objects (models, structs, dataclasses, dicts).
The CLI shows it to the model in place of the text, and `{"result": "hello"}` reads worse than
`hello`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import msgspec
import pydantic_core
from mcp.server.mcpserver import Audio, Image
from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from pydantic import BaseModel, ValidationError

_BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource, Image, Audio)


def to_result(value: object) -> CallToolResult:
    """Make the result of a call out of whatever its function returned."""
    if isinstance(value, CallToolResult):
        return value
    if _is_object(value):
        plain = to_plain(value)
        # A root model or an array-like struct is an object in Python only.
        structured = plain if isinstance(plain, dict) else None
        return CallToolResult(content=[_text(_json(plain))], structured_content=structured)
    return CallToolResult(content=_content(value))


def to_plain(value: object) -> object:
    """Convert models, structs, dataclasses and similar values to plain JSON values."""
    return pydantic_core.to_jsonable_python(value, fallback=_reduce, inf_nan_mode="null")


def failure(text: str) -> CallToolResult:
    """A result that describes an error to the model."""
    return CallToolResult(content=[_text(text)], is_error=True)


def explain(error: Exception) -> str:
    """One line for the model that explains an exception; never a traceback."""
    # A tool that used a task group gets its one error wrapped; the wrapper says nothing.
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        # Pydantic's own text is made for programmers.
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return "; ".join(
            f"{'.'.join(str(part) for part in item['loc']) or 'value'}: {item['msg']}"
            for item in found
        )
    return str(error) or type(error).__name__


def _is_object(value: object) -> bool:
    if isinstance(value, _BLOCKS):
        return False
    if isinstance(value, Mapping):
        return all(isinstance(key, str) for key in value)
    if isinstance(value, BaseModel | msgspec.Struct):
        return True
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _content(value: object) -> list[ContentBlock]:
    match value:
        case None:
            return []
        case str():
            return [_text(value)]
        case Image():
            return [value.to_image_content()]
        case Audio():
            return [value.to_audio_content()]
        case TextContent() | ImageContent() | AudioContent() | ResourceLink() | EmbeddedResource():
            return [value]
        case list() | tuple() if any(isinstance(item, _BLOCKS) for item in value):
            return [block for item in value for block in _content(item)]
        case _:
            return [_text(_json(to_plain(value)))]


def _text(text: str) -> TextContent:
    # File names may carry lone surrogates, which no JSON encoder takes.
    return TextContent(type="text", text=text.encode("utf-8", "replace").decode())


def _json(plain: object) -> str:
    return pydantic_core.to_json(plain).decode()


def _reduce(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    return str(value)
