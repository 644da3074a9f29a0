"""What of an agent's texts may be shown in a chat. Pure.

Secrets are masked and invisible characters are marked: people decide by what they read here, and
what is sent is stored by others. `Leaves` says which contents leave the hub without being asked
for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from quarterdeck.domain.marks import mark_invisible
from quarterdeck.domain.secrets import redact
from quarterdeck.domain.structs import Value
from quarterdeck.wire.tools import one_line

Content = Literal["commands", "diffs", "answers", "plans"]
CONTENTS: tuple[Content, ...] = ("commands", "diffs", "answers", "plans")


class Leaves(Value):
    """What leaves the hub without being asked for. Contents of files do so only with `diffs`."""

    commands: bool = True
    """The commands of tools and their other inputs, in questions and in the progress."""
    diffs: bool = False
    """Changes of files."""
    answers: bool = True
    """The answers of the model."""
    plans: bool = True

    @classmethod
    def of(cls, contents: tuple[str, ...]) -> Leaves:
        """From a list of names."""
        return cls(**{name: name in contents for name in CONTENTS})


SLICE = 8_192
"""Characters that are masked at once: a regular expression lets no other thread run meanwhile."""
_SEAM = re.compile(r"(?<=[^\s:=,'\"])\n\s*(?=[^\s:=,'\"])")
"""Between two lines of which no secret can be a part together."""
_ENDS = " \n\t'\""
"""Characters at which every secret ends, or has not begun."""


def safe(text: str) -> str:
    """A text of others as it may be sent. A long one takes long: see `safe_slices`."""
    return mark_invisible(redact(text))


def safe_slices(text: str) -> str:
    """The same for a long text, in a thread: others run between its slices."""
    return "".join(safe(piece) for piece in _slices(text))


def safe_start(text: str, limit: int) -> str:
    """At most so many characters of a text of others as they may be sent, in bounded time."""
    return safe(beginning(text, 4 * limit))[:limit]


def beginning(text: str, limit: int) -> str:
    """At most so many characters of a text, as they are. It is cut where no secret is cut in two:
    half of one is not recognised as a secret.
    """
    if len(text) <= limit:
        return text
    head = text[:limit]
    return head[: max(head.rfind(end) for end in _ENDS) + 1]


def _slices(text: str) -> Iterator[str]:
    at = 0
    while len(text) - at > SLICE:
        seam = _SEAM.search(text, at + SLICE)
        end = len(text) if seam is None else seam.end()
        yield text[at:end]
        at = end
    yield text[at:]


def safe_line(text: str, limit: int = 200) -> str:
    """The same in one line."""
    return one_line(redact(text), limit)
