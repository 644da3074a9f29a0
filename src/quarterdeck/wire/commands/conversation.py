"""Commands about the conversation: stopping, queueing, asking aside, going back, and its text."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Raw

from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Part
from quarterdeck.wire.commands.base import Command


class InterruptReceipt(Part):
    """The answer to an interrupt. Empty before about 2.1.205.

    `still_queued` are the uuids of prompts that will still run.
    """

    still_queued: tuple[str, ...] = ()
    put_back: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    send_now: str | None = None
    turn: str | None = None


class Interrupt(Command[InterruptReceipt], tag="interrupt"):
    """Stop the running turn. Prompts in the queue run all the same, unless `cancel_queued`."""

    cancel_queued: bool | None = None
    reason: str | None = None
    spare_background_tasks: bool | None = None
    for_user_message_uuids: tuple[str, ...] | None = None
    send_now: bool | None = None
    message_uuid: str | None = None


class CancelAnswer(Part):
    """Whether the prompt was still in the queue."""

    cancelled: bool = False


class CancelAsyncMessage(Command[CancelAnswer], tag="cancel_async_message"):
    """Remove a prompt from the queue."""

    since: ClassVar[int | None] = 92

    message_uuid: str


class EarlierQuestion(Part):
    """A question aside that was asked before."""

    question: str
    response: str
    fallback_notice: str | None = None


class SideAnswer(Part):
    """`synthetic` marks a text that the CLI wrote in the model's place."""

    response: str | None = None
    synthetic: bool = False


class SideQuestion(Command[SideAnswer], tag="side_question"):
    """Ask the model a question that is not added to the conversation."""

    since: ClassVar[int | None] = 92

    question: str
    history: tuple[EarlierQuestion, ...] | None = None


class RewindConversationAnswer(Part, rename="camel"):
    """Where the conversation now ends. `rewound` false: `reason` or `error` says why not."""

    rewound: bool = False
    target_message_uuid: str | None = None
    prefill_text: str | None = None
    preceding_assistant_uuid: str | None = None
    resolution: str | None = None
    reason: str | None = None
    error: str | None = None


class RewindConversation(Command[RewindConversationAnswer], tag="rewind_conversation"):
    """Go back to a prompt. Files stay as they are."""

    since: ClassVar[int | None] = 200

    target_message_uuid: str
    last_seen_user_message_uuid: str | None = None
    interrupt_if_running: bool | None = None
    allow_summarized_target: bool | None = None
    allow_assistant_target: bool | None = None
    expires_at: str | None = None


class ForkAnswer(Part):
    """Whether there is a fork. Over a pipe 2.1.325 answers that it cannot."""

    forked: bool = False
    error: str | None = None
    reason: str | None = None


class ForkConversation(Command[ForkAnswer], tag="fork_conversation"):
    """Go on in a copy of the conversation."""

    since: ClassVar[int | None] = 325


class ConversationText(Part):
    """The conversation as plain text, and what to call a file with it."""

    text: str = ""
    default_filename: str = ""


class ExportConversation(Command[ConversationText], tag="export_conversation"):
    """Give the conversation as plain text."""

    since: ClassVar[int | None] = 325


class PlanAnswer(Part):
    """The plan of plan mode, if there is one."""

    exists: bool = False
    content: str | None = None
    path: str | None = None


class GetPlan(Command[PlanAnswer], tag="get_plan"):
    """Give the plan of plan mode."""

    since: ClassVar[int | None] = 200


class ContextCategory(Part, rename="camel"):
    """One share of the context window."""

    id: str | None = None
    name: str = ""
    tokens: int = 0
    color: str = ""
    kind: str | None = None
    is_deferred: bool | None = None


class ContextMemoryFile(Part):
    """A file with instructions in the context."""

    path: str = ""
    type: str = ""
    tokens: int = 0


class ContextMcpTool(Part, rename="camel"):
    """An MCP tool in the context."""

    name: str = ""
    server_name: str = ""
    tokens: int = 0
    is_loaded: bool | None = None


class ContextAgent(Part, rename="camel"):
    """A subagent in the context."""

    agent_type: str = ""
    source: str = ""
    tokens: int = 0
    plugin_id: str | None = None
    path: str | None = None


class ContextUsage(Part, rename="camel"):
    """How the context window is used. Members that only draw pictures stay raw."""

    categories: tuple[ContextCategory, ...] = ()
    total_tokens: int = 0
    max_tokens: int = 0
    raw_max_tokens: int = 0
    percentage: float = 0
    model: str = ""
    memory_files: tuple[ContextMemoryFile, ...] = ()
    mcp_tools: tuple[ContextMcpTool, ...] = ()
    agents: tuple[ContextAgent, ...] = ()
    is_auto_compact_enabled: bool | None = None
    auto_compact_threshold: int | None = None
    autocompact_source: str | None = None
    grid_rows: Raw = ABSENT
    mcp_instructions: Raw = ABSENT
    deferred_builtin_tools: Raw = ABSENT
    system_tools: Raw = ABSENT
    system_prompt_sections: Raw = ABSENT
    slash_commands: Raw = ABSENT
    skills: Raw = ABSENT
    message_breakdown: Raw = ABSENT
    api_usage: Raw = ABSENT
    cold_resume_quota: Raw = ABSENT


class GetContextUsage(Command[ContextUsage], tag="get_context_usage"):
    """How full is the context window? `detail="summary"` asks the API nothing (2.1.260)."""

    since: ClassVar[int | None] = 92

    detail: str | None = None
