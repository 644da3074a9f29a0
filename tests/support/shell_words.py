"""Words of a command for tests of single modules, and what is told about them, in short texts."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.policy.shell.script import Effect, Target, Word
from quarterdeck.policy.shell.word_reader import read_word
from quarterdeck.policy.shell.working_dir import WorkingDir

HERE = WorkingDir.start("/w")


def words(text: str, *more: str) -> tuple[Word, ...]:
    """The words of a text, apart at its blanks, and then more of them that may hold blanks."""
    return tuple(read_word(each) for each in (*text.split(), *more))


def said(effects: Iterable[Effect]) -> list[str]:
    """Effects in short, each once: `runs -c`, `writes /w/a`, `reads ?` for a file not known."""
    return list(
        dict.fromkeys(
            f"{each.kind} {' '.join(each.target.paths) or '?' if each.target else each.token}"
            for each in effects
        )
    )


def paths(targets: Iterable[Target]) -> list[tuple[str, ...]]:
    """The paths of files, for each of them."""
    return [target.paths for target in targets]
