"""TLS in front of a server on loopback: what a client takes for a server of the Internet.

The client trusts the authorities of the system, as it would elsewhere, and one of ours: the
certificates are a part of what is measured.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from quarterdeck.domain.structs import Value
from quarterdeck.runtime.local_ca import LocalCa, Names

PIECE = 64 * 1024


class Encrypted(Value):
    """A server behind TLS."""

    url: str
    variables: dict[str, str]
    """They make a client trust the authorities of the system, and ours."""


@asynccontextmanager
async def encrypted(url: str, folder: Path) -> AsyncIterator[Encrypted]:
    """The server at `url`, which has no TLS, behind TLS while the block runs."""
    names = Names.of(["localhost", "127.0.0.1"])
    now = datetime.now(UTC)
    authority = LocalCa.open(folder / "authority", names, now, owner="bench")
    authority.renew(names, now)
    variables = _trusted(folder / "trusted", authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.hub_file)
    behind = urlsplit(url)

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(behind.hostname, behind.port)
        await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))

    server = await asyncio.start_server(join, "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Encrypted(url=f"https://127.0.0.1:{port}", variables=variables)


def _trusted(folder: Path, authority: LocalCa) -> dict[str, str]:
    """The authorities of the system and ours, as a file and as a folder, as a system has them."""
    system = ssl.get_default_verify_paths()
    file, hashed = folder.with_suffix(".pem"), folder
    known = Path(system.cafile).read_bytes() if system.cafile else b""
    file.write_bytes(known + b"\n" + authority.pem)
    if not hashed.exists():
        hashed.mkdir()
        for each in Path(system.capath).iterdir() if system.capath else ():
            (hashed / each.name).symlink_to(each)
        command = ["openssl", "x509", "-noout", "-subject_hash", "-in", str(authority.ca_file)]
        name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        (hashed / f"{name}.0").symlink_to(authority.ca_file)
    return {"SSL_CERT_FILE": str(file), "SSL_CERT_DIR": str(hashed)}


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):  # the one who hangs up first says no good-bye
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()
