"""TLS of a server, from files that may be replaced while it runs.

Owns the contexts. A server chooses a certificate for each handshake by the name that the client
wants. When a file has changed, it is read again; a file that cannot be used is logged, and the
certificate before it stays. Above is the HTTP front.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck.domain.structs import Value

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0


class CertificateFile(Value):
    """A certificate, with its chain, and its key: in one PEM file or in two."""

    certificate: Path
    key: Path | None = None

    def stamp(self) -> tuple[tuple[int, int, int], ...] | None:
        """What changes when a file is replaced; None where one is missing."""
        files = [self.certificate, *([self.key] if self.key is not None else [])]
        try:
            found = [file.stat() for file in files]
        except OSError:
            return None
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)

    def context(self) -> ssl.SSLContext:
        """A context for a server. Raises `OSError` and `ssl.SSLError`."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        # Without a function for the password an encrypted key would be asked for at the terminal.
        made.load_cert_chain(self.certificate, self.key, password=lambda: b"")
        return made


class ServerTls:
    """The certificates of one server: the main one, and those for certain names.

    The main one must be readable at once: raises `OSError` and `ssl.SSLError`. The others are used
    as soon as their files are there.
    """

    def __init__(
        self, main: CertificateFile, named: Mapping[str, CertificateFile] | None = None
    ) -> None:
        self._main = main
        self._named = {name.lower(): file for name, file in (named or {}).items()}
        self._stamps = {"": main.stamp()}
        self._contexts = {"": main.context()}
        self.context = main.context()
        """What the server is given. Each handshake then uses one of the others."""
        self.context.sni_callback = self._choose
        self._look_at_named()

    async def watch(self, *, seconds: float = LOOK_SECONDS) -> None:
        """Use changed files, for ever."""
        while True:
            await anyio.sleep(seconds)
            await anyio.to_thread.run_sync(self.reload)

    def reload(self) -> None:
        """Read the files that have changed. Blocks."""
        self._look("", self._main)
        self._look_at_named()

    def _look_at_named(self) -> None:
        for name, file in self._named.items():
            self._look(name, file)

    def _look(self, name: str, file: CertificateFile) -> None:
        stamp = file.stamp()
        if stamp is None or stamp == self._stamps.get(name):
            return
        self._stamps[name] = stamp
        try:
            self._contexts[name] = file.context()
        except (OSError, ssl.SSLError) as error:
            logger.error("certificate %s cannot be used: %s", file.certificate, error)
        else:
            logger.info("certificate %s is in use", file.certificate)

    def _choose(
        self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext
    ) -> None:
        connection.context = self._contexts.get((name or "").lower()) or self._contexts[""]
