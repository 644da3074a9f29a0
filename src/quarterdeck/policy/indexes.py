"""Which rules of many can concern a call at all, found without comparing each of them.

A preset has hundreds of patterns, and a call is about a few words and files. An index is made once
for each policy. It leaves out only what cannot match: what it gives is compared as always, and in
the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from quarterdeck.policy.overlap import names_overlap
from quarterdeck.policy.path_names import PathNames
from quarterdeck.policy.paths import PARTLY_SEEN, PathPattern
from quarterdeck.policy.trees import Tree, is_wild

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
        if not found:
            return []
        if found is not self._always and len(found) > 1:
            found = sorted(set(found))
        return [self._items[place] for place in found]


class KeyIndex(Generic[_T]):
    """Items about paths, by a name that every path has which they match (`path_names.key_of`).

    For a folder that is used with all that is below it, also by what may be there: the last name of
    the pattern, and the first one, if the folder is above all that the pattern means.
    """

    def __init__(self, items: Iterable[tuple[str | None, PathPattern | None, _T]]) -> None:
        self._pairs: list[tuple[str | None, _T]] = []
        self._plain: dict[str, list[int]] = {}
        self._always: list[int] = []
        self._ends: list[tuple[str, int]] = []
        self._starts: list[tuple[str, int]] = []
        self._firsts: dict[str, list[int]] = {}
        self._lasts: dict[str, list[int]] = {}
        self._wild_lasts: dict[str, list[int]] = {}
        self._not_looked_into: list[int] = []
        self.anywhere = False
        """Whether a pattern may mean a file in any folder."""
        for place, (key, pattern, item) in enumerate(items):
            self._pairs.append((key, item))
            if pattern is not None:
                self.anywhere = self.anywhere or pattern.anywhere
                self._add_below(pattern, place)
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

    def _add_below(self, pattern: PathPattern, place: int) -> None:
        if pattern.literal:
            first = pattern.literal.partition("/")[0].casefold()
            self._firsts.setdefault(first, []).append(place)
        if not PARTLY_SEEN.isdisjoint(pattern.names):
            self._not_looked_into.append(place)
        last = pattern.names[-1] if pattern.names else "**"
        by_last = self._wild_lasts if is_wild(last) else self._lasts
        by_last.setdefault(last, []).append(place)

    def near(self, names: PathNames) -> tuple[_T, ...]:
        """The items that may match a path with these names, in their order."""
        if names.wild:
            found = {at for at, (key, _) in enumerate(self._pairs) if names.may_have(key)}
        else:
            found = self._by_names(names)
        for tree in names.trees:
            found.update(self._below(names, tree))
        return tuple(self._pairs[place][1] for place in sorted(found))

    def _by_names(self, names: PathNames) -> set[int]:
        found = set(self._always)
        for name in names.plain:
            found.update(self._plain.get(name, ()))
            # Most names have none of these ends and beginnings: all are asked for at once.
            if name.endswith(self._end):
                found.update(place for text, place in self._ends if name.endswith(text))
            if name.startswith(self._start):
                found.update(place for text, place in self._starts if name.startswith(text))
        return found

    def _below(self, names: PathNames, tree: Tree) -> Iterator[int]:
        """The items that may mean something below a folder."""
        yield from self._not_looked_into
        for name in names.plain:
            yield from self._firsts.get(name, ())
        for last in self._lasts.keys() & tree.names.keys():
            yield from self._lasts[last]
        for last, places in self._wild_lasts.items():
            if any(names_overlap(last, name, True) for name in tree.names):
                yield from places
