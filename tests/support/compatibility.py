"""The compatibility page: what each real CLI does, as the tests in `tests/real_cli` found it.

Owns the way from a finding (`Seat.found`) to `docs/reference/compatibility.md`. It is a pytest
plugin that gathers the findings of a run, also of one with several workers, and a pure function,
`page`, that makes the text. What the findings mean is the business of the tests.

Only a run in which every test of `tests/real_cli` passed says anything. Such a run fails if the
page in the repository differs from what was found; with `QUARTERDECK_WRITE_DOCS=1` it writes the
page instead. Any other run leaves the page alone.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import pytest

FOLDER = "tests/real_cli"
PAGE = "docs/reference/compatibility.md"
WRITE = "QUARTERDECK_WRITE_DOCS"
REPEATED = "·"
HOW_TO_UPDATE = "`make docs` writes it anew; look at the difference before you commit it."

_HEAD = f"""\
# Compatibility

What Claude Code does when Quarterdeck drives it, version by version. `stdio` is a CLI that talks
over its stdin and stdout, `ws` one that dials a WebSocket of ours; 2.1.120 is the last version that
does so.

«·» stands where a test ran over stdio, and over a WebSocket with 2.1.120 only: the transport makes
no difference to what it shows.

Every answer was found by a test in `{FOLDER}`, which drives the real CLI through `Agent`,
offline, against a scripted model. The test fails where a CLI does something else.

This page is made by that run: do not edit it. {HOW_TO_UPDATE}
"""

Seats = Sequence[tuple[str, str]]


class Incomplete(Exception):
    """The findings do not make a page. The text says what is missing."""


class Theme(msgspec.Struct, frozen=True, order=True):
    """What some capabilities have in common, by the docstring of a test module."""

    heading: str
    text: str = ""

    @classmethod
    def of(cls, module: Path) -> Theme:
        """The theme of a module: `Heading: a sentence about it.` in its docstring's first line."""
        return cls._read(_docstring(module).partition("\n")[0])

    @classmethod
    def named(cls, heading: str, modules: Iterable[Path]) -> Theme:
        """A theme by its heading: a line like the above in any of the docstrings.

        A CLI takes long to start. So one that a test has started shows what it can of other
        themes too.
        """
        lines = (line for module in modules for line in _docstring(module).splitlines())
        said = (line for line in lines if line.startswith(f"{heading}:"))
        return cls._read(next(said, heading))

    @classmethod
    def _read(cls, line: str) -> Theme:
        heading, _, text = line.partition(":")
        text = text.strip()
        return cls(heading.strip().rstrip("."), text[:1].upper() + text[1:])


