"""bubblewrap: a sandbox of mounts. This makes its command line.

`open` is above. Nothing is started here, and of a path only its kind (file or folder) and its
rights are looked at.

The whole file system is mounted read-only, and the entries over it, outer ones first. A folder on
the way from a writable folder to a protected path could be renamed, and a new one be made in its
place. So it is made a mount point as well, which cannot be renamed; that mount is covered by
mounting the writable folder once more, so that files can be moved within it as before.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from quarterdeck.sandbox.resolve import Access, Resolved, access_of

PROGRAM = "bwrap"
TEMPORARY = ("/tmp",)  # noqa: S108 - it is replaced by a folder of the session
CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETGID",
    "SETUID",
)
"""What root keeps: else it could not write files of other users, as in a container."""


KERNEL = (
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/acpi",
    "/proc/scsi",
)
"""Settings of the kernel that root could write, also without capabilities. One of them names a
program that the kernel starts outside."""


class User(StrEnum):
    """What the one who starts bubblewrap is to the kernel."""

    PERSON = "person"
    ROOT = "root"
    WEAK_ROOT = "weak_root"
    """Root without the right to mount, as in a container: it needs a user namespace."""


def arguments(
    box: Resolved,
    *,
    program: str,
    cwd: str,
    temporary: str,
    user: User,
    placeholders: Iterable[str] = (),
    copies: Mapping[str, str] | None = None,
    network: bool = True,
) -> list[str]:
    """The command line of bubblewrap, up to the command that runs inside.

    `copies` are files to be shown in the place of others: place → source. Without `network` there
    is only a loopback of its own.
    """
    copies = copies or {}
    made = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    made += ["--unshare-pid", "--unshare-ipc"]
    if not network:
        made.append("--unshare-net")
    replaced = [path for path in TEMPORARY if temporary and posixpath.isdir(path)]
    for path in replaced:
        made += ["--bind", temporary, path]
    protected = [*(p for p, a in box.entries.items() if a is not Access.WRITABLE), *placeholders]
    for path in sorted({*box.entries, *placeholders}, key=lambda each: (each.count("/"), each)):
        access = box.entries.get(path, Access.READ_ONLY)
        if access is Access.WRITABLE:
            made += ["--bind", path, path]
            if between := _between(path, protected, box.entries):
                for each in between:
                    made += ["--bind", each, each]
                made += ["--bind", path, path]
        elif access is Access.READ_ONLY:
            made += ["--ro-bind", path, path]
        elif user is User.PERSON and _is_closed(path, box.entries):
            continue
        elif posixpath.isdir(path):
            # Empty, and what is written there is thrown away: read-only would take time.
            made += ["--tmpfs", path]
        else:
            # A device on a mount that allows none: it cannot be opened.
            made += ["--ro-bind", "/dev/null", path]
    for path in box.private:
        if _is_shown(path, replaced, box.entries):
            made += ["--tmpfs", path]
    for path, copy in copies.items():
        made += ["--bind", copy, path]
    if user is not User.PERSON:
        # Without this root would keep all of them, and could take off every mount.
        made += ["--cap-drop", "ALL"]
        for path in KERNEL:
            if posixpath.exists(path):
                made += ["--ro-bind", path, path]
    if user is User.ROOT:
        for name in CAPABILITIES:
            made += ["--cap-add", f"CAP_{name}"]
    if user is User.WEAK_ROOT:
        made.append("--unshare-user")
    return [*made, "--chdir", cwd, "--"]


def _between(writable: str, protected: Sequence[str], entries: Mapping[str, Access]) -> list[str]:
    """The folders between a writable folder and the protected paths in it, outer ones first."""
    prefix = writable.rstrip("/") + "/"
    found: set[str] = set()
    for path in protected:
        if not path.startswith(prefix):
            continue
        way = []
        folder = posixpath.dirname(path)
        while folder != writable and folder not in entries:
            way.append(folder)
            folder = posixpath.dirname(folder)
        if folder == writable:  # else another entry is in between, and does this itself
            found.update(way)
    return sorted(found, key=lambda each: (each.count("/"), each))


def _is_closed(path: str, entries: Mapping[str, Access]) -> bool:
    """Whether a hidden path is out of reach anyway, so that no mount is needed for it.

    That is a file of another user that gives us no right, in a folder that is read-only inside.
    The rights are those that are left inside, where nobody has capabilities or becomes another.
    """
    try:
        known = os.lstat(path)
    except OSError:
        return False
    return (
        known.st_uid != os.geteuid()
        and not any(os.access(path, right) for right in (os.R_OK, os.W_OK, os.X_OK))
        and access_of(posixpath.dirname(path), entries) is Access.READ_ONLY
    )


def _is_shown(path: str, replaced: Sequence[str], entries: Mapping[str, Access]) -> bool:
    """Whether a path can be seen at all: in a replaced folder only what an entry shows."""
    around = posixpath.dirname(path)
    while around not in entries and around != "/":
        if around in replaced:
            return False
        around = posixpath.dirname(around)
    return entries.get(around) is not Access.HIDDEN
