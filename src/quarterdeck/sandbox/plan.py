"""From a session's rules to a `SandboxSpec`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.sandbox.repository import Repository
from quarterdeck.sandbox.spec import Limits, Network, SandboxMode, SandboxSpec


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
    """
    raise NotImplementedError
