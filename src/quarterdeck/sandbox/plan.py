"""From a session's rules to a `SandboxSpec`: which paths are writable, read-only and hidden. Pure.

The runner is above; it knows the folders of its machine. `lists` beside it has the names. It looks
at no file: whether a path exists is found out when the sandbox is opened.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from quarterdeck.domain.errors import UsageError
from quarterdeck.sandbox import lists
from quarterdeck.sandbox.repository import Repository
from quarterdeck.sandbox.spec import (
    Limits,
    Network,
    NetworkKind,
    SandboxMode,
    SandboxSpec,
)

MODEL_HOSTS = (
    "api.anthropic.com",
    "console.anthropic.com",
    "platform.claude.com",
    "claude.ai",
    "statsig.anthropic.com",
)
"""The hosts that the CLI itself needs: the model, and the login of a subscription."""


def plan(
    mode: SandboxMode,
    *,
    project: str,
    home: str,
    temporary: str,
    repository: Repository | None = None,
    config_dir: str | None = None,
    private: Sequence[str] = (),
    open_folders: Sequence[str] = (),
    deny_read: Sequence[str] = (),
    deny_edit: Sequence[str] = (),
    allow_edit: Sequence[str] = (),
    network: Network | None = None,
    limits: Limits | None = None,
    model_url: str | None = None,
    user: int = 0,
) -> SandboxSpec:
    """Make the spec of one CLI.

    `project` is the folder that the CLI starts in. `private` are the hub's and the runner's own
    folders, and `open_folders` are folders inside them where agents work. The paths of `private`
    and of the rules begin with `/`, `~/` (the home folder) or `./` (the project), and those of the
    rules may have wildcards. `config_dir` is the CLI's own folder, if it is not `~/.claude`.
    `model_url` is the address of the model, if it is not Anthropic's. `user` is the user's number.

    Raises `UsageError` for a path that is not absolute, and for a project that would open
    everything: the root folder.
    """
    if mode is SandboxMode.OFF:
        return SandboxSpec()
    at = _Places(project=project, home=home)
    if at.project == "/":
        raise UsageError("the root folder cannot be the project of a sandbox")
    strict = mode is SandboxMode.STRICT
    cli = _CliFolder(config_dir=config_dir, at=at, user=user)
    git = _git_paths(repository, at)
    # A rule for the whole disk cannot be meant for this: it opens nothing.
    opened = [path for path in _folders(at.all(allow_edit)) if not _is_everything(path)]
    caches = [] if strict else at.in_home(lists.names(lists.CACHES))
    made = [] if strict else at.in_home(lists.names(lists.MADE_CACHES))
    writable = [at.project, *git.writable, *cli.writable, temporary, *caches, *opened]
    reserved = [*at.in_project(lists.names(lists.RESERVED)), *git.reserved]
    # In the mode `strict` the home folder is hidden, unless the session works in it.
    around = at.home == at.project or _is_in(at.home, at.project)
    startup = at.in_home(lists.names(lists.STARTUP)) if around or not strict else []
    read_only = [
        *at.in_project(lists.names(lists.PROTECTED)),
        *startup,
        *reserved,
        *git.read_only,
        *_folders(at.all(deny_edit)),
    ]
    if strict:
        read_only += [*at.in_home(lists.names(lists.TOOLCHAINS)), *cli.visible]
    hidden = [
        *at.in_home(lists.names(lists.SECRETS)),
        *lists.names(lists.SYSTEM_SECRETS),
        *(path.format(user=user) for path in lists.names(lists.SERVICES)),
        *_folders(at.all(private)),
        *_folders(at.all(deny_read)),
        *([at.home] if strict else []),
    ]
    # A session may work in a folder that is hidden from others, as in /root; then the work decides.
    hidden = [path for path in hidden if path not in {at.project, temporary, *at.all(open_folders)}]
    if not strict:
        hidden = [path for path in hidden if path != at.home]
    # What a rule allows by its own name is no longer protected.
    named = {path for path in opened if path != at.project}
    return SandboxSpec(
        mode=mode,
        writable=_unique(writable),
        read_only=_unique(path for path in read_only if path not in named),
        hidden=_unique(hidden),
        created=_unique([*cli.created, *made]),
        reserved=_unique(path for path in reserved if path not in named),
        yielding=git.yielding,
        private=_unique(cli.private),
        copied=_unique(cli.copied),
        temporary=temporary,
        network=_network(network, strict=strict, model_url=model_url),
        limits=limits or Limits(),
    )


class _Places:
    """The folders that relative paths begin at."""

    def __init__(self, *, project: str, home: str) -> None:
        self.project = _absolute(project)
        self.home = _absolute(home)

    def in_project(self, names: Iterable[str]) -> list[str]:
        return _inside(self.project, names)

    def in_home(self, names: Iterable[str]) -> list[str]:
        return _inside(self.home, names)

    def all(self, paths: Iterable[str]) -> list[str]:
        return [self.full(path) for path in paths]

    def full(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        elif path == "." or path.startswith("./"):
            path = self.project + path[1:]
        return _absolute(path)


class _CliFolder:
    """The CLI's own folder: what it writes there, and what it only reads."""

    def __init__(self, *, config_dir: str | None, at: _Places, user: int) -> None:
        folder = at.full(config_dir) if config_dir else posixpath.join(at.home, ".claude")
        inside = posixpath.join
        # With a folder of its own, the CLI has this file there, and else beside it.
        state = inside(folder if config_dir else at.home, ".claude.json")
        shared = f"/tmp/claude-{user}"  # noqa: S108 - the CLI's own name for its temporary files
        self.private = [*(inside(folder, name) for name in lists.CLI_PRIVATE), shared]
        self.copied = [state]
        self.created = [
            *(inside(folder, name) for name in lists.names(lists.CLI_WRITES)),
            *self.private,
        ]
        more = (*lists.CLI_FILES, *lists.CLI_WRITES_IF_THERE)
        files = [inside(folder, name) for name in lists.names(more)]
        self.writable = [*self.created, *files, state]
        self.visible = [folder]


