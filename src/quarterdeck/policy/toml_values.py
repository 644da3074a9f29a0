"""The values of a policy file: the type of each key.

Reads values from TOML data and reports problems with their lines, and the nearest valid name for a
misspelt one. `file` knows how values combine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from quarterdeck.domain.toml_lines import Path
from quarterdeck.policy.facts import NamePatterns, Times
from quarterdeck.policy.toml import Document, Flaw
from quarterdeck.policy.wildcards import too_wild

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
MODES = ("default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions")

MOST_FLAWS = 100
"""The number of flaws that are reported for one file."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_HOURS = re.compile(r"(\d\d?):(\d\d)-(\d\d?):(\d\d)")

_Choice = TypeVar("_Choice", bound=str)


def seconds_of(text: str) -> float | None:
    """The seconds of a duration such as `90s`, `30m`, `8h`, `30d`; None if it is not one."""
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    return seconds or None


def nearest(name: str, known: Collection[str]) -> str:
    """A hint at the right name for a wrong one."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f": did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(known))}"


class TooManyFlaws(Exception):
    """A file has too many flaws to continue."""


class Table:
    """A table of the file. Its problems are added to `flaws`."""

    def __init__(
        self, document: Document, path: Path, value: object, flaws: list[Flaw], *, keys: set[str]
    ) -> None:
        self._document = document
        self.path = path
        self._flaws = flaws
        self._data: Mapping[str, object] = value if isinstance(value, dict) else {}
        if not isinstance(value, dict):
            self.flaw("expected a table")
        for key in self._data:
            if key not in keys:
                self.flaw(f"there is no key {key!r}{nearest(key, keys)}", key)

    @property
    def line(self) -> int:
        """Where the table begins."""
        return self._document.line(*self.path)

    def flaw(self, text: str, *place: str | int) -> None:
        """Something is wrong here."""
        where = ".".join(str(each) for each in place if isinstance(each, str))
        line = self._document.line(*self.path, *place)
        self._flaws.append(Flaw(line=line, text=f"{where}: {text}" if where else text))
        if len(self._flaws) >= MOST_FLAWS:
            raise TooManyFlaws

    def has(self, key: str) -> bool:
        """Whether the key is given."""
        return key in self._data

    def get(self, key: str) -> object:
        """A value as it is; None if it is missing."""
        return self._data.get(key)

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        value = self._data.get(key, default)
        if isinstance(value, str):
            return value
        self.flaw("expected a text", key)
        return default

    def texts(self, key: str) -> tuple[str, ...]:
        """A text, or several."""
        value = self._data.get(key, [])
        many = value if isinstance(value, list) else [value]
        for number, each in enumerate(many):
            if not isinstance(each, str) or not each.strip():
                self.flaw("expected a text or a list of texts", key, number)
        if self.has(key) and not many:
            self.flaw("the list is empty: omit the key", key)
        return tuple(each for each in many if isinstance(each, str) and each.strip())

    def words(self, key: str) -> NamePatterns | None:
        """Patterns for a name."""
        texts = self.texts(key)
        for number, each in enumerate(texts):
            if (why := too_wild(each, "*?[")) is not None:
                self.flaw(why, key, number)
                return None
        return NamePatterns.of(texts) if self.has(key) else None

    def choice(self, key: str, choices: tuple[_Choice, ...], default: _Choice) -> _Choice:
        """One of several codes."""
        value = self._data.get(key, default)
        for each in choices:
            if value == each:
                return each
        hint = nearest(value, choices) if isinstance(value, str) else ""
        self.flaw(f"expected one of {', '.join(choices)}{hint}", key)
        return default

    def truth(self, key: str) -> bool:
        """`true`, or not given. `false` would say nothing."""
        value = self._data.get(key)
        if value is not None and value is not True:
            self.flaw("expected true: omit the key otherwise", key)
        return value is True

    def number(self, key: str) -> float | None:
        """A number that is not negative."""
        value = self._data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            self.flaw("expected a number of at least 0", key)
            return None
        return float(value)

    def duration(self, key: str) -> float | None:
        """A duration, in seconds."""
        if not self.has(key):
            return None
        seconds = seconds_of(self.text(key, "1s"))
        if seconds is None:
            self.flaw("expected a duration such as 90s, 30m, 8h or 2d", key)
        return seconds

    def moment(self, key: str) -> int | None:
        """A time, in ms."""
        value = self._data.get(key)
        if value is None:
            return None
        if not isinstance(value, datetime) or value.tzinfo is None:
            self.flaw("expected a time with its offset, such as 2027-01-31T18:00:00Z", key)
            return None
        return int(value.timestamp() * 1000)

    def flags(self, key: str) -> tuple[str, ...]:
        """Flags of a command."""
        found = self.texts(key)
        for number, flag in enumerate(found):
            if not flag.startswith("-") or flag.strip("-") == "" or " " in flag or "=" in flag:
                self.flaw("expected a flag without a value, such as --force or -f", key, number)
        return found

    def times(self) -> Times | None:
        """`days`, `hours` and `zone`."""
        if not (self.has("days") or self.has("hours")):
            if self.has("zone"):
                self.flaw("zone needs days or hours", "zone")
            return None
        days = frozenset(day for text in self.texts("days") for day in self._days(text))
        hours = tuple(span for text in self.texts("hours") if (span := self._hours(text)))
        name = self.text("zone", "UTC")
        try:
            zone = ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            self.flaw("expected a time zone such as Europe/Berlin", "zone")
            return None
        return Times(days=days, hours=hours, zone=zone)

    def _days(self, text: str) -> list[int]:
        first, dash, last = (each.strip().lower()[:3] for each in text.partition("-"))
        if first not in DAYS or (dash and last not in DAYS):
            self.flaw("days are mon, tue, wed, thu, fri, sat, sun, or mon-fri", "days")
            return []
        start, end = DAYS.index(first), DAYS.index(last or first)
        return [day % 7 for day in range(start, (end if end >= start else end + 7) + 1)]

    def _hours(self, text: str) -> tuple[int, int] | None:
        found = _HOURS.fullmatch(text.strip())
        if found is not None:
            start, end = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
            if start < 1440 and end <= 1440 and start != end:
                return start, end
        self.flaw("expected hours such as 09:00-18:00", "hours")
        return None


Then = Literal["deny", "allow"]
