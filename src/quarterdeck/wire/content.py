"""Content of messages: the Messages API's blocks, and the bodies that hold them.

Owns the structs that the CLI passes through from the API. `messages` and `stream` have the CLI's
own envelopes.

Each block is decoded separately, so that a block of a new kind does not affect the others. A tool's
input stays raw, to be shown or sent back byte for byte.
"""

from __future__ import annotations

from functools import cached_property

import msgspec
from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS
from quarterdeck.wire.base import Number, OpenEnum, OpenUnion, Part, UnknownPart, unknown_part
from quarterdeck.wire.envelope import Body, Lazy
from quarterdeck.wire.rawjson import plain_object


class StopReason(OpenEnum):
    """Why the model stopped."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_USE = "tool_use"
    PAUSE_TURN = "pause_turn"
    REFUSAL = "refusal"
    COMPACTION = "compaction"
    MODEL_CONTEXT_WINDOW_EXCEEDED = "model_context_window_exceeded"


class CacheCreation(Part):
    """Tokens written to the prompt cache, by how long they live there."""

    ephemeral_5m_input_tokens: Number | None = 0
    ephemeral_1h_input_tokens: Number | None = 0


class ServerToolUsage(Part):
    """How often the API ran one of its own tools."""

    web_search_requests: Number | None = 0
    web_fetch_requests: Number | None = 0


class OutputTokensDetails(Part):
    """Output tokens by purpose."""

    thinking_tokens: Number | None = 0


class Usage(Body):
    """Tokens of one response, or of one turn. `input_tokens` excludes tokens from the cache."""

    input_tokens: Number | None = None
    cache_creation_input_tokens: Number | None = None
    cache_read_input_tokens: Number | None = None
    output_tokens: Number | None = None
    server_tool_use: ServerToolUsage | None = None
    service_tier: str | None = None
    cache_creation: CacheCreation | None = None
    inference_geo: str | None = None
    speed: str | None = None
    output_tokens_details: OutputTokensDetails | None = None
    iterations: Raw = ABSENT
    fallback_credit: Raw = ABSENT

    @property
    def context_tokens(self) -> Number:
        """All tokens that the model read, from the cache or not."""
        return (
            (self.input_tokens or 0)
            + (self.cache_creation_input_tokens or 0)
            + (self.cache_read_input_tokens or 0)
        )


class TextBlock(Part, tag="text"):
    """Text, of the model or of a person."""

    text: str
    citations: Raw = ABSENT
    cache_control: Raw = ABSENT


class ThinkingBlock(Part, tag="thinking"):
    """The model's thinking. The signature proves to the API that the text was not changed."""

    thinking: str = ""
    signature: str = ""
    estimated_tokens: Number | None = None


class RedactedThinkingBlock(Part, tag="redacted_thinking"):
    """Thinking that only the API can read."""

    data: str = ""


class ToolUseBlock(Part, tag="tool_use"):
    """The model calls a tool that the CLI runs."""

    id: str
    name: str
    input: Raw = ABSENT
    caller: Raw = ABSENT
    cache_control: Raw = ABSENT

    @property
    def arguments(self) -> dict[str, object]:
        """The input as plain values; empty if it is not a JSON object."""
        return plain_object(self.input)


class ServerToolUseBlock(Part, tag="server_tool_use"):
    """The model calls a tool that the API runs."""

    id: str
    name: str
    input: Raw = ABSENT
    caller: Raw = ABSENT
    cache_control: Raw = ABSENT


class McpToolUseBlock(Part, tag="mcp_tool_use"):
    """The model calls a tool of an MCP server that the API talks to."""

    id: str
    name: str
    server_name: str = ""
    input: Raw = ABSENT
    cache_control: Raw = ABSENT


class _Outcome(Part):
    """The result of a tool: a string, or blocks."""

    tool_use_id: str
    content_json: Raw = field(name="content", default=ABSENT)
    is_error: bool | None = None
    cache_control: Raw = ABSENT

    @cached_property
    def content(self) -> Content:
        """The tool's output, decoded."""
        return decode_content(self.content_json)

    @property
    def text(self) -> str:
        """The text in the tool's output; blocks of text are joined by newlines."""
        return text_of(self.content)


class ToolResultBlock(_Outcome, tag="tool_result"):
    """The result of a tool that the CLI ran. Comes in a `User` message."""


class McpToolResultBlock(_Outcome, tag="mcp_tool_result"):
    """The result of a tool of an MCP server that the API talks to."""


class _ServerOutcome(Part):
    """The result of a tool that the API ran. The form of `content` depends on the tool."""

    tool_use_id: str
    content: Raw = ABSENT
    caller: Raw = ABSENT
    cache_control: Raw = ABSENT


class WebSearchToolResultBlock(_ServerOutcome, tag="web_search_tool_result"):
    """The results of the API's web search."""


class WebFetchToolResultBlock(_ServerOutcome, tag="web_fetch_tool_result"):
    """The page that the API fetched."""


class CodeExecutionToolResultBlock(_ServerOutcome, tag="code_execution_tool_result"):
    """What code printed that the API ran."""


class BashCodeExecutionToolResultBlock(_ServerOutcome, tag="bash_code_execution_tool_result"):
    """The output of a shell command that the API ran."""


