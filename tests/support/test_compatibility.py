"""The compatibility page without the CLIs: how it is made, and when a run checks or writes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.bounds import SECONDS
from support.compatibility import FOLDER, PAGE, WRITE, Finding, Incomplete, Theme, page
from support.seats import MATRIX

SEATS = (("2.1.37", "stdio"), ("2.1.37", "ws"))
TURNS = Theme("Turns", "How they end.")
TESTS = Path(__file__).parents[1]

MODULE = f'''
"""Turns: how they end."""

import pytest

MATRIX = {MATRIX}


@pytest.mark.parametrize("seat", MATRIX)
def test_interrupt(seat, record_property):
    answer = "yes" if seat[0] == "2.1.37" else "partial text kept"
    record_property("capability", ("Interrupt", *seat, answer, ""))


@pytest.mark.parametrize("seat", MATRIX)
def test_queue(seat, record_property):
    record_property("capability", ("A queue", *seat, "yes", ""))
'''


def found(capability: str, transport: str, answer: str = "yes", **more: object) -> Finding:
    place = more.get("place", (0, 0))
    theme = more.get("theme", TURNS)
    assert isinstance(place, tuple)
    assert isinstance(theme, Theme)
    return Finding(
        theme=theme,
        capability=capability,
        version="2.1.37",
        transport=transport,
        answer=answer,
        place=place,
    )


def test_a_seat_that_repeats_its_neighbour_may_be_left_out() -> None:
    text = page([found("Interrupt", "stdio")], SEATS, (("2.1.37", "ws"),))
    assert "| Interrupt | yes | · |" in text
    text = page([found("Interrupt", "stdio"), found("Interrupt", "ws", "no")], SEATS, SEATS[1:])
    assert "| Interrupt | yes | no |" in text


def test_each_capability_is_a_row_and_each_seat_a_column() -> None:
    text = page([found("Interrupt", "ws", "late"), found("Interrupt", "stdio")], SEATS)
    assert text.endswith(
        "\n## Turns\n\nHow they end.\n\n"
        "| Capability | 2.1.37 stdio | 2.1.37 ws |\n| --- | --- | --- |\n"
        "| Interrupt | yes | late |\n"
    )


def test_themes_stand_in_order_of_their_names_and_capabilities_as_in_their_module() -> None:
    findings = [
        found(name, transport, theme=theme, place=place)
        for transport in ("ws", "stdio")
        for name, theme, place in (
            ("b", TURNS, (9, 0)),
            ("a", TURNS, (9, 1)),
            ("c", TURNS, (2, 0)),
            ("z", Theme("Hooks"), (1, 0)),
        )
    ]
    text = page(findings, SEATS)
    assert text == page(reversed(findings), SEATS)
    rows = [line.split(" | ")[0].strip("| ") for line in text.splitlines() if "yes" in line]
    assert rows == ["z", "c", "b", "a"]


def test_a_bar_in_an_answer_does_not_end_its_cell() -> None:
    text = page([found("Modes", "ws", "a|b"), found("Modes", "stdio")], SEATS)
    assert "| Modes | yes | a\\|b |" in text


def test_a_missing_or_empty_cell_makes_no_page() -> None:
    with pytest.raises(Incomplete, match=r"^Interrupt: no answer for 2\.1\.37 ws$"):
        page([found("Interrupt", "stdio")], SEATS)
    with pytest.raises(Incomplete, match="no answer"):
        page([found("Interrupt", "stdio"), found("Interrupt", "ws", "")], SEATS)


def test_two_answers_to_one_question_make_no_page() -> None:
    findings = [found("Interrupt", "stdio"), found("Interrupt", "ws")]
    assert page([*findings, findings[0]], SEATS) == page(findings, SEATS)
    with pytest.raises(Incomplete, match=r"Interrupt: 'no' and 'yes' for 2\.1\.37 ws"):
        page([*findings, found("Interrupt", "ws", "no")], SEATS)


def test_a_theme_is_the_first_line_of_the_docstring(tmp_path: Path) -> None:
    module = tmp_path / "test_turns.py"
    module.write_text('"""Turns: how they end.\n\nMore.\n"""\n')
    assert Theme.of(module) == TURNS
    module.write_text('"""Turns that end."""\n')
    assert Theme.of(module) == Theme("Turns that end")
    module.write_text("x = 1\n")
    assert Theme.of(module) == Theme("test_turns")


def test_a_theme_is_found_by_its_heading_in_any_docstring(tmp_path: Path) -> None:
    one, two = tmp_path / "test_one.py", tmp_path / "test_two.py"
    one.write_text('"""One: and alone.\n\nTurns: how they end.\nMore.\n"""\n')
    two.write_text('"""Hooks: what they see."""\n')
    assert Theme.named("Turns", [one, two]) == TURNS
    assert Theme.named("Hooks", [one, two]) == Theme("Hooks", "What they see.")
    assert Theme.named("Nothing", [one, two]) == Theme("Nothing")


class Project:
    """A small project with a matrix of tests, and runs of pytest in it.

    A run takes place in this process: only one with workers needs others.
    """

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pytester = pytester
        self._monkeypatch = monkeypatch
        self._root = pytester.path
        self.page = self._root / PAGE
        self.module = self._root / FOLDER / "test_turns.py"
        self.module.parent.mkdir(parents=True)
        self.module.write_text(MODULE)
        (self._root / "tests" / "test_other.py").write_text("def test_it(): pass\n")
        (self._root / "pytest.ini").write_text("[pytest]\n")

    def run(self, *arguments: str, write: bool = False) -> tuple[int, str]:
        with self._monkeypatch.context() as environment:
            environment.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            environment.setenv(WRITE, "1" if write else "")
            plugin = ("-p", "support.compatibility")
            done = self._pytester.runpytest_inprocess(*plugin, *arguments)
        return int(done.ret), done.stdout.str()

    def run_with_workers(self, *arguments: str, write: bool = False) -> tuple[int, str]:
        plugins = ("-p", "xdist", "-p", "support.compatibility", "-n2")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, *arguments],
            cwd=self._root,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)]),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                WRITE: "1" if write else "",
            },
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return done.returncode, done.stdout


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(pytester, monkeypatch)


def test_a_whole_run_fails_until_the_page_says_what_was_found(project: Project) -> None:
    code, output = project.run()
    assert code == 1
    assert "make docs" in output
    assert not project.page.exists()
    assert project.run(write=True)[0] == 0
    project.page.write_text(project.page.read_text().replace("| A queue | yes", "| A queue | no"))
    code, output = project.run()
    assert code == 1
    assert "- | A queue | no | yes" in output
    assert "+ | A queue | yes | yes" in output


@pytest.mark.process
def test_runs_with_several_workers_find_the_same(project: Project) -> None:
    code, output = project.run_with_workers("-k", "interrupt", write=True)  # a partial one
    assert code == 0, output
    assert "compatibility page" not in output
    assert not project.page.exists()

    wrong = "\ndef test_wrong(): assert False\n"
    project.module.write_text(MODULE + wrong)
    code, output = project.run_with_workers(write=True)
    assert code == 1
    assert "compatibility page" not in output
    assert not project.page.exists()

    project.module.write_text(MODULE)
    code, output = project.run_with_workers(write=True)
    assert code == 0, output
    text = project.page.read_text()
    assert "| Interrupt | yes | yes | partial text kept |" in text
    assert text.index("| Interrupt |") < text.index("| A queue |")
    code, output = project.run()
    assert code == 0, output
    assert "says what the tests found" in output


@pytest.mark.parametrize(
    "arguments",
    [
        ["-k", "interrupt"],
        ["tests/test_other.py"],
        [f"{FOLDER}/test_turns.py::test_queue"],
    ],
)
def test_a_partial_run_neither_checks_nor_writes(project: Project, arguments: list[str]) -> None:
    code, output = project.run(*arguments, write=True)
    assert code == 0, output
    assert "compatibility page" not in output
    assert not project.page.exists()


def test_what_belongs_to_another_theme_stands_there(project: Project) -> None:
    more = """
