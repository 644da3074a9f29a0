"""Stands between an agent and its CLI, and says what the library never would.

`Agent` is made so that it cannot send what harms a CLI. What the CLI makes of such a line is worth
knowing all the same: it is why the library sends what it sends. Here a line that the agent sends is
changed on its way, or kept back, or one is added; all else goes through as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from quarterdeck.links.base import Dropped, Link, Resumed

Line = dict[str, object]
Change = Callable[[Line], list[Line]]


class Meddler:
    """A link around a link. Give it one with `over` before the agent starts."""

    def __init__(self) -> None:
        self._link: Link | None = None
        self._changes: list[tuple[str, Change]] = []
        self.kept: list[Line] = []
        self.heard = bytearray()
        """All that the CLI has said, as it came."""

    def over(self, link: Link) -> Link:
        """Take the place of this link."""
        self._link = link
        return self

    def change(self, kind: str, *changes: Change) -> None:
        """Send what these make of the next lines of a kind, one line each.

        The kind of a request is its subtype, that of an answer is `answer`, that of a prompt is
        `user`.
        """
        self._changes += [(kind, change) for change in changes]

    def keep(self, line: Line) -> list[Line]:
        """A change: send nothing, and keep the line in `kept`."""
        self.kept.append(line)
        return []

    async def say(self, line: Line) -> None:
        """Send a line of one's own."""
        await self._under.send(json.dumps(line).encode() + b"\n")

    # --- the link -------------------------------------------------------------------------

    @property
    def resumable(self) -> bool:
        return self._under.resumable

    async def receive(self) -> bytes | Dropped | Resumed:
        got = await self._under.receive()
        if isinstance(got, bytes):
            self.heard += got
        return got

    async def send(self, data: bytes) -> None:
        await self._under.send(b"".join(map(self._changed, data.splitlines(keepends=True))))

    async def end_input(self) -> None:
        await self._under.end_input()

    async def close(self) -> None:
        await self._under.close()

    @property
    def _under(self) -> Link:
        assert self._link is not None, "the meddler is not over any link"
        return self._link

    def _changed(self, data: bytes) -> bytes:
        line: Line = json.loads(data)
        kind = _kind(line)
        for at, (wanted, change) in enumerate(self._changes):
            if wanted == kind:
                del self._changes[at]
                return b"".join(json.dumps(each).encode() + b"\n" for each in change(line))
        return data


def _kind(line: Line) -> str:
    match line:
        case {"type": "control_request", "request": {"subtype": str(subtype)}}:
            return subtype
        case {"type": "control_response"}:
            return "answer"
        case _:
            return str(line.get("type"))


def request(request_id: str, subtype: str, **members: object) -> Line:
    """A control request."""
    body = {"subtype": subtype, **members}
    return {"type": "control_request", "request_id": request_id, "request": body}


def asking_instead(subtype: str) -> Change:
    """A change: put another request in the place of one, under its id."""
    return lambda line: [request(str(line["request_id"]), subtype)]


def answering(body: Line | None) -> Change:
    """A change: another body for an answer; none at all for None."""

    def change(line: Line) -> list[Line]:
        response = line["response"]
        assert isinstance(response, dict)
        rest = {name: value for name, value in response.items() if name != "response"}
        return [{**line, "response": rest if body is None else {**rest, "response": body}}]

    return change


def adding(**members: object) -> Change:
    """A change: more members for the body of an answer."""

    def change(line: Line) -> list[Line]:
        response = line["response"]
        assert isinstance(response, dict)
        return [{**line, "response": {**response, "response": {**response["response"], **members}}}]

    return change


def refusing(error: str) -> Change:
    """A change: an error in the place of an answer."""

    def change(line: Line) -> list[Line]:
        response = line["response"]
        assert isinstance(response, dict)
        refused = {"subtype": "error", "request_id": response["request_id"], "error": error}
        return [{**line, "response": refused}]

    return change


def twice(line: Line) -> list[Line]:
    """A change: the line, and once more."""
    return [line, line]
