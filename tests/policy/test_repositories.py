"""git in another repository: its settings run programs, so it is not allowed by rule."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.policy.needs import Context, NeedKind, needs_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with folders, a nested repository, a bare one, and links to both."""
    root = tmp_path / "project"
    for folder in (
        ".git/objects",
        "src/deep",
        "nested/.git",
        "nested/sub",
        "bare/objects",
        "bare/refs",
    ):
        (root / folder).mkdir(parents=True)
    for head in (root / "bare" / "HEAD", root / ".git" / "HEAD"):
        head.write_text("ref: refs/heads/main\n")
    (root / "to-bare").symlink_to("bare")
    (root / "file").mkdir()
    (root / "file" / ".git").write_text("gitdir: ../bare\n")
    (tmp_path / "outside").mkdir()
    return root


def unknown(command: str, context: Context) -> list[str]:
    """What is not known about a command."""
    found = needs_of("Bash", Raw(msgspec.json.encode({"command": command})), context)
    return [need.what for need in found.needs if need.kind is NeedKind.UNKNOWN]


def local(root: Path, cwd: Path | None = None) -> Context:
    return Context(
        cwd=str(cwd or root),
        settings=str(root),
        home=str(root.parent),
        resolve=lambda path: str(Path(path).resolve()),
        exists=lambda path: Path(path).exists(),
    )


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git -C src status",
        "git -C src/deep log",
        "cd src && git diff",
        "cd src/deep && git status && cd .. && git log",
        "git -C ./src/deep/ status",
        "mkdir -p src/x && git -C src status",
    ],
)
def test_git_in_the_project_and_its_folders_is_known(command: str, project: Path) -> None:
    assert unknown(command, local(project)) == []


@pytest.mark.parametrize(
    "command",
    [
        "cd bare && git status",
        "git -C bare log",
        "git -C to-bare log",
        "git -C nested status",
        "cd nested/sub && git status",
        "git -C file status",
        "git -C .git status",
        "git -C ../outside status",
        "git -C / status",
        "git -C $x status",
        "cd $x && git status",
        "git -C src -C ../bare status",
        "git -C to-bare/.. status",
        "git -C src/.. status",
        "echo x > src/HEAD; cd src && git status",
        "cp -r evil src/deep && git -C src/deep status",
        "mv evil src/.git; git -C src/deep status",
    ],
)
def test_git_in_what_may_be_another_repository_is_not(command: str, project: Path) -> None:
    assert len(unknown(command, local(project))) == 1


def test_a_session_that_has_moved_to_another_repository_is_noticed(project: Path) -> None:
    assert unknown("git status", local(project, project / "src")) == []
    assert len(unknown("git status", local(project, project / "bare"))) == 1


def test_where_nothing_can_be_looked_up_only_the_project_is_known() -> None:
    there = Context(cwd="/project", settings="/project", home="/home/someone")
    assert unknown("git status", there) == []
    assert unknown("git status", Context()) == []
    assert len(unknown("git -C src status", there)) == 1
