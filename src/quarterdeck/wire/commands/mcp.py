"""Commands about MCP servers."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Raw, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, Part
from quarterdeck.wire.commands.base import Command, Empty
from quarterdeck.wire.info import McpServerConfig, McpServerStatus
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.rawjson import is_object


class McpServers(Part, rename="camel"):
    """All servers. 2.1.37 and 2.1.62 list one twice that was added in the session."""

    mcp_servers: tuple[McpServerStatus, ...] = ()


class McpStatus(Command[McpServers], tag="mcp_status", rename="camel"):
    """Which servers are there, and in what state?"""

    live_reply: bool | None = None


class SendMcpMessage(Command[Empty], tag="mcp_message"):
    """Hand a notification of an MCP server that lives with us to the CLI."""

    server_name: str
    message: Raw

    def __post_init__(self) -> None:
        if not is_object(self.message):
            raise UsageError("a message of an MCP server must be an object")


class McpSetServersAnswer(Part):
    """The changes, and the servers that could not be started."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    errors: dict[str, str] = field(default_factory=dict)


class McpSetServers(Command[McpSetServersAnswer], tag="mcp_set_servers"):
    """Replace all servers that were added in the session, ours included."""

    servers: dict[str, McpServerConfig]


class McpReconnect(Command[Empty], tag="mcp_reconnect", rename="camel"):
    """Connect to a server again."""

    server_name: str


class McpToggle(Command[Empty], tag="mcp_toggle", rename="camel"):
    """Switch a server on or off."""

    server_name: str
    enabled: bool


class McpCallAnswer(Part, rename="camel"):
    """The result of the tool."""

    content: Raw = Raw(b"null")
    structured_content: Raw = ABSENT
    staging: Raw = ABSENT


class McpCall(Command[McpCallAnswer], tag="mcp_call"):
    """Run a tool of a server without the model. No permission is asked, unless `check_permissions`.

    2.1.120 stops answering when `tool` is missing, so it is required.
    """

    since: ClassVar[int | None] = 120

    tool: str
    arguments: Raw = ABSENT
    expires_at: str | None = None
    timeout_ms: Number | None = None
    result_not_for_model: bool | None = None
    check_permissions: bool | None = None
    input_files: tuple[Raw, ...] | None = None
    output_files: tuple[Raw, ...] | None = None

    def __post_init__(self) -> None:
        if not self.tool:
            raise UsageError("mcp_call needs the name of a tool")
        if self.arguments and not is_object(self.arguments):
            raise UsageError("the arguments of a tool must be an object")


class McpResource(Part, rename="camel"):
    """One piece of a resource: text, or bytes in base64."""

    uri: str = ""
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class McpResourceAnswer(Part):
    """A resource."""

    contents: tuple[McpResource, ...] = ()


class McpReadResource(Command[McpResourceAnswer], tag="mcp_read_resource", rename="camel"):
    """Read a resource of a server; `ui://` only."""

    since: ClassVar[int | None] = 325

    server_name: str
    uri: str


class McpAuthAnswer(Part, rename="camel"):
    """Where a person has to go, if anywhere."""

    auth_url: str | None = None
    requires_user_action: bool | None = None
    callback_expected: bool | None = None
    redirect_scheme: str | None = None
    state: str | None = None
    callback_port: int | None = None


class McpAuthenticate(Command[McpAuthAnswer], tag="mcp_authenticate", rename="camel"):
    """Begin to log in to a server."""

    since: ClassVar[int | None] = 52

    server_name: str
    redirect_uri: str | None = None
    redirect_uri_only: bool | None = None
    live_reply: bool | None = None


class McpOauthCallbackUrl(Command[Empty], tag="mcp_oauth_callback_url", rename="camel"):
    """Finish to log in, with the URL that the browser was sent to."""

    since: ClassVar[int | None] = 92

    server_name: str
    callback_url: str


class McpClearAuth(Command[Empty], tag="mcp_clear_auth", rename="camel"):
    """Log out of a server."""

    since: ClassVar[int | None] = 52

    server_name: str


class SetMcpPermissionModeOverride(
    Command[Empty], tag="set_mcp_permission_mode_override", rename="camel"
):
    """Give a server a stricter mode than the session's; None takes it away."""

    since: ClassVar[int | None] = 200

    server_name: str
    mode: PermissionMode | None
    ask_for_tools: tuple[Raw, ...] | None = None


class ChannelEnable(Command[Empty], tag="channel_enable", rename="camel"):
    """Let a server send prompts into the session."""

    since: ClassVar[int | None] = 92

    server_name: str
