"""The messages that a CLI sends, but for `system` (see `system`) and control (see `control`).

Bodies that may hold what we do not know yet (`message`, `event`) stay raw until somebody asks.
"""

from __future__ import annotations

from msgspec import Raw, field

from quarterdeck.wire.base import Message, Number


class SystemHeader(Message, tag="system"):
    """A `system` message before its subtype is known; `codec` decodes it again by that."""

    subtype: str


class StreamEvent(Message, tag="stream_event"):
    """A piece of the answer while it is being made. Superseded by the `Assistant` that follows."""

    event_json: Raw = field(name="event")
    parent_tool_use_id: str | None = None
    uuid: str = ""
    session_id: str = ""
    ttft_ms: Number | None = None


FROM_CLI = SystemHeader | StreamEvent
FROM_CLI_TYPES = frozenset(str(struct.__struct_config__.tag) for struct in FROM_CLI.__args__)