def _docstring(module: Path) -> str:
    return ast.get_docstring(ast.parse(module.read_text())) or module.stem


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one test found out about one capability of one seat."""

    theme: Theme
    capability: str
    version: str
    transport: str
    answer: str
    place: tuple[int, int] = (0, 0)
    """Where it stands in its module: the line of the test, and its number among the findings."""


def page(findings: Iterable[Finding], seats: Seats, repeating: Seats = ()) -> str:
    """The whole page. Raises `Incomplete` for a hole, or for two answers to one question.

    On the seats in `repeating` a test need not run.
    """
    rows: dict[tuple[Theme, str], dict[tuple[str, str], str]] = {}
    places: dict[tuple[Theme, str], tuple[int, int]] = {}
    problems: list[str] = []
    for found in findings:
        row = found.theme, found.capability
        seat = found.version, found.transport
        before = rows.setdefault(row, {}).setdefault(seat, found.answer)
        if before != found.answer:
            answers = " and ".join(sorted((repr(before), repr(found.answer))))
            problems.append(f"{found.capability}: {answers} for {' '.join(seat)}")
        places[row] = min(places.get(row, found.place), found.place)
    for (_, capability), answers_by_seat in rows.items():
        for seat in repeating:
            answers_by_seat.setdefault(seat, REPEATED)
        holes = [seat for seat in seats if not answers_by_seat.get(seat)]
        problems += [f"{capability}: no answer for {' '.join(seat)}" for seat in holes]
    if problems:
        raise Incomplete("\n".join(sorted(set(problems))))
    parts = [_HEAD]
    for theme in sorted({theme for theme, _ in rows}):
        names = [name for at, name in rows if at == theme]
        names.sort(key=lambda name: (places[theme, name], name))
        table = [[name, *(rows[theme, name][seat] for seat in seats)] for name in names]
        parts.append(_section(theme, table, seats))
    return "\n".join(parts)


def _section(theme: Theme, table: Sequence[Sequence[str]], seats: Seats) -> str:
    head = ["Capability", *(f"{version} {transport}" for version, transport in seats)]
    lines = [f"## {theme.heading}", ""]
    if theme.text:
        lines += [theme.text, ""]
    lines += [_line(head), _line(["---"] * len(head)), *map(_line, table)]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# --- the plugin ----------------------------------------------------------------------------------


class _Node(Protocol):
    """A worker of pytest-xdist, as far as it matters here."""

    workeroutput: dict[str, object]


class _Seen(msgspec.Struct):
    """What a process of the run collected of the folder."""

    collected: set[str] = set()
    deselected: bool = False


class Compatibility:
    """Gathers what the tests report. Lives in every process of a run; the first one decides."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._root = config.rootpath
        self._seen = _Seen()
        self._passed: set[str] = set()
        self._failed: set[str] = set()
        self._findings: dict[str, list[Finding]] = {}
        self._themes: dict[str, Theme] = {}
        self._news: tuple[str, bool] | None = None

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        if any(_ours(item.nodeid) for item in items):
            self._seen.deselected = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._seen.collected |= {item.nodeid for item in session.items if _ours(item.nodeid)}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: _Node) -> None:
        """A worker has ended (pytest-xdist): take over what it collected."""
        output = getattr(node, "workeroutput", {}).get("compatibility")
        if output is not None:
            seen = msgspec.convert(output, _Seen)
            self._seen.collected |= seen.collected
            self._seen.deselected |= seen.deselected

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not _ours(report.nodeid):
            return
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self._passed.add(report.nodeid)
            self._findings[report.nodeid] = self._read(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        workeroutput = getattr(self._config, "workeroutput", None)
        if workeroutput is not None:
            workeroutput["compatibility"] = msgspec.to_builtins(self._seen)
        elif self._whole():
            self._news = self._settle()
            if not self._news[1] and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._news is not None:
            text, good = self._news
            terminalreporter.section("compatibility page", green=good, red=not good)
            terminalreporter.write_line(text, green=good, red=not good)

    def _whole(self) -> bool:
        """Whether all tests of the folder ran, on all seats, and passed."""
        modules = {each.relative_to(self._root) for each in self._folder().glob("test_*.py")}
        collected = {Path(nodeid.partition("::")[0]) for nodeid in self._seen.collected}
        selected = self._seen.deselected or any("::" in each for each in self._config.args)
        return (
            bool(modules)
            and collected == modules
            and not selected
            and not self._failed
            and self._passed == self._seen.collected
        )

    def _settle(self) -> tuple[str, bool]:
        """Compare or write the page; gives what to say of it, and whether all is well."""
        from support.seats import MATRIX, REPEATING  # here: it loads the whole library

        found = [each for findings in self._findings.values() for each in findings]
        try:
            made = page(found, MATRIX, REPEATING)
        except Incomplete as problems:
            return f"{PAGE} cannot be made of what the tests found.\n{problems}", False
        path = self._root / PAGE
        kept = path.read_text() if path.exists() else ""
        if made == kept:
            return f"{PAGE} says what the tests found.", True
        if os.environ.get(WRITE):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made)
            return f"{PAGE} was written.", True
        changed = "\n".join(_difference(kept, made))
        return f"{PAGE} does not say what the tests found. {HOW_TO_UPDATE}\n{changed}", False

    def _read(self, report: pytest.TestReport) -> list[Finding]:
        module, line = report.location[0], report.location[1] or 0
        values = [value for name, value in report.user_properties if name == "capability"]
        findings = []
        for number, value in enumerate(values):
            capability, version, transport, answer, heading = msgspec.convert(
                value, tuple[str, str, str, str, str]
            )
            findings.append(
                Finding(
                    theme=self._theme(module, heading),
                    capability=capability,
                    version=version,
                    transport=transport,
                    answer=answer,
                    place=(line, number),
                )
            )
        return findings

    def _theme(self, module: str, heading: str) -> Theme:
        """That of the module, or the one with this heading."""
        known = heading or module
        if known not in self._themes:
            path = self._root / module
            modules = [path, *sorted(self._folder().glob("test_*.py"))]
            self._themes[known] = Theme.named(heading, modules) if heading else Theme.of(path)
        return self._themes[known]

    def _folder(self) -> Path:
        return self._root / FOLDER


def _ours(nodeid: str) -> bool:
    return nodeid.startswith(f"{FOLDER}/")


def _difference(kept: str, made: str) -> list[str]:
    """The lines that are new or gone, without those that stayed."""
    old, new = kept.splitlines(), made.splitlines()
    return [f"- {line}" for line in old if line not in new] + [
        f"+ {line}" for line in new if line not in old
    ]


def pytest_configure(config: pytest.Config) -> None:
    """Take part in every run of pytest."""
    config.pluginmanager.register(Compatibility(config), "compatibility-page")
