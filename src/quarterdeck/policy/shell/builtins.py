"""The shell's own commands that change the shell: folder, variables, names, options."""

from __future__ import annotations

import re
from collections.abc import Callable

from quarterdeck.policy.shell.effects import Known, alters, reads, runs
from quarterdeck.policy.shell.environment import exported
from quarterdeck.policy.shell.places import NOWHERE, Where
from quarterdeck.policy.shell.script import Effect, Word
from quarterdeck.policy.shell.words import word as read_word

_HOME = read_word("~")
_NAME = re.compile(r"[A-Za-z_]\w*")


def _cd(words: tuple[Word, ...], here: Where) -> Known:
    named = [word for word in words[1:] if word.text not in {"-L", "-P", "-e", "--"}]
    if len(named) > 1:
        return Known(moves=NOWHERE)
    to = named[0] if named else _HOME
    if to.text == "-":
        to = Word(source=to.source)
    return Known(effects=(reads(here.target(to), "it goes there"),), moves=here.into(to))


def _lost(words: tuple[Word, ...], here: Where) -> Known:
    del words, here
    return Known(moves=NOWHERE)


def _names(words: tuple[Word, ...], here: Where) -> Known:
    """`export`, `declare` and their like: variables that programs see."""
    del here
    effects: list[Effect] = []
    doubts: list[str] = []
    for word in words[1:]:
        if word.text is None and "=" not in word.prefix:
            doubts.append(f"which variable {word.source} names is only known when it runs")
        elif not word.prefix.startswith("-"):
            if not _NAME.fullmatch(word.prefix.partition("=")[0].rstrip("+")):
                doubts.append(f"{word.source} is not a plain variable")
            effect = exported(word.prefix)
            if effect is not None:
                effects.append(effect)
        elif "f" in word.prefix or "n" in word.prefix:
            doubts.append(f"{words[0].source} {word.source} changes what names mean")
    return Known(effects=tuple(effects), doubts=tuple(doubts))


def _shell_state(words: tuple[Word, ...], here: Where) -> Known:
    del here
    name = words[0].source
    if len(words) == 1:
        return Known()
    return Known(effects=(alters(f"{name} changes what later commands mean", words[1].source),))


def _always_asked(words: tuple[Word, ...], here: Where) -> Known:
    del here
    return Known(doubts=(f"{words[0].source} changes what later commands mean",))


def _evaluates(words: tuple[Word, ...], here: Where) -> Known:
    """`printf -v`, `read`, `unset`, `test -v`: a name with an index is evaluated, and may run."""
    del here
    doubts: list[str] = []
    for word in words[1:]:
        if word.text is None and not word.quoted:
            continue
        if "[" in word.prefix and re.search(r"[$`]", word.text or word.prefix):
            doubts.append(f"{words[0].source} evaluates {word.source}")
    if words[0].source in {"test", "["} and any(
        word.text in {"-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"} for word in words
    ):
        doubts.extend(f"it evaluates {word.source}" for word in words if word.text is None)
    return Known(doubts=tuple(doubts))


def _let(words: tuple[Word, ...], here: Where) -> Known:
    del here
    return Known(doubts=(f"{words[0].source} evaluates what variables hold",))


def _source(words: tuple[Word, ...], here: Where) -> Known:
    if len(words) < 2:
        return Known()
    file = words[1]
    if file.text is None:
        return Known(doubts=(f"which file {words[0].source} runs is only known when it runs",))
    found = runs(f"{words[0].source} runs the file {file.source}", file.source)
    return Known(effects=(found, reads(here.target(file), "it is run")), moves=NOWHERE)


def _mapfile(words: tuple[Word, ...], here: Where) -> Known:
    if any(word.prefix.startswith(("-C", "-c")) for word in words[1:]):
        return Known(doubts=(f"{words[0].source} runs a callback",))
    return _evaluates(words, here)


def _printf(words: tuple[Word, ...], here: Where) -> Known:
    if any(word.prefix.startswith("-v") or word.text is None for word in words[1:2]):
        return Known(doubts=("printf may set a variable",))
    return _evaluates(words, here)


BUILTINS: dict[str, Callable[[tuple[Word, ...], Where], Known]] = {
    "cd": _cd,
    "chdir": _cd,
    "pushd": _lost,
    "popd": _lost,
    **dict.fromkeys(("export", "declare", "typeset", "readonly", "local"), _names),
    **dict.fromkeys(("set", "shopt", "setopt", "unsetopt", "ulimit", "umask"), _shell_state),
    **dict.fromkeys(
        (
            "alias",
            "unalias",
            "enable",
            "hash",
            "complete",
            "compgen",
            "compopt",
            "bind",
            "fc",
            "autoload",
            "zmodload",
            "functions",
            "coproc",
            "emulate",
            "disable",
            "bindkey",
            "zle",
        ),
        _always_asked,
    ),
    **dict.fromkeys(("read", "unset", "test", "[", "wait", "getopts"), _evaluates),
    "printf": _printf,
    "let": _let,
    "source": _source,
    ".": _source,
    "mapfile": _mapfile,
    "readarray": _mapfile,
}
