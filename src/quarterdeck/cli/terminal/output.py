"""Output for programs and scripts on stdout: plain lines, JSON, bytes.

It loads nothing that formats text: most commands print one id, and should start fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import msgspec

from quarterdeck.cli.exits import OutputClosed


def print_line(text: str) -> None:
    """Print one line: an id, a token, a sentence."""
    sys.stdout.flush()
    write_all(sys.stdout.fileno(), text.encode("utf-8", "replace") + b"\n")


def print_json(values: Iterable[object]) -> None:
    """Print one JSON value per line."""
    sys.stdout.flush()
    for value in values:
        write_all(sys.stdout.fileno(), msgspec.json.encode(value) + b"\n")


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; blocks while the reader is slow. Raises `OutputClosed` if it has gone."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError as error:
        raise OutputClosed from error
