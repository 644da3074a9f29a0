"""Each test that the table of the review names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "browser" / "README.md"


def test_every_test_that_the_table_names_is_there() -> None:
    text = TABLE.read_text()
    named = re.findall(r"`([\w/]+(?:\.test)?\.(?:py|tsx?))(?:::(\w+))?`", text)
    assert len(named) > 50
    missing = []
    for path, test in named:
        file = ROOT / path if "/" in path else TABLE.parent / path
        if not file.is_file() or (test and f"def {test}(" not in file.read_text()):
            missing.append((path, test))
    assert not missing
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    assert numbers == list(range(1, 31))