class TextEditorCodeExecutionToolResultBlock(
    _ServerOutcome, tag="text_editor_code_execution_tool_result"
):
    """The result of an edit that the API made."""


class ToolSearchToolResultBlock(_ServerOutcome, tag="tool_search_tool_result"):
    """The tools that the API's tool search found."""


class AdvisorToolResultBlock(_ServerOutcome, tag="advisor_tool_result"):
    """The answer of the advisor model."""


class ToolReferenceBlock(Part, tag="tool_reference"):
    """A tool that a search found, by its name."""

    tool_name: str
    cache_control: Raw = ABSENT


class Source(Part):
    """The source of an image or a document. `kind` determines which of the other members are
    set.
    """

    kind: str = field(name="type", default="")
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    content: Raw = ABSENT


class ImageBlock(Part, tag="image"):
    """A picture, of a person or of a tool."""

    source: Source | None = None
    cache_control: Raw = ABSENT


class DocumentBlock(Part, tag="document"):
    """A PDF or a text to read."""

    source: Source | None = None
    title: str | None = None
    context: str | None = None
    citations: Raw = ABSENT
    cache_control: Raw = ABSENT


class SearchResultBlock(Part, tag="search_result"):
    """Something found, given to the model so that it can cite it."""

    source: str = ""
    title: str = ""
    content: Raw = ABSENT
    citations: Raw = ABSENT
    cache_control: Raw = ABSENT


class ContainerUploadBlock(Part, tag="container_upload"):
    """A file that the API put into a container, or is to put there."""

    file_id: str
    cache_control: Raw = ABSENT


class CompactionBlock(Part, tag="compaction"):
    """The API's own summary of the earlier conversation."""

    content: str | None = None
    encrypted_content: str | None = None
    cache_control: Raw = ABSENT


Block = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ServerToolUseBlock
    | McpToolUseBlock
    | McpToolResultBlock
    | WebSearchToolResultBlock
    | WebFetchToolResultBlock
    | CodeExecutionToolResultBlock
    | BashCodeExecutionToolResultBlock
    | TextEditorCodeExecutionToolResultBlock
    | ToolSearchToolResultBlock
    | AdvisorToolResultBlock
    | ToolReferenceBlock
    | ImageBlock
    | DocumentBlock
    | SearchResultBlock
    | ContainerUploadBlock
    | CompactionBlock
)

Content = str | tuple[Block | UnknownPart, ...]
"""The content of a person's or tool's message: a string, or blocks."""

blocks: OpenUnion[Block] = OpenUnion(Block)

_string_or_parts = msgspec.json.Decoder(str | list[Raw] | None).decode


def decode_content(json: Raw) -> Content:
    """Decode a string or blocks. Never raises; anything else is a single `UnknownPart`."""
    if not json:
        return ""
    try:
        found = _string_or_parts(json)
    except DECODE_ERRORS as error:
        return (unknown_part(json, error),)
    if found is None:
        return ""
    return found if isinstance(found, str) else blocks.decode_each(found)


def text_of(content: Content) -> str:
    """The text of a content; blocks of text are joined by newlines, others are skipped."""
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


class UserBody(Body):
    """The body of `user`: a person's text, or the results of tools."""

    role: str = ""
    content_json: Raw = field(name="content", default=ABSENT)

    @cached_property
    def content(self) -> Content:
        """The text or blocks, decoded."""
        return decode_content(self.content_json)

    @property
    def blocks(self) -> tuple[Block | UnknownPart, ...]:
        """The content as blocks: a string is one block of text."""
        content = self.content
        if isinstance(content, str):
            return (TextBlock(text=content),) if content else ()
        return content

    @property
    def text(self) -> str:
        """The text in it; blocks of text are joined by newlines."""
        return text_of(self.content)


class AssistantBody(Body, tag="message"):
    """The body of `assistant`: a response of the model, or its finished part.

    The CLI sends each block as a separate message; those of one response share `id`.
    """

    id: str = ""
    role: str = "assistant"
    model: str = ""
    content_json: Raw = field(name="content", default=ABSENT)
    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    usage_json: Raw = field(name="usage", default=ABSENT)
    container: Raw = ABSENT
    context_management: Raw = ABSENT
    diagnostics: Raw = ABSENT
    stop_details: Raw = ABSENT

    @cached_property
    def content(self) -> tuple[Block | UnknownPart, ...]:
        """The blocks, decoded."""
        content = decode_content(self.content_json)
        if isinstance(content, str):
            return (TextBlock(text=content),) if content else ()
        return content

    @cached_property
    def usage(self) -> Usage:
        """Tokens so far; final only in the last message of a response."""
        return decode_usage(self.usage_json)

    @property
    def text(self) -> str:
        """The text in it; blocks of text are joined by newlines."""
        return text_of(self.content)

    @property
    def synthetic(self) -> bool:
        """Whether the CLI wrote this itself: an API error, or a slash command's output."""
        return self.model == "<synthetic>"


decode_usage: Lazy[Usage] = Lazy(Usage, Usage)
decode_user_body: Lazy[UserBody] = Lazy(UserBody, UserBody)
decode_assistant_body: Lazy[AssistantBody] = Lazy(AssistantBody, AssistantBody)
