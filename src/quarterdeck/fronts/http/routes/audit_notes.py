"""What routes write into the audit log. The entries themselves are the hub's business."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.errors import NotFound


class Noting(Protocol):
    """Writes into a session's audit log; without a session, into that of the hub."""

    def __call__(
        self, session: str, coded: CodedText, *, by: str = "", about: str = ""
    ) -> Awaitable[None]:
        """Raises `NotFound`."""


Noter = NamedDependency[SkipValidation[Noting | None]]


async def note_change(noting: Noting | None, about: str, coded: CodedText) -> None:
    """Write into the audit log what a person (its `name`) has changed for the whole hub."""
    if noting is not None:
        await noting("", coded, by=coded.name, about=about)


async def note_if_there(
    noting: Noting, session: str, coded: CodedText, *, by: str = "", about: str = ""
) -> None:
    """Write into the audit log of a session that may be deleted."""
    try:
        await noting(session, coded, by=by, about=about)
    except NotFound:
        return
