"""Options and operands of a command line, in the ways that programs commonly take them."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.policy.shell.script import Word


def operand_at(
    words: tuple[Word, ...], values: frozenset[str], flags: frozenset[str]
) -> int | None:
    """The index of the first word that is not an option; None if unknown.

    `values` are options that take the next word, `flags` those that do not; for any other option it
    is unknown whether it takes the next word.
    """
    at = 1
    while at < len(words):
        text = words[at].literal
        if text is None:
            return None
        if text == "--":
            return at + 1
        if not text.startswith("-") or text == "-":
            return at
        taken = _takes(text, values, flags)
        if taken is None:
            return None
        at += taken
    return at


def _takes(text: str, values: frozenset[str], flags: frozenset[str]) -> int | None:
    """How many words an option takes, itself included; None if unknown."""
    name, equals, _ = text.partition("=")
    if name in flags:
        return 1
    if name in values:
        return 1 if equals else 2
    if text.startswith("--"):
        return None
    if text[1:].isdigit():
        return 1 if "-#" in flags else None
    for place, letter in enumerate(text[1:], 1):
        short = f"-{letter}"
        if short in values:
            return 1 if place + 1 < len(text) else 2
        if short not in flags:
            return None
    return 1


def operands(words: tuple[Word, ...], values: frozenset[str]) -> Iterator[Word]:
    """The words that are neither options nor values of options. Unknown words are included."""
    at, only = 1, False
    while at < len(words):
        word = words[at]
        text = word.text
        at += 1
        if only or text is None or not text.startswith("-") or text == "-":
            yield word
        elif text == "--":
            only = True
        elif text in values or (
            not text.startswith("--") and len(text) > 1 and f"-{text[-1]}" in values
        ):
            at += 1


class Options:
    """The options of a command, indexed for repeated lookups."""

    def __init__(self, words: tuple[Word, ...]) -> None:
        self._words = words
        self._dashed: list[tuple[int, str]] = []
        for at, word in enumerate(words[1:], 1):
            text = word.prefix if word.text is None else word.text
            if text == "--":
                break
            if text.startswith("-") and len(text) > 1:
                self._dashed.append((at, text))

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._dashed)

    def find(self, name: str) -> Iterator[tuple[Word, str | None]]:
        """Every use of an option: its word, and its value if known.

        Long options may be abbreviated (`--outp=x`), short ones combined (`-xzf`): both are found,
        also where it is not certain. A name without a dash is found at the start of any word.
        """
        if name[0] != "-":
            for word in self._words[1:]:
                if word.prefix.startswith(name):
                    yield word, None
            return
        for at, text in self._dashed:
            if name.startswith("--"):
                given, equals, value = text.partition("=")
                if len(given) > 3 and name.startswith(given):
                    yield self._words[at], (value if equals else self._after(at))
            elif len(name) > 2:
                if text.partition("=")[0] == name:
                    yield self._words[at], self._after(at)
            elif text[1] != "-" and name[1] in text[1:]:
                place = text.index(name[1], 1)
                yield self._words[at], (text[place + 1 :] or self._after(at))

    def _after(self, at: int) -> str | None:
        return self._words[at + 1].text if at + 1 < len(self._words) else None


def option(words: tuple[Word, ...], name: str) -> Iterator[tuple[Word, str | None]]:
    """Every use of one option."""
    return Options(words).find(name)
