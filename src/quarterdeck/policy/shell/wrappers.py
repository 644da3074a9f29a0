"""Programs that run other programs, and the position of that command in their words.

A transparent wrapper changes how its command runs, not what it does: rules see through it. Any
other wrapper must be allowed itself, besides the command that it runs. A wrapper with unknown
options leaves a doubt, and a person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.shell.environment import export_effect
from quarterdeck.policy.shell.inner import Inside, inside
from quarterdeck.policy.shell.listings import Listing, found_by
from quarterdeck.policy.shell.options import operand_at
from quarterdeck.policy.shell.script import Effect, EffectKind, Word
from quarterdeck.policy.shell.tables import table_of
from quarterdeck.policy.shell.working_dir import UNKNOWN_DIR, WorkingDir
from quarterdeck.policy.shell.wrapper_table import WRAPPERS, Wrapper


class InnerCommand(Value):
    """A command in a wrapper's words."""

    words: tuple[Word, ...]
    start: int
    stop: int | None = None
    open_ended: bool = False
    added: Word | None = None
    """The words that are added at run time, if they have bounds."""

    here: WorkingDir


class InnerScript(Value):
    """A text that a wrapper gives to a shell."""

    text: str
    here: WorkingDir


class Unwrapped(Value):
    """What a command runs. Empty for most commands."""

    name: str = ""
    commands: tuple[InnerCommand, ...] = ()
    scripts: tuple[InnerScript, ...] = ()
    effects: tuple[Effect, ...] = ()
    doubts: tuple[str, ...] = ()
    transparent: bool = False


class Input(NamedTuple):
    """What a command gets as its input."""

    names: Listing | None = None
    text: str | None = None
    given: bool = False


_Custom = Callable[[str, tuple[Word, ...], WorkingDir, Input], Unwrapped]


