"""The page of promises names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "guarantees.md"


def test_every_promise_has_tests_and_each_is_where_the_page_says() -> None:
    promises = re.split(r"^## \d\. ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert len(promises) == 9
    for promise in promises:
        named = re.findall(r"^- `(tests/\S+\.py)::(test_\w+)`$", promise, flags=re.MULTILINE)
        assert named, promise
        for path, name in named:
            assert f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"
