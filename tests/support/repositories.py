"""A git repository in the hand of a test."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Run git there; gives what it said."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_repository(folder: Path) -> Path:
    """A repository on `main` with one commit of two files."""
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_text("text\n")
    (folder / "readme").write_text("one\ntwo\nthree\n")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.email", "a@example.org")
    git(folder, "config", "user.name", "A")
    commit(folder, "first")
    return folder


def commit(folder: Path, message: str) -> str:
    """Commit everything; gives the commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")
