"""The signature of a payload, by the Standard Webhooks convention.

HMAC-SHA256 over the id, the time and the body: the receiver can check that a payload comes from who
has the secret, that it was not changed, and that it is not an old one that is replayed. The hub
signs what it sends, and checks what it receives.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from pathlib import Path

from quarterdeck.domain.errors import UsageError

PREFIX = "whsec_"
KEY_BYTES = 32
SHORTEST, LONGEST = 24, 64
"""Bytes of a key, as the convention requires."""
LARGEST_FILE = 4096
MOST_KEYS = 4


def new_secret() -> str:
    """Create a secret, for the secret file and for the receiver."""
    return PREFIX + base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def read_keys(path: str) -> tuple[bytes, ...]:
    """The keys in a secret file, one per line: several during a rotation. Blocks.

    Raises `UsageError`, which never contains anything of the file.
    """
    place = Path(path).expanduser()
    try:
        with place.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        lines = data.decode("ascii").split()
    except OSError as error:
        raise UsageError(f"secret file {place}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UsageError(f"secret file {place}: not a text file") from None
    if len(data) > LARGEST_FILE or not 0 < len(lines) <= MOST_KEYS:
        raise UsageError(f"secret file {place}: 1 to {MOST_KEYS} secrets required, one per line")
    return tuple(_key(line, place) for line in lines)


def headers(id_: str, seconds: int, body: bytes, keys: tuple[bytes, ...]) -> dict[str, str]:
    """The headers of a payload. With several keys there are several signatures."""
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(_signature(id_, seconds, body, key) for key in keys),
    }


def is_signed(id_: str, seconds: int, body: bytes, given: str, keys: tuple[bytes, ...]) -> bool:
    """Whether one of the given signatures is right. It takes as long for a wrong one."""
    found = False
    for signature in given.split(" ", MOST_KEYS)[:MOST_KEYS]:
        for key in keys:
            right = _signature(id_, seconds, body, key)
            found |= hmac.compare_digest(right.encode(), signature.encode())
    return found


def _signature(id_: str, seconds: int, body: bytes, key: bytes) -> str:
    signed = hmac.new(key, f"{id_}.{seconds}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(signed.digest()).decode()


def _key(line: str, place: Path) -> bytes:
    if line.startswith(PREFIX):
        try:
            key = base64.b64decode(line.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if SHORTEST <= len(key) <= LONGEST:
            return key
    raise UsageError(
        f"secret file {place}: a secret begins with {PREFIX} and has {SHORTEST} to {LONGEST} bytes"
        " in base64; `quarterdeck webhook secret` creates one"
    )