@pytest.mark.parametrize("seat", MATRIX)
def test_more(seat, record_property):
    record_property("capability", ("A hook", *seat, "yes", "Hooks"))
"""
    project.module.write_text(MODULE.replace("end.", "end.\n\nHooks: what they see.\n") + more)
    code, output = project.run(write=True)
    assert code == 0, output
    hooks, turns = project.page.read_text().split("## ")[1:]
    assert hooks.startswith("Hooks\n\nWhat they see.\n")
    assert "| A hook | yes |" in hooks
    assert "| A hook |" not in turns


def test_a_run_without_one_of_the_modules_is_a_partial_one(project: Project) -> None:
    (project.module.parent / "test_more.py").write_text('"""More."""\ndef test_it(): pass\n')
    code, output = project.run(str(project.module))
    assert code == 0, output
    assert "compatibility page" not in output


def test_a_run_with_a_failure_neither_checks_nor_writes(project: Project) -> None:
    project.module.write_text(MODULE + "\ndef test_wrong(): assert False\n")
    code, output = project.run(write=True)
    assert code == 1
    assert "compatibility page" not in output
    assert not project.page.exists()


def test_a_hole_in_the_table_fails_the_run(project: Project) -> None:
    more = 'def test_half(record_property):\n    record_property("capability", {value})\n'
    value = ("Half", "2.1.37", "ws", "yes", "")
    project.module.write_text(MODULE + more.format(value=value))
    code, output = project.run(write=True)
    assert code == 1
    assert "Half: no answer for 2.1.37 stdio" in output
    assert not project.page.exists()
