"""Tokens of the hub are masked in whatever readers get."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from quarterdeck.domain.secrets import mask_tokens, mask_tokens_in, redact
from quarterdeck.fronts.http import Access, Role


def token() -> str:
    return f"qd_{secrets.token_hex(6)}_{secrets.token_urlsafe(32)}"


@pytest.mark.parametrize(
    "text", ["{}", "a\n{}\nb", "Bearer {}", "http://127.0.0.1:1/login#{}", "x{}", '"{}"', "\t{}é"]
)
def test_a_token_is_masked_wherever_it_stands_and_json_stays_json(text: str) -> None:
    for _ in range(20):  # a secret may begin or end with - or _
        secret = token()
        said = {"text": text.format(secret)}
        for ascii_only in (True, False):
            data = json.dumps(said, ensure_ascii=ascii_only).encode()
            masked = mask_tokens_in(data)
            assert secret.split("_", 2)[2][:8].encode() not in masked
            assert json.loads(masked)["text"].startswith(text.partition("{")[0])
        assert "_redacted" in mask_tokens(text.format(secret))


def test_real_tokens_and_codes_have_this_form(tmp_path: Path) -> None:
    access = Access(tmp_path)
    for made in (access.make_token("me", Role.OWNER), access.make_code()):
        assert mask_tokens(made) == f"{made[:15]}_redacted"


@pytest.mark.parametrize(
    "text", ["", "qd_", "qd_x", "qd_0123456789ab", "qd_0123456789ab_short", "sqd_build_number"]
)
def test_what_is_no_token_is_left_as_it_is(text: str) -> None:
    data = text.encode()
    assert mask_tokens(text) == text
    assert mask_tokens_in(data) == data


def test_what_is_masked_stays_so() -> None:
    once = mask_tokens(token())
    assert mask_tokens(once) == once


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 500])
def test_a_token_is_found_behind_any_number_of_letters_that_it_begins_with(count: int) -> None:
    for between in (b"q", b"quick ", b"qd", b"qd-"):
        data = between * count + token().encode() + b" q"
        assert mask_tokens_in(data).startswith(between * count + b"qd_")
        assert b"_redacted" in mask_tokens_in(data)
        assert mask_tokens_in(between * count) == between * count


HOSTILE = (
    "x", "eyJ", "eyJ-", "-eyJ", "eyJaaaaaaaa.", "token", "token ", "token=", "://", "://a",
    "cookie ", "cookie:", "bearer ", "basic a", "sk-", "ghp_", "quarterdeck_a", "AKIA",
    "authorization: '", " ",
)  # fmt: skip


@pytest.mark.parametrize("word", HOSTILE)
def test_no_text_takes_more_than_its_length(word: str) -> None:
    """A pattern that takes the square of the length would take hours here."""
    text = word * (300_000 // len(word))
    assert len(redact(text)) <= len(text) + 2


@pytest.mark.parametrize("before", ["", " ", "jwt=", "Bearer-", "a-b-", '"'])
def test_a_signed_token_is_masked_behind_a_word_too(before: str) -> None:
    made = redact(f"{before}eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl end")
    assert made == f"{before}eyJ… end"


@pytest.mark.parametrize("name", ["token", "MY_TOKEN", "db_password", "apiKey", "api_key"])
def test_what_is_assigned_to_the_name_of_a_secret_is_masked(name: str) -> None:
    assert redact(f"{name}=hunter22 {name}: 'hunter22'") == f"{name}=… {name}: '…'"
