"""Plain technical English: no phrase of the old dialect and no old name is left.

Of a page, prose is read. Fenced blocks show what programs print, and code spans quote names of
the code and of its protocols. Of the source, the texts that programs print or send are read, and
the names of modules and functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

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

TEXT_PHRASES = re.compile(
    r"\b(amiss|anew|deck|dialled|dials|go on|goes on|gone on|(?<!there )(?:is|are) none"
    r"|hears?|heard|somebody|tells|told|whoever)\b",
    re.IGNORECASE,
)
"""What no program prints: the texts of `src`, and those of the web app."""
QUOTED_CODE = re.compile(r"`[^`]*`|\w+://\S+|make deck")

NOUNS = frozenset(
    {"beginning", "binding", "ending", "firing", "greeting", "heading", "meaning", "pairing"}
    | {"setting", "spending", "string", "thing", "warning"}
)
"""Functions that give one of these are named so."""
OTHER_NAMES = frozenset(
    {"bring", "documented", "embed", "everything", "feed", "need", "nothing", "ping", "ring"}
    | {"sed", "seed"}
)
"""No participles, but for `documented`: the redesign's own word for the `opt` of a route."""
IRREGULAR = frozenset(
    {"begun", "bound", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "driven"}
    | {"found", "given", "gone", "heard", "held", "hidden", "kept", "known", "left", "lost", "made"}
    | {"meant", "met", "said", "seen", "sent", "shown", "spent", "spoken", "taken", "told"}
    | {"understood", "written"}
)
OLD_FUNCTIONS = frozenset(
    {"hear", "judge", "mean", "obey", "recall", "tell", "tells", "happen", "had", "have", "wish"}
)
OTHER_MODULES = frozenset({"coded", "ed", "feed", "sed", "session_feed", "staging"})
"""`coded` is the adjective of its texts, `ed` and `sed` are programs, the others are nouns."""

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


# --- the source ----------------------------------------------------------------------------------


@cache
def modules() -> dict[str, ast.Module]:
    root = PROJECT / "src/quarterdeck"
    return {str(file.relative_to(root)): ast.parse(file.read_text()) for file in root.rglob("*.py")}


def is_participle(name: str) -> bool:
    """Whether a name is one word, and a participle: `sent`, `_checked`, `running`."""
    word = name.strip("_")
    if "_" in word or word in NOUNS | OTHER_NAMES or name == "_missing_":  # a hook of `Enum`
        return False
    return word in IRREGULAR or word.endswith(("ed", "ing"))


def functions(tree: ast.Module) -> Iterator[str]:
    """The functions of a module that are no properties: these may be adjectives."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = [ast.unparse(mark).partition("(")[0] for mark in node.decorator_list]
            if not any(mark.endswith(("property", "setter", "cached")) for mark in marks):
                yield node.name


def texts(tree: ast.Module) -> Iterator[str]:
    """The texts of a module that are sentences, but for its docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and " " in node.value.strip()
        ):
            yield node.value


def test_a_function_has_a_verb_or_a_noun_as_its_name() -> None:
    found = {
        f"{path}: {name}"
        for path, tree in modules().items()
        for name in functions(tree)
        if is_participle(name) or name.strip("_") in OLD_FUNCTIONS
    }
    assert found == set()


def test_a_module_has_a_noun_as_its_name() -> None:
    found = [
        path
        for path in modules()
        if (name := Path(path).stem) not in OTHER_MODULES | NOUNS
        and (is_participle(name) or name.endswith(("ing", "_words")))
    ]
    assert found == []


def test_no_text_of_a_program_has_a_phrase_of_the_old_dialect() -> None:
    found = {
        f"{path}: {text}"
        for path, tree in modules().items()
        for text in texts(tree)
        if TEXT_PHRASES.search(QUOTED_CODE.sub("", text))
    }
    assert found == set()


def test_no_text_of_the_web_app_has_a_phrase_of_the_old_dialect() -> None:
    quoted = re.compile(r"\"[^\"\n]*\"|`[^`]*`")
    found = {
        f"{file.name}: {text}"
        for file in (PROJECT / "web/src/text/en").glob("*.ts")
        for text in quoted.findall(re.sub(r"//.*|/\*.*?\*/", "", file.read_text()))
        if TEXT_PHRASES.search(text.replace("deck.example", "").strip('"`'))
    }
    assert found == set()
