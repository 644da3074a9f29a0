"""The little that links know of NDJSON: it is whole lines that are sent.

A line cut in two by another sender's line would end the CLI, so a link takes only whole ones.
"""

from __future__ import annotations

from quarterdeck.domain.errors import UsageError


def check_whole_lines(data: bytes) -> None:
    """Raise `UsageError` unless `data` is whole lines, none of them empty; or nothing at all.

    The CLI does not handle a line before its newline, and 2.1.37 ends on an empty one.
    """
    if data and not data.endswith(b"\n"):
        raise UsageError("a link sends whole lines, and the last one has no newline")
    if data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data:
        raise UsageError("a link sends no empty lines: they end some versions of the CLI")


def check_text_lines(data: bytes) -> None:
    """As `check_whole_lines`, for a link whose frames are text: the lines must be UTF-8 as well."""
    check_whole_lines(data)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise UsageError("a line that is not UTF-8 cannot be sent as text") from error
