"""Our answers to a CLI's requests: the bodies of our control responses.

A body always has the one form that every version accepts. `outbound` puts it into its envelope.

Observed on real versions: an allow without `updatedInput` is refused up to 2.1.120, one with an
empty input runs the tool without its arguments up to 2.1.62, and a deny without `message` is
refused by all. So these members are required here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from msgspec import Raw, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import OpenEnum, Part
from quarterdeck.wire.permissions import Suggestion, suggestions
from quarterdeck.wire.rawjson import always, dump, is_object

MAX_UPDATES = 4096
"""The newest CLI refuses an answer with more changes than this."""


class DecisionClassification(OpenEnum):
    """The meaning of a person's decision. Only for the statistics of the CLI's maker."""

    USER_TEMPORARY = "user_temporary"
    USER_PERMANENT = "user_permanent"
    USER_REJECT = "user_reject"


class AllowResult(Part, tag_field="behavior", tag="allow"):
    """The tool may run, with this input.

    `updated_input` is the whole input: the original one, or a replacement.
    """

    updated_input: Raw = field(name="updatedInput")
    updates_json: tuple[Raw, ...] | None = field(name="updatedPermissions", default=None)
    tool_use_id: str | None = field(name="toolUseID", default=None)
    decision_classification: DecisionClassification | None = field(
        name="decisionClassification", default=None
    )

    def __post_init__(self) -> None:
        if not is_object(self.updated_input):
            raise UsageError("the updated input of a tool must be a JSON object")
        if self.updates_json is not None and len(self.updates_json) > MAX_UPDATES:
            raise UsageError(f"an answer may carry at most {MAX_UPDATES} permission updates")

    @cached_property
    def updates(self) -> tuple[Suggestion, ...]:
        """The changes to the permissions that come with it."""
        return suggestions(self.updates_json)


class DenyResult(Part, tag_field="behavior", tag="deny"):
    """The tool may not run. The model reads `message`; `interrupt` ends the turn as well."""

    message: str
    interrupt: bool | None = None
    tool_use_id: str | None = field(name="toolUseID", default=None)
    decision_classification: DecisionClassification | None = field(
        name="decisionClassification", default=None
    )


PermissionResult = AllowResult | DenyResult


def allow(
    updated_input: object,
    *,
    updates: Iterable[Suggestion] = (),
    tool_use_id: str | None = None,
    classification: DecisionClassification | None = None,
) -> AllowResult:
    """Let a tool run. `updated_input` is the `Raw` of the question, or anything JSON can say."""
    changes = tuple(dump(update) for update in updates)
    return AllowResult(
        updated_input=dump(updated_input),
        updates_json=changes or None,
        tool_use_id=tool_use_id,
        decision_classification=classification,
    )


def deny(
    message: str,
    *,
    interrupt: bool = False,
    tool_use_id: str | None = None,
    classification: DecisionClassification | None = None,
) -> DenyResult:
    """Do not let a tool run, and say why."""
    return DenyResult(
        message=message,
        interrupt=True if interrupt else None,
        tool_use_id=tool_use_id,
        decision_classification=classification,
    )


class McpAnswer(Part):
    """The JSON-RPC answer of an MCP server that lives with us."""

    mcp_response: Raw

    def __post_init__(self) -> None:
        if not is_object(self.mcp_response):
            raise UsageError("the answer of an MCP server must be a JSON object")


class ElicitationAction(OpenEnum):
    """What a person did with a form. Without a person it is `cancel`, not `decline`."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


class ElicitationAnswer(Part):
    """The answer to an MCP server's question."""

    action: ElicitationAction
    content: Raw = ABSENT

    def __post_init__(self) -> None:
        if self.content and not is_object(self.content):
            raise UsageError("the content of an elicitation's answer must be a JSON object")


class DialogBehavior(OpenEnum):
    """Whether a dialog was gone through."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"


class DialogAnswer(Part):
    """The answer to a dialog. Kinds that we do not have are answered with an error instead."""

    behavior: DialogBehavior
    result: Raw = ABSENT


class OauthToken(Part, rename="camel"):
    """A new access token, or none."""

    access_token: str | None = always(None)
    reason: str | None = None


class HostAuthToken(Part, rename="camel"):
    """A new token of the host's, or none."""

    auth_token: str | None = always(None)
    material_unchanged: bool | None = None


class EmptyAnswer(Part):
    """Success, with nothing to say: `{}`."""
