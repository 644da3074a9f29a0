"""Hints that the sandbox refused something to a call, from the text of its result. Pure.

Owns which texts are such a hint, and which rule would help. A result is text of untrusted programs:
a hint changes nothing, and is made only for a path that the sandbox of the run does refuse. `run`
records it; the web app shows it beside the call. Refused connections need no hint: the proxy
reports them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from quarterdeck.protocol.events import SandboxRefused, SandboxStarted
from quarterdeck.protocol.holds import Holds, RunningTool
from quarterdeck.protocol.sandbox import OFF, SandboxPaths
from quarterdeck.wire.base import Message
from quarterdeck.wire.content import ToolResultBlock
from quarterdeck.wire.messages import User

MOST_HINTS = 3
"""Hints for one call."""
MOST_TEXT = 20_000
"""Characters at the beginning and at the end of a result that are looked at."""
LONGEST_LINE = 2000
LONGEST_PATH = 500

_REFUSED = re.compile(r"Read-only file system|\bEROFS\b", re.IGNORECASE)
_DENIED = re.compile(
    r"Permission denied|\bEACCES\b|Operation not permitted|\bEPERM\b", re.IGNORECASE
)
_MISSING = re.compile(r"No such file or directory|\bENOENT\b", re.IGNORECASE)
_PIECE = re.compile(r"'([^']+)'|\"([^\"]+)\"|`([^`]+)`|([^\s:'\"`(),]+)")
_READS = re.compile(r"^(?:cat|head|tail|less|ls|grep|rg|find|stat|wc|diff|file|du):")
"""Programs that only read: «Permission denied» is not about a write then."""


def hints(
    sandbox: SandboxStarted | None, holds: Holds, message: Message
) -> Iterator[SandboxRefused]:
    """The hints in the results that a message has. `holds` still has its calls."""
    if sandbox is None or sandbox.state.mode == OFF or not isinstance(message, User):
        return
    for block in message.blocks:
        if not isinstance(block, ToolResultBlock):
            continue
        call = next((one for one in holds.tools if one.call == block.tool_use_id), None)
        if call is None:
            continue
        found = dict.fromkeys(_refused_accesses(block.text, sandbox))
        for access, path in list(found)[:MOST_HINTS]:
            rule = rule_for(path, sandbox.paths) if access == "write" else ""
            yield SandboxRefused(
                call=call.call, tool=call.tool, access=access, target=path, rule=rule
            )


def refused_host(call: RunningTool, host: str) -> SandboxRefused:
    """The proxy has refused a host while a call ran."""
    rule = "" if "*" in host else f"WebFetch(domain:{host})"
    return SandboxRefused(call=call.call, tool=call.tool, access="connect", target=host, rule=rule)


def _refused_accesses(text: str, sandbox: SandboxStarted) -> Iterator[tuple[str, str]]:
    """Each access with its path that the text tells of and that the sandbox refuses."""
    if len(text) > 2 * MOST_TEXT:
        text = f"{text[:MOST_TEXT]}\n{text[-MOST_TEXT:]}"
    only_hides = sandbox.state.kind == "bubblewrap"  # a refused write is «read-only» there
    for line in text.splitlines():
        line = line[:LONGEST_LINE]  # noqa: PLW2901 - the same line, shorter
        written = _REFUSED.search(line)
        denied = _DENIED.search(line)
        words = written or denied or _MISSING.search(line)
        path = None if words is None else _path(line, words, sandbox.paths)
        if path is None:
            continue
        status = status_of(path, sandbox.paths)
        if status == "hidden":
            yield "read", path
        elif status == "writable":
            continue
        elif written or (denied and not only_hides and not _READS.match(line)):
            yield "write", path


def _path(line: str, words: re.Match[str], paths: SandboxPaths) -> str | None:
    """The path that an error is about: `bash: /opt/x: Read-only file system` has it before the
    words, `EROFS: read-only file system, open '/opt/x'` after them.
    """
    before = list(_paths(line[: words.start()], paths))
    after = list(_paths(line[words.end() :], paths))
    if before and (not after or line[: words.start()].rstrip().endswith(":")):
        return before[-1]
    return after[0] if after else None


def _paths(text: str, paths: SandboxPaths) -> Iterator[str]:
    """The absolute paths in a text. Relative ones begin in the first folder of the sandbox."""
    here = paths.writable[0] if paths.writable else "/"
    for found in _PIECE.finditer(text):
        piece = next(group for group in found.groups() if group is not None).rstrip(".,;")
        if "/" not in piece or piece == "/" or len(piece) > LONGEST_PATH or "://" in piece:
            continue
        if not piece.isprintable():
            continue
        yield posixpath.normpath(posixpath.join(here, piece))


def status_of(path: str, paths: SandboxPaths) -> str:
    """What the sandbox does with a path: `writable`, `read_only`, `hidden`, or `other`.

    The deepest listed folder decides; of the same path, the strictest. What is not listed can be
    read only.
    """
    best, status = -1, "other"
    for name in ("hidden", "read_only", "writable"):
        for folder in getattr(paths, name):
            inside = path == folder or path.startswith(folder.rstrip("/") + "/")
            if inside and len(folder) > best:
                best, status = len(folder), name
    return status


def rule_for(path: str, paths: SandboxPaths) -> str:
    """The rule that would let a path be written in the next run; empty if there is none.

    For a protected path it names what is protected. Otherwise it is about the folder of the path,
    unless that is the root, or has the project in it.
    """
    listed = [
        folder
        for folder in paths.read_only
        if path == folder or path.startswith(folder.rstrip("/") + "/")
    ]
    place = max(listed, key=len, default="")
    if not place:
        parent = posixpath.dirname(path)
        broad = parent.count("/") < 2 or any(
            folder == parent or folder.startswith(parent + "/") for folder in paths.writable
        )
        place = path if broad else f"{parent}/**"
    if set(place.removesuffix("/**")) & set("*?[]!()\\"):
        return ""
    return f"Edit(/{place})"
