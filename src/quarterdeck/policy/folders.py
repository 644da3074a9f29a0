"""The folders that the patterns of rules are relative to, and paths from there on.

It works on text. Below it is nothing; `paths` compares the paths with patterns.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

from quarterdeck.domain.structs import Value
from quarterdeck.policy.trees import LookBelow

MOST_KNOWN = 4_096
"""Paths that are remembered for one place."""


class Base(StrEnum):
    """The base of a relative pattern."""

    ROOT = "root"
    HOME = "home"
    SETTINGS = "settings"
    CWD = "cwd"

    # That of an enumeration is written in Python, and slower.
    __hash__ = str.__hash__


class Folders(Value, dict=True):
    """The folders of the bases; None if unknown."""

    cwd: str | None = None
    home: str | None = None
    settings: str | None = None
    below: LookBelow | None = None
    """Looks what is below a folder."""

    @cached_property
    def relatives(self) -> dict[tuple[str, Base], str | None]:
        """Paths that have been compared with a base before: hundreds of patterns ask for them."""
        return {}


def folder_of(base: Base, folders: Folders) -> str | None:
    """The folder of a base; None if it is not known."""
    match base:
        case Base.ROOT:
            return "/"
        case Base.HOME:
            return folders.home
        case Base.SETTINGS:
            return folders.settings
        case Base.CWD:
            return folders.cwd


def relative_to(path: str, base: Base, folders: Folders) -> str | None:
    """The path from the base on; None if it is not below it, or that is not known."""
    known = folders.relatives
    key = (path, base)
    if key not in known:
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[key] = _find_relative(path, base, folders)
    return known[key]


def _find_relative(path: str, base: Base, folders: Folders) -> str | None:
    if path == "~" or path.startswith("~/"):
        if base is Base.HOME:
            return path[2:]
        if folders.home is None:
            return None
        path = folders.home.rstrip("/") + path[1:]
    folder = folder_of(base, folders)
    if not path.startswith("/"):
        # The working directory is unknown: relative paths start there.
        return path if base is Base.CWD and folder is None and not path.startswith("..") else None
    if folder is None:
        return None
    folder = folder.rstrip("/")
    if path == folder or (path == "/" and not folder):
        return ""
    return path[len(folder) + 1 :] if path.startswith(folder + "/") else None
