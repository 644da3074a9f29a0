"""Control requests in both directions, each of which ends exactly once.

Owns the correlation of requests and answers by id: which are open, in which direction, and how each
ended. It does not know their contents, and has no clock: a caller that stops waiting calls
`give_up`.

Ours and theirs have separate namespaces. A request of ours ends in one of: `Answered`, `Refused`,
`Abandoned` (by us), `Lost` (with the link). One of theirs ends when we answer it or they withdraw
it. Later messages about an ended request are ignored, so answers may be late, duplicated, or cross
a cancellation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from uuid import uuid4

from msgspec import Raw, Struct

from quarterdeck.domain.errors import UsageError

REMEMBERED_ANSWERS = 512
"""How many of our last answers are kept, to be sent again if the link lost them. A CLI rarely has
more than a handful of questions open; the answers to older ones have certainly arrived."""


class Answered(Struct, frozen=True):
    """The other end answered. `json` is the body of its answer, if it has one."""

    json: Raw | None


class Refused(Struct, frozen=True):
    """The other end answered with an error."""

    error: str
    code: str | None = None


class Abandoned(Struct, frozen=True):
    """We no longer want the answer."""

    reason: str


class Lost(Struct, frozen=True):
    """The link took the answer with it."""

    reason: str


Ending = Answered | Refused | Abandoned | Lost


class Ours(Struct, frozen=True):
    """An open request of ours."""

    request_id: str
    subtype: str
    line: bytes


def request_ids() -> Callable[[], str]:
    """A generator of ids that are unique among all controllers of the same CLI, also across
    restarts.
    """
    prefix = f"qd-{uuid4().hex[:10]}"
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


class RecentIds:
    """The last ids that came by: at least `size` of them, at most twice as many."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._newer: set[str] = set()
        self._older: set[str] = set()

    def __contains__(self, id_: str) -> bool:
        return id_ in self._newer or id_ in self._older

    def add(self, id_: str) -> bool:
        """Take note of an id. False if it was among them already."""
        if id_ in self:
            return False
        self._newer.add(id_)
        if len(self._newer) >= self._size:
            self._older, self._newer = self._newer, set()
        return True


class OurRequests:
    """The requests that we sent and that have not ended."""

    def __init__(self) -> None:
        self._open: dict[str, Ours] = {}

    @property
    def open(self) -> tuple[Ours, ...]:
        """The open ones, oldest first."""
        return tuple(self._open.values())

    def subtype(self, request_id: str) -> str | None:
        """The subtype of an open request; None if it is not open."""
        request = self._open.get(request_id)
        return None if request is None else request.subtype

    def begin(self, request: Ours) -> None:
        """A request is being sent. Its id must be new."""
        if request.request_id in self._open:
            raise UsageError(f"request id {request.request_id!r} is already in use")
        self._open[request.request_id] = request

    def end(self, request_id: str) -> Ours | None:
        """A request ends. Returns it the first time, and None ever after."""
        return self._open.pop(request_id, None)

    def end_all(self) -> tuple[Ours, ...]:
        """All that are open end."""
        ended = self.open
        self._open.clear()
        return ended


class TheirRequests:
    """The requests that the CLI sent: open, or ended not long ago."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}
        self._ended: OrderedDict[str, bytes | None] = OrderedDict()

    @property
    def open(self) -> tuple[str, ...]:
        """The ids of the open ones, oldest first."""
        return tuple(self._open)

    def is_new(self, request_id: str) -> bool:
        """Whether no request with this id came before, as far as that is remembered."""
        return bool(request_id) and request_id not in self._open and request_id not in self._ended

    def is_open(self, request_id: str) -> bool:
        """Whether a request waits for its answer."""
        return request_id in self._open

    def begin(self, request_id: str) -> bool:
        """A request came. False if the same one is open already, or has ended."""
        if request_id in self._open or request_id in self._ended:
            return False
        self._open[request_id] = None
        return True

    def answer(self, request_id: str, line: bytes) -> bool:
        """We answer. False if there is nothing to answer: unknown, answered, or withdrawn."""
        return self._end(request_id, line)

    def withdraw(self, request_id: str) -> bool:
        """The CLI withdraws a request. False if it was not open."""
        return self._end(request_id, None)

    def answer_line(self, request_id: str) -> bytes | None:
        """The line that answered a request, if we still have it."""
        return self._ended.get(request_id)

    def answers(self) -> tuple[bytes, ...]:
        """The last answers, oldest first."""
        return tuple(line for line in self._ended.values() if line is not None)

    def end_all(self) -> tuple[str, ...]:
        """All that are open end, unanswered."""
        ended = self.open
        for request_id in ended:
            self._end(request_id, None)
        return ended

    def _end(self, request_id: str, line: bytes | None) -> bool:
        if request_id not in self._open:
            return False
        del self._open[request_id]
        self._ended[request_id] = line
        if len(self._ended) > REMEMBERED_ANSWERS:
            self._ended.popitem(last=False)
        return True
