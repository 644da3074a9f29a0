"""Settings of the CLI as structs: its sandbox for shell commands, and its plugins.

Owns the names of these settings and how they are merged into the settings of a launch. A setting
that is None is left to the CLI. Names here are snake case; the CLI's are camel case.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from quarterdeck.claude.forced_settings import read_settings
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import AnyPath


class SandboxNetwork(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What shell commands in the sandbox can reach over the network."""

    allowed_domains: tuple[str, ...] | None = None
    denied_domains: tuple[str, ...] | None = None
    """Blocked also if an allowed one matches."""
    allow_managed_domains_only: bool | None = None
    allow_unix_sockets: tuple[str, ...] | None = None
    allow_all_unix_sockets: bool | None = None
    allow_local_binding: bool | None = None
    """macOS only."""
    allow_mach_lookup: tuple[str, ...] | None = None
    """macOS only."""
    http_proxy_port: int | None = None
    socks_proxy_port: int | None = None


class SandboxFiles(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What shell commands in the sandbox can read and write, beside the working folder."""

    allow_read: tuple[str, ...] | None = None
    """Readable again, in spite of `deny_read`."""
    deny_read: tuple[str, ...] | None = None
    allow_write: tuple[str, ...] | None = None
    deny_write: tuple[str, ...] | None = None


class CliSandbox(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The CLI's own sandbox for shell commands, on macOS and Linux.

    Which files and hosts other tools may use is decided by permission rules. The sandbox of the hub
    is another one: it is around the whole CLI.
    """

    enabled: bool | None = None
    auto_allow_bash_if_sandboxed: bool | None = None
    """Run commands without a question if they run in the sandbox. The CLI's default is true."""
    excluded_commands: tuple[str, ...] | None = None
    """Commands that run outside of it."""
    allow_unsandboxed_commands: bool | None = None
    """Whether the model may ask for a command to run outside of it. The CLI's default is true."""
    fail_if_unavailable: bool | None = None
    """Refuse to start where there is no sandbox, instead of running without."""
    network: SandboxNetwork | None = None
    filesystem: SandboxFiles | None = None
    ignore_violations: Mapping[str, tuple[str, ...]] | None = None
    """Violations not to report: a part of the command, or `*`, and parts of the violation."""
    enable_weaker_nested_sandbox: bool | None = None
    """For containers without privileges. It protects less."""


class LocalPlugin(Struct, frozen=True):
    """A plugin in a folder."""

    path: AnyPath


class InstalledPlugin(Struct, frozen=True, kw_only=True):
    """A plugin of a marketplace that the CLI knows, switched on or off for this session."""

    name: str
    marketplace: str
    enabled: bool = True

    def __post_init__(self) -> None:
        """Check the names, of which one key is made."""
        for name in (self.name, self.marketplace):
            if not name.strip() or "@" in name:
                raise UsageError(f"plugins: {name!r} is not the name of a plugin or marketplace")


Plugin: TypeAlias = LocalPlugin | InstalledPlugin


def merged_settings(
    settings: AnyPath | None,
    directory: AnyPath | None,
    sandbox: CliSandbox | None,
    plugins: tuple[Plugin, ...],
) -> AnyPath | None:
    """The settings with these in them; those that are given as JSON or in a file are kept.

    Raises `UsageError` if they cannot be read.
    """
    switched = {
        f"{each.name}@{each.marketplace}": each.enabled
        for each in plugins
        if isinstance(each, InstalledPlugin)
    }
    if sandbox is None and not switched:
        return settings
    found = read_settings(settings, Path(directory or ""))
    if sandbox is not None:
        found["sandbox"] = Raw(msgspec.json.encode(sandbox))
    if switched:
        old = msgspec.json.decode(found.get("enabledPlugins", Raw(b"{}")), type=dict[str, Raw])
        more = {name: Raw(msgspec.json.encode(on)) for name, on in switched.items()}
        found["enabledPlugins"] = Raw(msgspec.json.encode({**old, **more}))
    return msgspec.json.encode(found).decode()


def plugin_folders(plugins: tuple[Plugin, ...]) -> tuple[str, ...]:
    """The folders of local plugins."""
    return tuple(os.fspath(each.path) for each in plugins if isinstance(each, LocalPlugin))
