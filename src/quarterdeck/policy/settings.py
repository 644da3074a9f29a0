"""Rules from Claude Code's settings files, given as text.

Reading the files is the caller's. An entry that is wrong is named, and the rest still counts.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Fact
from quarterdeck.policy.parity import Placed
from quarterdeck.policy.specifiers import Source


class WrongEntry(Fact):
    """Something in a settings file that is not what it should be."""

    source: Source
    where: str
    """As in `permissions.allow[3]`."""

    why: str


class Imported(Fact):
    """What settings files say about permissions."""

    rules: tuple[Placed, ...] = ()
    directories: tuple[str, ...] = ()
    mode: str | None = None
    wrong: tuple[WrongEntry, ...] = ()


def import_settings(texts: dict[Source, str]) -> Imported:
    """Read the `permissions` of settings files. Never raises."""
    return Imported(
        wrong=tuple(WrongEntry(source=source, where="", why="not read yet") for source in texts)
    )
