"""What a browser gets besides the API: the web app if it was built, the login, the API's docs.

Every file is read once, at the start, and found by its whole path: there is no way out of the
folder. The document of the API takes as long to make as all else of a start, and few ask for it: it
is made at the first request. Nothing here is secret, and nothing is loaded from anywhere else.
Above is the app.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec.structs import replace

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.asgi import Scope, Send, header_of, path_of, respond
from quarterdeck.fronts.http.page_policy import policy_for
from quarterdeck.fronts.http.problems import MEDIA_TYPE, encode
from quarterdeck.protocol.problems import problem

_OWN = Path(__file__).parent / "assets"
_BUILT = Path(__file__).parent / "deck"
_OWN_PATHS = {
    "/login": "login.html",
    "/login.js": "login.js",
    "/docs": "docs.html",
    "/docs.js": "docs.js",
    "/home.js": "home.js",
    "/plain.css": "plain.css",
    "/icon.svg": "icon.svg",
}

OPENAPI = "/openapi.json"
_FOREVER = b"public, max-age=31536000, immutable"
_CHECK = b"no-cache"
_WORTH_PACKING = 1024
_DIAGRAMS = "/diagram/"
"""The page that draws the diagrams of agents' texts, and its scripts."""
# Without an origin: what is drawn can reach neither the web app nor the hub. The drawing program
# sets styles; scripts come from here only, and nothing is loaded from elsewhere.
_FRAME_POLICY = (
    b"sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline';"
    b" img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_FRAMED = (
    (b"content-security-policy", _FRAME_POLICY),
    (b"x-frame-options", b"SAMEORIGIN"),
    # A page without an origin is another site to the browser.
    (b"cross-origin-resource-policy", b"cross-origin"),
)


def built_web() -> Path | None:
    """The folder of the web app; None where it was not built."""
    return _BUILT if (_BUILT / "index.html").is_file() else None


class Page(Value):
    """A file to serve."""

    body: bytes
    content_type: str
    etag: str
    cache: bytes = _CHECK
    packed: bool = False
    framed: bool = False
    """It draws diagrams, in a frame of the web app that has no origin."""
    policy: str | None = None
    """Its own content security policy: it has a script in it."""

    @property
    def is_text(self) -> bool:
        """Whether it gets much smaller when it is packed."""
        kind = self.content_type
        text = kind.startswith("text/") or "json" in kind or "xml" in kind
        return text and len(self.body) >= _WORTH_PACKING

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Its headers."""
        packing = ((b"content-encoding", b"gzip"),) if self.packed else ()
        return (
            (b"etag", self.etag.encode()),
            (b"cache-control", self.cache),
            (b"vary", b"accept-encoding"),
            *packing,
            *(_FRAMED if self.framed else ()),
            *(((b"content-security-policy", self.policy.encode()),) if self.policy else ()),
        )


class Pages:
    """The ASGI app for everything that is not the API."""

    def __init__(
        self,
        make_openapi: Callable[[], bytes],
        static: Path | None = None,
        more: Mapping[str, tuple[bytes, str]] | None = None,
    ) -> None:
        self._pages = {path: _read(_OWN / name) for path, name in _OWN_PATHS.items()}
        self._make_openapi = make_openapi
        self._openapi_lock = anyio.Lock()
        self._pages["/"] = _read(_OWN / "home.html")
        self._hub: Page | None = None
        if static is not None:
            self._take(static)
        for path, (body, kind) in (more or {}).items():
            self._pages[path] = _page(body, kind)

    async def __call__(self, scope: Scope, send: Send) -> None:
        """Answer one request."""
        method, path = scope["method"], path_of(scope)
        if path == OPENAPI:
            await self._have_openapi()
        page = self._find(path)
        if page is None:
            await _problem(send, "not_found", f"there is nothing at {path[:200]!r}")
        elif method not in {"GET", "HEAD"}:
            allow = ((b"allow", b"GET, HEAD"),)
            await _problem(send, "method_not_allowed", "only GET is allowed", allow)
        else:
            if page.is_text and "gzip" in (header_of(scope, b"accept-encoding") or ""):
                page = _compress_page(page)
            if header_of(scope, b"if-none-match") == page.etag:
                await respond(send, 304, b"", page.content_type, page.headers)
            else:
                await respond(send, 200, page.body, page.content_type, page.headers)

    async def _have_openapi(self) -> None:
        """Make the document, once, while others are served."""
        async with self._openapi_lock:
            if OPENAPI not in self._pages:
                made = await anyio.to_thread.run_sync(self._make_openapi)
                self._pages[OPENAPI] = _page(made, "application/json")

    def _find(self, path: str) -> Page | None:
        found = self._pages.get(path)
        if found is None and self._hub is not None and "." not in path.rpartition("/")[2]:
            return self._hub  # paths of the web app, which it knows itself
        return found

    def _take(self, static: Path) -> None:
        for file in sorted(static.rglob("*")):
            if file.is_file():
                path = "/" + file.relative_to(static).as_posix()
                # A build names its assets by their contents.
                cache = _FOREVER if path.startswith("/assets/") else _CHECK
                framed = path.startswith(_DIAGRAMS)
                self._pages[path] = replace(_read(file, cache), framed=framed)
        found = self._pages.get("/index.html")
        if found is not None:
            self._hub = replace(found, policy=policy_for(found.body))
            self._pages["/"] = self._pages["/index.html"] = self._hub


def _read(file: Path, cache: bytes = _CHECK) -> Page:
    kind, _ = mimetypes.guess_type(file.name)
    return _page(file.read_bytes(), kind or "application/octet-stream", cache)


def _page(body: bytes, kind: str, cache: bytes = _CHECK) -> Page:
    if kind.startswith("text/") or kind in {"application/json", "application/javascript"}:
        kind += "; charset=utf-8" if kind != "application/json" else ""
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Page(body=body, content_type=kind, etag=etag, cache=cache)


@lru_cache(maxsize=256)
def _compress_page(page: Page) -> Page:
    """The same in a third of its size. It is made when it is first asked for, and kept."""
    return replace(
        page, body=gzip.compress(page.body, mtime=0), etag=f'{page.etag[:-1]}-gzip"', packed=True
    )


async def _problem(
    send: Send, code: str, detail: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    found = problem(code, detail)
    await respond(send, found.status, encode(found), MEDIA_TYPE, headers)
