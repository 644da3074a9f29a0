"""What never belongs into a log: tokens, keys, passwords, and the headers that carry them.

One pure function, for every log of ours. It goes by what secrets look like, so it is the last
fence and not the first: whoever logs should not hand one over at all.
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
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+"), f"eyJ{HIDDEN}"),
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
            r"(\w*(?:token|secret|password|passwd|api_?key|access_?key|credentials?))"
            r"(['\"]?\s*[:=]\s*['\"]?)[^\s'\",;)}]{4,}",
            re.IGNORECASE,
        ),
        rf"\1\2{HIDDEN}",
    ),
)


def redacted(text: str) -> str:
    """The text without anything that looks like a secret."""
    for look, instead in _LOOKS:
        text = look.sub(instead, text)
    return text
