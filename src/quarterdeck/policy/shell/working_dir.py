"""The working directory of a script as far as it is known, and the paths relative to it.

It works on text and does not look at the disk. A `..` after a folder that the script itself entered
may lead elsewhere if that folder is a link; such a path is marked as not sure.
"""

from __future__ import annotations

import re

from quarterdeck.policy.shell.script import Target, Word

Dir = tuple[str, int]
"""A folder, and how many of its names (from the end) come from the script: they may be links."""

MANY = 4
"""A script that may be in more folders than these is in an unknown one."""

_WILD = re.compile(r"[*?\[]")
_FOLDERS = re.compile(r"[*?\[][^/]*/")
_OWN = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?(?:cwd|root|fd|map_files|[^/]*[*?\[])(?:/|$)")
"""Links in /proc to the folders and files of a process."""

HARMLESS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "-"})


class WorkingDir:
    """The folders that the script may be in. None of them: it is not known."""

    __slots__ = ("dirs",)

    def __init__(self, dirs: tuple[Dir, ...]) -> None:
        self.dirs = dirs if len(dirs) <= MANY else ()

    @classmethod
    def start(cls, cwd: str | None) -> WorkingDir:
        """The folder that the script starts in."""
        if cwd is None:
            return cls((("", 0),))
        return cls(((normalize(cwd), 0),))

    def union(self, other: WorkingDir) -> WorkingDir:
        """In one or the other."""
        if not self.dirs or not other.dirs:
            return UNKNOWN_DIR
        return WorkingDir(tuple(dict.fromkeys(self.dirs + other.dirs)))

    def into(self, word: Word) -> WorkingDir:
        """After a `cd` to it."""
        if word.glob or word.text in {None, "", "-"}:
            return UNKNOWN_DIR
        text = word.text or ""
        steps = [step(base_dir, text, tilde=word.tilde) for base_dir in self.dirs]
        return WorkingDir(tuple(dict.fromkeys(each[0] for each in steps if each is not None)))

    def target(self, word: Word) -> Target:
        """The file that a word names here; several, if it may expand to several words."""
        if word.text is None and not word.texts:
            return Target(source=word.source)
        known: list[tuple[Dir, bool]] = []
        texts = word.texts if word.text is None else (word.text,)
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
            # A folder that a pattern finds may be a link.
            sure=all(each[1] for each in known) and not (glob and any(map(_FOLDERS.search, texts))),
            glob=glob,
        )


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
    return path.startswith("/proc/") and _OWN.match(path) is not None


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