_STDIN = frozenset({"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "-"})
_SHELLS = name_set("sh bash dash ash zsh ksh mksh yash fish rbash")
_SHELL_VALUES = name_set("-o +o -O +O --rcfile --init-file")


_NO_INPUT = Input()
_NOTHING = Unwrapped()


def unwrap(words: tuple[Word, ...], here: WorkingDir, given: Input = _NO_INPUT) -> Unwrapped:
    """The commands and scripts that a command runs."""
    literal = words[0].literal
    if literal is None:
        return _NOTHING
    name = literal.rpartition("/")[2]
    table = table_of(name)
    if table is not None and table.commands:
        found = inside(words, table)
        return _NOTHING if found is None else _by_table(name, words, here, found)
    wrapper = WRAPPERS.get(name)
    if wrapper is not None:
        return _peel(name, literal, wrapper, words, here, given)
    custom = _CUSTOM.get(name)
    return _NOTHING if custom is None else custom(name, words, here, given)


def _by_table(name: str, words: tuple[Word, ...], here: WorkingDir, found: Inside) -> Unwrapped:
    """The command that the table of a program tells."""
    texts = [word.literal for word in found.scripts]
    doubtful = not found.known or None in texts
    start = found.start
    return Unwrapped(
        name=name,
        commands=()
        if start is None
        else (InnerCommand(words=words[start:], start=start, here=here),),
        scripts=tuple(InnerScript(text=text, here=here) for text in texts if text is not None),
        doubts=(f"the command of {name} is not known",) if doubtful else (),
    )


def _peel(
    name: str,
    literal: str,
    wrapper: Wrapper,
    words: tuple[Word, ...],
    here: WorkingDir,
    given: Input,
) -> Unwrapped:
    base = 0
    if wrapper.subcommands:
        if len(words) < 2 or words[1].literal not in wrapper.subcommands:
            return Unwrapped()
        base = 1
    elif len(words) == 1:
        return Unwrapped()
    if name == "command" and words[1].literal in {"-v", "-V", "-pv", "-pV"}:
        return Unwrapped()
    if name == "flock" and any(word.text in {"-c", "--command"} for word in words):
        return _after(name, words, here, {"-c", "--command"})
    if name == "env" and any(_splits(word) for word in words[1:]):
        return Unwrapped(name=name, doubts=("env splits a text into a command",))
    at = operand_at(words[base:], wrapper.values, wrapper.flags)
    if at is None:
        return Unwrapped(name=name, doubts=(f"the command of {name} is not known",))
    at += base + wrapper.skipped
    effects: list[Effect] = []
    while wrapper.sets and at < len(words) and _sets(words[at]):
        effect = export_effect(words[at].prefix)
        if effect is not None:
            effects.append(effect)
        at += 1
    if wrapper.subcommands and at < len(words) and words[at].literal == "--":
        at += 1
    if any(word.literal is None for word in words[1:at]) or at > len(words):
        return Unwrapped(name=name, doubts=(f"the command of {name} is not known",))
    if at == len(words):
        return Unwrapped(name=name, effects=tuple(effects))
    inside = UNKNOWN_DIR if wrapper.unknown_dir and at > base + 1 + wrapper.skipped else here
    if wrapper.unknown_dir and name in {"ssh", "mosh", "docker", "podman", "kubectl", "chroot"}:
        inside = UNKNOWN_DIR
    if wrapper.joined:
        return _shell_text(name, words[at:], inside, wrapper.open_ended)
    rest = words[at:]
    bare = name == "xargs" and at == 1
    added: Word | None = None
    names: Listing | None = None
    marks: set[str] = set()
    if wrapper.open_ended:
        names = given.names if name == "xargs" and not _reads_file(words[1:at]) else None
        marks = _placeholders(words[1:at])
        rest = _mask_placeholders(rest, marks, names)
        if names is not None and not marks:
            added = names.word("…")
    inner = InnerCommand(
        words=rest,
        start=at,
        # With a placeholder no words are added.
        open_ended=wrapper.open_ended and not (marks and names is not None),
        added=added,
        here=inside,
    )
    # A wrapper with a path (`./timeout`) may be any program.
    plain = literal == name
    return Unwrapped(
        name=name,
        commands=(inner,),
        effects=tuple(effects),
        transparent=plain and (wrapper.transparent or bare),
    )


def _sets(word: Word) -> bool:
    name, equals, _ = word.prefix.partition("=")
    return bool(equals) and name.isidentifier()


def _splits(word: Word) -> bool:
    text = word.prefix
    return text.startswith("--s") or (
        text.startswith("-") and not text.startswith("--") and "S" in text
    )


def _reads_file(options: tuple[Word, ...]) -> bool:
    """Does xargs take its words from a file, not from its input?"""
    return any(
        word.prefix.startswith("--a") or re.match(r"-[0rtpxo]*a", word.prefix) for word in options
    )


def _placeholders(options: tuple[Word, ...]) -> set[str]:
    """The texts that xargs replaces: with one of them it adds no words."""
    marks: set[str] = set()
    for at, word in enumerate(options):
        text = word.text or ""
        if text.startswith(("-I", "-i")):
            following = options[at + 1].text if at + 1 < len(options) and text == "-I" else None
            marks.add(text[2:] or following or "{}")
        elif text.startswith("--replace"):
            marks.add(text.partition("=")[2] or "{}")
    return marks


def _mask_placeholders(
    words: tuple[Word, ...], marks: set[str], names: Listing | None
) -> tuple[Word, ...]:
    """The words of a command, in which `{}` and the other marks are replaced at run time."""
    found = marks | {"{}"}
    masked: list[Word] = []
    for word in words:
        if word.text is None or not any(mark in word.text for mark in found):
            masked.append(word)
        elif names is not None and word.text in found:
            masked.append(names.word(word.source))
        else:
            masked.append(Word(source=word.source, prefix=""))
    return tuple(masked)


def _shell_text(
    name: str, words: tuple[Word, ...], here: WorkingDir, open_ended: bool
) -> Unwrapped:
    texts = [word.text for word in words]
    doubts: list[str] = []
    if any(text is None for text in texts) or any(word.glob or word.tilde for word in words):
        doubts.append(f"the command of {name} is known only at run time")
    if open_ended:
        doubts.append(f"{name} adds words to a text for a shell")
    text = " ".join(
        word.source if text is None else text for word, text in zip(words, texts, strict=True)
    )
    return Unwrapped(name=name, scripts=(InnerScript(text=text, here=here),), doubts=tuple(doubts))


def _after(name: str, words: tuple[Word, ...], here: WorkingDir, marks: set[str]) -> Unwrapped:
    """The word after a mark is a text for a shell."""
    scripts: list[InnerScript] = []
    doubts: list[str] = []
    for at, word in enumerate(words[:-1]):
        if word.text in marks:
            text = words[at + 1].literal
            if text is None:
                doubts.append(f"the command of {name} is known only at run time")
            else:
                scripts.append(InnerScript(text=text, here=here))
    if not scripts and not doubts:
        doubts.append(f"the command of {name} is not known")
    return Unwrapped(name=name, scripts=tuple(scripts), doubts=tuple(doubts))


def _shell(name: str, words: tuple[Word, ...], here: WorkingDir, given: Input) -> Unwrapped:
    """`bash -c text`, `bash file`, or bash that reads its commands from its input."""
    at, takes_text = 1, False
    while at < len(words):
        text = words[at].literal
        if text is None:
            return Unwrapped(
                name=name, doubts=(f"the command of {name} is known only at run time",)
            )
        if text in {"--version", "--help"}:
            return Unwrapped()
        if text == "--" or not text.startswith(("-", "+")) or text == "-":
            at += text in {"--", "-"}
            break
        if text in {"--rcfile", "--init-file"} or text.startswith(("--rcfile=", "--init-file=")):
            return Unwrapped(name=name, doubts=(f"{name} runs a file at its start",))
        takes_text = takes_text or (not text.startswith("--") and "c" in text[1:])
        at += 2 if text in _SHELL_VALUES else 1
    if not takes_text:
        file = words[at].source if at < len(words) else ""
        if file in _STDIN or (at < len(words) and words[at].text in _STDIN):
            file = ""
        why = f"{name} runs the file {file}" if file else f"{name} runs its input"
        runs = Effect(kind=EffectKind.RUNS, why=why, token=file)
        if file or not given.given:
            return Unwrapped(name=name, effects=(runs,))
        if given.text is None:
            return Unwrapped(name=name, effects=(runs,), doubts=(f"{name} runs its input",))
        inner = InnerScript(text=given.text, here=here)
        return Unwrapped(name=name, effects=(runs,), scripts=(inner,))
    script = words[at].literal if at < len(words) else None
    if script is None:
        return Unwrapped(name=name, doubts=(f"the command of {name} is known only at run time",))
    return Unwrapped(name=name, scripts=(InnerScript(text=script, here=here),))


def _source(name: str, words: tuple[Word, ...], here: WorkingDir, given: Input) -> Unwrapped:
    """`. /dev/stdin` runs its input in the shell itself."""
    if len(words) < 2 or words[1].text not in _STDIN or not given.given:
        return Unwrapped()
    if given.text is None:
        return Unwrapped(name=name, doubts=(f"{name} runs its input",))
    return Unwrapped(name=name, scripts=(InnerScript(text=given.text, here=here),))


def _su(name: str, words: tuple[Word, ...], here: WorkingDir, given: Input) -> Unwrapped:
    del here, given
    return _after(name, words, UNKNOWN_DIR, {"-c", "--command", "--session-command", "-lc"})


def _script(name: str, words: tuple[Word, ...], here: WorkingDir, given: Input) -> Unwrapped:
    del given
    return _after(name, words, here, {"-c", "--command", "-qc", "-qec", "-ec", "-qfc", "-fc"})


def _eval(name: str, words: tuple[Word, ...], here: WorkingDir, given: Input) -> Unwrapped:
    del given
    return _shell_text(name, words[1:], here, False) if len(words) > 1 else Unwrapped()


def _trap(name: str, words: tuple[Word, ...], here: WorkingDir, given: Input) -> Unwrapped:
    del here, given
    texts = [word for word in words[1:] if word.text not in {"--", "-p", "-l"}]
    if len(texts) < 2 or texts[0].text in {"", "-"}:
        return Unwrapped()
    return _shell_text(name, (texts[0],), UNKNOWN_DIR, False)


def _find(name: str, words: tuple[Word, ...], here: WorkingDir, given: Input) -> Unwrapped:
    del given
    marks = _FIND_MARKS if name == "find" else _FD_MARKS
    commands: list[InnerCommand] = []
    names: Listing | None = None
    at = 1
    while at < len(words):
        if words[at].text not in marks:
            at += 1
            continue
        stop = at + 1
        while stop < len(words) and words[stop].text not in {";", "+"}:
            stop += 1
        inside = words[at].text in {"-execdir", "-okdir"}
        if not commands and name == "find":
            names = found_by(words, shown=False)
        bounds = None if inside else names
        inner = _mask_placeholders(words[at + 1 : stop], set(), bounds)
        if inner:
            place = here.elsewhere() if inside else here
            # A command of find gets the names in the place of `{}`, and no more words.
            known = bounds is not None and all(
                word.text is not None or word.texts for word in inner
            )
            commands.append(
                InnerCommand(words=inner, start=at + 1, stop=stop, open_ended=not known, here=place)
            )
        at = stop + 1
    return Unwrapped(name=name, commands=tuple(commands)) if commands else Unwrapped()


_FIND_MARKS = name_set("-exec -execdir -ok -okdir")
_FD_MARKS = _FIND_MARKS | name_set("-x -X --exec --exec-batch")

_CUSTOM: dict[str, _Custom] = {
    **dict.fromkeys(_SHELLS, _shell),
    "su": _su,
    "runuser": _su,
    "script": _script,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "find": _find,
    "fd": _find,
    "fdfind": _find,
}
