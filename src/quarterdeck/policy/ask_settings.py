"""How a person is asked: who may answer, how long it waits, and what happens then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from quarterdeck.domain.structs import Value

ROLE = "role:"
"""Before the name of a role in a list of people."""


class AskSettings(Value):
    """What holds for a question."""

    answered_by: tuple[tuple[str, ...], ...] = ()
    """Lists of people and roles (`ada`, `role:owner`). Whoever answers is on every list; without a
    list it is whoever may answer at all."""
    wait: float | None = None
    """Seconds. None: for ever, or as long as the session says."""
    then: Literal["deny", "allow"] = "deny"
    """What happens when nobody has answered. Never `allow` unless a rule says so."""


def strictest(asked: Iterable[AskSettings]) -> AskSettings:
    """What holds when several rules ask: the strictest of each."""
    found = tuple(asked)
    waits = [one for one in found if one.wait is not None]
    wait = min((one.wait for one in waits if one.wait is not None), default=None)
    allowed = bool(waits) and all(one.then == "allow" for one in found)
    return AskSettings(
        answered_by=tuple(dict.fromkeys(each for one in found for each in one.answered_by)),
        wait=wait,
        then="allow" if allowed else "deny",
    )


def may_answer(answered_by: Iterable[tuple[str, ...]], name: str, role: str) -> bool:
    """Whether somebody may answer. A role that nobody has told is none."""
    known = {name, f"{ROLE}{role}"} if role else {name}
    return all(known & set(people) for people in answered_by)
