"""What «always» means, in words."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.cli.terminal.permission_text import in_words
from quarterdeck.wire.permissions import suggestions


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {
                "type": "addRules",
                "rules": [{"toolName": "Bash", "ruleContent": "git status:*"}],
                "behavior": "allow",
                "destination": "localSettings",
            },
            "allow Bash(git status:*) in this project, for you (.claude/settings.local.json)",
        ),
        (
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
            "accept all file edits for this session",
        ),
        (
            {"type": "setMode", "mode": "plan", "destination": "session"},
            "switch to the mode plan for this session",
        ),
        (
            {"type": "addDirectories", "directories": ["/etc"], "destination": "userSettings"},
            "let it work in /etc everywhere, for you (~/.claude/settings.json)",
        ),
        (
            {
                "type": "removeRules",
                "rules": [{"toolName": "Read"}],
                "behavior": "deny",
                "destination": "session",
            },
            "remove the rule Read for this session",
        ),
        ({"type": "hum\x1b[2J"}, "a change of a kind unknown here: hum\ufffd[2J"),
        (
            {"type": "setMode", "mode": "new\x1bmode", "destination": "nowhere"},
            "switch to the mode new\ufffdmode in nowhere",
        ),
    ],
)
def test_a_suggestion_is_told_in_words(change: object, words: str) -> None:
    assert in_words(suggestions((Raw(msgspec.json.encode(change)),))) == [words]
