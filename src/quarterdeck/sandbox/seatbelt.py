"""The sandbox of macOS: this writes a profile, and the command line of `sandbox-exec`.

`open` is above. In a profile the last rule that matches decides, so outer paths come first. Rules
are about paths, also of files that do not exist: nothing has to be made for them.

The profile is made from Apple's documentation and published profiles. It has not been run: the
project's tests have no macOS.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from quarterdeck.sandbox.resolve import Access, Resolved

PROGRAM = "/usr/bin/sandbox-exec"
TEMPORARY_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")


def profile(box: Resolved, ports: Sequence[int] | None = None) -> str:
    """The text of the profile. `ports` of this machine can be connected to; None: everything."""
    lines = [
        "(version 1)",
        "(allow default)",
        "; Other programs: no signals, and nothing started on behalf of this one.",
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        "(deny appleevent-send)",
        "(deny lsopen)",
        "(deny file-write*)",
        *(f"(allow file-write* (literal {_text(path)}))" for path in TEMPORARY_DEVICES),
        '(allow file-write* (regex #"^/dev/fd/"))',
    ]
    protected = [path for path, access in box.entries.items() if access is not Access.WRITABLE]
    for path, access in box.entries.items():
        place = f"(subpath {_text(path)})"
        match access:
            case Access.WRITABLE:
                lines.append(f"(allow file-read* file-write* {place})")
            case Access.READ_ONLY:
                lines += [f"(deny file-write* {place})", f"(allow file-read* {place})"]
            case Access.HIDDEN:
                lines.append(f"(deny file-read* file-write* {place})")
    lines += [f"(deny file-write* (subpath {_text(path)}))" for path in box.missing]
    lines += [
        f"(deny file-write-unlink (literal {_text(folder)}))"
        for folder in _around([*protected, *box.missing])
    ]
    if ports is not None:
        lines += [
            "(deny network*)",
            '(allow network* (local ip "localhost:*"))',
            *(f'(allow network-outbound (remote ip "localhost:{port}"))' for port in ports),
        ]
    return "\n".join(lines) + "\n"


def command(text: str) -> list[str]:
    """The command line, up to the command that runs inside."""
    return [PROGRAM, "-p", text]


def _around(paths: Sequence[str]) -> list[str]:
    """The folders around protected paths: a folder that was renamed would take its rules along."""
    found: set[str] = set()
    for path in paths:
        folder = posixpath.dirname(path)
        while folder != "/":
            found.add(folder)
            folder = posixpath.dirname(folder)
    return sorted(found)


def _text(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
