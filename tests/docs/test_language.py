"""Plain technical English: no phrase of the old dialect and no old name is left in a page.

The check reads prose only. Fenced blocks show what programs print, and code spans quote names of
the code and of its protocols, which have their own tests.
"""

from __future__ import annotations

import re

import pytest

from support.clis import PROJECT
from support.pages import Page, all_pages, page

PAGES = [each for each in all_pages() if each.name != "CHANGELOG.md"]
GENERATED = {
    "docs/reference/compatibility.md",
    "docs/reference/session-transitions.md",
    "docs/reference/states.md",
}
"""Their rows are made from the tests of real CLIs, and from the table in `wire.states`."""

PHRASES = {
    "amiss": "say what is wrong",
    "anew": "again",
    "dialled": "connected",
    "dials": "connects",
    "for good": "permanently",
    "go on": "continue",
    "goes on": "continues",
    "gone on": "continued",
    "(?<!there )(?:is|are) none": "does not exist; is not",
    "is told": "gets; learns",
    "put away": "archived",
    "said of": "reported about",
    "somebody": "a person; someone",
    "stands in": "is in",
    "takes back": "withdraws; revokes",
    "twice is once": "idempotent",
    "what became of": "the result of",
    "whoever": "the person who; a program that",
}
"""Regular expressions for what readers stumbled over, and what to say instead."""

OLD_NAMES = (
    "Deck",
    "Dialled",
    "Elsewhere",
    "Errand",
    "Everywhere",
    "Guard",
    "Happening",
    "Heard",
    "Judge",
    "Judgement",
    "Orders",
    "Passage",
    "Past",
    "Patience",
    "PolicyDesk",
    "Seat",
    "Spill",
    "Standing",
    "Stranger",
    "Telling",
    "Told",
    "Voices",
    "Workshop",
)
"""Names of classes that have others now. `docs/explanation/glossary.md` has the terms."""

_CODE = re.compile(r"`[^`\n]*`")
_TARGET = re.compile(r"\]\([^)]*\)")


def prose(subject: Page) -> str:
    """What a person reads as text, without code and without the targets of links."""
    return _TARGET.sub("]", _CODE.sub("", subject.prose))


def by_name(subject: Page) -> str:
    return subject.name


@pytest.mark.parametrize("subject", PAGES, ids=by_name)
def test_no_phrase_of_the_old_dialect_is_left(subject: Page) -> None:
    if subject.name in GENERATED:
        return
    text = " ".join(prose(subject).split())
    found = {phrase: say for phrase, say in PHRASES.items() if re.search(rf"\b{phrase}\b", text)}
    assert found == {}


@pytest.mark.parametrize("subject", PAGES, ids=by_name)
def test_no_old_name_of_a_class_is_left(subject: Page) -> None:
    spans = " ".join(_CODE.findall(subject.prose))
    assert [name for name in OLD_NAMES if re.search(rf"\b{name}\b", spans)] == []


def test_no_class_has_an_old_name() -> None:
    declared = re.compile(
        r"^(?:export )?(?:class|interface|type) (\w+)|^(\w+) = Callable", re.MULTILINE
    )
    source = [*(PROJECT / "src/quarterdeck").rglob("*.py"), *(PROJECT / "web/src").rglob("*.ts*")]
    names = {
        name: str(file.relative_to(PROJECT))
        for file in source
        for found in declared.findall(file.read_text())
        for name in found
        if name in OLD_NAMES
    }
    assert names == {}


def test_the_glossary_defines_each_term_once() -> None:
    bold = re.findall(r"^\*\*.+?(?=:\s)", page("docs/explanation/glossary.md").text, re.MULTILINE)
    terms = [term.lower() for line in bold for term in re.findall(r"\*\*(.+?)\*\*", line)]
    assert sorted(set(terms)) == sorted(terms)
    wanted = {
        "hub", "runner", "machine", "session", "run", "turn", "prompt", "ask", "event", "journal",
        "view", "follower", "cursor", "policy", "rule", "grant", "worktree", "front", "web app",
    }  # fmt: skip
    assert sorted(wanted - set(terms)) == []
