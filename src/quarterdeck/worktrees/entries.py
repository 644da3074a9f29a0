"""Looking into a working folder: what is in its folders, and where a text is. Read only.

Owns the limits, and that no link leads out. `requests` is above. Which files a person may open is
decided by the hub, with its policy.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import anyio.to_thread

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import (
    Entries,
    Entry,
    FindInFiles,
    Found,
    FoundLine,
    SeeEntries,
)
from quarterdeck.runtime.git_head import branch_of
from quarterdeck.worktrees.files import target_of
from quarterdeck.worktrees.git import Git

MOST_ENTRIES = 2000
MOST_FOUND = 200
MOST_WALKED = 50_000
LONGEST_LINE = 300
OUTPUT = 512 * 1024
SECONDS = 10.0
_ORDER = {"folder": 0, "file": 1, "link": 1, "other": 2}


def see_entries(wanted: SeeEntries) -> Entries:
    """What is in a folder. Blocks. Raises `Conflict`."""
    root = Path(wanted.directory).resolve()
    folder = root
    if wanted.path:
        folder = target_of(root, wanted.path)
    try:
        # The last part of the path is not followed if it is a link.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise Conflict("no_such_folder", f"{wanted.path!r}: {error.strerror}") from error
    try:
        with os.scandir(descriptor) as scanned:
            found = [_entry(each) for each in scanned if each.name.lower() != ".git"]
    finally:
        os.close(descriptor)
    found.sort(key=lambda entry: (_ORDER[entry.kind], entry.name.lower(), entry.name))
    inside = folder.relative_to(root).as_posix()
    return Entries(
        path="" if inside == "." else inside,
        entries=tuple(found[:MOST_ENTRIES]),
        left_out=max(0, len(found) - MOST_ENTRIES),
        branch=branch_of(str(folder)),
    )


def _entry(found: os.DirEntry[str]) -> Entry:
    name = found.name.encode(errors="surrogateescape").decode(errors="replace")
    try:
        seen = found.stat(follow_symlinks=False)
    except OSError:
        return Entry(name=name, kind="other")
    if stat.S_ISLNK(seen.st_mode):
        return Entry(name=name, kind="link")
    if stat.S_ISDIR(seen.st_mode):
        return Entry(name=name, kind="folder")
    kind = "file" if stat.S_ISREG(seen.st_mode) else "other"
    return Entry(name=name, kind=kind, size=seen.st_size)


async def find_in_files(wanted: FindInFiles) -> Found:
    """Where the text is: in names, or in contents. Raises `LaunchError` if it takes too long."""
    text = wanted.text.strip()
    if not text or "\0" in text or "\n" in text or len(text) > 200:
        raise Conflict("bad_search", "look for a text of 1 to 200 characters on one line")
    git = Git(SECONDS)
    if wanted.contents:
        return await _find_contents(git, wanted.directory, text)
    listed = await git(
        wanted.directory, "ls-files", "--cached", "--others", "--exclude-standard", "-z",
        env={"GIT_OPTIONAL_LOCKS": "0"}, good=(0, 128),
    )  # fmt: skip
    names, cut = listed.names, listed.cut
    if listed.code != 0:  # no repository
        names, cut = await anyio.to_thread.run_sync(_walk, wanted.directory)
    wanted_words = text.lower().split()
    found = [name for name in dict.fromkeys(names) if _has(name.lower(), wanted_words)]
    found.sort(key=lambda name: (len(name), name))
    matches = tuple(FoundLine(path=_printable(name)) for name in found[:MOST_FOUND])
    return Found(matches=matches, cut=cut or len(found) > MOST_FOUND)


def _has(name: str, words: list[str]) -> bool:
    return all(word in name for word in words)


async def _find_contents(git: Git, directory: str, text: str) -> Found:
    found = await git(
        directory, "grep", "--no-index", "--exclude-standard", "--no-color", "--no-textconv",
        "--ignore-case", "--fixed-strings", "--line-number", "--null", "--full-name",
        "-I", "--max-count=20", "-e", text, "--", ".",
        limit=OUTPUT, good=(0, 1),
    )  # fmt: skip
    matches: list[FoundLine] = []
    for line in found.out.decode(errors="replace").split("\n")[: MOST_FOUND + 1]:
        path, _, rest = line.partition("\0")
        number, _, words = rest.partition("\0")
        if number.isdigit():
            matches.append(FoundLine(path=path, line=int(number), text=words[:LONGEST_LINE]))
    return Found(matches=tuple(matches[:MOST_FOUND]), cut=found.cut or len(matches) > MOST_FOUND)


def _walk(directory: str) -> tuple[list[str], bool]:
    """The files below a folder that is no repository; links are not followed."""
    found: list[str] = []
    root = Path(directory)
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name.lower() != ".git")
        below = Path(folder).relative_to(root)
        found += [(below / name).as_posix() for name in files]
        if len(found) > MOST_WALKED:
            return found[:MOST_WALKED], True
    return found, False


def _printable(name: str) -> str:
    return name.encode(errors="surrogateescape").decode(errors="replace")
