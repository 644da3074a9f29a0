"""Files that the agent itself has written, and commands that run them.

A rule that allows `./build.sh` was made for the file that its author knew. If the agent has written
the file since, running it is running the agent's own code, which only a rule for the whole tool
allows. The same holds for git, once the agent has written its settings or hooks. Programs that run
files of a project by their purpose (make, npm, pytest) are not meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set
from itertools import pairwise

import msgspec

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.paths import before_wildcard
from quarterdeck.policy.shell import Effect, EffectKind, Part, Script, Target, locate
from quarterdeck.policy.shell.word_reader import read_word

WRITTEN = "\0written"
"""The token of the effect. No rule contains it."""

_WHY = "it runs a file that this session has written"
_WHY_GIT = "this session has written files that git takes its settings from"
_NOT_CONTENT = name_set("mkdir rmdir rm unlink touch chmod chown chgrp")
"""Commands that write no contents."""

_RUNNERS = name_set(
    "bash sh dash ash zsh ksh fish source . node nodejs deno bun perl ruby php lua luajit Rscript"
    " tclsh osascript julia groovy elixir pwsh ts-node tsx"
)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_OF_GIT = re.compile(r"(?:^|/)\.git(?:/|$)|/(?:HEAD|commondir)$|(?:^|/)\.gitconfig$")
MOST_WORDS = 64


def written_by(parts: Iterable[tuple[Part | None, Target]]) -> set[str]:
    """The files whose contents are written, of all that commands or a tool write."""
    found: set[str] = set()
    for part, target in parts:
        if part is not None and part.name in _NOT_CONTENT:
            continue
        for path in target.paths:
            found.add(before_wildcard(path).rstrip("/") if target.glob else path)
    found.discard("")
    return found


def mark_written(
    script: Script, written: frozenset[str], resolve: Callable[[str], str] | None
) -> Script:
    """The same script, in which parts that run a written file say so."""
    here = [(part, target) for part in script.parts for target in _written_targets(part)]
    if not written and not here:
        return script
    every = written | written_by(here)
    if not every:
        return script
    return msgspec.structs.replace(
        script, parts=tuple(_mark(part, every, resolve) for part in script.parts)
    )


def _written_targets(part: Part) -> list[Target]:
    return [
        *part.writes,
        *[
            effect.target
            for effect in part.effects
            if effect.kind is EffectKind.WRITES and effect.target is not None
        ],
    ]


def _mark(
    part: Part, written: set[str] | frozenset[str], resolve: Callable[[str], str] | None
) -> Part:
    why = None
    if part.name == "git":
        why = _WHY_GIT if any(map(_OF_GIT.search, written)) else None
    elif any(_is_written(path, written, resolve) for path in _run_files(part)):
        why = _WHY
    if why is None:
        return part
    effect = Effect(kind=EffectKind.RUNS, why=why, token=WRITTEN)
    return msgspec.structs.replace(part, effects=(*part.effects, effect), looks=False)


def _run_files(part: Part) -> list[str]:
    """The files that a part may run."""
    name = part.name
    words = part.words[:1] if part.words and "/" in (part.words[0].literal or "") else ()
    if name is not None and (name in _RUNNERS or _PYTHON.fullmatch(name)):
        words = (*words, *part.words[1:MOST_WORDS])
    found: list[str] = []
    for folder in part.dirs or ():
        for word in words:
            target = locate(word, folder or None)
            found += target.paths
        if name is not None and _PYTHON.fullmatch(name):
            found += _modules(part, folder)
    return found


def _modules(part: Part, folder: str) -> list[str]:
    """`python -m a.b` runs `a/b.py`, or `a/b/__main__.py`."""
    texts = [word.literal or "" for word in part.words[1:MOST_WORDS]]
    names = [after for text, after in pairwise(texts) if text == "-m"]
    found: list[str] = []
    for name in names:
        path = name.replace(".", "/")
        for each in (f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py"):
            found += locate(read_word(each), folder or None).paths
    return found


def _is_written(path: str, written: Set[str], resolve: Callable[[str], str] | None) -> bool:
    ways = [path]
    if resolve is not None and path.startswith("/"):
        ways.append(resolve(path))
    for way in ways:
        names = way.split("/")
        if any("/".join(names[:end]) in written for end in range(2, len(names) + 1)):
            return True
    if resolve is None:
        return False
    last = path.rpartition("/")[2]
    alike = [each for each in written if each.endswith(f"/{last}") and each.startswith("/")]
    return any(resolve(each) == ways[-1] for each in alike[:MOST_WORDS])
