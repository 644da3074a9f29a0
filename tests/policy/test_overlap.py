"""Patterns that overlap: held against all short names, so that none is missed."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.policy.overlap import names_overlap, overlap
from support.examples import examples

NAMES = ["".join(letters) for size in range(5) for letters in product(".ab", repeat=size)]
patterns = st.lists(st.sampled_from([".", "a", "b", "*", "?", "[ab]"]), max_size=5).map("".join)


@settings(max_examples=examples(400))
@given(patterns, patterns)
def test_two_names_overlap_if_one_name_fits_both(rule: str, name: str) -> None:
    fitting = [each for each in NAMES if fnmatchcase(each, rule) and fnmatchcase(each, name)]
    if fitting:
        assert names_overlap(rule, name, True)
    if any(not each.startswith(".") for each in fitting if each):
        assert names_overlap(rule, name, False)


@pytest.mark.parametrize(
    ("rule", "reach", "hidden", "expected"),
    [
        ("**/.env", "*.md", False, False),
        ("**/.env", "*", False, False),
        ("**/.env", "*", True, True),
        ("**/.env", ".e*", False, True),
        ("**/.env", "src/.e?v", False, True),
        ("**/.env", "src/**/.env", False, True),
        ("**/.env", "**", False, False),
        ("**/.env", "**", True, True),
        ("secret", "*/key", False, True),
        ("secret", "s*/**/key", False, True),
        ("secret", "src/*", False, False),
        ("a/**/b", "a/d/c", False, False),
        ("a/**/b", "a/*/?", False, True),
        ("a/**/b", "a/b/c", False, True),
        ("a/b/c", "a/*", False, False),
        ("a", "a/*", False, True),
    ],
)
def test_paths_overlap_name_by_name(rule: str, reach: str, hidden: bool, expected: bool) -> None:
    assert overlap(rule.split("/"), reach.split("/"), hidden=hidden) is expected


def test_what_takes_long_to_work_out_may_overlap() -> None:
    assert names_overlap("*a" * 200, "*b" * 200, True)
    assert overlap(["**", "a"] * 100, ["b"] * 100, hidden=True)
