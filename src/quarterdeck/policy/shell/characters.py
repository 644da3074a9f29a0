"""Characters of a command that look like others, or like nothing.

A person who is asked about a command must see what it is. It knows no grammar.
"""

from __future__ import annotations

import re
import unicodedata

_ODD = re.compile(r"[^\n\t -~]")
_MISLEADING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
"""Categories of Unicode: control characters, blanks, and what has no sign of its own."""


def why_odd(text: str) -> str | None:
    """Why the characters of a text make it doubtful; None if they do not."""
    if text.isascii() and text.isprintable():
        return None
    for odd in _ODD.finditer(text):
        char = odd.group()
        if unicodedata.category(char) in _MISLEADING:
            return f"it holds the character U+{ord(char):04X}, which looks like another one"
    return None
