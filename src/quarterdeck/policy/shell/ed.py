"""Commands for ed: the files and commands in them.

Ed is never harmless here: its input is code. But rules that stop should see the files that it reads
and writes (`r x`, `w x`), and the commands that it gives to a shell (`!x`).
"""

from __future__ import annotations

import re

from quarterdeck.policy.shell.code import CodeEffects

LONGEST = 20_000
"""Of a longer input only the beginning is read. It has to be named by a rule in any case."""

_COMMAND = re.compile(r"[^A-Za-z!]*(?:[gv]/[^/]*/)?(?P<name>[eErwWf!])[ \t]*(?P<rest>.*)")


def read_ed(text: str) -> CodeEffects:
    """The files and commands of an input. Lines of text are taken for commands, too."""
    reads: list[str | None] = []
    writes: list[str | None] = []
    scripts: list[str] = []
    for line in text[:LONGEST].splitlines():
        found = _COMMAND.match(line)
        if found is None:
            continue
        name, rest = found["name"], found["rest"].strip()
        if name == "!" or rest.startswith("!"):
            scripts.append(rest.removeprefix("!"))
        elif rest:
            (writes if name in "wWf" else reads).append(rest)
    return CodeEffects(
        reads=tuple(reads),
        writes=tuple(writes),
        runs=("ed takes commands from its input",),
        scripts=tuple(each for each in scripts if each),
    )
