"""Ids: unique, sortable by the time of their making, safe in URLs and file names."""

from __future__ import annotations

import hashlib
import os
import time
from uuid import UUID

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32 in small letters: no letter that is taken for a digit."""

_TIME_DIGITS, _CHANCE_DIGITS = 10, 16


def new_id(*, now: float | None = None) -> str:
    """48 bits of milliseconds and 80 bits of chance, in 26 characters."""
    milliseconds = int((time.time() if now is None else now) * 1000)
    chance = int.from_bytes(os.urandom(10), "big")
    return _digits(milliseconds, _TIME_DIGITS) + _digits(chance, _CHANCE_DIGITS)


def derived_id(now: float, *facts: str) -> str:
    """An id that is always the same for the same time and facts, for commands that are repeated."""
    digest = hashlib.blake2b("\0".join(facts).encode(), digest_size=10).digest()
    made = _digits(int(now * 1000), _TIME_DIGITS)
    return made + _digits(int.from_bytes(digest, "big"), _CHANCE_DIGITS)


def derived_uuid(*facts: str) -> str:
    """A uuid that is always the same for the same facts, in the form of one made by chance."""
    digest = hashlib.blake2b("\0".join(facts).encode(), digest_size=16).digest()
    return str(UUID(bytes=digest, version=4))


def is_id(text: str) -> bool:
    """Whether this could have been made by `new_id`."""
    return len(text) == _TIME_DIGITS + _CHANCE_DIGITS and set(text) <= set(_ALPHABET)


def _digits(number: int, width: int) -> str:
    found = ""
    for _ in range(width):
        number, digit = divmod(number, 32)
        found = _ALPHABET[digit] + found
    return found
