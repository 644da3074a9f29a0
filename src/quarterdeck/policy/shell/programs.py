"""The effects of programs by their options and operands: files they read and write, code they run.

Most programs have a table (`tables`). For some of them a reader knows more than a table can say
(`archives`, `builds`, `databases`, `git`, `languages`, `processes`, `transfers`), and the shell's
own commands are in `builtins`. A program that is not listed is taken to do what its name says: a
rule that allows it allows that. Listed programs can do more, and a rule must name that too.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell import (
    archives,
    builds,
    databases,
    languages,
    processes,
    transfers,
)
from quarterdeck.policy.shell.builtins import BUILTINS
from quarterdeck.policy.shell.effects import ProgramEffects, runs
from quarterdeck.policy.shell.git import git, git_program
from quarterdeck.policy.shell.script import Word
from quarterdeck.policy.shell.table_effects import effects_by_table
from quarterdeck.policy.shell.tables import Table, table_of
from quarterdeck.policy.shell.unknown_programs import possible_reads
from quarterdeck.policy.shell.uses import Invocation, Reader
from quarterdeck.policy.shell.working_dir import WorkingDir

_SYSTEM = name_set("/bin /usr/bin /usr/local/bin /sbin /usr/sbin") | {""}
"""Folders of the programs that tables describe; empty for a name that is sought in PATH."""

_READERS: dict[str, Reader] = {
    **archives.READERS,
    **builds.READERS,
    **databases.READERS,
    **processes.READERS,
    **transfers.READERS,
    **languages.READERS,
    "git": git,
}
"""Readers of programs for which a table alone is not enough, by the names of their tables."""

_SPECIAL: dict[str, Callable[[tuple[Word, ...], WorkingDir], ProgramEffects]] = {
    **BUILTINS,
    **languages.LANGUAGES,
}


def look_up(
    words: tuple[Word, ...], here: WorkingDir, via: str | None, text: str | None = None
) -> ProgramEffects:
    """The effects of a command beyond its name.

    `via` is a wrapper that adds unknown words, `text` the input, if it is known.
    """
    literal = words[0].literal
    if literal is None:
        return ProgramEffects()
    folder, _, name = literal.rpartition("/")
    table = table_of(name)
    if table is not None:
        use = Invocation(name=name, table=table, words=words, here=here, via=via, input=text)
        found = _by_table(use)
        # `./cat` may be any program.
        return found if folder in _SYSTEM else msgspec.structs.replace(found, looks=False)
    special = _SPECIAL.get(name)
    if special is None:
        return ProgramEffects(effects=possible_reads(name, words, here))
    known = special(words, here)
    if via is None:
        return known
    added = runs(f"{via} may pass any option to {name}", via)
    return msgspec.structs.replace(known, effects=(*known.effects, added))


def _by_table(use: Invocation) -> ProgramEffects:
    reader = _reader(use.table)
    if reader is not None:
        return reader(use)
    return effects_by_table(
        use.name, use.table, use.words, use.here, via=use.via, readers=languages.CODE
    )


def _reader(table: Table) -> Reader | None:
    found = _READERS.get(table.name)
    return git_program if found is None and table.name.startswith("git-") else found
