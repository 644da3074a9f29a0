"""The shell's own commands that change the shell: folder, variables, names, options."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from quarterdeck.policy.shell.effects import ProgramEffects, alters, reads, runs
from quarterdeck.policy.shell.environment import export_effect, lasting_doubt
from quarterdeck.policy.shell.script import Effect, Word
from quarterdeck.policy.shell.word_reader import read_word
from quarterdeck.policy.shell.working_dir import WorkingDir

_HOME = read_word("~")
_NAME = re.compile(r"[A-Za-z_]\w*")
_PLAIN_STATE = re.compile(r"[-+](?:[eux]+o?|o)|errexit|nounset|pipefail|xtrace")
"""Options of `set` that end a script earlier, or show what it does."""


def _cd(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    named = [word for word in words[1:] if word.text not in {"-L", "-P", "-e", "--"}]
    if len(named) > 1:
        return ProgramEffects(moves=here.elsewhere())
    to = named[0] if named else _HOME
    if to.text == "-":
        # Where that is, is not known. What is done there is another matter.
        return ProgramEffects(moves=here.elsewhere())
    target = here.target(to)
    if (
        to.text is not None
        and set(to.text.split("/")) <= {"..", ""}
        and len(named) == len(words) - 1
    ):
        # `cd ..` goes back by the text of the path, whatever is a link there.
        target = msgspec.structs.replace(target, sure=True)
    return ProgramEffects(
        effects=(reads(target, "it changes to that folder"),), moves=here.into(to), looks=True
    )


def _unknown_dir(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    del words
    return ProgramEffects(moves=here.elsewhere())


def _names(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    """`export`, `declare` and their like: variables that programs see."""
    del here
    effects: list[Effect] = []
    doubts: list[str] = []
    for word in words[1:]:
        if word.text is None and "=" not in word.prefix:
            doubts.append(f"the variable {word.source} is known only at run time")
        elif not word.prefix.startswith("-"):
            if not _NAME.fullmatch(word.prefix.partition("=")[0].rstrip("+")):
                doubts.append(f"{word.source} is not a plain variable")
            effect = export_effect(word.prefix)
            if effect is not None:
                effects.append(effect)
        elif "f" in word.prefix or "n" in word.prefix:
            doubts.append(f"{words[0].source} {word.source} changes the meaning of names")
    return ProgramEffects(effects=tuple(effects), doubts=tuple(doubts))


def _shell_state(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    del here
    name = words[0].source
    if len(words) == 1:
        return ProgramEffects()
    if name == "set" and all(_PLAIN_STATE.fullmatch(word.text or "") for word in words[1:]):
        return ProgramEffects(looks=True)
    return ProgramEffects(
        effects=(alters(f"{name} changes the meaning of later commands", words[1].source),)
    )


def _always_asked(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    del here
    return ProgramEffects(doubts=(f"{words[0].source} changes the meaning of later commands",))


def _read(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    """`read` sets variables. Programs see some of them."""
    found = _evaluates(words, here)
    doubts = [lasting_doubt(word.text or "") for word in words[1:]]
    plain = all(word.text is not None and "[" not in word.text for word in words[1:])
    return msgspec.structs.replace(
        found,
        doubts=(*found.doubts, *(doubt for doubt in doubts if doubt is not None)),
        looks=plain and not any(doubts),
    )


def _evaluates(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
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
    return ProgramEffects(doubts=tuple(doubts))


def _let(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    del here
    return ProgramEffects(doubts=(f"{words[0].source} evaluates the values of variables",))


def _source(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    if len(words) < 2:
        return ProgramEffects()
    file = words[1]
    if file.text is None:
        return ProgramEffects(
            doubts=(f"the file that {words[0].source} runs is known only at run time",)
        )
    found = runs(f"{words[0].source} runs the file {file.source}", file.source)
    # It may change the folder. But what it runs could read any file itself: nothing is gained by
    # doubting all that follows.
    return ProgramEffects(effects=(found, reads(here.target(file), "it is run")))


def _mapfile(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    if any(word.prefix.startswith(("-C", "-c")) for word in words[1:]):
        return ProgramEffects(doubts=(f"{words[0].source} runs a callback",))
    return _evaluates(words, here)


def _printf(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    if any(word.prefix.startswith("-v") or word.text is None for word in words[1:2]):
        return ProgramEffects(doubts=("printf may set a variable",))
    return msgspec.structs.replace(_evaluates(words, here), looks=True, judged=True)


BUILTINS: dict[str, Callable[[tuple[Word, ...], WorkingDir], ProgramEffects]] = {
    "cd": _cd,
    "chdir": _cd,
    "pushd": _unknown_dir,
    "popd": _unknown_dir,
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
    "read": _read,
    **dict.fromkeys(("unset", "test", "[", "wait", "getopts"), _evaluates),
    "printf": _printf,
    "let": _let,
    "source": _source,
    ".": _source,
    "mapfile": _mapfile,
    "readarray": _mapfile,
}
