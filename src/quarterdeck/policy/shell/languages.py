"""Programs that take code in their words: interpreters, sed, awk, jq, sqlite3, editors.

Each language has a reader of its own for program texts (`sed`, `awk`, `jq`, `sql`), and the tables
say which words are such texts. `READERS` has the programs that need more than their table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import msgspec

from quarterdeck.policy.shell.awk import read_awk
from quarterdeck.policy.shell.code import CodeEffects, code_effects, file_target
from quarterdeck.policy.shell.ed import read_ed
from quarterdeck.policy.shell.effects import ProgramEffects, reads, runs, writes
from quarterdeck.policy.shell.interpreters import INTERPRETERS, interpreter
from quarterdeck.policy.shell.jq import read_jq, read_yq
from quarterdeck.policy.shell.script import Effect, EffectKind, Target, Word
from quarterdeck.policy.shell.sed import read_sed
from quarterdeck.policy.shell.sql import read_sqlite, read_sqlite_input
from quarterdeck.policy.shell.table_effects import CodeReader, effects_by_table
from quarterdeck.policy.shell.uses import Invocation, Reader, uses_of, words_of
from quarterdeck.policy.shell.working_dir import WorkingDir

_ELSEWHERE = re.compile(r"[./~]|[a-z+]+:")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*=")


def _program_effects(
    name: str, read: Callable[[str], CodeEffects], word: Word, here: WorkingDir
) -> list[Effect]:
    if word.literal is None and not (word.text is not None and word.quoted):
        return [runs(f"the program of {name} is known only at run time", word.source)]
    return code_effects(name, word.source, read(word.text or ""), here)


CODE: dict[str, CodeReader] = {
    "sed": partial(_program_effects, "sed", read_sed),
    "awk": partial(_program_effects, "awk", read_awk),
    "jq": partial(_program_effects, "jq", read_jq),
    "yq": partial(_program_effects, "yq", read_yq),
    "sqlite": partial(_program_effects, "sqlite3", read_sqlite),
}
"""Readers of program texts, by the `language` of a table."""

_SCRIPTS = {"sed": read_sed, "awk": read_awk, "sqlite": read_sqlite}
"""Languages that can give texts to a shell."""


def _by_table(use: Invocation) -> ProgramEffects:
    found = effects_by_table(use.name, use.table, use.words, use.here, via=use.via, readers=CODE)
    read = _SCRIPTS.get(use.table.language or "")
    scripts: list[str] = []
    if read is not None:
        # The program texts that run something: their words are what a rule must contain.
        sources = {word.source: word.text for word in use.words[1:]}
        tokens = [each.token for each in found.effects if each.kind is EffectKind.RUNS]
        texts = [sources.get(token, token) or "" for token in tokens]
        scripts = [each for text in texts for each in read(text).scripts]
    if use.table.language and any(each.kind is EffectKind.RUNS for each in found.effects):
        # Other versions may take the words otherwise: the program text may be a file.
        others = [word for word in use.words[1:500] if (word.text or "-")[:1] != "-"]
        found = _with(found, *(reads(use.here.target(word), "it may be a file") for word in others))
    return msgspec.structs.replace(found, scripts=(*found.scripts, *scripts))


def _with(found: ProgramEffects, *more: Effect) -> ProgramEffects:
    if not more:
        return found
    acting = any(each.kind is not EffectKind.READS for each in more)
    return msgspec.structs.replace(
        found, effects=(*found.effects, *more), looks=found.looks and not acting
    )


def _sed(use: Invocation) -> ProgramEffects:
    """With -i, a suffix with a `/` names a folder for the old files."""
    found = _by_table(use)
    parsed = use.parse()
    more = [
        runs("sed -i keeps the old files in another folder", given.typed)
        for given in parsed.options
        if given.option.name == "-i" and given.values and "/" in given.values[0].prefix
    ]
    # BSD's sed takes the word after -i for the suffix, and the script is the next one.
    if any(given.option.name == "-i" and not given.values for given in parsed.options):
        for word in (
            parsed.operands[1:2] if parsed.operands[:1] and not parsed.operands[0].text else ()
        ):
            more.extend(_program_effects("sed", read_sed, word, use.here))
    return _with(found, *more)


def _awk(use: Invocation) -> ProgramEffects:
    """Operands of the form `x=1` set variables, and are files where that is no name."""
    found = _by_table(use)
    parsed = use.parse()
    if any(word.text in {"inplace", "inplace.awk"} for word in words_of(parsed, "-i")):
        files = parsed.operands if uses_of(parsed, "-f", "-e") else parsed.operands[1:]
        changed = [writes(use.here.target(word), "awk changes it") for word in files]
        found = _with(found, *changed)
    sets = [word for word in parsed.operands if _ASSIGNS.match(word.prefix)]
    unsure = [
        runs(f"{word.source} may set a variable of awk", word.source)
        for word in sets
        if word.text is None
    ]
    return _with(found, *unsure)


def _jq(use: Invocation) -> ProgramEffects:
    """With -f, the first operand is a file with the filter."""
    found = _by_table(use)
    parsed = use.parse()
    if not any(given.option.name == "-f" for given in parsed.options):
        return found
    files = [reads(use.here.target(word), "jq runs the filter in it") for word in parsed.operands]
    return _with(found, *files)


def _sqlite(use: Invocation) -> ProgramEffects:
    """The first operand is the database. Without SQL in the command, the input is run."""
    found = _by_table(use)
    parsed = use.parse()
    given = {each.option.name for each in parsed.options}
    if given & {"-help", "-version"} and not parsed.operands:
        return msgspec.structs.replace(found, looks=not parsed.unknown)
    more: list[Effect] = []
    if len(parsed.operands) < 2 and use.input is not None:
        code = read_sqlite_input(use.input)
        more.extend(code_effects("sqlite3", "-", code, use.here))
        found = msgspec.structs.replace(found, scripts=(*found.scripts, *code.scripts))
    elif len(parsed.operands) < 2:
        more.append(runs("sqlite3 runs its input", "-"))
    for word in parsed.operands[:1]:
        if word.text in {":memory:", ""}:
            continue
        target = use.here.target(word)
        if word.prefix.lower().startswith("file:"):
            more.append(runs("the database is given as an address", word.source))
            path = re.split(r"[?#]", word.prefix[5:].removeprefix("//"))[0]
            target = file_target(path if "%" not in path else None, word.source, use.here)
        more.append(reads(target, "sqlite3 reads it"))
        if "-readonly" not in given:
            more.append(writes(target, "sqlite3 may change it", own=True))
    result = _with(found, *more)
    acting = any(each.kind is not EffectKind.READS for each in result.effects)
    runs_input = len(parsed.operands) < 2 and use.input is None
    return msgspec.structs.replace(result, looks=not acting and not runs_input)


def _editor(use: Invocation) -> ProgramEffects:
    """Editors take commands from their input, and these may run programs."""
    found = _by_table(use)
    parsed = use.parse()
    if any("stops" in each.option.marks for each in parsed.options):
        return msgspec.structs.replace(found, looks=not parsed.unknown and not parsed.operands)
    files = [reads(use.here.target(word), f"{use.name} reads it") for word in parsed.operands]
    more = [runs(f"{use.name} takes commands from its input", "-")]
    more.extend(
        runs(f"{use.name} runs {word.source}", word.source)
        for word in parsed.operands
        if word.prefix.startswith("!")
    )
    if use.input is not None and use.table.name == "ed":
        code = read_ed(use.input)
        more.extend(code_effects(use.name, "-", code, use.here))
        found = msgspec.structs.replace(found, scripts=(*found.scripts, *code.scripts))
    return _with(found, *more, *files)


def _runner(use: Invocation) -> ProgramEffects:
    """A package that is given by a path or an address is code from there."""
    parsed = use.parse()
    given = parsed.operands[0] if parsed.operands else None
    found = _by_table(use)
    if given is None or given.literal is None or not _ELSEWHERE.match(given.literal):
        return found
    why = f"{use.name} runs a package that is not from the registry"
    return _with(found, runs(why, given.source), reads(use.here.target(given), why))


READERS: dict[str, Reader] = {
    "sed": _sed,
    **dict.fromkeys(("awk", "gawk", "mawk"), _awk),
    "jq": _jq,
    "sqlite3": _sqlite,
    **dict.fromkeys(("ed", "vim", "emacs"), _editor),
    **dict.fromkeys(("npx", "bunx", "uvx"), _runner),
    **dict.fromkeys(INTERPRETERS, interpreter),
}
"""Programs that need more than their table, by the names of the tables."""


def _xdotool(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    del here
    return ProgramEffects(effects=(runs("it controls other programs", words[0].source),))


def _unknown_target(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    del here
    return ProgramEffects(
        effects=(writes(Target(source=words[0].source), "it writes files that are not named"),)
    )


LANGUAGES: dict[str, Callable[[tuple[Word, ...], WorkingDir], ProgramEffects]] = {
    "xdotool": _xdotool,
    "fio": _unknown_target,
}
