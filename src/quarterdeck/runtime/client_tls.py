"""What the clients of a hub and of other servers trust. Without an event loop.

A client that trusts the authorities of the system has all of them in memory, nearly a megabyte, and
uses one. Many systems have them also as a folder in which OpenSSL finds one by its name; then none
is read before it is needed. The folder is used only if it has as many as the file that has all.
"""

from __future__ import annotations

import re
import ssl
from functools import cache
from pathlib import Path

from quarterdeck.domain.errors import UsageError

_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")
_BEGIN = b"-----BEGIN "


def system_context() -> ssl.SSLContext:
    """What a client of public servers trusts. Blocking: it reads the disk."""
    paths = ssl.get_default_verify_paths()
    if paths.capath and paths.cafile and _is_complete(Path(paths.capath), Path(paths.cafile)):
        return ssl.create_default_context(capath=paths.capath)
    return ssl.create_default_context()


def _is_complete(folder: Path, file: Path) -> bool:
    """Whether a folder has every certificate of a file, by its name."""
    try:
        with file.open("rb") as lines:
            wanted = sum(line.startswith(_BEGIN) for line in lines)
        found = [each for each in folder.iterdir() if _HASHED.fullmatch(each.name)]
        return 0 < wanted <= sum(each.is_file() for each in found)
    except OSError:
        return False


def client_context(ca_file: Path | None) -> ssl.SSLContext:
    """What a client trusts: one authority of its own, or those of the system.

    With a file of its own it trusts no other: nobody else can pretend to be that hub. Raises
    `UsageError` for a file that is no certificate.
    """
    if ca_file is None:
        return _of_the_system()
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"CA file {ca_file}: {error}") from error


@cache
def _of_the_system() -> ssl.SSLContext:
    """Read once: it takes a tenth of a second, in which an event loop would do nothing else."""
    return ssl.create_default_context()
