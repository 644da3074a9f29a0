"""Protected files: those that make programs run, or say what agents may do.

Settings of shells, editors, package managers and git, hooks, and what a build server runs. A rule
that allows edits of a whole folder does not allow an edit of these: it must name them.

This module has the list, and compares paths with it. Paths are compared as text, in any case of
letters, because some file systems ignore case.
"""

from __future__ import annotations

import re
from functools import cache

from quarterdeck.policy.overlap import overlap

FOLDERS = (
    # Version control: its settings and hooks run programs.
    ".git .hg .svn .jj .husky .githooks .git-hooks .lefthook .config/git",
    # Agents.
    ".claude .cursor .windsurf .codex .gemini .continue .roo .kiro .config/goose",
    # Editors.
    ".vscode .vscode-server .idea .fleet .zed .helix .devcontainer .vim .emacs.d",
    ".config/nvim .config/helix .config/zed .config/emacs .config/Code",
    # What a build server runs.
    ".github/workflows .github/actions .gitea/workflows .forgejo/workflows .gitlab/ci",
    ".circleci .buildkite .woodpecker .teamcity .semaphore .tekton .builds .azure-pipelines",
    ".azuredevops .harness .drone .jenkins",
    # Tools that a shell or a build starts by themselves.
    ".direnv .config/direnv .config/mise .mise .asdf .mvn .gradle/init.d .yarn/plugins",
    ".yarn/releases .bundle .config/pip .config/npm .config/containers",
    # Shells, and programs that are started at login.
    ".config/fish .config/bash .config/zsh .config/nushell .config/autostart .config/systemd",
    ".config/environment.d .config/tmux .local/bin .local/share/systemd .local/share/applications",
    "Library/LaunchAgents Library/LaunchDaemons cron.d cron.daily cron.hourly cron.weekly",
    "cron.monthly spool/cron profile.d sudoers.d init.d systemd/system systemd/user ld.so.conf.d",
    # Sockets with which sessions of agents prompt each other.
    "cc-socks cc-socks-*",
    # Keys and accounts of a person.
    ".ssh .gnupg .aws .azure .kube .config/gcloud .config/gh .terraform.d",
)
"""Folders with everything in them, and files of that name, which may have `*`, separated by
blanks."""

FILES = (
    # Shells.
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_functions .profile",
    ".zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout",
    ".inputrc .xinitrc .xprofile .xsession .xsessionrc .pam_environment .screenrc .tmux.conf",
    "crontab .crontab",
    # Git, and tools that hook into it.
    ".gitconfig .gitmodules .gitattributes .hgrc .pre-commit-config.yaml .pre-commit-config.yml",
    ".pre-commit-hooks.yaml lefthook.yml lefthook.yaml lefthook.toml lefthook.json .lefthook.*",
    "lefthook-local.* .overcommit.yml .huskyrc .huskyrc.* .lintstagedrc .lintstagedrc.*",
    "lint-staged.config.* .simple-git-hooks.*",
    # Agents.
    ".mcp.json .claude.json .aider.conf.yml .cursorrules .windsurfrules",
    # Build servers.
    ".gitlab-ci.yml .gitlab-ci.yaml .travis.yml .travis.yaml .drone.yml .drone.yaml",
    ".drone.jsonnet .drone.star .woodpecker.yml .woodpecker.yaml .cirrus.yml .cirrus.star",
    "Jenkinsfile Jenkinsfile.* *.jenkinsfile azure-pipelines.yml azure-pipelines.yaml",
    "azure-pipelines-*.yml azure-pipelines.*.yml bitbucket-pipelines.yml",
    "bitbucket-pipelines.yaml appveyor.yml .appveyor.yml appveyor.yaml cloudbuild.yaml",
    "cloudbuild.yml cloudbuild.json buildspec.yml buildspec.yaml .build.yml .taskcluster.yml",
    "screwdriver.yaml codemagic.yaml bitrise.yml wercker.yml codeship-*.yml .scrutinizer.yml",
    "codefresh.yml .semaphore.yml shippable.yml .vela.yml .vela.yaml",
    # Package managers and versions of tools.
    ".npmrc .yarnrc .yarnrc.yml .yarnrc.yaml .pnpmfile.cjs .pnpmfile.mjs .pnpmfile.js .bunfig.toml",
    ".pnp.cjs .pnp.loader.mjs pip.conf pip.ini .pypirc .condarc .gemrc .bundle/config",
    ".cargo/config .cargo/config.toml .cargo/credentials .cargo/credentials.toml",
    ".m2/settings.xml .gradle/gradle.properties .envrc .tool-versions .asdfrc mise.toml",
    ".mise.toml mise.*.toml .mise.*.toml .python-version .node-version .nvmrc .ruby-version",
    ".java-version .terraformrc terraform.rc .docker/config.json .netrc _netrc",
    ".curlrc _curlrc .wgetrc",
    # Files that interpreters, debuggers and other programs load by themselves.
    "sitecustomize.py usercustomize.py site-packages/*.pth .pdbrc .pdbrc.py",
    ".pythonrc .pythonrc.py .Rprofile",
    ".Renviron .irbrc .pryrc .perldb .gdbinit .lldbinit .sqliterc .psqlrc .my.cnf .mylogin.cnf",
    ".ripgreprc .ackrc .lesskey .lessfilter .mailcap .forward .procmailrc .latexmkrc",
    "latexmkrc",
    # Editors.
    ".vimrc .gvimrc _vimrc .exrc .nvimrc .nvim.lua .lvimrc .ideavimrc .emacs .dir-locals.el",
    ".dir-locals-2.el .nanorc *.code-workspace .kateconfig",
    # Login and rights.
    "authorized_keys authorized_keys2 sudoers ld.so.preload ld.so.conf",
)
"""Files by their names, which may have `*`, separated by blanks."""

