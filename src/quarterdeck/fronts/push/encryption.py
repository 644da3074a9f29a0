"""The cryptography of Web Push: encryption for the browser (RFC 8291), signature (RFC 8292).

Pure, except for randomness. A message is encrypted with keys that only the browser has; the request
is signed with the hub's own key, whose public half the browser got when it subscribed. It knows
neither files nor HTTP.
"""

from __future__ import annotations

import base64
import binascii
import os
import struct

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from quarterdeck.domain.errors import UsageError

AUTH_BYTES, SALT_BYTES = 16, 16
RECORD_BYTES = 4096
"""A message is one record; services need not accept more."""
LONGEST_MESSAGE = RECORD_BYTES - 86 - 17
"""Without the header before the record, and the tag and the delimiter at its end."""
SIGNED_SECONDS = 12 * 3600
"""A signature may be valid for a day at most, and clocks differ."""

_CURVE = ec.SECP256R1()


class HubKey:
    """The hub's own key. Raises `ValueError` for an invalid one."""

    def __init__(self, pem: bytes) -> None:
        key = load_pem_private_key(pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != _CURVE.name:
            raise ValueError("not a private key of P-256")
        self._key = key
        self.public = encode(_point(key.public_key()))
        """The public key, which browsers call the application server key."""

    @staticmethod
    def new() -> bytes:
        """A new key, in the form of the key file."""
        key = ec.generate_private_key(_CURVE)
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def authorization(self, origin: str, contact: str, now: float) -> str:
        """The header that identifies the sender; valid for one push service, by its origin."""
        claims = {"aud": origin, "exp": int(now) + SIGNED_SECONDS, "sub": contact}
        parts = ({"typ": "JWT", "alg": "ES256"}, claims)
        text = ".".join(encode(msgspec.json.encode(part)) for part in parts)
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        signature = encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
        return f"vapid t={text}.{signature}, k={self.public}"


def check_keys(p256dh: str, auth: str) -> None:
    """Raise `UsageError` unless these are valid keys of a browser."""
    try:
        _public(decode(p256dh))
    except ValueError:
        raise UsageError("p256dh: an uncompressed point of P-256 in base64 is required") from None
    try:
        right = len(decode(auth)) == AUTH_BYTES
    except ValueError:
        right = False
    if not right:
        raise UsageError(f"auth: {AUTH_BYTES} bytes in base64 are required")


def seal(
    message: bytes,
    p256dh: str,
    auth: str,
    *,
    salt: bytes | None = None,
    key: ec.EllipticCurvePrivateKey | None = None,
) -> bytes:
    """Encrypt a message for one browser. `salt` and `key` are random, except in tests."""
    if len(message) > LONGEST_MESSAGE:
        raise UsageError(f"a message of {len(message)} bytes is too long for a push")
    theirs, salt = decode(p256dh), salt or os.urandom(SALT_BYTES)
    key = key or ec.generate_private_key(_CURVE)
    ours = _point(key.public_key())
    shared = key.exchange(ec.ECDH(), _public(theirs))
    secret = _derive(decode(auth), shared, b"WebPush: info\0" + theirs + ours, 32)
    content_key = _derive(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(salt, secret, b"Content-Encoding: nonce\0", 12)
    head = salt + struct.pack("!LB", RECORD_BYTES, len(ours)) + ours
    # 2 marks the last record.
    return head + AESGCM(content_key).encrypt(nonce, message + b"\x02", None)


def encode(data: bytes) -> str:
    """Base64 in its URL-safe form."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Bytes from base64. Raises `ValueError`."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _public(point: bytes) -> ec.EllipticCurvePublicKey:
    if point[:1] != b"\x04":
        raise ValueError("not an uncompressed point")
    return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, point)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derive(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)
