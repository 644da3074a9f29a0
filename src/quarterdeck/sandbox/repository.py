"""The git repository of a folder, found without running git.

Owns the reading of `.git`, `commondir` and `core.hooksPath`. `plan` is beside it: it protects what
is found here. Git itself is not started, because a repository's settings can make it run programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from quarterdeck.domain.structs import Value

_LARGEST = 1024 * 1024
# A setting may stand in the line of its section. Only the content of a section has several lines:
# else a file of many empty lines, or of many open brackets, would take the square of its length.
_INCLUDE = re.compile(r"^[ \t]*\[include(?:if\b[^\]\n]*)?\]([^\[]*)", re.IGNORECASE | re.MULTILINE)
_INCLUDED_PATH = re.compile(r"^[ \t]*path[ \t]*=(.+)$", re.IGNORECASE | re.MULTILINE)
_HOOKS_PATH = re.compile(r"(?:^|\])[ \t]*hookspath[ \t]*=(.+)$", re.IGNORECASE | re.MULTILINE)


_Settings = list[tuple[Path, str]]
"""The files of settings that exist, each with its text."""


class Repository(Value):
    """Where the parts of a repository are. All paths are absolute and without links."""

    top: str
    """The folder that has the entry `.git`."""
    git_dir: str
    """The folder of this work tree: index, HEAD."""
    common_dir: str
    """The folder of the repository: objects, refs, config, hooks. Often the same."""
    own_settings: bool = False
    """Whether each work tree has settings of its own, in `config.worktree`."""
    hooks: tuple[str, ...] = ()
    """More folders that the settings name as folders of hooks."""
    included: tuple[str, ...] = ()
    """More files of settings that the settings name."""

    @property
    def is_worktree(self) -> bool:
        """Whether the folder is one of several work trees of a repository."""
        return self.git_dir != self.common_dir


def find_repository(folder: str | os.PathLike[str]) -> Repository | None:
    """The repository that the folder is in; None if there is none, or it cannot be read."""
    here = Path(folder).resolve()
    for top in (here, *here.parents):
        entry = top / ".git"
        try:
            if entry.is_dir():
                git_dir = entry.resolve()
            elif entry.is_file():
                name = _text(entry).partition("gitdir:")[2].strip()
                git_dir = (top / name).resolve()
            else:
                continue
            common = git_dir
            if (git_dir / "commondir").is_file():
                common = (git_dir / _text(git_dir / "commondir").strip()).resolve()
            if not (common / "objects").is_dir():
                continue
        except (OSError, ValueError, RuntimeError):
            continue
        settings = _settings(git_dir, common)
        return Repository(
            top=str(top),
            git_dir=str(git_dir),
            common_dir=str(common),
            own_settings=any(
                file == common / "config" and "worktreeconfig" in text.lower()
                for file, text in settings
            ),
            hooks=_hooks(top, settings),
            included=_included_files(settings),
        )
    return None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LARGEST).decode(errors="surrogateescape")


def _hooks(top: Path, settings: _Settings) -> tuple[str, ...]:
    """The folders that `core.hooksPath` names in the repository's own settings."""
    return _paths(top, (name for _, text in settings for name in _HOOKS_PATH.findall(text)))


def _included_files(settings: _Settings) -> tuple[str, ...]:
    """The files that the repository's own settings include. Each may name programs, too."""
    found: list[str] = []
    for file, text in settings:
        for section in _INCLUDE.findall(text):
            found += _paths(file.parent, _INCLUDED_PATH.findall(section))
    return tuple(dict.fromkeys(found))


def _settings(git_dir: Path, common: Path) -> _Settings:
    found: _Settings = []
    for file in dict.fromkeys((common / "config", git_dir / "config.worktree")):
        try:
            found.append((file, _text(file)))
        except OSError:
            continue
    return found


def _paths(start: Path, names: Iterable[str]) -> tuple[str, ...]:
    given = (name.strip().strip('"') for name in names)
    paths = (Path(name).expanduser() for name in given if name)
    return tuple(dict.fromkeys(os.path.normpath(start / path) for path in paths))
