"""The command that a program runs, found among its words by the table of the program.

`docker --context x compose exec web ls -l` runs `ls -l`: options may come before a subcommand and
after it, and only the table tells which of them take a value. The files of a command in a container
are taken for files of the working folder: most often that is mounted there.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value
from quarterdeck.policy.shell.options import parse
from quarterdeck.policy.shell.script import Word
from quarterdeck.policy.shell.tables import Table


class Inside(Value):
    """What a program runs: a command in its words, or texts for a shell."""

    start: int | None = None
    """The index of the command's first word."""

    scripts: tuple[Word, ...] = ()
    known: bool = True
    """False: it is not certain where the command begins."""


def inside(words: tuple[Word, ...], table: Table) -> Inside | None:
    """The command that a program runs; None if it runs none."""
    if not table.commands:
        return None
    parsed = parse(words, table)
    spec = parsed.table.operands or ()
    scripts = tuple(
        _script(word)
        for given in parsed.options
        for word, kind in zip(given.values, given.option.values, strict=False)
        if kind == "shell"
    )
    place = next((at for at, each in enumerate(spec) if each.kind == "command"), None)
    if place is None:
        # A subcommand that is not known may be one that runs a command.
        return Inside(scripts=scripts) if scripts else None
    first = parsed.operands[place] if place < len(parsed.operands) else None
    start = next((at for at, word in enumerate(words) if word is first), None)
    if first is None and not parsed.unknown:
        return Inside(scripts=scripts)
    skipped = parsed.operands[:place]
    early = any(word in parsed.open for word in words[1:start])
    known = start is not None and not early and not any(word.glob for word in skipped)
    return Inside(
        start=start,
        scripts=scripts,
        known=known and (parsed.table.loose or not parsed.unknown),
    )


def _script(word: Word) -> Word:
    """The text for a shell in a value; of tar it is `exec=text`."""
    text = word.literal
    if text is None or not text.startswith("exec="):
        return word
    rest = text.removeprefix("exec=")
    return Word(source=rest, text=rest, prefix=rest)
