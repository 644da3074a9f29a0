"""What the hub's commands print on stdout: bare words, and JSON for machines."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec

from quarterdeck.cli.local.tee import write_all


def print_line(text: str) -> None:
    """One line, as it is: an id, a token, a sentence of ours."""
    sys.stdout.flush()
    write_all(sys.stdout.fileno(), text.encode("utf-8", "replace") + b"\n")


def print_json(values: Iterable[object]) -> None:
    """One JSON value a line."""
    sys.stdout.flush()
    for value in values:
        write_all(sys.stdout.fileno(), msgspec.json.encode(value) + b"\n")
