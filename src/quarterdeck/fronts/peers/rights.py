"""The right that a request to a machine needs when it comes from another hub. Pure.

It is that of the route, or of the command, that makes such a request: see `fronts.http.routes` and
`protocol.command_table`. A request that is not known here needs the highest right.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import Forbidden
from quarterdeck.hub.api import Asker
from quarterdeck.protocol.roles import RIGHTS, Right

OF_REQUESTS: dict[str, Right] = {
    "changes": Right.READ,
    "file_change": Right.READ,
    "remote": Right.READ,
    "entries": Right.READ,
    "find": Right.READ,
    "file": Right.READ,
    "cli_sessions": Right.READ,
    "tool_output": Right.READ,
    "revert": Right.STEER,
    "stage": Right.STEER,
    "commit": Right.STEER,
    "push": Right.STEER,
    "pull_request": Right.STEER,
    "settle": Right.MANAGE,
    "folders": Right.MANAGE,
    "put_file": Right.MANAGE,
    "open_place": Right.MANAGE,
    "put_transcript": Right.MANAGE,
    "place_transcript": Right.MANAGE,
}


class _Tagged(msgspec.Struct):
    """A request, as far as its kind goes."""

    errand: str


def right_for_request(request: Raw) -> Right:
    """The right for a request. Raises `msgspec.DecodeError` for what is none."""
    kind = msgspec.json.decode(request, type=_Tagged).errand
    return OF_REQUESTS.get(kind, Right.MANAGE)


def check_asker(asker: Asker, right: Right) -> None:
    """Raise `Forbidden` unless the one for whom a hub asks has the right.

    What a hub does by itself was decided there. What names neither a role nor such work is refused.
    """
    if asker.work:
        return
    if asker.role is None:
        raise Forbidden("the other hub does not tell for whom it asks")
    if right not in RIGHTS[asker.role]:
        raise Forbidden(f"the role {asker.role.value} may not {right.value}")
