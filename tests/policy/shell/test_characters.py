"""Characters that a person would not see, or would take for others."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.characters import why_odd


@pytest.mark.parametrize("text", ["", "git status", "a\tb\nc", "echo 'Grüße, 世界 🙂'", "x~!^`$"])
def test_characters_that_are_seen_as_they_are_make_no_doubt(text: str) -> None:
    assert why_odd(text) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("git\u00a0status", "U+00A0"),
        ("rm \u202ex", "U+202E"),
        ("a\x00b", "U+0000"),
        ("a\rb", "U+000D"),
        ("a\x7f", "U+007F"),
        ("a\u200bb", "U+200B"),
        ("a\ud800", "U+D800"),
        ("a\ue000", "U+E000"),
        ("ä\u2028", "U+2028"),
    ],
)
def test_characters_that_look_like_others_are_named(text: str, code: str) -> None:
    why = why_odd(text)
    assert why is not None
    assert code in why
