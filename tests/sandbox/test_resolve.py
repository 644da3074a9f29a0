"""The paths of a spec on this machine: links, wildcards, what decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.sandbox import SandboxMode, SandboxSpec, find_repository
from quarterdeck.sandbox import resolve as resolving
from quarterdeck.sandbox.placeholders import Placeholders
from quarterdeck.sandbox.resolve import Access, access_of, expand, resolve, without_repeats
from support.repositories import git, make_repository

W, R, H = Access.WRITABLE, Access.READ_ONLY, Access.HIDDEN


def spec(**lists: tuple[str, ...]) -> SandboxSpec:
    return SandboxSpec(mode=SandboxMode.PROTECT, **lists)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a/b/c", "a/x", "other"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("a/.env", "a/b/.env", "a/b/key.pem", "a/x/note"):
        (tmp_path / name).write_text("text")
    return tmp_path.resolve()


def test_the_deepest_entry_decides() -> None:
    entries = {"/a": W, "/a/b": H, "/a/b/c": R}
    assert access_of("/a/x", entries) is W
    assert access_of("/a/b/x", entries) is H
    assert access_of("/a/b/c/x", entries) is R
    assert access_of("/elsewhere", entries) is R


def test_entries_that_change_nothing_are_left_out() -> None:
    found = {"/a/b/c": W, "/a": W, "/a/b": W, "/r": R, "/h": H, "/h/x": H, "/h/y": R}
    assert without_repeats(found) == {"/a": W, "/h": H, "/h/y": R}


def test_the_stricter_list_wins_for_one_path(folder: Path) -> None:
    a = str(folder / "a")
    assert resolve(spec(writable=(a,), read_only=(a,))).entries == {}
    assert resolve(spec(writable=(a,), read_only=(a,), hidden=(a,))).entries == {a: H}


def test_links_are_followed_and_replaceable_ones_are_told(folder: Path) -> None:
    (folder / "a" / ".claude").symlink_to(folder / "other")
    made = resolve(spec(writable=(str(folder / "a"),), hidden=(str(folder / "a" / ".claude"),)))
    assert made.entries == {str(folder / "a"): W, str(folder / "other"): H}
    assert made.not_enforced == (
        f"{folder}/a/.claude: it is a link, and can be replaced by another",
    )


def test_what_does_not_exist_is_left_out_unless_it_is_reserved(folder: Path) -> None:
    a = folder / "a"
    paths = (str(a / ".husky"), str(a / "none" / "deep"), str(folder / "other" / ".husky"))
    made = resolve(spec(writable=(str(a),), read_only=paths, reserved=paths))
    assert made.entries == {str(a): W}
    assert made.missing == (str(a / ".husky"),)


def test_a_placeholder_of_another_sandbox_is_asked_for_again(folder: Path) -> None:
    """The other sandbox may end, and remove it, before this one begins."""
    a = folder / "a"
    paths = (str(a / ".husky"),)
    other = Placeholders(paths)
    made = resolve(spec(writable=(str(a),), read_only=paths, reserved=paths))
    assert made.entries == {str(a): W}
    assert made.missing == paths
    mine = Placeholders(made.missing)
    other.close()
    assert (a / ".husky").is_dir()
    mine.close()
    assert not (a / ".husky").exists()


def test_what_is_needed_is_seen_in_a_hidden_folder(folder: Path) -> None:
    made = resolve(spec(hidden=(str(folder),)), needed=[str(folder / "a" / "x")])
    assert made.entries == {str(folder): H, str(folder / "a" / "x"): R}


def test_folders_of_the_cli_are_made(folder: Path) -> None:
    state = folder / ".claude.json"
    resolve(spec(created=(str(folder / ".claude" / "projects"),), copied=(str(state),)))
    assert (folder / ".claude" / "projects").is_dir()
    assert state.read_text() == "{}\n"
    state.write_text("mine")
    resolve(spec(copied=(str(state),)))
    assert state.read_text() == "mine"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a/**/.env", {"a/.env", "a/b/.env"}),
        ("a/*/.env", {"a/b/.env"}),
        ("a/*", {"a/.env", "a/b", "a/x"}),
        ("a/**/*.pem", {"a/b/key.pem"}),
        ("a/[bx]/note", {"a/x/note"}),
        ("a/[!b]/note", {"a/x/note"}),
        ("a/?/.env", {"a/b/.env"}),
        ("*/none", set()),
        ("a/b/**", {"a/b/.env", "a/b/key.pem", "a/b/c"}),
    ],
)
def test_wildcards_are_those_of_gitignore(pattern: str, found: set[str], folder: Path) -> None:
    paths, whole = expand(f"{folder}/{pattern}")
    assert {path.removeprefix(f"{folder}/") for path in paths} == found
    assert whole


def test_a_pattern_over_too_many_files_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "MOST_SEEN", 3)
    made = resolve(spec(writable=(str(folder),), hidden=(f"{folder}/**/.env",)))
    assert made.not_enforced == (f"{folder}/**/.env: too many files",)


def test_what_was_found_among_too_many_files_is_protected(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "MOST_SEEN", 1)
    made = resolve(spec(writable=(str(folder),), hidden=(f"{folder}/a/.en*",)))
    assert made.entries[f"{folder}/a/.env"] is Access.HIDDEN
    assert made.not_enforced == (f"{folder}/a/.en*: too many files",)


def test_a_pattern_does_not_follow_links(folder: Path) -> None:
    (folder / "a" / "link").symlink_to(folder / "a" / "b")
    assert expand(f"{folder}/a/l*/.env") == ([], True)
    assert expand(f"{folder}/a/l*") == ([f"{folder}/a/link"], True)


def test_too_many_patterns_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "MOST_PATTERNS", 1)
    made = resolve(spec(hidden=(f"{folder}/a/*.env", f"{folder}/a/b/*.pem")))
    assert list(made.entries) == [f"{folder}/a/.env"]
    assert made.not_enforced == (f"{folder}/a/b/*.pem: too many patterns",)


@pytest.mark.process
def test_a_repository_is_found_without_git(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r").resolve()
    found = find_repository(top / "inner")
    assert found is not None
    assert (found.top, found.git_dir, found.common_dir) == (str(top), f"{top}/.git", f"{top}/.git")
    assert not found.is_worktree
    assert not found.own_settings
    git(top, "config", "core.hooksPath", "tools/hooks")
    git(top, "config", "extensions.worktreeConfig", "true")
    git(top, "worktree", "add", "-q", str(tmp_path / "w"))
    tree = find_repository(tmp_path / "w")
    assert tree is not None
    assert tree.is_worktree
    assert tree.own_settings
    assert tree.git_dir == f"{top}/.git/worktrees/w"
    assert tree.common_dir == f"{top}/.git"
    assert tree.hooks == (f"{(tmp_path / 'w').resolve()}/tools/hooks",)


@pytest.mark.process
def test_files_that_the_settings_include_are_found(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r").resolve()
    git(top, "config", "include.path", "../.gitconfig")
    git(top, "config", "includeIf.gitdir:/x/.path", "/srv/other")
    git(top, "config", "other.path", "not/this")
    found = find_repository(top)
    assert found is not None
    assert found.included == (f"{top}/.gitconfig", "/srv/other")


def test_no_repository_is_found_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert find_repository(tmp_path) is None


def repository_with(folder: Path, settings: str) -> Path:
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "config").write_text(settings)
    return folder.resolve()


@pytest.mark.parametrize(
    ("settings", "hooks"),
    [
        ("[core]\n\thooksPath = tools/hooks\n", ["tools/hooks"]),
        ("[core] hooksPath = tools/hooks", ["tools/hooks"]),
        ('[core]hookspath="tools/hooks" \r\n', ["tools/hooks"]),
        ("[core]\nhooksPath =\n\nbare = false\n", []),
        ("[core]\nhooksPath = \n", []),
    ],
)
def test_folders_of_hooks_are_found_as_git_reads_them(
    tmp_path: Path, settings: str, hooks: list[str]
) -> None:
    top = repository_with(tmp_path, settings)
    found = find_repository(top)
    assert found is not None
    assert list(found.hooks) == [f"{top}/{each}" for each in hooks]


@pytest.mark.parametrize(
    "word", ["\n", "[includeif\n", "[includeif", " ", "path=", "]", "hookspath"]
)
def test_no_settings_of_a_repository_take_more_than_their_length(tmp_path: Path, word: str) -> None:
    """A pattern that takes the square of the length would take hours here."""
    assert find_repository(repository_with(tmp_path, word * (1_000_000 // len(word)))) is not None
