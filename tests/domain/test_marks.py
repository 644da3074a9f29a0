"""What a person would not see is marked, in the terminal as in the browser."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.domain.look_alikes import LETTERS, SIGNS
from quarterdeck.domain.marks import MARKED, mark_characters, mark_invisible, replace_invisible

GOLDEN = json.loads((Path(__file__).parent.parent / "fixtures" / "marks.json").read_text())


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_a_text_is_shown_as_the_browser_shows_it(case: dict[str, Any]) -> None:
    assert mark_invisible(case["text"], code=case.get("code", False)) == case["shown"]


def test_the_look_alikes_are_those_of_the_browser() -> None:
    for table, golden in ((LETTERS, "letters"), (SIGNS, "signs")):
        found = {one: [f"{ord(each):04X}" for each in others] for one, others in table.items()}
        assert found == GOLDEN["look_alikes"][golden]


def test_a_long_word_of_look_alikes_takes_little_time() -> None:
    word = "\u0430" * 200_000
    assert mark_invisible(word) == word
    assert len(mark_invisible(word, code=True)) == 200_000 * len("⟨U+0430⟩")


def test_a_long_text_is_marked_character_by_character_and_its_blanks_stay() -> None:
    blanks = f"a{' ' * 400}b{chr(10) * 80}c"
    assert mark_characters(f"{blanks}\x1b\u202e👩\u200d💻") == f"{blanks}⟨U+001B⟩⟨U+202E⟩👩\u200d💻"
    many = mark_characters("\u202e" * 100_000 + "end", most=2)
    assert many == "⟨U+202E⟩⟨U+202E⟩" + "⟨?⟩" * 99_998 + "end"


def test_the_table_is_the_one_that_the_browser_has() -> None:
    assert [[f"{first:04X}", f"{last:04X}"] for first, last in MARKED] == GOLDEN["marked"]


@pytest.mark.parametrize("category", ["Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"])
@pytest.mark.no_cover
def test_every_character_of_a_category_that_is_not_seen_is_marked(category: str) -> None:
    covered = {code for first, last in MARKED for code in range(first, last + 1)}
    wanted = {code for code in range(0x110000) if unicodedata.category(chr(code)) == category}
    assert wanted - {ord(" "), ord("\n"), ord("\t")} <= covered
    last = max(wanted)
    assert mark_invisible(f"a{chr(last)}b") == f"a⟨U+{last:04X}⟩b"
    assert replace_invisible(f"a{chr(last)}b", "?") == "a?b"
    assert replace_invisible(f"a{chr(last)}b", "?", keep=chr(last)) == f"a{chr(last)}b"


@given(st.text(st.characters(exclude_categories=[])))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    for shown in (mark_invisible(text), mark_characters(text), mark_characters(text, most=1)):
        left = {unicodedata.category(each) for each in shown if each not in "\n\t"}
        assert not left & {"Cc", "Cs", "Zl", "Zp", "Co"}
        assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(st.text(st.sampled_from("a \t\n\u200b\u200d\ufe0f😀"), max_size=300))
def test_no_run_of_blanks_or_empty_lines_hides_what_follows(text: str) -> None:
    found = mark_invisible(text)
    assert "\n" * 6 not in found
    assert all(len(line) - len(line.lstrip(" \t")) <= 80 for line in found.split("\n"))
    assert all(" " * 21 not in line.lstrip(" \t") for line in found.split("\n"))
