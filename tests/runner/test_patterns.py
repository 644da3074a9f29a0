"""Patterns for every depth of a project are looked up in one walk, with bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.runner import patterns
from quarterdeck.runner.patterns import look_up
from quarterdeck.runner.sandbox import with_paths


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (
        ".env",
        "a/.env",
        "a/.env.local",
        "a/b/server.pem",
        "a/.config/gh/hosts.yml",
        "other/gh/x",
        "keys.d/x.key/inside",
        ".git/deep/.env",
        "node_modules/package/.env",
        "env/pyvenv.cfg",
        "env/lib/cacert.pem",
        "plain.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")
    (tmp_path / "link").symlink_to("/etc")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("./**/.env", [".env", "a/.env"]),
        ("./**/.env.*", ["a/.env.local"]),
        ("./**/*.pem", ["a/b/server.pem"]),
        ("./**/.config/gh", ["a/.config/gh"]),
        ("./**/.config/gh/**", ["a/.config/gh"]),
        ("./**/*.d/x.key", ["keys.d/x.key"]),
        ("./**/passwd", []),
    ],
)
def test_a_pattern_finds_what_it_means_at_every_depth(
    project: Path, pattern: str, found: list[str]
) -> None:
    assert look_up(str(project), [pattern]).paths == {
        pattern: tuple(f"{project}/{name}" for name in found)
    }


def test_other_patterns_are_left_to_the_sandbox(project: Path) -> None:
    others = ("~/.ssh/**", "/etc/shadow*", "./x", "./**/a/**/b", "./**")
    assert look_up(str(project), others).paths == {}
    request = SandboxRequest(deny_read=("./**/.env", *others), deny_edit=("./**/*.pem",))
    made, gaps = with_paths(request, str(project))
    assert made.deny_read == (f"{project}/.env", f"{project}/a/.env", *others)
    assert made.deny_edit == (f"{project}/a/b/server.pem",)
    assert gaps == ()


@pytest.mark.parametrize("limit", ["MOST_SEEN", "MOST_FOUND"])
def test_a_project_that_is_too_large_is_told_and_the_top_is_looked_up(
    project: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(patterns, limit, 1 if limit == "MOST_FOUND" else 8)
    looked = look_up(str(project), ["./**/.env"])
    assert not looked.complete
    assert f"{project}/.env" in looked.paths["./**/.env"]
    _, gaps = with_paths(SandboxRequest(deny_read=("./**/.env",)), str(project))
    assert gaps == (f"{project}/**: not all of its files were looked up",)


def test_a_project_that_is_not_there_has_nothing_in_it(tmp_path: Path) -> None:
    assert look_up(f"{tmp_path}/none", ["./**/.env"]).paths == {"./**/.env": ()}
