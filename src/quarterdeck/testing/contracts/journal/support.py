"""What the parts of the suite have in common: simple events, and ways to wait."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import anyio
from msgspec import Raw

from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.journal.base import Follower, Journal
from quarterdeck.protocol.events import (
    AskAnswered,
    AskKind,
    AskOpened,
    Noted,
    PromptQueued,
    SessionCreated,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored

_Error = TypeVar("_Error", bound=QuarterdeckError)

SECONDS = 30.0
"""No wait of the suite is longer."""

LATE = 50_000
"""More events than any engine may keep in memory for a follower that does not read."""


def note(text: str) -> Noted:
    """The simplest event."""
    return Noted(level="info", text=text)


def created_event(name: str | None = None) -> SessionCreated:
    """The first event of a session."""
    return SessionCreated(spec=SessionSpec(directory="/work", name=name), by="ann")


def ask_event(ask: str, run: str = "r1") -> AskOpened:
    """A question."""
    return AskOpened(
        ask=ask,
        run=run,
        request_id=f"request-{ask}",
        ask_kind=AskKind.TOOL,
        tool="Bash",
        title="run a command",
        request=Raw(b'{"subtype":"can_use_tool"}'),
    )


def answer_event(ask: str) -> AskAnswered:
    """Its answer."""
    return AskAnswered(ask=ask, by="ann", answer=Raw(b'{"answer":"allow"}'), allowed=True)


def prompt(id_: str) -> PromptQueued:
    """A prompt that is queued."""
    return PromptQueued(prompt=id_, content=Raw(b'"do it"'), by="ann")


def texts(stored: Sequence[Stored]) -> list[str]:
    """The texts of the notes among them."""
    return [each.event.text for each in stored if isinstance(each.event, Noted)]


async def take(follower: Follower, count: int) -> list[Stored]:
    """The next events of a follower, so many or the few more that came with the last."""
    found: list[Stored] = []
    with anyio.fail_after(SECONDS):
        while len(found) < count:
            found += await anext(follower)
    return found


async def nothing(follower: Follower) -> None:
    """Fail if the follower has anything to give at this moment."""
    with anyio.move_on_after(0.05):
        raise AssertionError(f"nothing was to come, but {await anext(follower)}")


async def read_all(journal: Journal, session: str, limit: int = 1000) -> list[Stored]:
    """A session's events, page by page."""
    found: list[Stored] = []
    while page := await journal.read(session, after=found[-1].seq if found else 0, limit=limit):
        found += page
    return found


async def error_of(call: Awaitable[object], kind: type[_Error]) -> _Error:
    """The error that a call ends in. Fails when there is none."""
    try:
        await call
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was to come")


def chance(seed: float) -> random.Random:
    """Chance that can be had again."""
    return random.Random(seed)  # noqa: S311 - no secret is made of it


class Contract:
    """What the suites have in common."""

    moment: float | None = None
    """What the clock is set to, in seconds since 1970; None: it goes."""

    def clock(self) -> float:
        """The time by which `journal` goes."""
        return time.time() if self.moment is None else self.moment

    def journal(self) -> AbstractAsyncContextManager[Journal]:
        """A journal, empty when it is opened for the first time in a test."""
        raise AssertionError("a suite for a journal says how one is made: override journal()")

    def together(self) -> AbstractAsyncContextManager[tuple[Journal, Journal]]:
        """Two journals, open at once on one empty database."""
        raise AssertionError("a suite for a journal says how two share one: override together()")
