"""Which rules of many can concern a call at all, found without comparing each of them.

A preset has hundreds of patterns, and a call is about a few words and files. An index is made once
for each policy. It leaves out only what cannot match: what it gives is compared as always, and in
the same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from quarterdeck.policy.path_names import PathNames

_T = TypeVar("_T")


class WordIndex(Generic[_T]):
    """Items by the only word that they can begin with; None for an item that may begin with any."""

    def __init__(self, items: Iterable[tuple[str | None, _T]]) -> None:
        self._by_word: dict[str, list[int]] = {}
        self._always: list[int] = []
        self._items: list[_T] = []
        for place, (word, item) in enumerate(items):
            self._items.append(item)
            if word is None:
                self._always.append(place)
            else:
                self._by_word.setdefault(word, []).append(place)

    def candidates(self, words: Iterable[str | None]) -> list[_T]:
        """The items that may begin with one of these words, in their order."""
        found = self._always
        for word in words:
            more = self._by_word.get(word) if word is not None else None
            if more:
                found = found + more
        if found is not self._always and len(found) > 1:
            found = sorted(set(found))
        return [self._items[place] for place in found]


class KeyIndex(Generic[_T]):
    """Items about paths, by a name that every path has which they match (`path_names.key_of`)."""

    def __init__(self, items: Iterable[tuple[str | None, _T]]) -> None:
        self._pairs = tuple(items)
        self._plain: dict[str, list[int]] = {}
        self._always: list[int] = []
        self._ends: list[tuple[str, int]] = []
        self._starts: list[tuple[str, int]] = []
        for place, (key, _) in enumerate(self._pairs):
            if key is None:
                self._always.append(place)
                continue
            self._plain.setdefault(key, []).append(place)
            if key[0] == "*":
                self._ends.append((key[1:], place))
            if key[-1] == "*":
                self._starts.append((key[:-1], place))
        self._end = tuple(dict.fromkeys(text for text, _ in self._ends))
        self._start = tuple(dict.fromkeys(text for text, _ in self._starts))

    def near(self, names: PathNames) -> tuple[_T, ...]:
        """The items that may match a path with these names, in their order."""
        if names.wild:
            return tuple(item for key, item in self._pairs if names.may_have(key))
        found = set(self._always)
        for name in names.plain:
            found.update(self._plain.get(name, ()))
            # Most names have none of these ends and beginnings: all are asked for at once.
            if name.endswith(self._end):
                found.update(place for text, place in self._ends if name.endswith(text))
            if name.startswith(self._start):
                found.update(place for text, place in self._starts if name.startswith(text))
        return tuple(self._pairs[place][1] for place in sorted(found))
