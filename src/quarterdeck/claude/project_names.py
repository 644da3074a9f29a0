"""The names of the CLI's folders for projects: pure, from a path to a name.

Owns the rule of the CLI. Where these folders are, and what is in them, is known to `transcripts`.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator

LONGEST_NAME = 200
"""The CLI cuts a project folder's name here, so that a hash still fits into a file name."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def project_path(directory: str | os.PathLike[str]) -> str:
    """The CLI's path of `directory`: links resolved, characters composed (NFC)."""
    return unicodedata.normalize("NFC", os.path.realpath(directory))


def project_folder_name(path: str) -> str:
    """The name of the folder that the CLI makes for the project at `path`.

    The CLI is JavaScript and counts UTF-16 units: a character beyond the first 65,536 becomes two
    hyphens, and goes into the hash as two numbers.
    """
    name = hyphenate(path)
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}-{_hash(path)}"


def hyphenate(path: str) -> str:
    """The name before it is cut."""
    return "".join(
        chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in _units(path)
    )


def _units(text: str) -> Iterator[int]:
    """The UTF-16 units of `text`; a lone surrogate (a stray byte of a file name) counts as one."""
    data = text.encode("utf-16-le", errors="surrogatepass")
    return (low | high << 8 for low, high in zip(data[::2], data[1::2], strict=True))


def _hash(path: str) -> str:
    """JavaScript's usual 32-bit string hash (times 31, plus the unit), in base 36, without sign."""
    value = 0
    for unit in _units(path):
        value = (value * 31 + unit) & 0xFFFFFFFF
    number = value if value < 0x80000000 else 0x100000000 - value
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
