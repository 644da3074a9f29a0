"""JSON of the API is compressed for whoever accepts it, and nothing else is."""

from __future__ import annotations

import gzip

import anyio
import pytest

from quarterdeck.fronts.http.asgi import Message, Scope
from quarterdeck.fronts.http.compression import AT_ONCE, IN_THREAD, Packer, compress_send
from support.front import Front

pytestmark = pytest.mark.anyio


def scope_of(accepts: str | None, method: str = "GET") -> Scope:
    headers = [] if accepts is None else [(b"accept-encoding", accepts.encode())]
    return {"type": "http", "method": method, "headers": headers}


async def sent(
    accepts: str | None, kind: bytes, *bodies: bytes
) -> tuple[dict[bytes, bytes], bytes]:
    """The headers and the body that a client gets."""
    messages: list[Message] = []

    async def keep(message: Message) -> None:
        messages.append(message)

    send = compress_send(scope_of(accepts), keep, Packer())
    size = str(sum(map(len, bodies))).encode()
    headers = [(b"content-type", kind), (b"content-length", size)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for place, body in enumerate(bodies, 1):
        more = place < len(bodies)
        await send({"type": "http.response.body", "body": body, "more_body": more})
    return dict(messages[0]["headers"]), b"".join(one["body"] for one in messages[1:])


@pytest.mark.parametrize("accepts", ["gzip", "br, GZIP;q=0.5", "deflate,gzip , *"])
@pytest.mark.parametrize("size", [1024, IN_THREAD + 1], ids=["small", "large"])
async def test_json_is_compressed(accepts: str, size: int) -> None:
    body = b"a" * size
    headers, got = await sent(accepts, b"application/json", body)
    assert headers[b"content-encoding"] == b"gzip"
    assert headers[b"content-length"] == str(len(got)).encode()
    assert headers[b"vary"] == b"accept-encoding"
    assert gzip.decompress(got) == body
    assert len(got) < size / 5


@pytest.mark.parametrize("accepts", [None, "", "br", "gzip;q=0", "gzip; q=0.0"])
async def test_who_does_not_accept_it_gets_it_plain(accepts: str | None) -> None:
    headers, got = await sent(accepts, b"application/json", b"a" * 5000)
    assert (b"content-encoding" in headers, got) == (False, b"a" * 5000)


async def test_small_answers_streams_and_other_kinds_pass_as_they_are() -> None:
    for kind, *bodies in (
        (b"application/json", b"a" * 1023),
        (b"application/json", b"a" * 5000, b"b" * 5000),
        (b"text/event-stream", b"a" * 5000),
        (b"image/png", b"a" * 5000),
        (b"application/json", b""),
    ):
        headers, got = await sent("gzip", kind, *bodies)
        assert (b"content-encoding" in headers, got) == (False, b"".join(bodies))


async def test_while_enough_are_compressed_a_further_answer_is_sent_as_it_is() -> None:
    packer = Packer()
    packed: list[bytes | None] = []

    async def pack() -> None:
        packed.append(await packer.pack(b"a" * 4_000_000))

    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE + 3):
            tasks.start_soon(pack)
    assert packed.count(None) == 3
    assert await packer.pack(b"a" * (IN_THREAD + 1)) is not None, "they are free again"


async def test_the_api_compresses_what_is_long(hub: Front) -> None:
    for _ in range(8):
        await hub.deck.have_session()
    async with hub.client() as client:
        answer = await client.get("/api/sessions", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert len(answer.json()["sessions"]) == 8
        assert "content-security-policy" in answer.headers
        assert answer.headers["cache-control"] == "no-store"
        plain = await client.get("/api/sessions", headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.json() == answer.json()
