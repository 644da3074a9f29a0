"""Here-documents, checked by their text: does the document end where the syntax tree says?

A document that bash ends earlier than the tree does would hide commands in what looks like text.
"""

from __future__ import annotations

import re

from tree_sitter import Node

_PLAIN = re.compile(rb"[A-Za-z0-9_.+-]+")
_QUOTED = re.compile(rb"'([A-Za-z0-9_.+ -]+)'|\"([A-Za-z0-9_.+ -]+)\"|\\([A-Za-z0-9_.+-]+)")
_LIVE = re.compile(rb"(?<!\\)(?:\\\\)*(?:`|\$\(|\$\{|\$\[)")


def check_heredoc(node: Node, source: bytes) -> str | None:
    """Why a here-document is doubtful; None if it is not."""
    kinds = {child.type: child for child in node.children}
    start, end, body = (kinds.get(f"heredoc_{part}") for part in ("start", "end", "body"))
    if start is None or end is None or node.children[0].type not in {"<<", "<<-"}:
        return "this here-document is not understood"
    begun = source[start.start_byte : start.end_byte]
    quoted = _QUOTED.fullmatch(begun)
    if quoted is not None:
        delimiter = next(each for each in quoted.groups() if each is not None)
    elif _PLAIN.fullmatch(begun):
        delimiter = begun
    else:
        return "the here-document's delimiter is unusual"
    dashed = node.children[0].type == "<<-"
    first = source.find(b"\n", start.end_byte)
    if first < 0:
        return "the here-document is not closed"
    where = _ends(source, first + 1, delimiter, dashed)
    line = source.rfind(b"\n", 0, end.start_byte) + 1
    if where is None or where != line or source[end.start_byte : end.end_byte] != delimiter:
        return "the here-document may end elsewhere"
    if quoted is None and body is not None and _hides_substitution(body, source):
        return "the here-document may substitute commands"
    return None


def _ends(source: bytes, at: int, delimiter: bytes, dashed: bool) -> int | None:
    while at <= len(source):
        stop = source.find(b"\n", at)
        stop = len(source) if stop < 0 else stop
        line = source[at:stop]
        if (line.lstrip(b"\t") if dashed else line) == delimiter:
            return at
        at = stop + 1
    return None


def _hides_substitution(body: Node, source: bytes) -> bool:
    """Is there a substitution in the text that the tree does not show as one?"""
    at = body.start_byte
    for child in body.children:
        if child.type in {"command_substitution", "expansion", "arithmetic_expansion"}:
            if _LIVE.search(source, at, child.start_byte):
                return True
            at = child.end_byte
    return _LIVE.search(source, at, body.end_byte) is not None
