"""What of agents is shown, and how: secrets stay hidden wherever a text is cut. No network."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quarterdeck.fronts.telegram import display
from quarterdeck.fronts.telegram.commands.base import state_text
from quarterdeck.fronts.telegram.display import beginning, safe, safe_slices, safe_start
from quarterdeck.fronts.telegram.progress import TAIL, safe_tail
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import LastTurn
from support.acp_shapes import session

SECRETS = (
    "see https://ada:hunterhunter@example.org/x for it",
    "the token=hunterhunter is old",
    '{"password":"hunterhunter","other":"value"}',
    "password:\n    hunterhunter\nand more",
    "password\n=\n\nhunterhunter\nand more",
    "Authorization: Bearer hunterhunter\nand more",
    "Cookie: a=hunterhunter b=hunterhunter\nand more",
    "a key sk-hunterhunter of theirs",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_text_that_is_cut_anywhere_shows_no_part_of_a_secret(secret: str) -> None:
    text = f"some words, {secret}, and some more"
    assert "hunt" not in safe(text)
    for limit in range(len(text) + 1):
        start = beginning(text, limit)
        assert text.startswith(start)
        assert len(start) <= limit
        assert "hunt" not in safe(start), start


@pytest.mark.parametrize("secret", SECRETS)
def test_a_text_that_is_masked_in_slices_shows_no_part_of_a_secret(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"one line\nanother line\n{secret}\n\na paragraph\nthe last line"
    for size in range(1, len(text)):
        monkeypatch.setattr(display, "SLICE", size)
        assert safe_slices(text) == safe(text)
        assert "hunt" not in safe_slices(text)


def test_a_long_text_is_masked_in_many_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[int] = []

    def watched(text: str) -> str:
        masked.append(len(text))
        return safe(text)

    monkeypatch.setattr(display, "safe", watched)
    text = "A line of a long text.\n\nAnother one.\n" * 10_000
    assert safe_slices(text) == text
    assert max(masked) < 2 * display.SLICE
    assert sum(masked) == len(text)


def test_of_a_huge_text_only_the_beginning_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[int] = []

    def watched(text: str) -> str:
        masked.append(len(text))
        return text

    monkeypatch.setattr(display, "redact", watched)
    assert safe_start("word " * 1_000_000, 100) == ("word " * 20)
    assert sum(masked) <= 400
    assert safe_start("x" * 1_000_000, 100) == ""


def test_the_end_of_a_text_shows_no_part_of_a_secret_that_begins_before_it() -> None:
    for after in range(TAIL - 40, TAIL + 40):
        text = "word " * 400 + "Authorization: Bearer hunterhunter\n" + "x" * after
        assert "hunt" not in safe_tail(text)
        assert "unter" not in safe_tail(text)


def test_a_session_that_crashed_or_failed_says_so_in_red() -> None:
    turn = LastTurn(at=1, failed=True, outcome="", problem="authentication_failed")
    over = session(state=SessionState.ENDED, run=None, directory="/work")
    assert state_text(over) == "⚪ ended"
    assert state_text(replace(over, crashed=True)) == "🔴 crashed"
    assert state_text(replace(over, last_turn=turn)) == "🔴 needs login"
    assert state_text(replace(over, directory=None)) == "🔴 did not start"
    idle = session()
    assert state_text(idle) == "🟢 idle"
    assert state_text(replace(idle, last_turn=replace(turn, problem="x"))) == "🔴 failed"
    assert state_text(replace(idle, last_turn=replace(turn, problem="interrupted"))) == "🟢 idle"
