"""Files that words of git mean: `HEAD:a`, `:(top)a`, `1,3:a`, `'*.env'`.

Revisions and pathspecs have a syntax of their own, in which a file may be named in many ways. Here
each word gives all files that it may mean, besides the one of exactly that name.
"""

from __future__ import annotations

import re

import msgspec

from quarterdeck.policy.shell.script import Target, Word
from quarterdeck.policy.shell.uses import plain
from quarterdeck.policy.shell.working_dir import WorkingDir

_WILD = re.compile(r"[*?\[]")
_SOURCES = re.compile(
    r"\*\.(?:pyi?|ipynb|[cm]?[jt]sx?|vue|svelte|go|rs|java|kts?|scala|rb|php|cs|swift|mm?|[ch]|cc"
    r"|[ch]pp|cxx|lua|pl|r|jl|exs?|erl|hs|ml|dart|zig|sql|sh|css|s[ac]ss|less|html?|md|rst|proto)"
)
_MAGIC = re.compile(r"\([^)]*\)|[!^/]+")
_LOOSE = re.compile(r":\([^)]*(?:icase|attr)")
"""Pathspecs that find files whose names are written in another way."""


def files_within(word: Word, here: WorkingDir) -> list[Target]:
    """Other files that a word of git may mean than the one of that name."""
    text = word.text
    if text is None:
        return []
    paths: list[str] = []
    if _LOOSE.match(text):
        return [Target(source=word.source)]
    if ":" in text:
        parts = text.split(":")[:5]
        for at in range(1, len(parts)):
            path = ":".join(text.split(":")[at:])
            paths += [path, _MAGIC.sub("", path, count=1)] if _MAGIC.match(path) else [path]
    found: list[Target] = []
    top = _top(here)
    for path in dict.fromkeys(each for each in paths if each):
        found.append(_pattern(path, here))
        if top is not None:
            found.append(_pattern(path, top))
    if not paths and _WILD.search(text) and not text.startswith("-"):
        found.append(_pattern(text, here))
    return found


def _pattern(path: str, here: WorkingDir) -> Target:
    """A file, or the files of a pattern: git's `*` also means names with a dot, and folders.

    Git does not follow links there, so no folder of a pattern leads elsewhere.
    """
    target = here.target(Word(source=path, text=path, prefix=path))
    found = _WILD.search(path)
    if found is None or not target.paths:
        return target
    fixed, _, name = path[: found.start()].rpartition("/")
    rest = name + path[found.start() :]
    folder = here.target(plain(fixed or "."))
    # `*.py` reaches no more than git does without a path, and is meant for programs.
    places = ("",) if _SOURCES.fullmatch(rest) else ("", "**/")
    wide = [
        f"{each.rstrip('/')}/{between}{variant}"
        for each in folder.paths
        for between in places
        for variant in _with_dots(rest)
    ]
    return msgspec.structs.replace(target, paths=tuple(wide), glob=True, sure=True)


def _with_dots(rest: str) -> list[str]:
    """A pattern, and what it means for names that begin with a dot: `*.env` is also `.env`."""
    first, slash, more = rest.partition("/")
    starts = [first]
    if first[:1] == "*":
        # `*.py` is not meant for `.env.py`, but `*.local` may be meant for `.env.local`.
        starts += [] if _SOURCES.fullmatch(first) else [f".{first}"]
        starts += [first[1:]] if first[1:2] == "." else []
    elif first[:1] == "?":
        starts.append(f".{first[1:]}")
    elif first[:1] == "[" and "]" in first[2:]:
        starts.append("." + first[first.index("]", 2) + 1 :])
    return [f"{each}{slash}{more}" for each in starts]


def _top(here: WorkingDir) -> WorkingDir | None:
    """The folder that the script started in: paths in `HEAD:a` are relative to the repository."""
    if not any(loose for _, loose in here.dirs):
        return None
    tops = ["/".join(path.split("/")[: -loose or None]) or "/" for path, loose in here.dirs]
    return WorkingDir(tuple((path, 0) for path in dict.fromkeys(tops)))
