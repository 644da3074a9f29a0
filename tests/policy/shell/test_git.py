"""git: what it runs, writes and reads beyond its own work, and what only looks."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.git import git_without_options
from quarterdeck.policy.shell.programs import look_up
from quarterdeck.policy.shell.script import Effect
from quarterdeck.policy.shell.working_dir import WorkingDir
from support.shell_words import HERE, said, words


def known(text: str, *more: str, here: WorkingDir = HERE) -> ProgramEffects:
    return look_up(words(text, *more), here, None)


def beyond(effects: Iterable[Effect]) -> list[str]:
    """The effects in short, without the folder that git works in."""
    return said(each for each in effects if each.target is None or not each.target.repository)


@pytest.mark.parametrize(
    "text",
    [
        "git status",
        "git status -sb --porcelain=v2",
        "git log",
        "git log --oneline --graph --all -5",
        "git log --since=yesterday --author=a --format=%h",
        "git log -n 3 -p --stat",
        "git diff",
        "git diff --cached --name-only",
        "git --no-pager diff -U3 -w",
        "git -P show",
        "git show --stat HEAD",
        "git show",
        "git blame -L 1,3 a",
        "git shortlog -sn",
        "git branch",
        "git branch -a -vv",
        "git branch --show-current",
        "git branch --merged",
        "git branch --merged main",
        "git branch --list a",
        "git branch --contains HEAD",
        "git tag",
        "git tag -l v* --sort=-v:refname",
        "git tag -n3",
        "git remote",
        "git remote -v",
        "git remote get-url origin",
        "git remote show origin",
        "git stash list",
        "git stash show -p",
        "git grep -n a",
        "git describe --tags --always",
        "git rev-parse --abbrev-ref HEAD",
        "git rev-parse --show-toplevel",
        "git ls-files",
        "git ls-tree -r HEAD",
        "git cat-file -t HEAD",
        "git reflog",
        "git reflog show -3",
        "git worktree list",
        "git config --get user.name",
        "git config -l",
        "git config user.name",
        "git name-rev HEAD",
        "git merge-base a b",
        "git rev-list --count HEAD",
        "git count-objects -v",
        "git for-each-ref --format=%(refname)",
        "git show-ref",
        "git symbolic-ref HEAD",
        "git whatchanged -1",
        "git range-diff a b c",
        "git cherry -v",
        "git check-ignore a",
        "git version",
        "git --version",
        "git notes show",
        "git bisect log",
        "git log --find-object HEAD",
    ],
)
def test_commands_that_only_look(text: str) -> None:
    found = known(text)
    assert found.looks
    assert all(each.startswith("reads") for each in beyond(found.effects))


@pytest.mark.parametrize(
    "text",
    [
        "git branch a",
        "git branch -d a",
        "git branch --del a",
        "git branch -u origin/main",
        "git branch --edit-description",
        "git tag v1",
        "git tag -d v1",
        "git tag -v v1",
        "git stash",
        "git stash pop",
        "git remote add a b",
        "git remote update",
        "git config a.b c",
        "git config --unset a.b",
        "git config --edit",
        "git reflog expire --all",
        "git worktree add a",
        "git symbolic-ref HEAD a",
        "git notes add -m a",
        "git fetch",
        "git log --output=a",
        "git log --stdin",
        "git log --no-such-option",
        "git log $x",
        "git cat-file --batch",
        "git grep -O a",
        "git difftool",
        "git submodule status",
        "git foo",
        "git -c core.pager=a log",
        "git --git-dir=a log",
        "git --exec-path=a log",
        "git add -A",
        "git commit -m a",
    ],
)
def test_commands_that_do_more_than_looking(text: str) -> None:
    assert not known(text).looks


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("git", []),
        ("git -c user.name=a commit -m b", []),
        ("git add -A", []),
        ("git commit --amend --no-edit", []),
        ("git push --force-with-lease origin main", []),
        ("git rebase -i main", []),
        ("git -c core.sshCommand=a fetch", ["runs core.sshCommand"]),
        ("git -ccore.pager=a log", ["runs core.pager"]),
        ("git --git-dir=a status", ["runs --git-dir"]),
        ("git --git-dir a status", ["runs --git-dir"]),
        ("git --exec-path=a status", ["runs --exec-path"]),
        ("git $x", ["runs $x", "reads ?", "writes ?"]),
        ("git fetch --upload-pack=a", ["runs --upload-pack"]),
        ("git fetch --upl=a", ["runs --upl"]),
        ("git grep -O a", ["runs -O"]),
        ("git grep --open a", ["runs --open"]),
        ("git config a b", ["alters config", "writes /w/.git/config"]),
        ("git config --global a b", ["alters config", "writes ~/.gitconfig"]),
        ("git config --glob a b", ["alters config", "writes ~/.gitconfig"]),
        ("git config --system a b", ["alters config", "writes /etc/gitconfig"]),
        ("git config user.name b", ["alters config"]),
        ("git config a --get", ["alters config", "writes /w/.git/config"]),
        ("git diff --output=-", ["writes /w/-"]),
        ("git symbolic-ref HEAD refs/heads/a", []),
        ("git symbolic-ref config refs/heads/a", ["writes /w/.git/config"]),
        ("git update-ref hooks/a HEAD", ["writes /w/.git/hooks/a"]),
        ("git remote add a b", ["alters add"]),
        ("git remote -v add a b", ["alters add"]),
        ("git submodule --quiet update", ["runs update"]),
        ("git lfs pull", ["runs lfs", "reads /w/pull", "writes /w/pull"]),
        ("git diff --output=a", ["writes /w/a"]),
        ("git log --output a", ["writes /w/a"]),
        ("git stash show --output=a", ["writes /w/a"]),
        ("git archive -o a HEAD", ["writes /w/a"]),
        ("git bundle create a HEAD", ["writes /w/a"]),
        ("git bundle verify a", ["reads /w/a"]),
        ("git diff --no-index a /b", ["reads /w/a", "reads /b"]),
        ("git diff /dev/null .env", ["reads /w/.env"]),
        ("git init a", ["writes /w/a"]),
        ("git worktree add a", ["writes /w/a"]),
        ("git checkout-index -a --prefix=/x/", ["writes /x"]),
        ("git fast-export --export-m=/x --all", ["writes /x"]),
        ("git bugreport -o /x", ["writes /x"]),
        ("git commit -F /x", ["reads /x"]),
        ("git commit -aF/x", ["reads /x"]),
        ("git notes add -F /x", ["reads /x"]),
        ("git tag -F /x v1", ["reads /x"]),
        ("git hash-object -w /x", ["reads /x"]),
        ("git blame --contents .env a", ["reads /w/.env", "reads /w/a"]),
        ("git blame --ignore-revs=.env a", ["reads /w/.env", "reads /w/a"]),
        ("git config -f .env -l", ["reads /w/.env"]),
        ("git difftool", ["runs difftool"]),
    ],
)
def test_what_git_does_beyond_its_own_work_is_told(text: str, effects: list[str]) -> None:
    assert beyond(known(text).effects) == effects


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("git clone ext::sh", {"runs ext::sh"}),
        ("git remote add a ext::sh", {"runs ext::sh", "alters add"}),
        ("git clone https://host/a b", {"writes /w/b"}),
        ("git clone https://host/a.git", {"writes /w/a"}),
        ("git clone /x/a b", {"reads /x/a", "writes /w/b"}),
        ("git push ../x main", {"writes /x"}),
        ("git fetch /x", {"reads /x"}),
        ("git credential-store --file /x get", {"runs credential-store", "reads /x"}),
        ("git credential-store --file=/x get", {"runs credential-store", "reads /x"}),
        ("git submodule foreach a", {"runs foreach"}),
        ("git bisect run a", {"runs run"}),
        ("git init --template=a .", {"writes /w/.git", "runs --template"}),
        ("git maintenance register", {"writes ~/.gitconfig", "writes /w/.git/hooks"}),
        ("git lfs install", {"writes ~/.gitconfig", "writes /w/.git/hooks"}),
        ("git mv a /x", {"writes /w/a", "writes /x"}),
        ("git checkout HEAD -- a", {"writes /w/a"}),
        ("git add --pathspec-from-file=a", {"reads /w/a", "runs --pathspec-from-file"}),
    ],
)
def test_addresses_folders_and_unknown_commands_are_told(text: str, effects: set[str]) -> None:
    assert effects <= set(beyond(known(text).effects))


@pytest.mark.parametrize(
    "text",
    [
        "git show HEAD:.env",
        "git show :.env",
        "git show :0:.env",
        "git show HEAD:./.env",
        "git cat-file -p HEAD:.env",
        "git log -p -- .env",
        "git log -L1,3:.env",
        "git log -L :name:.env",
        "git diff HEAD -- ':(top).env'",
        "git diff HEAD -- :/.env",
        "git blame .env",
        "git grep a -- .env",
        "git grep -e a .env",
        "git archive HEAD .env",
        "git config --blob=HEAD:.env -l",
        "git show .env",
        "git log --find-object HEAD:.env",
        "git restore -p .env",
        "git checkout -p HEAD .env",
        "git reset -p .env",
    ],
)
def test_a_file_is_found_in_whatever_way_it_is_named(text: str) -> None:
    assert "reads /w/.env" in said(known(text).effects)


def test_patterns_of_git_also_mean_files_with_a_dot_and_in_folders() -> None:
    targets = [each.target for each in known("git diff -- '*.env'").effects if each.target]
    found = {path for target in targets if target.glob for path in target.paths}
    assert {"/w/.env", "/w/*.env", "/w/**/.env", "/w/**/*.env"} <= found


def test_a_file_whose_case_does_not_matter_is_not_known() -> None:
    assert "reads ?" in said(known("git log -- ':(icase).ENV'").effects)
    assert "reads ?" in said(known("git --icase-pathspecs log -- .ENV").effects)


def test_paths_in_a_revision_are_relative_to_the_top_of_the_repository() -> None:
    below = HERE.into(words("src")[0])
    assert "reads /w/.env" in said(known("git show HEAD:.env", here=below).effects)


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("git status", ("/w",)),
        ("git -C a status", ("/w/a",)),
        ("git -C a -C b status", ("/w/a/b",)),
        ("git -C /x status", ("/x",)),
        ("git -C $x status", ()),
    ],
)
def test_the_folder_that_git_works_in_is_told(text: str, folder: tuple[str, ...]) -> None:
    found = [each.target for each in known(text).effects if each.target is not None]
    assert [target.paths for target in found if target.repository] == [folder]


@pytest.mark.parametrize(
    ("text", "more", "scripts"),
    [
        ("git rebase -x", ("'make test'",), ("make test",)),
        ("git rebase", ("--exec='a; b'", "main"), ("a; b",)),
        ("git bisect run make test", (), ("make test",)),
        ("git submodule foreach --recursive", ("'git pull'",), ("git pull",)),
        ("git -c alias.x=push x origin", (), ("git push origin",)),
        ("git -c", ("'alias.x=!git push'", "x", "origin"), ("git push origin",)),
        ("git-push origin main", (), ("git push origin main",)),
        ("/usr/lib/git-core/git-push origin main", (), ("git push origin main",)),
        ("git rebase main", (), ()),
    ],
)
def test_texts_that_git_gives_to_a_shell_are_scripts(
    text: str, more: tuple[str, ...], scripts: tuple[str, ...]
) -> None:
    assert known(text, *more).scripts == scripts


def test_hosts_that_git_contacts_are_told() -> None:
    assert known("git clone https://host/a").fetches == ("https://host/a",)
    assert known("git push origin main").fetches == ()


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


@pytest.mark.parametrize(
    "word",
    [
        "$(git merge-base main HEAD)..HEAD",
        '"$(git merge-base main HEAD)"',
        "$(git rev-parse --short HEAD)",
        "$(git describe --tags --abbrev=0)..HEAD",
    ],
)
def test_revisions_that_git_itself_finds_are_known(word: str) -> None:
    assert known("git log --oneline", word).looks


@pytest.mark.parametrize(
    "word", ["$(git rev-parse .env)", "$(git log -1)", "$(git merge-base $x HEAD)", "$(cat x)"]
)
def test_other_words_that_are_found_at_run_time_are_not(word: str) -> None:
    assert not known("git log --oneline", word).looks
