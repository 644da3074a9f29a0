"""The working directory of a script as far as it is known, and the paths relative to it.

It works on text and does not look at the disk. A `..` after a folder that the script itself entered
may lead elsewhere if that folder is a link; such a path is marked as not sure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from quarterdeck.policy.shell.script import Target, Word

Dir = tuple[str, int]
"""A folder, and how many of its names (from the end) come from the script: they may be links."""

LONGEST = 4_096
"""Characters of a path. No system has longer ones."""

MANY = 4
"""A script that may be in more folders than these is in an unknown one."""

_WILD = re.compile(r"[*?\[]")
_FOLDERS = re.compile(r"[*?\[][^/]*/")
_OWN = re.compile(
    r"/proc/[^/]+/(?:task/[^/]+/)?(?:cwd|root|exe|fd|map_files|[^/]*[*?\[])(?:/|$)"
    r"|/dev/(?:fd|f[^/]*[*?\[])(?:/|$)|/(?:proc|dev)/[^/]*[*?\[]"
)
"""Links to the folders and files of a process, in /proc and /dev."""

HARMLESS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "-"})


class WorkingDir:
    """The folders that the script may be in. None of them: it is not known."""

    __slots__ = ("dirs", "given")

    def __init__(self, dirs: tuple[Dir, ...], given: frozenset[str] = frozenset()) -> None:
        self.dirs = dirs if len(dirs) <= MANY else ()
        self.given = given
        """Variables that have certainly been set by now. They are kept here because a script sets
        variables and changes its folder on the same paths."""

    @staticmethod
    def start(cwd: str | None) -> WorkingDir:
        """The folder that the script starts in."""
        return _start(cwd)

    def union(self, other: WorkingDir) -> WorkingDir:
        """In one or the other."""
        if self is other:
            return self
        given = self.given & other.given
        if not self.dirs or not other.dirs:
            return WorkingDir((), given)
        return WorkingDir(tuple(dict.fromkeys(self.dirs + other.dirs)), given)

    def with_variables(self, names: Iterable[str]) -> WorkingDir:
        """The same, after these variables have been set."""
        return WorkingDir(self.dirs, self.given.union(names))

    def elsewhere(self) -> WorkingDir:
        """In an unknown folder."""
        return WorkingDir((), self.given)

    def in_a_new_shell(self) -> WorkingDir:
        """The same folder, without the variables."""
        return WorkingDir(self.dirs)

    def into(self, word: Word) -> WorkingDir:
        """After a `cd` to it."""
        texts = word.texts if word.text is None else (word.text,)
        if not texts or any(
            len(text) > LONGEST or text in {"", "-"} or _WILD.search(text) for text in texts
        ):
            return self.elsewhere()
        dirs = self.dirs
        if not dirs and (word.tilde or all(text.startswith("/") for text in texts)):
            dirs = (("/", 0),)
        steps = [step(base_dir, text, tilde=word.tilde) for base_dir in dirs for text in texts]
        if any(each is None or _is_process_link(each[0][0]) for each in steps):
            return self.elsewhere()
        found = tuple(dict.fromkeys(each[0] for each in steps if each is not None))
        return WorkingDir(found, self.given)

    def target(self, word: Word) -> Target:
        """The file that a word names here; several, if it may expand to several words."""
        if word.text is None and not word.texts:
            return Target(source=word.source)
        known: list[tuple[Dir, bool]] = []
        texts = word.texts if word.text is None else (word.text,)
        if any(len(text) > LONGEST for text in texts):
            return Target(source=word.source[:200])
        for text in texts:
            dirs = self.dirs
            if not dirs and (word.tilde or text.startswith("/")):
                dirs = (("/", 0),)
            steps = [step(base_dir, text, tilde=word.tilde) for base_dir in dirs]
            if not steps or any(each is None or _is_process_link(each[0][0]) for each in steps):
                return Target(source=word.source)
            known += [each for each in steps if each is not None]
        glob = word.glob if word.text is not None else any(map(_WILD.search, texts))
        return Target(
            source=word.source,
            paths=tuple(dict.fromkeys(each[0][0] for each in known)),
            # A folder that a pattern of the shell finds may be a link. A search goes into none.
            sure=all(each[1] for each in known)
            and not (glob and not word.hidden and any(map(_FOLDERS.search, texts))),
            glob=glob,
            hidden=word.hidden,
        )


@lru_cache(maxsize=64)
def _start(cwd: str | None) -> WorkingDir:
    # Every command of a session starts in the same folder, and each of its files asks for it.
    return WorkingDir((("" if cwd is None else normalize(cwd), 0),))


UNKNOWN_DIR = WorkingDir(())


def locate(word: Word, cwd: str | None) -> Target:
    """The file that a word names in a folder."""
    return WorkingDir.start(cwd).target(word)


def normalize(path: str) -> str:
    """A path without `.`, `..` and doubled slashes, by its text."""
    return _normalize_names(path, path.startswith("/"))


def _normalize_names(path: str, rooted: bool) -> str:
    names: list[str] = []
    for name in path.split("/"):
        if name in {"", "."}:
            continue
        if name == ".." and names and names[-1] not in {"..", "~"}:
            names.pop()
        elif name != ".." or not rooted:
            names.append(name)
    return ("/" if rooted else "") + "/".join(names)


def _is_process_link(path: str) -> bool:
    """Does it lead to a place that only the running process knows?"""
    return path.startswith(("/proc", "/dev")) and _OWN.match(path) is not None


def step(base_dir: Dir, text: str, *, tilde: bool) -> tuple[Dir, bool] | None:
    """The place that a word leads to, and whether no link can change it."""
    base, loose = base_dir
    if tilde:
        if text != "~" and not text.startswith("~/"):
            return None
        base, loose = "~", 0
        text = text[2:]
    elif text.startswith("/"):
        base, loose = "/", 0
    names = [name for name in base.split("/") if name]
    rooted = base.startswith("/")
    sure = True
    for name in text.split("/"):
        if name in {"", "."}:
            continue
        if name != "..":
            names.append(name)
            loose += 1
            continue
        if loose:
            sure = False
            loose -= 1
        if names and names[-1] not in {"..", "~"}:
            names.pop()
        elif not rooted:
            names.append("..")
    return (("/" if rooted else "") + "/".join(names), loose), sure
