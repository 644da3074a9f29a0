"""The two walks of the page about the architecture are short, and name code that is there."""

from __future__ import annotations

import pkgutil
import re

import pytest

from support.clis import PROJECT
from support.pages import page

TEXT = page("docs/explanation/architecture.md").text
WALKS = {"A prompt, step by step": 32, "A permission request, step by step": 24}
"""The headings, and how many steps each may have."""


def steps_of(heading: str) -> list[str]:
    """The numbered steps below a heading."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. .*(?:\n   .*)*", section, re.MULTILINE)


@pytest.mark.parametrize(("heading", "most"), WALKS.items())
def test_a_walk_has_few_steps_in_order(heading: str, most: int) -> None:
    numbers = [int(step.partition(".")[0]) for step in steps_of(heading)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 12 <= len(numbers) <= most


@pytest.mark.parametrize("heading", WALKS)
def test_every_step_of_a_walk_names_code_that_is_there(heading: str) -> None:
    missing = []
    for step in steps_of(heading):
        names = re.findall(r"`(web/[\w/]+\.\w+|\w+(?:\.\w+){2,})`", step)
        if not names and ". The CLI " not in step:
            missing.append(step)
        missing += [name for name in names if not exists(name)]
    assert missing == []


def exists(name: str) -> bool:
    """Whether there is such a file of the web app, or such a name below `quarterdeck`."""
    if name.startswith("web/"):
        return (PROJECT / name).is_file()
    try:
        pkgutil.resolve_name(f"quarterdeck.{name}")
    except (ImportError, AttributeError):
        return False
    return True
