"""Other names of a command: `docker image push` is `docker push`, and `python3 -m pip` is `pip`.

The names are data (`aliases.toml`). A rule that stops a command knows it by all of them; a rule
that allows one must name it as it was typed. Works on the words of a command alone.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

import msgspec

from quarterdeck.domain.structs import Value

Words = tuple[str, ...]

MOST = 24
"""Names of one command. `python -m pip install` has six."""

LONGEST_NAME = 3
"""Words of a name, without its options."""

MOST_WORDS = 64
"""Words of a command that are looked at."""

_PYTHON = re.compile(r"python[\d.]*|py")
_MODULE = re.compile(r"-[A-Za-z]*m")
_VALUES = frozenset({"-W", "-X", "--check-hash-based-pycs"})
"""Options of Python that take the next word."""

_VERSIONED = re.compile(r"([A-Za-z][A-Za-z+_]*)-?\d+(?:\.\d+)*")


class BadAliases(ValueError):
    """The file with the names cannot be used."""


class Name(Value):
    """One of the names of a command."""

    words: Words
    """The program and its subcommands."""

    options: Words = ()
    goes_on: bool = False
    """A word that is no option must follow."""

    @property
    def whole(self) -> Words:
        """As it is written."""
        return (*self.words, *self.options)


Group = tuple[Name, ...]
"""The names of one command."""


class Program:
    """The groups in which a program has a name."""

    def __init__(self) -> None:
        self._all: list[tuple[Name, Group]] = []
        self._seconds: set[str] = set()
        self._alone = False
        """Whether its name alone has others."""
        self._by_words: dict[Words, list[tuple[Name, Group]]] = {}

    def add(self, name: Name, group: Group) -> None:
        """It has this name, in this group."""
        if name.words[1:2] != ("-m",):  # Python's modules are found in another way
            self._all.append((name, group))
            self._by_words.setdefault(name.words, []).append((name, group))
            self._seconds.update(name.words[1:2])
            self._alone = self._alone or len(name.words) == 1

    def may_have(self, second: str) -> bool:
        """Whether a command with this second word may have another name: most have none."""
        return self._alone or second in self._seconds or second[:1] == "-"

    def candidates(self, words: Words) -> list[tuple[Name, Group]]:
        """The names that a command with these words may have."""
        for word in words[1:LONGEST_NAME]:
            if word[:1] == "-":
                return self._all
        found: list[tuple[Name, Group]] = []
        for size in range(1, LONGEST_NAME + 1):
            found += self._by_words.get(words[:size], ())
        return found


class _File(Value, forbid_unknown_fields=True):
    same: tuple[str, ...] = ()
    subcommands: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def read_aliases(text: str) -> dict[str, Program]:
    """The programs that have other names, from the text of a file. Raises `BadAliases`."""
    try:
        file = msgspec.convert(tomllib.loads(text), type=_File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadAliases(str(error)) from error
    groups = [_group(line, "") for line in file.same]
    for programs, lines in file.subcommands.items():
        groups += [_group(line, program) for program in programs.split() for line in lines]
    found: dict[str, Program] = {}
    for group in groups:
        for name in group:
            found.setdefault(name.words[0], Program()).add(name, group)
    return found


def _group(line: str, program: str) -> Group:
    names = tuple(_name(f"{program} {each}".split()) for each in line.split("|"))
    if len(names) < 2 or not all(0 < len(each.words) <= LONGEST_NAME for each in names):
        raise BadAliases(f"{line!r} is not a list of names of one to {LONGEST_NAME} words")
    return names


def _name(words: list[str]) -> Name:
    goes_on = words[-1:] == ["*"]
    words = words[:-1] if goes_on else words
    if words[1:2] == ["-m"]:  # the module of Python is no option of the command
        return Name(words=tuple(words))
    plain = [each for each in words if each[:1] != "-"]
    options = [each for each in words if each[:1] == "-"]
    return Name(words=tuple(plain), options=tuple(options), goes_on=goes_on)


@cache
def _programs() -> dict[str, Program]:
    file = resources.files(__package__) / "aliases.toml"
    return read_aliases(file.read_text(encoding="utf-8"))


def other_names(words: Words) -> tuple[Words, ...]:
    """The same command under its other names, each with the words that follow; none for most.

    The first word is the name of the program, without a folder.
    """
    start = words[:MOST_WORDS]
    renamed = _other_names(start, frozenset()) if words else []
    if not renamed:
        return ()
    seen: dict[Words, None] = {start: None}
    # A command is renamed by each group once: by another group its new name may have others.
    waiting: list[tuple[Words, frozenset[int]]] = [(start, frozenset())]
    while waiting and len(seen) <= MOST:
        named, used = waiting.pop()
        for other, group in renamed if named is start else _other_names(named, used):
            if other not in seen:
                seen[other] = None
                waiting.append((other, used | {id(group)}))
    return tuple(seen)[1 : MOST + 1]


def _known_as(name: str) -> str | None:
    """The name of a program that has other names; None if it has none."""
    if name in _programs():
        return name
    numbered = _VERSIONED.fullmatch(name) if name[-1:].isdigit() else None
    return numbered[1] if numbered is not None and numbered[1] in _programs() else None


def has_other_names(name: str) -> bool:
    """Whether a program, or one of its subcommands, has other names."""
    return _known_as(name) is not None


def _other_names(words: Words, used: frozenset[int]) -> list[tuple[Words, Group]]:
    """The command under each other name that one of the other groups has for it."""
    found: list[tuple[Words, Group]] = []
    known = _known_as(words[0])
    if known is None or not _programs()[known].may_have(words[1] if len(words) > 1 else ""):
        return found
    if len(words) > 2 and _PYTHON.fullmatch(words[0]) and (module := _module(words)):
        found.append((module, ()))
    for name, group in _programs()[known].candidates((known, *words[1:])):
        rest = None if id(group) in used else _after(name, words)
        if rest is not None:
            # A program with a version in its name has the name without it, too.
            typed = name if name.words[0] == words[0] else None
            found += [((*other.whole, *rest), group) for other in group if other is not typed]
    return found


def _after(name: Name, words: Words) -> list[str] | None:
    """What follows a name in the words of a command; None if it does not have that name.

    Options may be between the words, each with a value.
    """
    rest: list[str] = []
    wanted, after_option = list(name.words[1:]), False
    at = 1
    while wanted:
        if at >= len(words):
            return None
        text = words[at]
        at += 1
        if text == wanted[0]:
            del wanted[0]
            after_option = False
            continue
        if text[:1] != "-" and not after_option:
            return None
        after_option = text[:1] == "-"
        rest.append(text)
    rest += words[at:]
    for option in name.options:
        if not _has(option, rest):
            return None
        rest = [each for each in rest if each != option]
    if name.goes_on and not any(each[:1] != "-" for each in rest):
        return None
    return rest


def _has(option: str, words: list[str]) -> bool:
    if option in words:
        return True
    if option.startswith("--"):
        return False
    letter = option[1]
    return bool([each for each in words if letter in each and each[:1] == "-" != each[1:2]])


def _module(words: Words) -> Words | None:
    """`python -m NAME …` is `NAME …`."""
    at = 1
    while at < len(words) and words[at][:1] == "-":
        text = words[at]
        if _MODULE.fullmatch(text):
            name = words[at + 1] if at + 1 < len(words) else ""
            return (name.replace("_", "-"), *words[at + 2 :]) if name else None
        if text.startswith("-m"):
            return (text[2:].replace("_", "-"), *words[at + 1 :])
        at += 2 if text in _VALUES else 1
    return None
