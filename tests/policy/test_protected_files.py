"""Protected files: an edit of them needs a rule that names them, however they are written."""

from __future__ import annotations

import pytest

from quarterdeck.policy.paths import is_protected, names_protected, path_pattern
from quarterdeck.policy.protected_files import FILES, FOLDERS, names_protected_file
from quarterdeck.policy.shell import Target

PROTECTED = (
    "/project/.git/hooks/pre-commit",
    "/project/.GIT/config",
    "/project/sub/.git",
    "/project/.claude/settings.json",
    "/project/.mcp.json",
    "/project/.github/workflows/ci.yml",
    "/project/.github/actions/setup/action.yml",
    "/project/.gitlab-ci.yml",
    "/project/ci/Jenkinsfile",
    "/project/Jenkinsfile.release",
    "/project/.circleci/config.yml",
    "/project/lefthook.yml",
    "/project/.cargo/config.toml",
    "/project/.pnpmfile.cjs",
    "/project/.vscode/tasks.json",
    "/project/app.code-workspace",
    "/project/.envrc",
    "/project/mise.local.toml",
    "/project/.gitattributes",
    "/home/ada/.zshrc",
    "/home/ada/.config/fish/config.fish",
    "/home/ada/.config/systemd/user/x.service",
    "/home/ada/.local/bin/ls",
    "/home/ada/Library/LaunchAgents/x.plist",
    "/var/spool/cron/root",
    "/project/.venv/lib/python3.12/site-packages/x.pth",
    "/project/.claude/worktrees/fix/.git/config",
)
ORDINARY = (
    "/project/src/app.py",
    "/project/CLAUDE.md",
    "/project/.editorconfig",
    "/project/.gitignore",
    "/project/.github/ISSUE_TEMPLATE/bug.md",
    "/project/.github/dependabot.yml",
    "/project/gitlab-ci.yml.md",
    "/project/docs/git/hooks.md",
    "/project/model.pth",
    "/project/package.json",
    "/project/Dockerfile",
    "/project/.cargo-ok",
    "/project/.claude/worktrees/fix/src/app.py",
)


@pytest.mark.parametrize("path", PROTECTED)
def test_settings_hooks_and_pipelines_are_protected(path: str) -> None:
    assert is_protected(Target(source=path, paths=(path,)))


@pytest.mark.parametrize("path", ORDINARY)
def test_files_of_a_project_are_not(path: str) -> None:
    assert not is_protected(Target(source=path, paths=(path,)))


@pytest.mark.parametrize(
    ("pattern", "hidden", "protected"),
    [
        ("/project/.g[i]t/config", False, True),
        ("/project/.gi*/hooks/pre-commit", False, True),
        ("/project/Jenk*", False, True),
        ("/project/?enkinsfile", False, True),
        ("/project/.github/*/ci.yml", False, True),
        ("/project/.git/*", False, True),
        ("/project/**/config", True, True),
        ("/project/build/*", False, False),
        ("/project/src/*.py", False, False),
        ("/project/**/*.pyc", True, False),
        ("/project/**/__pycache__", True, False),
        ("/project/*.yml", False, False),
        ("/project/src/test_*", False, False),
    ],
)
def test_a_pattern_is_protected_if_it_is_written_to_find_such_a_file(
    pattern: str, hidden: bool, protected: bool
) -> None:
    target = Target(source=pattern, paths=(pattern,), glob=True, hidden=hidden)
    assert is_protected(target) is protected


def test_a_folder_that_holds_protected_files_counts_where_all_below_goes_with_it() -> None:
    for path in ("/project/.github", "/project/.cargo/", "/home/ada/.config"):
        assert is_protected(Target(source=path, paths=(path,), deep=True))
        assert not is_protected(Target(source=path, paths=(path,)))
    assert not is_protected(Target(source="x", paths=("/project/src",), deep=True))


def test_a_pattern_of_a_rule_must_name_the_file() -> None:
    assert names_protected(path_pattern("./.git/**"))
    assert names_protected(path_pattern(".github/workflows/*.yml"))
    assert not names_protected(path_pattern("./**"))
    assert not names_protected(path_pattern("./.github/**"))


def test_every_name_of_the_list_is_found_as_it_is_written() -> None:
    for name in " ".join((*FOLDERS, *FILES)).split():
        assert names_protected_file(f"/project/{name.replace('*', 'x')}"), name
        assert not names_protected_file(f"/project/x{name.replace('*', 'x')}x"), name
