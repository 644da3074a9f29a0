"""Weighs the web app: the files that a browser must have before it shows the list of sessions."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

_IN_PAGE = re.compile(r'(?:src|href)="/([^"]+)"')
_IMPORTS = re.compile(
    r'(?:^|[;}\s])(?:import|export)\b[^;()]*?from\s*"\./([^"]+)"|import"\./([^"]+)"'
)


def first_view(deck: Path) -> set[Path]:
    """The page, what it names, and their imports."""
    found = {deck / "index.html"}
    waiting = [deck / name for name in _IN_PAGE.findall((deck / "index.html").read_text())]
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found.add(file)
        if file.suffix == ".js":
            names = [one or other for one, other in _IMPORTS.findall(file.read_text())]
            waiting += [file.parent / name for name in names]
    return found


def packed_sizes(deck: Path) -> dict[str, int]:
    """Their sizes, compressed, in bytes."""
    return {file.name: len(gzip.compress(file.read_bytes())) for file in first_view(deck)}
