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

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from uuid import uuid4

from msgspec import Raw, Struct, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Mutable

REMEMBERED_ANSWERS = 512
"""How many of our last answers are kept, to be sent again if the link lost them. A CLI rarely has
more than a handful of questions open; the answers to older ones have certainly arrived."""
ANSWER_BYTES = 1024 * 1024
FEWEST_ANSWERS = 64
"""Of answers that are larger together than this, only so many are kept: an answer repeats the input
of its call, which may be a whole file."""


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


class RecentIds(Mutable):
    """The last ids that came by: at least `size` of them, at most half as many again.

    They are in three generations, of which the oldest is dropped as a whole.
    """

    size: int
    _new: set[str] = field(default_factory=set)
    _middle: set[str] = field(default_factory=set)
    _old: set[str] = field(default_factory=set)
    _forgot: bool = False

    def __contains__(self, id_: str) -> bool:
        return id_ in self._new or id_ in self._middle or id_ in self._old

    @property
    def complete(self) -> bool:
        """Whether all ids that ever came by are remembered."""
        return not self._forgot

    @property
    def remembered(self) -> tuple[str, ...]:
        """All that are remembered, sorted."""
        return tuple(sorted(self._new | self._middle | self._old))

    @property
    def newest(self) -> tuple[str, ...]:
        """The newest of them, sorted: others that are remembered came before all of these.

        All, as long as none was forgotten.
        """
        return tuple(sorted(self._new | self._middle)) if self._forgot else self.remembered

    def add(self, id_: str) -> bool:
        """Take note of an id. False if it was among them already."""
        if id_ in self._new or id_ in self._middle or id_ in self._old:
            return False
        self._new.add(id_)
        if len(self._new) >= self.size // 2:
            self._forgot = self._forgot or bool(self._old)
            self._old, self._middle, self._new = self._middle, self._new, set()
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
        self._ended: dict[str, bytes | None] = {}
        self._answers: deque[str] = deque()
        """The ended ones whose answer is kept, oldest first."""
        self._size = 0
        """The bytes of these answers."""

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

    def resume(self, open_: Iterable[str], ended: Mapping[str, bytes | None]) -> None:
        """Take over what another one knew: the open ones, and the ended ones with their answers."""
        self._open = dict.fromkeys(open_)
        for request_id, line in ended.items():
            self._keep(request_id, line)

    @property
    def ended(self) -> Mapping[str, bytes | None]:
        """The ended ones that are remembered, oldest first, with the answers that are kept."""
        return self._ended

    def _end(self, request_id: str, line: bytes | None) -> bool:
        if request_id not in self._open:
            return False
        del self._open[request_id]
        self._keep(request_id, line)
        return True

    def _keep(self, request_id: str, line: bytes | None) -> None:
        self._ended[request_id] = line
        if line is not None:
            self._answers.append(request_id)
            self._size += len(line)
        while self._size > ANSWER_BYTES and len(self._answers) > FEWEST_ANSWERS:
            self._ended[self._drop_answer()] = None
        if len(self._ended) > REMEMBERED_ANSWERS:
            oldest = next(iter(self._ended))
            if self._answers and self._answers[0] == oldest:
                self._drop_answer()
            del self._ended[oldest]

    def _drop_answer(self) -> str:
        """The oldest answer is not kept any more."""
        request_id = self._answers.popleft()
        self._size -= len(self._ended[request_id] or b"")
        return request_id
