from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.push.encryption import (
    LONGEST_MESSAGE,
    RECORD_BYTES,
    HubKey,
    check_keys,
    decode,
    encode,
    seal,
)

P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"


def test_a_message_is_sealed_as_in_the_example_of_the_standard() -> None:
    number = int.from_bytes(decode("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big")
    sealed = seal(
        b"When I grow up, I want to be a watermelon",
        P256DH,
        AUTH,
        salt=decode("DGv6ra1nlYgDCS1FRnbzlw"),
        key=ec.derive_private_key(number, ec.SECP256R1()),
    )
    assert encode(sealed) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6T"
        "lzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4"
        "a-fN"
    )


def test_the_longest_message_fits_what_every_service_takes_and_a_longer_one_is_refused() -> None:
    assert len(seal(b"x" * LONGEST_MESSAGE, P256DH, AUTH)) == RECORD_BYTES
    with pytest.raises(UsageError, match="too long"):
        seal(b"x" * (LONGEST_MESSAGE + 1), P256DH, AUTH)


def test_the_same_message_is_never_sealed_twice_alike() -> None:
    assert seal(b"x", P256DH, AUTH) != seal(b"x", P256DH, AUTH)


@pytest.mark.parametrize(
    ("p256dh", "auth", "what"),
    [
        ("", AUTH, "p256dh"),
        ("no base 64!", AUTH, "p256dh"),
        (encode(b"\x04" + b"\x01" * 64), AUTH, "p256dh"),  # not on the curve
        (encode(b"\x03" + decode(P256DH)[1:33]), AUTH, "p256dh"),
        (P256DH, "", "auth"),
        (P256DH, "ü", "auth"),
        (P256DH, encode(b"x" * 15), "auth"),
    ],
)
def test_what_is_no_key_of_a_browser_is_refused(p256dh: str, auth: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        check_keys(p256dh, auth)


def test_a_key_is_read_back_and_has_the_form_that_browsers_take() -> None:
    pem = HubKey.new()
    public = HubKey(pem).public
    assert HubKey(pem).public == public
    assert len(decode(public)) == 65
    assert decode(public)[0] == 4
    with pytest.raises(ValueError, match="PEM"):
        HubKey(b"no key")