class _GitPaths:
    """The paths of a repository."""

    def __init__(self) -> None:
        self.writable: list[str] = []
        self.read_only: list[str] = []
        self.reserved: list[str] = []
        self.yielding: tuple[str, ...] = ()


def _git_paths(repository: Repository | None, at: _Places) -> _GitPaths:
    made = _GitPaths()
    if repository is None:
        return made
    own, common = repository.git_dir, repository.common_dir
    made.writable = list(dict.fromkeys((common, own)))
    made.read_only = [posixpath.join(common, name) for name in lists.names(lists.GIT_READ_ONLY)]
    made.reserved = [posixpath.join(common, name) for name in lists.names(lists.GIT_RESERVED)]
    if repository.is_worktree:
        ours = [posixpath.join(own, name) for name in lists.names(lists.WORKTREE_READ_ONLY)]
        made.read_only += ours
        made.yielding = tuple(ours)
    entry = posixpath.join(repository.top, ".git")
    if entry != own:
        made.read_only.append(entry)  # a file that leads to the repository
    if repository.own_settings:
        made.reserved += [posixpath.join(each, "config.worktree") for each in made.writable]
    made.read_only += [*repository.hooks, *repository.included]
    made.reserved += [path for path in repository.hooks if _is_in(path, at.project)]
    return made


def _network(network: Network | None, *, strict: bool, model_url: str | None) -> Network:
    kind = network.kind if network else NetworkKind.MODEL if strict else NetworkKind.ALL
    if kind is NetworkKind.ALL:
        return Network()
    listed = network.hosts if network and kind is NetworkKind.HOSTS else ()
    return Network(kind=kind, hosts=_unique((*model_hosts(model_url), *listed)))


def model_hosts(model_url: str | None) -> tuple[str, ...]:
    """The hosts of the model at an address; Anthropic's if there is none."""
    if not model_url:
        return MODEL_HOSTS
    try:
        parts = urlsplit(model_url)
        port = parts.port or (80 if parts.scheme == "http" else 443)
    except ValueError as error:
        raise UsageError(f"the model's address {model_url!r} is not valid") from error
    if not parts.hostname:
        raise UsageError(f"the model's address {model_url!r} names no host")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return (f"{name}:{port}",)


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise UsageError(f"{path!r} is not an absolute path")
    return posixpath.normpath("/" + path.lstrip("/"))


def _folders(paths: Iterable[str]) -> list[str]:
    """Patterns for all that is in a folder, as that folder."""
    return [_folder(path) for path in paths]


def _folder(path: str) -> str:
    while path.endswith(("/**", "/*")):
        path = path.rpartition("/")[0]
    return path or "/"


def _inside(folder: str, names: Iterable[str]) -> list[str]:
    """Relative names below a folder."""
    prefix = folder.rstrip("/") + "/"
    return [prefix + name for name in names]


def _is_everything(path: str) -> bool:
    return path == "/" or is_pattern(path.split("/")[1])


def _is_in(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def is_pattern(path: str) -> bool:
    """Whether a path has wildcards: it is expanded when the sandbox is opened."""
    return "*" in path or "?" in path or "[" in path


def _unique(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))
