"""Programs that have no table: nothing is known of their options.

A rule that allows such a program by its name allows what it does. But a rule against a file stops a
command that names the file: each word that looks like a path may be one that the program reads.
"""

from __future__ import annotations

import re

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.script import Effect, EffectKind, Word
from quarterdeck.policy.shell.working_dir import HARMLESS, WorkingDir

MOST_WORDS = 600
"""Words that are looked at. A command may have no more needs than 500."""

NO_FILES = name_set(
    "echo true false : pwd exit return break continue wait jobs fg bg kill times shift dirs"
    " export declare typeset readonly local alias set shopt umask ulimit history say notify-send"
)
"""Commands whose words are no files."""

_PATH = re.compile(r"[./~]")
_VALUE = re.compile(r"-{0,2}[\w.-]*[=:]|-\w|@")
"""What may be before a path in a word: `--file=x`, `-fx`, `@x`."""


def possible_reads(name: str, words: tuple[Word, ...], here: WorkingDir) -> tuple[Effect, ...]:
    """The files that a program without a table may read, by its words."""
    if name in NO_FILES:
        return ()
    found: list[Effect] = []
    for word in words[1:MOST_WORDS]:
        if word.text is None or word.text in HARMLESS or _PATH.search(word.text) is None:
            continue
        for each in _files(word, word.text):
            why = f"{name} may read it"
            target = here.target(each)
            found.append(Effect(kind=EffectKind.READS, why=why, target=target, maybe=True))
    return tuple(found)


def _files(word: Word, text: str) -> list[Word]:
    """The word itself, unless it is an option, and the value that it may hold."""
    files = [] if text.startswith("-") else [word]
    before = _VALUE.match(text)
    if before is not None and before.end() < len(text):
        value = text[before.end() :]
        files.append(
            Word(
                source=value, text=value, prefix=value, glob=word.glob, tilde=value.startswith("~")
            )
        )
    return files
