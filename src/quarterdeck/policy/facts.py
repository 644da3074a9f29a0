"""Facts about the place and time of a call, and conditions on them.

A fact may be unknown. So a condition has three results: True, False, or unknown (None). An unknown
condition never allows anything; where it would stop a call, a person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from fnmatch import translate
from functools import cached_property

from quarterdeck.domain.structs import Value

Tri = bool | None
"""True, False, or unknown."""

MAIN, SUBAGENT = "main", "subagent"


class Facts(Value):
    """Facts about a call besides its input. None is unknown; "" is known to be empty."""

    now: int | None = None
    """In ms since 1970: policy has no clock."""
    machine: str | None = None
    project: str | None = None
    directory: str | None = None
    """Where the session was started."""
    branch: str | None = None
    user: str | None = None
    """Whose session it is."""
    mode: str | None = None
    origin: str | None = None
    """`main` or `subagent`."""
    agent: str | None = None
    """The subagent's type."""
    cost_usd: float | None = None


class Private(Value):
    """The hub's files on the machine of a session, as absolute paths."""

    folders: tuple[str, ...] = ()
    """Closed to every access, with everything in them."""
    open: tuple[str, ...] = ()
    """Folders in those where agents work: git worktrees."""
    fixed: tuple[str, ...] = ()
    """Files that may be read, but not changed: the policy and the configuration in force."""


class NamePatterns(Value):
    """Patterns for a name. One of them must fit; one that begins with `!` must not."""

    fits: re.Pattern[str] | None = None
    misfits: re.Pattern[str] | None = None
    plain: frozenset[str] | None = None
    """All of them, where none is a pattern: faster to look up."""
    text: tuple[str, ...] = ()

    @classmethod
    def of(cls, patterns: Iterable[str]) -> NamePatterns:
        """Make patterns ready."""
        given = tuple(patterns)
        wanted = [pattern for pattern in given if not pattern.startswith("!")]
        unwanted = [pattern[1:] for pattern in given if pattern.startswith("!")]
        simple = not unwanted and not any(set(pattern) & set("*?[") for pattern in wanted)
        return cls(
            fits=_any(wanted) if wanted else None,
            misfits=_any(unwanted) if unwanted else None,
            plain=frozenset(wanted) if simple else None,
            text=given,
        )

    def fit(self, name: str | None) -> Tri:
        """Whether a name fits."""
        if name is None:
            return None
        if self.plain is not None:
            return name in self.plain
        if self.misfits is not None and self.misfits.match(name):
            return False
        return self.fits is None or self.fits.match(name) is not None


def _any(patterns: list[str]) -> re.Pattern[str]:
    # `translate` makes an atomic group of each piece between two wildcards: it takes linear time.
    return re.compile("|".join(translate(pattern) for pattern in patterns))


class Times(Value):
    """Days of the week and hours of the day, in a zone."""

    days: frozenset[int] = frozenset()
    """0 is Monday. Empty: every day."""
    hours: tuple[tuple[int, int], ...] = ()
    """From and to, in minutes; a span that ends before its start continues after midnight."""
    zone: tzinfo = UTC

    def hold(self, now: int | None) -> Tri:
        """Whether it is such a time. After midnight a span still belongs to the day of its
        start.
        """
        if now is None:
            return None
        local = datetime.fromtimestamp(now / 1000, self.zone)
        minute, today = local.hour * 60 + local.minute, local.weekday()
        if not self.hours:
            return self._is_day(today)
        for start, end in self.hours:
            if start < end:
                if start <= minute < end and self._is_day(today):
                    return True
            elif (minute >= start and self._is_day(today)) or (
                minute < end and self._is_day((today - 1) % 7)
            ):
                return True
        return False

    def _is_day(self, day: int) -> bool:
        return not self.days or day in self.days


class FactConditions(Value, dict=True):
    """Conditions on the facts of a call. Empty fields are no condition."""

    machine: NamePatterns | None = None
    project: NamePatterns | None = None
    directory: NamePatterns | None = None
    branch: NamePatterns | None = None
    user: NamePatterns | None = None
    mode: NamePatterns | None = None
    origin: NamePatterns | None = None
    """`main`, `subagent`, or `subagent:NAME`."""
    cost_over: float | None = None
    cost_under: float | None = None
    times: Times | None = None
    until: int | None = None
    """From this time on, in ms, the rule is over."""

    def hold(self, facts: Facts, *, assume: bool = False) -> Tri:
        """Whether all conditions hold. `assume`: unknown facts are taken to match, for examples."""
        if not self._given:
            return True
        result: Tri = True
        for each in self._each(facts):
            if each is False:
                return False
            if each is None and not assume:
                result = None
        return result

    @cached_property
    def _given(self) -> bool:
        """Whether there is a condition: most rules have none."""
        return self != FactConditions()

    def _each(self, facts: Facts) -> Iterable[Tri]:
        for words, fact in (
            (self.machine, facts.machine),
            (self.project, facts.project),
            (self.directory, facts.directory),
            (self.branch, facts.branch),
            (self.user, facts.user),
            (self.mode, facts.mode),
        ):
            if words is not None:
                yield words.fit(fact)
        if self.origin is not None:
            yield self._origin(self.origin, facts)
        if self.cost_over is not None:
            yield None if facts.cost_usd is None else facts.cost_usd > self.cost_over
        if self.cost_under is not None:
            yield None if facts.cost_usd is None else facts.cost_usd < self.cost_under
        if self.times is not None:
            yield self.times.hold(facts.now)
        if self.until is not None:
            yield None if facts.now is None else facts.now < self.until

    @staticmethod
    def _origin(words: NamePatterns, facts: Facts) -> Tri:
        fit = words.fit(facts.origin)
        if facts.origin != SUBAGENT or fit is True:
            return fit
        named = any(":" in pattern for pattern in words.text)
        if facts.agent is None:
            return None if named else fit
        return words.fit(f"{SUBAGENT}:{facts.agent}")
