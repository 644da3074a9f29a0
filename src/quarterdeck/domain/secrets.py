"""Masks for tokens, keys, passwords, and the headers that carry them.

`redact` is for every log. It recognises secrets by their form, so it is the last line of defence:
code should not log a secret in the first place. Agents and strangers write what it reads, so each
pattern takes time in proportion to the text.

`mask_tokens` is for everything that readers get. It masks tokens of the hub only, and keeps the
rest of an agent's output as it is.
"""

from __future__ import annotations

import re

HIDDEN = "…"

_LOOKS = (
    # Ours say which grant they are for, and that may be read.
    (re.compile(r"\bqd_([0-9a-f]{12})_[\w-]{8,}"), rf"qd_\1_{HIDDEN}"),
    (re.compile(r"\b(quarterdeck_[0-9a-f]+=)[^\s;,'\"]+"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(bearer|basic) +[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(r"\bsk-[\w-]{8,}"), f"sk-{HIDDEN}"),
    (re.compile(r"\b(gh[pousr]|github_pat|glpat|xox[abpsr])([_-])[\w-]{10,}"), rf"\1\2{HIDDEN}"),
    (re.compile(r"\bAKIA[0-9A-Z]{16}\b"), f"AKIA{HIDDEN}"),
    (
        # A try at each `eyJ` of a long word would take the square of its length.
        re.compile(r"(?<![\w-])((?:[\w-]{0,64}?-)?)eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]++"),
        rf"\1eyJ{HIDDEN}",
    ),
    (re.compile(r"(://)[^/\s@]+@"), rf"\1{HIDDEN}@"),
    (
        re.compile(
            r"\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key)(['\"]?\s*[:=,]\s*b?['\"]?)"
            r"[^\s'\"][^'\"\n]*",
            re.IGNORECASE,
        ),
        rf"\1\2{HIDDEN}",
    ),
    (
        re.compile(
            r"((?:token|secret|password|passwd|api_?key|access_?key|credentials?))"
            r"(['\"]?\s*[:=]\s*['\"]?)[^\s'\",;)}]{4,}",
            re.IGNORECASE,
        ),
        rf"\1\2{HIDDEN}",
    ),
)


_OURS = re.compile(r"qd_([0-9a-f]{12})_[A-Za-z0-9_-]{8,}")
"""The character before a token does not matter: in JSON it may be the letter of an escape."""
_OURS_BYTES = re.compile(_OURS.pattern.encode())
_START = re.compile(rb"qd_")
_TRIES = 64


def mask_tokens(text: str) -> str:
    """The text with tokens of the hub masked; which grant each is for may be read."""
    return _OURS.sub(r"qd_\1_redacted", text) if "qd_" in text else text


def mask_tokens_in(data: bytes) -> bytes:
    """The same for bytes. JSON stays JSON: a token and its mask have no letter to be escaped."""
    return _OURS_BYTES.sub(rb"qd_\1_redacted", data) if _may_have_token(data) else data


def _may_have_token(data: bytes) -> bool:
    """Whether `qd_` is in it. Every line of every agent is looked at, so this must cost little.

    A single letter is found some fifty times faster than several, and `q` is rare in most texts. In
    those where it is common, the ordinary search continues.
    """
    at = data.find(b"q")
    for _ in range(_TRIES):
        if at < 0:
            return False
        if data[at : at + 3] == b"qd_":
            return True
        at = data.find(b"q", at + 1)
    return at >= 0 and _START.search(data, at) is not None


def redact(text: str) -> str:
    """The text without anything that looks like a secret."""
    for look, instead in _LOOKS:
        text = look.sub(instead, text)
    return text
