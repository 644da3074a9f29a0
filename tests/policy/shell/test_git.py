"""git: what it runs, writes and reads beyond its own work."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.git import git, git_without_options
from quarterdeck.policy.shell.script import Word
from support.shell_words import HERE, said, words


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("git status -s", []),
        ("git log --oneline -n 3", []),
        ("git", []),
        ("git -c user.name=a commit", []),
        ("git -c core.sshCommand=a fetch", ["runs core.sshCommand"]),
        ("git -ccore.pager=a log", ["runs core.pager"]),
        ("git -C a status", ["reads /w/a"]),
        ("git --git-dir=a status", ["runs --git-dir"]),
        ("git --git-d a status", ["runs --git-d"]),
        ("git --exec-path=a status", ["runs --exec-path"]),
        ("git $x", ["runs $x"]),
        ("git -C a $x", ["reads /w/a", "runs $x"]),
        ("git fetch --upload-pack=a", ["runs --upload-pack"]),
        ("git fetch --upl=a", ["runs --upload-pack"]),
        ("git clone ext::sh", ["runs ext::sh"]),
        ("git grep -O a", ["runs -O"]),
        ("git grep a", []),
        ("git config a b", ["alters config"]),
        ("git remote add a b", ["alters add"]),
        ("git remote -v", []),
        ("git lfs pull", ["runs lfs"]),
        ("git diff --output=a", ["writes /w/a"]),
        ("git archive -o a HEAD", ["writes /w/a"]),
        ("git bundle create a HEAD", ["writes /w/a"]),
        ("git bundle verify a", []),
        ("git diff --no-index a /b", ["reads /w/a", "reads /b"]),
        ("git init a", ["writes /w/a"]),
        ("git clone https://host/a b", ["writes /w/b"]),
        ("git worktree add a", ["writes /w/a"]),
    ],
)
def test_what_git_does_beyond_its_own_work_is_told(text: str, effects: list[str]) -> None:
    assert said(git(words(text), HERE).effects) == effects


@pytest.mark.parametrize(
    ("given", "scripts"),
    [
        (words("git rebase -x", "'make test'"), ("make test",)),
        (words("git rebase", "--exec='a; b'", "main"), ("a; b",)),
        (words("git bisect run make test"), ("make test",)),
        (words("git submodule foreach --recursive", "'git pull'"), ("git pull",)),
        (words("git rebase main"), ()),
    ],
    ids=["rebase -x", "rebase --exec", "bisect run", "submodule foreach", "none"],
)
def test_texts_that_git_gives_to_a_shell_are_scripts(
    given: tuple[Word, ...], scripts: tuple[str, ...]
) -> None:
    assert git(given, HERE).scripts == scripts


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("git push origin", "push origin"),
        ("git -C a push", "push"),
        ("git -c a=b --no-pager push -f", "push -f"),
        ("git --git-dir=a push", "push"),
        ("git --git-dir a push", "push"),
        ("git --exec-path push", "push"),
        ("git --version", ""),
        ("git -C", ""),
    ],
)
def test_git_without_its_options_begins_with_the_subcommand(text: str, rest: str) -> None:
    assert git_without_options(text.split()) == rest.split()
