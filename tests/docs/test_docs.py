"""The documentation is complete and true as far as a program can tell.

What is public is on its page, every link leads somewhere, every example compiles, and the commands
that pages name are there. That examples run is tested beside each page's subject.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path
from typing import TypeVar

import pytest

import quarterdeck
from quarterdeck import Agent, Hook, Listener, Options, Prompt, Query, Reply, ask, listen, wire
from quarterdeck.agent.controls import Controls
from quarterdeck.domain import errors
from quarterdeck.wire.command_base import Command
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.reports import ResultSubtype
from support.clis import PROJECT
from support.pages import Page, all_pages, page

LIBRARY = page("docs/reference/library.md")
ERRORS = page("docs/reference/errors.md")
WIRE = page("docs/reference/wire.md")
PAGES = all_pages()
PRESENT = [each for each in PAGES if each.name != "CHANGELOG.md"]
"""The pages about what there is. The changelog also names what there was."""

R = TypeVar("R")


def by_name(subject: Page) -> str:
    return subject.name


def code_words(subject: Page) -> set[str]:
    """Every name that the page sets in code: `Agent(…)`, `await text()` and `a`, `b` count."""
    spans = re.findall(r"`([^`\n]+)`", subject.prose)
    return {word for span in spans for word in re.findall(r"\w+", span)}


def public(owner: type) -> set[str]:
    return {name for name in vars(owner) if not name.startswith("_")}


# --- what is public is documented ---------------------------------------------------------------


def test_every_public_name_of_the_library_is_on_its_page() -> None:
    assert sorted(set(quarterdeck.__all__) - code_words(LIBRARY)) == []


def test_every_option_is_a_row_of_the_options() -> None:
    options = LIBRARY.text.partition("\n## `Options`\n")[2]
    rows = re.findall(r"^\| (`.+?) \|", options, re.MULTILINE)
    described = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(described) == sorted(Options.__struct_fields__)


def test_every_member_of_an_agent_a_query_a_reply_and_a_listener_is_on_the_page() -> None:
    # What only the agent itself calls is not for the readers of the page.
    inside = {"close", "drop", "end", "put", "hold", "release", "discard", "ease", "crowded"}
    agent = {name for name in public(Agent) if not name.startswith("_")}
    members = {*agent, *(public(Query) - inside), *Reply.__struct_fields__, *public(Listener)}
    assert sorted(members - code_words(LIBRARY)) == []


def test_every_parameter_is_on_the_page() -> None:
    words = code_words(LIBRARY)
    for function in (Agent.__init__, ask, listen, Prompt.of, Hook, Agent.request):
        parameters = inspect.signature(function).parameters
        assert sorted(set(parameters) - words - {"self"}) == []


class _Asked(Exception):
    """Carries the command of a method out of it."""

    def __init__(self, since: int | None) -> None:
        self.since = since


class _Recorder(Controls):
    async def request(self, command: Command[R], *, timeout: float = 0.0) -> R:
        raise _Asked(command.since)


def _since(name: str) -> int | None:
    """The version of the command that a method sends."""
    method = getattr(_Recorder(), name)
    required = [
        parameter
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty
    ]
    samples: dict[str, object] = {"mode": "plan", "max_tokens": 1, "enabled": True}
    mappings: dict[str, object] = {"settings": {}, "servers": {}}
    arguments = [(samples | mappings).get(parameter.name, "x") for parameter in required]
    with pytest.raises(_Asked) as asked:
        method(*arguments).send(None)
    return asked.value.since


def test_every_control_request_is_on_the_page_with_its_first_version() -> None:
    methods = {
        name
        for name, _ in inspect.getmembers(Controls, inspect.iscoroutinefunction)
        if name != "request"
    }
    rows = dict(re.findall(r"^\| `(\w+)\(.*?\)` \| 2\.1\.(\d+) \|", LIBRARY.text, re.MULTILINE))
    assert {name: int(since) for name, since in rows.items()} == {
        name: _since(name) for name in methods
    }


def test_every_permission_mode_is_on_the_page() -> None:
    assert sorted(set(PermissionMode.__members__) - code_words(LIBRARY)) == []


def test_every_error_is_on_its_page_with_its_fields() -> None:
    tree = (errors.__doc__ or "").partition("::\n")[2].partition("\n\n`")[0]
    assert inspect.cleandoc(tree) in ERRORS.text
    classes = [found for found in vars(errors).values() if inspect.isclass(found)]
    assert len(classes) > 10
    for error in classes:
        assert error.__name__ in ERRORS.text
        own = inspect.signature(error.__init__).parameters if "__init__" in vars(error) else {}
        fields = {name.rstrip("_") for name in {*own, *public(error)} - {"self", "text", "copy"}}
        (row,) = re.findall(rf"^\| `{error.__name__}` \|(.*)", ERRORS.text, re.MULTILINE) or [""]
        # A base that is never raised itself has no row of its own, only a place in the tree.
        if row:
            assert [name for name in sorted(fields) if f"`{name}`" not in row] == []


def test_every_way_in_which_a_turn_fails_is_on_the_page_of_errors() -> None:
    assert [kind for kind in ResultSubtype if f"| `{kind.value}` |" not in ERRORS.text] == []


def test_every_public_name_of_the_wire_is_on_its_page() -> None:
    words = code_words(WIRE)
    assert sorted(set(wire.__all__) - words) == []
    assert sorted(public(wire.Peer) - words) == []


def test_every_package_is_on_the_page_of_the_architecture() -> None:
    text = page("docs/explanation/architecture.md").text
    packages = [
        init.parent.name for init in (PROJECT / "src" / "quarterdeck").glob("*/__init__.py")
    ]
    assert len(packages) > 5
    assert [name for name in sorted(packages) if f"`{name}`" not in text] == []


# --- pages hold together ------------------------------------------------------------------------


@pytest.mark.parametrize("subject", PAGES, ids=by_name)
def test_every_link_leads_somewhere(subject: Page) -> None:
    broken = []
    for link in subject.links:
        if link.startswith(("https://", "http://")):
            continue
        target, _, anchor = link.partition("#")
        path = (subject.path.parent / target).resolve() if target else subject.path
        inside = path.is_relative_to(PROJECT)
        if not inside or not path.exists() or (anchor and anchor not in Page(path).anchors):
            broken.append(link)
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    found: set[Path] = set()
    waiting = [page("README.md").path]
    while waiting:
        here = waiting.pop()
        if here in found:
            continue
        found.add(here)
        targets = [(here.parent / link.partition("#")[0]).resolve() for link in Page(here).links]
        waiting += [target for target in targets if target.suffix == ".md" and target.exists()]
    assert [each.name for each in PAGES if each.path not in found] == []


@pytest.mark.parametrize("subject", PAGES, ids=by_name)
def test_every_example_compiles(subject: Page) -> None:
    for block in subject.blocks("python"):
        # The empty lines in front make an error name the line of the page.
        compile("\n" * (block.line - 1) + block.code, subject.name, "exec", dont_inherit=True)


@pytest.mark.parametrize("subject", PRESENT, ids=by_name)
def test_every_dotted_name_exists(subject: Page) -> None:
    """`quarterdeck.wire.survey`, the shorter `wire.survey`, and names within them."""
    # `agent.state` is no module but somebody's variable, so that package needs its full name.
    short = "domain|links|testing|wire"
    pattern = rf"`((?:quarterdeck\.|(?={short}\b))(?:\w+\.)*\w+)[`(]"
    names = {found.removeprefix("quarterdeck.") for found in re.findall(pattern, subject.prose)}
    dotted = {f"quarterdeck.{name}" for name in names if "." in name or name in quarterdeck.__all__}
    assert sorted(name for name in dotted if not _exists(name)) == []


def _exists(dotted: str) -> bool:
    """Whether there is a module of that name, or something in one: a class, or a member of it."""
    owner, _, name = dotted.rpartition(".")
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        try:
            return name in _set_by_init(pkgutil.resolve_name(owner))
        except (ImportError, AttributeError):
            return False
    return True


def _set_by_init(owner: object) -> set[str]:
    source = inspect.getsource(owner) if inspect.isclass(owner) else ""
    return set(re.findall(r"^\s+self\.(\w+)(?:: .+)? = ", source, re.MULTILINE))


# --- commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", PAGES, ids=by_name)
def test_every_make_target_exists(subject: Page) -> None:
    makefile = (PROJECT / "Makefile").read_text()
    named = set(re.findall(r"`make(?: (\w+))?`", subject.text)) - {""}
    assert [
        target for target in named if not re.search(rf"^{target}:", makefile, re.MULTILINE)
    ] == []


def test_ci_runs_the_two_commands_and_nothing_else() -> None:
    script = (PROJECT / ".ci" / "run").read_text()
    lines = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert lines == ["set -eu", 'cd "$(dirname "$0")/.."', "make check", "make test"]


def test_every_test_that_a_page_names_exists() -> None:
    named = [
        (file, name)
        for each in PRESENT
        for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", each.text)
    ]
    missing = [
        f"{file}::{name}"
        for file, name in named
        if f"def {name}(" not in (PROJECT / file).read_text()
    ]
    assert len(named) > 60
    assert missing == []
