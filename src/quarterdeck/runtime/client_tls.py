"""What the clients of a hub trust. Without an event loop: most commands need none."""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path

from quarterdeck.domain.errors import UsageError


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
