"""What a text in a small language (sed, awk, jq, SQL) reads, writes and runs.

Each language has a module of its own with a function from a text to `CodeEffects`. A text that is
not fully understood is never harmless: it has an entry in `runs`.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value
from quarterdeck.policy.shell.effects import reads, runs, writes
from quarterdeck.policy.shell.script import Effect, Target, Word
from quarterdeck.policy.shell.working_dir import HARMLESS, WorkingDir


class CodeEffects(Value):
    """The effects of a text. All empty: it only changes the text that passes through."""

    reads: tuple[str | None, ...] = ()
    """Files, as they are written in the text; None for one that is known only at run time."""

    writes: tuple[str | None, ...] = ()
    runs: tuple[str, ...] = ()
    """What it runs, or why it is not understood, for people."""

    scripts: tuple[str, ...] = ()
    """Texts that it gives to a shell, where they are written out. They are in `runs` too."""

    @property
    def none(self) -> bool:
        """Whether it certainly reads, writes and runs nothing."""
        return not (self.reads or self.writes or self.runs)


def unknown(why: str) -> CodeEffects:
    """A text that may do anything."""
    return CodeEffects(runs=(why,))


def merge_effects(*found: CodeEffects) -> CodeEffects:
    """The effects of several texts."""
    return CodeEffects(
        reads=tuple(dict.fromkeys(each for one in found for each in one.reads)),
        writes=tuple(dict.fromkeys(each for one in found for each in one.writes)),
        runs=tuple(dict.fromkeys(each for one in found for each in one.runs)),
        scripts=tuple(dict.fromkeys(each for one in found for each in one.scripts)),
    )


def code_effects(name: str, source: str, found: CodeEffects, here: WorkingDir) -> list[Effect]:
    """The effects of a text as effects of the program `name`.

    `source` is the word that the text is in: a rule that allows what it runs must contain it.
    """
    effects = [runs(why, source) for why in found.runs]
    effects.extend(
        reads(file_target(each, source, here), f"{name} reads it by its program")
        for each in found.reads
        if each not in HARMLESS
    )
    effects.extend(
        writes(file_target(each, source, here), f"{name} writes it by its program")
        for each in found.writes
        if each not in HARMLESS
    )
    return effects


def file_target(path: str | None, source: str, here: WorkingDir) -> Target:
    """The file that a text names. There is no shell: `~` and `*` are plain characters."""
    if path is None or "\0" in path:
        return Target(source=source)
    return here.target(Word(source=path, text=path, prefix=path))