_COPIES = re.compile(r"(?:^|(?<=/))\.claude/worktrees/[^/]+/", re.IGNORECASE)
"""Copies of a project that the CLI makes. They are ordinary folders with an unfortunate name."""

_UNSPECIFIC = re.compile(r"\*+(?:\.[\w*]+)*")
_KNOWN = frozenset(
    {"config", "hooks", "info", "pre-commit", "pre-push", "commit-msg", "post-checkout"}
    | {"post-merge", "workflows", "settings.json", "settings.local.json", "tasks.json", "mcp.json"}
    | {"launch.json", "hooks.json", "index", "HEAD"}
)
"""Names of files and folders that are usually in protected folders."""
_ORDINARY = "ordinary"
"""Stands for a name that an unspecific pattern finds."""


def names_protected_file(path: str) -> bool:
    """Does a path name such a file or folder, or something in such a folder?"""
    return _expression().search(_COPIES.sub("", path)) is not None


def holds_protected_file(path: str) -> bool:
    """Is a path a folder that such a folder or file is usually in, as `.github`?"""
    return _parents().search(path.rstrip("/")) is not None


def may_name_protected_file(pattern: str, *, hidden: bool) -> bool:
    """May a pattern of a shell, or of a search, find such a file?

    A pattern for all names, or for all with an ending, is not taken to mean one of them: to ask
    about each `rm build/*` and `find -name '*.pyc' -delete` would be one question too many.
    """
    if names_protected_file(pattern):
        return True
    reach = [name for name in _COPIES.sub("", pattern).split("/") if name]
    if not reach:
        return False
    if _UNSPECIFIC.fullmatch(reach[-1]):
        reach = [_ORDINARY if _UNSPECIFIC.fullmatch(name) else name for name in reach]
    elif reach[-1] not in _KNOWN:
        # Not any folder that a search comes through, but one that is named.
        reach = [_ORDINARY if name == "**" else name for name in reach]
    return any(overlap(["**", *names], reach, hidden=hidden) for names in _names())


def _list_texts(texts: tuple[str, ...]) -> list[str]:
    return [name for text in texts for name in text.split()]


@cache
def _expression() -> re.Pattern[str]:
    folders = "|".join(re.escape(name).replace(r"\*", "[^/]*") for name in _list_texts(FOLDERS))
    files = "|".join(re.escape(name).replace(r"\*", "[^/]*") for name in _list_texts(FILES))
    return re.compile(rf"(?:^|/)(?:(?:{folders})(?:/|$)|(?:{files})$)", re.IGNORECASE)


@cache
def _parents() -> re.Pattern[str]:
    inner = [
        name.split("/") for name in (*_list_texts(FOLDERS), *_list_texts(FILES)) if "/" in name
    ]
    found = {"/".join(names[:length]) for names in inner for length in range(1, len(names))}
    names = "|".join(re.escape(name) for name in sorted(found))
    return re.compile(rf"(?:^|/)(?:{names})$", re.IGNORECASE)


@cache
def _names() -> tuple[tuple[str, ...], ...]:
    # A name that begins with `*` overlaps too much: `test_*` may be `test_x.code-workspace`.
    listed = (*_list_texts(FOLDERS), *_list_texts(FILES))
    return tuple(tuple(name.split("/")) for name in listed if not name.startswith("*"))
