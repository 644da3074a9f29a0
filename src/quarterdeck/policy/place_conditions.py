"""Conditions on a place: a file outside the session's folders, a protected one, another machine.

They narrow what a rule matches by its other conditions. Three results, as for facts: True, False,
or None, if it is not known before the call runs.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from quarterdeck.domain.structs import Value
from quarterdeck.policy.facts import Tri
from quarterdeck.policy.folders import Folders
from quarterdeck.policy.needs import Context, Need, NeedKind, Request
from quarterdeck.policy.paths import PathPattern, catches, covers, is_inside, is_protected
from quarterdeck.policy.shell import Target

_FOLDERS = "tmp var/tmp dev/shm var/folders private/tmp private/var/tmp private/var/folders"
TEMPORARY = tuple(f"/{folder}" for folder in _FOLDERS.split())
"""Folders for temporary files, on Linux and on macOS."""

_SINKS = re.compile(r"/dev/(?:null|zero|full|tty|stdin|stdout|stderr|fd/\d+)")
_THIS_MACHINE = re.compile(r"(?:.+\.)?localhost|127\.[\d.]+|0\.0\.0\.0|\[::1?\]")
_WILD = re.compile(r"[*?\[{]")


class PlaceConditions(Value):
    """Conditions on the file of a need. All empty: every need."""

    outside: bool = False
    """Neither in the session's folders nor a temporary file."""
    protected: bool = False
    """A file that makes programs run, or says what agents may do."""
    exceptions: tuple[PathPattern, ...] = ()
    """Files that the rule does not mean."""
    remote: bool = False
    """Not known to contact this machine only."""

    @property
    def given(self) -> bool:
        """Whether there is a condition."""
        return self.outside or self.protected or self.remote or bool(self.exceptions)

    def candidates(self, request: Request) -> list[Need]:
        """The needs that a rule is about which has no other condition on calls."""
        if self.remote:
            return [need for need in request.needs if need.kind is NeedKind.FETCH]
        return [need for need in request.needs if need.target is not None]

    def hold(self, need: Need, request: Request, context: Context) -> Tri:
        """Whether they hold for a need, to stop it."""
        if need.kind is NeedKind.UNKNOWN:
            return None
        if self.remote:
            return not _stays_here(need, request)
        target = need.target
        if target is None:
            # Without another condition on the file, an exception is about files only.
            return not (self.outside or self.protected)
        if not target.paths:
            return None if self.outside or self.protected else True
        if any(_is_exception(each, target, context.folders) for each in self.exceptions):
            return False
        if self.protected and not is_protected(target):
            return False
        return _is_outside(target, context) if self.outside else True

    def may_allow(self, need: Need, context: Context) -> bool:
        """Whether a need is certainly none of the exceptions."""
        target = need.target
        return target is None or all(
            catches(each, target, context.folders) is False for each in self.exceptions
        )


def _stays_here(need: Need, request: Request) -> bool:
    """Is it known of this part of a call that it contacts no other machine?"""
    part = need.part
    if part is not None and (part.open_ended or any(each.target is None for each in part.effects)):
        return False
    hosts = [
        each.host for each in request.needs if each.kind is NeedKind.FETCH and each.part is part
    ]
    return all(host is not None and _THIS_MACHINE.fullmatch(host) for host in hosts)


def _is_exception(pattern: PathPattern, target: Target, folders: Folders) -> bool:
    """Does an exception certainly mean the target?

    It means files, unless it ends in `/**`. A folder with the name of an exception could be a link.
    """
    if not pattern.text.endswith("/**"):
        above = [path.rpartition("/")[0] for path in target.paths]
        folder = replace(target, paths=tuple(above))
        if target.glob or _matches(pattern, folder, folders):
            return False
    return _matches(pattern, target, folders)


def _matches(pattern: PathPattern, target: Target, folders: Folders) -> bool:
    if covers(pattern, target, folders):
        return True
    # As to stop: a pattern that begins with `**/` holds in every folder.
    if not pattern.anywhere or target.glob or not target.sure:
        return False
    return all(pattern.sure.fullmatch(path.lstrip("/")) for path in target.paths)


def _is_outside(target: Target, context: Context) -> Tri:
    if is_inside(target, context.roots, context.home):
        return False
    if context.cwd is None and all(map(_is_below, target.paths)):
        return None
    if all(_is_scratch(path, context) for path in target.paths):
        return False
    return True if target.sure else None


def _is_below(path: str) -> bool:
    """Is it in the working folder, wherever that is?"""
    return not path.startswith(("/", "~", ".."))


def _is_scratch(path: str, context: Context) -> bool:
    """Is it a device that keeps nothing, or a temporary file?

    What is beside a session's folder, or beside its home folder, is not temporary, even if all of
    that is in `/tmp`.
    """
    if _SINKS.fullmatch(path):
        return True
    for folder in TEMPORARY:
        if not path.startswith(folder + "/"):
            continue
        first = path[len(folder) + 1 :].partition("/")[0]
        own = f"{folder}/{first}"
        places = [place for place in (*context.roots, context.home) if place is not None]
        beside = any(place == own or place.startswith(own + "/") for place in places)
        return bool(first) and not _WILD.match(first) and not beside
    return False
