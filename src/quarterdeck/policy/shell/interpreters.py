"""Interpreters: what runs is a script in a file, code in the command, or their input.

The tables of the interpreters say what their options do. A script is a file that is read: to allow
the command, it must be one that may be read. Code in the command and code from the input are never
known here, and a rule has to name them.
"""

from __future__ import annotations

import re
import sys

import msgspec

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.effects import ProgramEffects, reads, runs, writes
from quarterdeck.policy.shell.options import Parsed
from quarterdeck.policy.shell.script import Effect, EffectKind, Target, Word
from quarterdeck.policy.shell.table_effects import effects_by_table
from quarterdeck.policy.shell.tables import load, table_of
from quarterdeck.policy.shell.uses import Invocation
from quarterdeck.policy.shell.working_dir import WorkingDir

_MODULES = "python_modules"
"""The table of modules: each is a subcommand there."""

_SPECIAL_SCRIPTS = name_set("- /dev/stdin /dev/fd/0 /proc/self/fd/0 inspect debug")
"""Operands in a script's place that mean the input, or (node) another script behind them."""

_ADDRESS = re.compile(r"[a-z]{2,}:")
"""A script that is not a file: `https:`, `npm:`, `jsr:`, `data:`."""

INTERPRETERS = name_set(
    "python pypy perl ruby node nodejs php lua luajit bun deno Rscript julia tclsh expect osascript"
    " guile groovy scala elixir erl swift ghc ghci jshell powershell pwsh ipython"
)


def interpreter(use: Invocation) -> ProgramEffects:
    """The effects of a command of an interpreter."""
    name, table, here, via = use.name, use.table, use.here, use.via
    found = effects_by_table(name, table, use.words, here, via=via)
    parsed = use.parse()
    marks: set[str] = set()
    for given in parsed.options:
        marks |= given.option.marks
    effects = list(found.effects)
    fetches = found.fetches
    module = next((each for each in parsed.options if each.option.name == "-m"), None)
    if module is not None and table.name == "python":
        effects = _without_operands(effects, parsed, here)
        inner = _module(module.values[0], parsed, here, via)
        effects.extend(inner.effects)
        fetches = (*fetches, *inner.fetches)
    elif "stops" not in marks and not parsed.table.name.count(" "):
        effects.extend(_script(name, parsed, marks, here))
    for word in parsed.operands[:1]:
        if _ADDRESS.match(word.prefix) and module is None:
            effects.append(runs(f"{name} runs code from another place", word.source))
            fetches = (*fetches, word.text or "")
    acting = any(each.kind is not EffectKind.READS for each in effects)
    return ProgramEffects(
        effects=tuple(effects),
        fetches=fetches,
        looks="stops" in marks and not acting and not parsed.operands,
        judged=True,
    )


def _script(name: str, parsed: Parsed, marks: set[str], here: WorkingDir) -> list[Effect]:
    """What it runs: its first operand, or its input where there is no code in the command."""
    if "instead" in marks:
        return _loops(name, parsed, marks, parsed.operands, here)
    if not parsed.operands:
        return [runs(f"{name} runs its input", "-")]
    script = parsed.operands[0]
    if script.text in _SPECIAL_SCRIPTS or script.source.startswith("<("):
        return [runs(f"{name} runs {script.source}", script.source)]
    if script.literal is None:
        return [runs(f"the script of {name} is known only at run time", script.source)]
    return _loops(name, parsed, marks, parsed.operands[1:], here)


def _loops(
    name: str, parsed: Parsed, marks: set[str], files: tuple[Word, ...], here: WorkingDir
) -> list[Effect]:
    """Perl and ruby read the files after the program: with -n, -p and -i, or by `<>`."""
    loops = any(each.option.name in {"-n", "-p"} for each in parsed.options)
    if not loops and "in-place" not in marks and name not in {"perl", "ruby"}:
        return []
    effects = [reads(here.target(word), f"{name} may read it") for word in files]
    if "in-place" in marks:
        effects.extend(writes(here.target(word), f"{name} -i changes it") for word in files)
    return effects


def _without_operands(effects: list[Effect], parsed: Parsed, here: WorkingDir) -> list[Effect]:
    """Without the read of a script: the first operand is one of the module."""
    if not parsed.operands:
        return effects
    target = here.target(parsed.operands[0])
    return [each for each in effects if each.target is None or each.target.paths != target.paths]


def _module(module: Word, parsed: Parsed, here: WorkingDir, via: str | None) -> ProgramEffects:
    """`python -m NAME …`: a module of the standard library by its table, any other by its name."""
    name = module.literal
    if name is None:
        return ProgramEffects(
            effects=(runs("the module of python is known only at run time", module.source),)
        )
    known = load(_MODULES)
    words = (Word(source=name, text=name, prefix=name), *parsed.operands)
    table = known.subcommands.get(name)
    if table is None and name.partition(".")[0] in sys.stdlib_module_names:
        every = _every_word(parsed.operands, here)
        why = f"python -m {name} may run code, read or write files"
        return ProgramEffects(effects=(runs(why, name), *every))
    if table is None:
        table = table_of(name)
    if table is None:
        return ProgramEffects()
    # The module may also be a file in the working folder: it never just looks.
    found = effects_by_table(f"python -m {name}", table, words, here, via=via)
    return msgspec.structs.replace(found, looks=False)


def _every_word(words: tuple[Word, ...], here: WorkingDir) -> list[Effect]:
    found: list[Effect] = []
    for word in words[:500]:
        target: Target = here.target(word)
        found.append(reads(target, "python may read it"))
        found.append(writes(target, "python may write it"))
    return found
