"""How a device comes to trust the hub's own certificate authority: pages, and a QR code.

A device that does not trust the authority yet cannot load a page of the hub without a warning. So a
second port serves the certificate over plain HTTP: the certificate and how to install it, and
nothing else. An attacker on the way could replace both. The fingerprint shows that, and is
therefore never on the page without TLS: people compare with the hub's terminal, or with a page over
TLS.
"""

from __future__ import annotations

import html
import io
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import segno

from quarterdeck.domain.errors import LinkRefused
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.asgi import ASGIApp, Receive, Scope, Send, path_of, respond
from quarterdeck.runtime.connection_limits import ConnectionLimits
from quarterdeck.runtime.web_server import bind, run_server, server_config

CA_TYPE = "application/x-x509-ca-cert"
"""Phones offer to install what has this type."""
HTML, CSS = "text/html", "text/css"
CA_PATH, TRUST_PATH = "/ca.crt", "/trust"
PLAIN_LIMITS = ConnectionLimits(connections=64, header_seconds=10.0)
PONG_SECONDS = 10.0
_ASSETS = Path(__file__).parent / "assets"
_SAFE = (
    (b"content-security-policy", b"default-src 'none'; style-src 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Trust(Value):
    """A certificate authority, and where its certificate is to be had."""

    certificate: bytes
    """As PEM."""
    title: str
    fingerprint: str
    address: str | None = None
    """The page without TLS, as `http://192.168.1.20:8766/`; None where no device could reach it."""

    def pages(self) -> dict[str, tuple[bytes, str]]:
        """Pages of the hub itself, by path: content and type. TLS protects them."""
        fetch = f'<p><a href="{CA_PATH}">The certificate</a> ({html.escape(self.title)})</p>'
        if self.address is not None:
            link = html.escape(self.address)
            code = segno.make(self.address, micro=False).svg_inline(scale=5, border=4, light="#fff")
            fetch += f'<p>For another device: <a href="{link}">{link}</a></p><p>{code}</p>'
        check = f"<p>Its SHA-256 fingerprint: <code>{html.escape(self.fingerprint)}</code></p>"
        return {
            TRUST_PATH: (_page(fetch, check), HTML),
            CA_PATH: (self.certificate, CA_TYPE),
        }


def terminal_code(address: str) -> str:
    """A QR code made of letters, for a terminal."""
    out = io.StringIO()
    segno.make(address, micro=False).terminal(out, border=2, compact=True)
    return out.getvalue()


@asynccontextmanager
async def serve_trust(certificate: bytes, host: str, port: int) -> AsyncIterator[int]:
    """Serve the certificate over plain HTTP while the block runs; gives the port.

    A port that is taken is replaced by a free one.
    """
    try:
        listener = bind(host, port)
    except LinkRefused:
        listener = bind(host, 0)
    config = server_config(_plain_app(certificate), pong_seconds=PONG_SECONDS, limits=PLAIN_LIMITS)
    async with run_server(config, listener):
        yield listener.getsockname()[1]


def _plain_app(certificate: bytes) -> ASGIApp:
    fetch = f'<p><a href="{CA_PATH}">Download the certificate</a></p>'
    check = (
        "<p><strong>This page came without encryption: someone on the way could have replaced the"
        " certificate.</strong> Before you trust it, compare its SHA-256 fingerprint with the one"
        " that <code>quarterdeck doctor</code> shows on the hub's machine.</p>"
    )
    pages: Mapping[str, tuple[bytes, str]] = {
        "/": (_page(fetch, check), HTML),
        CA_PATH: (certificate, CA_TYPE),
        "/plain.css": ((_ASSETS / "plain.css").read_bytes(), CSS),
    }

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})
            return
        body, kind = pages.get(path_of(scope), (b"Not found\n", "text/plain"))
        status = 200 if path_of(scope) in pages else 404
        if scope["method"] not in {"GET", "HEAD"}:
            status, body, kind = 405, b"Only GET is allowed\n", "text/plain"
        charset = "; charset=utf-8" if kind.startswith("text/") else ""
        await respond(send, status, body, kind + charset, _SAFE)

    return app


def _page(fetch: str, check: str) -> bytes:
    text = (_ASSETS / "trust.html").read_text(encoding="utf-8")
    return text.replace("<!--fetch-->", fetch).replace("<!--check-->", check).encode()
