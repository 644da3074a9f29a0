"""The table of attacks is complete, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).parent / "README.md"
IDS = [
    *(f"H{number}" for number in range(1, 8)),
    *(f"M{number}" for number in range(1, 14)),
    *(f"L{number}" for number in range(1, 12)),
]
ROW = re.compile(r"^\| ([HML]\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
IN_THE_BROWSER = {"L10", "L11", "M9"}
"""Attacks on the web app alone: the name of its tests has no id."""


def rows() -> dict[str, list[str]]:
    return {
        found[1]: re.findall(r"`([^`]+)`", found[3]) for found in ROW.finditer(TABLE.read_text())
    }


def test_every_attack_has_a_row() -> None:
    assert list(rows()) == IDS


def test_every_test_of_the_table_exists() -> None:
    for tests in rows().values():
        assert tests
        for test in tests:
            path, _, name = test.partition("::")
            text = (ROOT / path).read_text()
            known = f"def {name}(" if path.endswith(".py") else f'"{name}"'
            assert known in text, test


def test_a_test_is_named_after_each_attack() -> None:
    named = {
        found[1].upper()
        for file in (ROOT / "tests").rglob("test_*.py")
        for found in re.finditer(
            r"^ *(?:async )?def test_([hml]\d+)_", file.read_text(), re.MULTILINE
        )
    }
    assert set(IDS) - named == IN_THE_BROWSER
    assert named <= set(IDS)
