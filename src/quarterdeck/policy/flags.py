"""The many ways to write one command: paths, quotes, the order and the clusters of flags.

Only for rules that stop something: `Bash(rm -rf *)` is meant to stop `rm -r -f x` as well, and
`/bin/rm --recursive --force x`. To allow something, it must be written as the rule has it.
"""

from __future__ import annotations

from quarterdeck.policy.shell import Part, git_without_options
from quarterdeck.policy.specifiers import CommandPattern

_LONG = {"--force": "f", "--recursive": "r", "--verbose": "v", "--all": "a", "--delete": "d"}
"""Long options that commonly have a short one of the same meaning."""


def spellings(part: Part) -> list[str]:
    """Every text that a rule may know a part by."""
    texts = [form.text for form in part.forms]
    words = _words(part)
    if words:
        texts.append(" ".join(words))
        name = words[0].rpartition("/")[2]
        texts.append(" ".join((name, *words[1:])))
        if name == "git":
            texts.append(" ".join(("git", *git_without_options(words))))
    return texts


def _words(part: Part) -> list[str]:
    return [word.text if word.text is not None else word.source for word in part.words]


def with_flags(pattern: CommandPattern, part: Part) -> bool:
    """Does the part do what the pattern writes out, with its flags in another order or form?"""
    wanted = pattern.literal.split()
    if len(wanted) < 2 or pattern.text.count("*") > 1 or not part.words:
        return False
    if not any(word.startswith("-") for word in wanted):
        return False
    words = _words(part)
    words[0] = words[0].rpartition("/")[2]
    if words[0] == "git":
        words = ["git", *git_without_options(words)]
    if words[0] != wanted[0]:
        return False
    flags, others = _split(words[1:])
    need, positional = _split(wanted[1:])
    if pattern.exact and (need != flags or positional != others):
        return False
    return need <= flags and others[: len(positional)] == positional


def _split(words: list[str]) -> tuple[set[str], list[str]]:
    """Flags in their smallest form, and the other words in their order."""
    flags: set[str] = set()
    others: list[str] = []
    for word in words:
        if word.startswith("--"):
            name = word.partition("=")[0]
            flags.add(_LONG.get(name, name))
        elif word.startswith("-") and len(word) > 1:
            flags.update("r" if letter == "R" else letter for letter in word[1:])
        else:
            others.append(word)
    return flags, others
