"""Requests of every size and shape, made from the hub's own description of its routes.

Given the OpenAPI document, so that a new route is attacked without a change here. A request is
bytes on a connection: what it says, whether it ends, and how long it stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any
from urllib.parse import quote

import msgspec

from quarterdeck.protocol.command_table import TABLE

Json = dict[str, Any]

METHODS = ("get", "post", "put", "patch", "delete")
KILOBYTE = 1024
BODY_LIMIT = 32 * KILOBYTE * KILOBYTE
PROMPT_LIMIT = 24 * KILOBYTE * KILOBYTE
LIMITS = {"most bodies": 2 * KILOBYTE * KILOBYTE, "policies": 4 * KILOBYTE * KILOBYTE}
"""Of other bodies, by what they are."""
FRAME_LIMIT = 256 * KILOBYTE
ODD = "\u202e\u2066\x00\x1b]0;x\x07\ufeff\U000e0041é\u0301💥"
WORDS = "a;" * 8_000
STARS = "*a" * 4_000 + "b"
MARKDOWN = "[![](" * 12_000


class Route(msgspec.Struct, frozen=True):
    """A route of the API."""

    method: str
    path: str
    query: tuple[str, ...]
    schema: Json


class Attack(msgspec.Struct, frozen=True):
    """What is sent on a new connection."""

    name: str
    head: bytes
    body: bytes = b""
    pieces: int = 1
    """The body is sent in so many parts, one after a pause."""
    hangs: bool = False
    """The rest of the body never comes: the connection is closed after a while."""


def routes(document: Json) -> list[Route]:
    """All routes."""
    return [
        Route(
            method=method.upper(),
            path=path,
            query=tuple(
                each["name"] for each in found.get("parameters", ()) if each["in"] == "query"
            ),
            schema=_body_schema(document, found),
        )
        for path, methods in document["paths"].items()
        for method, found in methods.items()
        if method in METHODS
    ]


def attacks(route: Route, path: str, headers: bytes) -> Iterator[Attack]:
    """Everything for one route, at a path with its parameters filled in."""

    def request(
        name: str,
        target: str = path,
        body: bytes | None = None,
        kind: str = "application/json",
        length: int | None = None,
        pieces: int = 1,
    ) -> Attack:
        head = f"{route.method} {target} HTTP/1.1\r\n".encode() + headers
        if body is not None:
            declared = len(body) if length is None else length
            head += f"Content-Type: {kind}\r\nContent-Length: {declared}\r\n".encode()
        hangs = length is not None and length > len(body or b"")
        full = f"{route.method} {path}: {name}"
        return Attack(full, head + b"\r\n", body or b"", pieces=pieces, hangs=hangs)

    yield request("nothing")
    for name, query in _queries(route.query):
        yield request(f"query {name}", f"{path}?{query}")
    yield request("long path", path + "/" + "x" * 60_000)
    yield request("long path in a parameter", path.replace("01j", "%2e%2e%2f" * 3000))
    if route.method == "GET":
        yield request("body of a GET", body=b"x" * KILOBYTE)
        return
    for name, body in _all_bodies():
        yield request(name, body=body)
    for name, value in _values():
        yield request(f"members: {name}", body=_encode(_filled(route.schema, value)))
    yield request("not JSON", body=b"a=b&c=d", kind="application/x-www-form-urlencoded")
    yield request("slow", body=b'{"a": 1}' * 8, pieces=8)
    yield request("never ends", body=b'{"a":', length=KILOBYTE)
    yield request("cut off", body=b"[" * 64 * KILOBYTE, length=KILOBYTE * KILOBYTE)
    yield request("announced over the limit", body=b"x", length=BODY_LIMIT + 1)
    yield request("announced far over the limit", body=b"x", length=10**15)


def largest(route: Route, path: str, headers: bytes) -> Iterator[Attack]:
    """A body of exactly each limit, and one over all that does not say how long it is."""
    head = f"{route.method} {path} HTTP/1.1\r\n".encode() + headers
    head += b"Content-Type: application/json\r\n"
    for name, text in _at_limits().items():
        length = f"Content-Length: {len(text)}\r\n\r\n".encode()
        yield Attack(f"{route.method} {path}: at the limit of {name}", head + length, text)
    wide = _encode({name: [0] * (LIMITS["most bodies"] // 4) for name in list(route.schema)[:1]})
    length = f"Content-Length: {len(wide)}\r\n\r\n".encode()
    yield Attack(f"{route.method} {path}: a list at the limit", head + length, wide)
    chunked = b"Transfer-Encoding: chunked\r\n\r\n"
    yield Attack(f"{route.method} {path}: over the limit", head + chunked, _over_limits())


@cache
def _at_limits() -> dict[str, bytes]:
    """A body for each limit. Made once: to make them for each route takes longer than to send."""
    limits = {**LIMITS, "prompts": PROMPT_LIMIT, "files": BODY_LIMIT}
    return {name: b'{"text": "' + b"x" * (most - 12) + b'"}' for name, most in limits.items()}


@cache
def _over_limits() -> bytes:
    chunk = b"%x\r\n" % (1024 * KILOBYTE) + b" " * (1024 * KILOBYTE) + b"\r\n"
    return chunk * (BODY_LIMIT // (1024 * KILOBYTE) + 1) + b"0\r\n\r\n"


def heaviest(route: Route, path: str, headers: bytes) -> Iterator[Attack]:
    """What costs the most work, to be sent many times at once."""
    head = f"{route.method} {path}".encode()
    if route.method == "GET":
        query = "?q=a+*&format=html&by=session&limit=1000&text_limit=100000000&path=/"
        yield Attack(f"{path}: many", head + f"{query} HTTP/1.1\r\n".encode() + headers + b"\r\n")
        return
    for name in ("words", "patterns", "dots", "a policy"):
        body = _encode(_filled(route.schema, dict(_values())[name]) | {"tool": "Bash"})
        length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        start = head + b" HTTP/1.1\r\n" + headers + length.encode()
        yield Attack(f"{path}: many of {name}", start, body)


def frames() -> list[tuple[str, str | bytes | list[str]]]:
    """Messages for a WebSocket: whole ones, and one in very many parts."""
    follow = {"t": "follow", "id": "f", "sessions": {f"s{n}": 0 for n in range(20_000)}}
    order = {"t": "command", "id": "c", "command": {"type": "prompt.send", "text": WORDS}}
    return [
        ("empty", ""),
        ("one letter", "x"),
        ("bytes", b"\xff" * 64 * KILOBYTE),
        ("64 kB", "x" * 64 * KILOBYTE),
        ("deep", "[" * 100_000),
        ("deep objects", '{"t":' * 50_000),
        ("wide", _encode({"t": "follow", **{f"m{n}": n for n in range(50_000)}}).decode()),
        ("many sessions", _encode(follow).decode()),
        ("a command", _encode(order).decode()),
        ("a deep command", '{"t":"command","id":"c","command":' + "[" * 50_000),
        ("odd letters", _encode({"t": ODD, "id": ODD}).decode()),
        ("lone surrogates", '{"t":"\\ud800\\udfff","id":"\\udc00"}'),
        ("a large number", '{"t":"follow","id":1e400}'),
        ("many parts", ["x"] * 900),
        (
            "a wide line",
            _encode({"type": "control_request", "request_id": "r", **_wide()}).decode(),
        ),
        ("a wide request", _encode(_request(**_wide())).decode()),
        ("a wide answer", _encode({"type": "control_response", "response": _wide()}).decode()),
        ("many lines", '{"type":"keep_alive"}\n' * 1_000),
        ("many requests", (_encode(_request()).decode() + "\n") * 1_000),
        ("many prompts", '{"type":"user","message":{"role":"user","content":"x"}}\n' * 1_000),
        ("blocks", '{"type":"user","message":{"content":[' + "{}," * 80_000 + "{}]}}"),
        ("blanks at the limit", " " * FRAME_LIMIT),
        ("8 MB", "x" * 8 * KILOBYTE * KILOBYTE),
        ("over the limit", "x" * (BODY_LIMIT + 1)),
    ]


def command_frames(session: str) -> list[str]:
    """Every command of the stream, with odd and with large members, each as a frame of its own."""
    found = []
    for row in TABLE:
        tag = row.command.__struct_config__.tag
        names = [name for name in row.command.__struct_fields__ if name != "by"]
        for what, value in {"odd": ODD, "words": WORDS, "objects": {"a": [1, {}]}}.items():
            command = {"command": tag, **dict.fromkeys(names, value), "session": session}
            frame = {"t": "command", "id": f"{tag} {what}", "command": command}
            found.append(_encode(frame).decode("utf-8", "surrogatepass"))
    return found


def _wide() -> Json:
    return {f"m{number}": number for number in range(FRAME_LIMIT // 20)}


def _request(**more: object) -> Json:
    request = {"subtype": "set_model", "model": "x", **more}
    return {"type": "control_request", "request_id": "r", "request": request}


def _queries(known: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield "of many parameters", "&".join(f"p{n}={n}" for n in range(5_000))
    yield "of one name", "&".join(["limit=1"] * 6_000)
    yield "long", "x=" + "y" * 60_000
    yield "over the limit of a head", "x=" + "y" * 200_000
    yield "of percents", "%" * 3_000 + "&%zz=%ff%fe"
    values = {
        "negative": "-1",
        "huge": "9" * 4_000,
        "a float": "1e309",
        "odd": ODD,
        "patterns": '"*' * 4_000,
        "operators": "a AND NOT (" * 1_000,
        "words": "a " * 4_000,
        "a path": "/" + "../" * 2_000,
    }
    for name, value in values.items():
        for member in known:
            yield f"{member} {name}", f"{quote(member)}={quote(value)}"


@cache
def _all_bodies() -> tuple[tuple[str, bytes], ...]:
    return tuple(_bodies())


def _bodies() -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "1 byte", b"{"
    yield "64 kB of garbage", bytes(range(256)) * 256
    yield "64 kB of blanks", b" " * 64 * KILOBYTE
    yield "deep lists", b"[" * 200_000 + b"]" * 200_000
    yield "deep objects", b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    yield "wide object", _encode({f"member{n}": n for n in range(60_000)})
    yield "wide list", _encode(list(range(200_000)))
    yield "one member many times", b"{" + b",".join([b'"a":1'] * 100_000) + b"}"
    yield "long string", _encode("x" * KILOBYTE * KILOBYTE)
    yield "long name", _encode({"x" * KILOBYTE * KILOBYTE: 1})
    yield "large number", b'{"a": ' + b"9" * 100_000 + b"}"
    yield "escapes", b'{"a": "' + b"\\u0061" * 100_000 + b'"}'
    yield "lone surrogates", b'{"a": "\\ud800", "b": "\\udc00\\ud800"}'
    yield "not UTF-8", b'{"a": "\xc3\x28\xff\xfe"}'
    for word in (b"null", b"true", b"0", b'""', b"[]", b"{}", b"NaN", b"-Infinity"):
        yield f"the value {word.decode()}", word


def _values() -> Iterable[tuple[str, object]]:
    """Values for every member that a route knows."""
    return (
        ("null", None),
        ("numbers", -(2**70)),
        ("floats", 1e308),
        ("objects", {"a": {"b": [1, {}]}}),
        ("lists", [[]] * 5_000),
        ("odd letters", ODD),
        ("words", WORDS),
        ("patterns", STARS),
        ("Markdown", MARKDOWN),
        ("dots", "a" + ".a" * 100_000 + "=1"),
        ("a policy", f'[claude]\ndeny = ["Bash({"*a" * 40}b)"]\nallow = ["Bash({STARS[:400]})"]\n'),
        ("long", "x" * 1024 * KILOBYTE),
    )


def _filled(schema: Json, value: object) -> Json:
    """An object with all members of a schema, each with this value where that may be."""
    return {name: _like(member, value) for name, member in schema.items()}


def _like(member: Json, value: object) -> object:
    """The value in the shape that the member has: in a list, or as a choice where it is a word."""
    if "enum" in member:
        return member["enum"][0]
    if member.get("type") == "array":
        return [value] * 3
    return value


def _body_schema(document: Json, found: Json) -> Json:
    """The members of a route's body, by name."""
    content = found.get("requestBody", {}).get("content", {})
    first: Json = next(iter(content.values()), {})
    schema: Json = first.get("schema", {})
    reference = schema.get("$ref", "").rpartition("/")[2]
    resolved = document.get("components", {}).get("schemas", {}).get(reference, schema)
    members: Json = resolved.get("properties", {})
    return members


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
