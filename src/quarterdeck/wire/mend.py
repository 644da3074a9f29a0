r"""Lines that are JSON for JavaScript, and not for us.

Owns one repair. A JavaScript string may hold half of a character: text that was cut by length, in
the middle of an emoji. The CLI writes such a half as `\ud83d`, which is legal JSON and no Unicode
text; our decoder refuses the whole line for it. A result or a question must not be lost so. The
line is read with U+FFFD in place of each half; `raw` stays as it came.
"""

from __future__ import annotations

import re

# One escape at a time, so that a backslash that is itself escaped is never taken for the start of
# one. A pair is matched before a half.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|.)",
    re.DOTALL,
)


def mend(line: bytes) -> bytes | None:
    """The line with every half of a character replaced; None if there is none in it."""
    if b"\\ud" not in line and b"\\uD" not in line:
        return None
    mended = _ESCAPE.sub(_whole, line)
    return mended if mended != line else None


def _whole(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["half"] else escape[0]
