"""Why it is not known whether a rule applies: the word that is unknown, and the reason."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.policy.needs import Need, NeedKind
from quarterdeck.policy.shell import Part, Target, Word

MOST = 5
LONGEST = 60
"""Characters of a word that are shown."""


def doubts_of(needs: Iterable[Need]) -> tuple[str, ...]:
    """What is not known about needs that a rule may mean."""
    found = dict.fromkeys(doubt for need in needs if (doubt := _doubt(need)))
    return tuple(found)[:MOST]


def _doubt(need: Need) -> str:
    if need.kind is NeedKind.UNKNOWN:
        return f"{_shorten(need.what)}: {need.why}" if need.why else ""
    if need.kind is NeedKind.FETCH:
        if need.host is None:
            return "the host is not known"
        return f"{need.host} may be the same host, or belong to it"
    if need.target is not None:
        return _of_target(need.target, need.part)
    return _of_words(need.part) if need.part is not None else ""


def _of_target(target: Target, part: Part | None) -> str:
    source = _shorten(target.source)
    if target.paths:
        if target.deep:
            return f"all that is below {source} is used"
        return f"{source} may be several files" if target.glob else f"{source} may be a link"
    if source == "\u2026":
        via = part.via[-1] if part is not None and part.via else "another command"
        return f"{via} passes names that are not known"
    word = next((w for w in part.words if w.source == target.source), None) if part else None
    if word is None:
        return f"the file of {source} is not known"
    if word.text is not None and not word.tilde:
        return f"the folder of {source} is not known"
    return _of_word(word)


def _of_words(part: Part) -> str:
    for word in part.words:
        if word.literal is None:
            return _of_word(word)
    if part.open_ended:
        via = part.via[-1] if part.via else "another command"
        return f"{via} adds words that are not known"
    return "an option may be abbreviated" if part.words else ""


def _of_word(word: Word) -> str:
    source = _shorten(word.source)
    if "$(" in word.source or "`" in word.source:
        return f"the output in {source} is known only at run time"
    if "$" in word.source:
        return f"the variable in {source} is known only at run time"
    if word.tilde:
        return f"the home folder in {source} is not known"
    if word.source == "{}":
        return "the names for {} are known only at run time"
    return f"{source} may become other words" if word.glob else f"{source} is not known"


def _shorten(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if line == text and len(line) <= LONGEST else f"{line[:LONGEST]}\u2026"
