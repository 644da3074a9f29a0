"""The Makefile's own promise: one command sets up a fresh or a broken environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.bounds import SECONDS

pytestmark = pytest.mark.process

MAKEFILE = Path(__file__).parents[2] / "Makefile"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copy(MAKEFILE, tmp_path)
    return tmp_path


def make(
    checkout: Path, python: str, *words: str, target: str = "venv"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", target, f"PYTHON={python}", *words],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def old_python(at: Path) -> Path:
    """A Python that runs nothing of ours."""
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text("#!/bin/sh\nexit 1\n")
    at.chmod(0o755)
    return at


def python_in_a_hurry(at: Path) -> None:
    """This Python; the environments that it makes have no pip, which takes ten times as long."""
    quick = f'"{sys.executable}" -m venv --without-pip'
    at.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "-m venv" ] && shift 2 && exec {quick} "$@"\n'
        f'exec "{sys.executable}" "$@"\n'
    )
    at.chmod(0o755)


def test_an_environment_of_a_wrong_python_is_made_again(checkout: Path) -> None:
    python = old_python(checkout / ".venv/bin/python")
    installed = checkout / ".venv/.installed"
    python_in_a_hurry(checkout / "python3")
    for name in ("requirements/dev.lock", "pyproject.toml"):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).touch()
    installed.touch()  # the newest file, as if everything was installed
    would = make(checkout, "./python3", "--dry-run", target="setup")
    assert "pip install" in would.stdout, would.stderr
    installed.touch()
    made = make(checkout, "./python3")
    assert made.returncode == 0, made.stderr
    assert not installed.exists()
    said = subprocess.run([python, "-c", "print('here')"], capture_output=True, check=True)
    assert said.stdout == b"here\n"


@pytest.mark.parametrize("target", ["demo", "run"])
def test_what_shows_the_web_app_builds_it_first(checkout: Path, target: str) -> None:
    """The first step of the README: `make setup` alone does not build it."""
    given = "requirements/dev.lock pyproject.toml web/package-lock.json web/index.html"
    for name in (*given.split(), "web/vite.config.ts"):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).touch()
    said = subprocess.run(
        ["make", "-n", "--no-print-directory", target],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    ).stdout
    command = "serve" if target == "run" else target
    assert 0 < said.find("run --silent build") < said.find(f"quarterdeck {command}"), said


def test_a_python_that_is_too_old_is_refused_with_a_way_out(checkout: Path) -> None:
    old_python(checkout / "python3.9")
    made = make(checkout, "./python3.9")
    assert made.returncode != 0
    assert "Python 3.11 or newer is needed" in made.stderr
    assert "make PYTHON=" in made.stderr
    assert not (checkout / ".venv").exists()
