"""A browser's push service on loopback: a real HTTP server, and the browser's end of the keys.

It opens messages as a browser does, with its own reading of RFC 8291 and RFC 8292: nothing of the
code under test is used.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import AsyncIterator
from typing import TypedDict
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from support.receiver import OK, Delivery, Json, Receiver, receiving


class Keys(TypedDict):
    """The keys of a browser."""

    p256dh: str
    auth: str


class PushService:
    """One subscription of one browser, and what came for it."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = os.urandom(16)

    @property
    def endpoint(self) -> str:
        return self.receiver.url

    @property
    def keys(self) -> Keys:
        """What the browser gives out."""
        return {"p256dh": _encode(self._point), "auth": _encode(self._auth)}

    @property
    def _point(self) -> bytes:
        public = self._key.public_key()
        return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    async def until(self, count: int) -> list[Json]:
        """Wait for that many messages, and give all that came, opened."""
        return [self.open(each) for each in await self.receiver.until(count)]

    def open(self, delivery: Delivery) -> Json:
        """A message as the browser's worker gets it."""
        body = delivery.body
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        theirs, sealed = body[21 : 21 + length], body[21 + length :]
        assert len(body) <= 4096
        assert len(sealed) <= size
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs)
        shared = self._key.exchange(ec.ECDH(), public)
        info = b"WebPush: info\0" + self._point + theirs
        secret = _derive(self._auth, shared, info, 32)
        key = _derive(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derive(salt, secret, b"Content-Encoding: nonce\0", 12)
        opened = AESGCM(key).decrypt(nonce, sealed, None)
        text, mark, padding = opened.rpartition(b"\x02")
        assert mark
        assert not padding.strip(b"\0")
        return msgspec.json.decode(text, type=Json)

    def claims(self, delivery: Delivery, public_key: str) -> Json:
        """What the sender says of itself; raises unless it is signed with this key."""
        scheme, _, rest = delivery.headers["authorization"].partition(" ")
        assert scheme == "vapid"
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        assert parts["k"] == public_key
        head, body, signature = parts["t"].split(".")
        assert msgspec.json.decode(_decode(head)) == {"typ": "JWT", "alg": "ES256"}
        raw = _decode(signature)
        assert len(raw) == 64
        r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _decode(public_key))
        signed = f"{head}.{body}".encode()
        key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
        return msgspec.json.decode(_decode(body), type=Json)

    @property
    def origin(self) -> str:
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.netloc}"


@contextlib.asynccontextmanager
async def push_service(
    *answers: bytes | str, usual: bytes | str = OK
) -> AsyncIterator[PushService]:
    """A service with one subscription, while the block runs; it answers as a `Receiver` does."""
    async with receiving(*answers, usual=usual) as receiver:
        yield PushService(receiver)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _derive(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)
