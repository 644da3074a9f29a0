"""The settings that a CLI is started with: those that are given, and those that are forced on it.

Owns what a CLI must not do whatever its settings say: take messages of other sessions, and leave
out the hooks of who started it. It reads a file of settings, and moves the paths in it that begin
at its folder, since the CLI gets a copy. `launch` makes the arguments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw

from quarterdeck.claude.launch import AnyLaunch, version_numbers
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.launch_options import AnyPath

_T = TypeVar("_T")

INBOX = "crossSessionInbound"
REFUSE = Raw(b'"refuse"')
HAS_INBOX = (2, 1, 224)


def with_inbox_refused(
    launch: AnyLaunch, version: str | None, directory: Path, *, always: bool = False
) -> AnyLaunch:
    """The same launch, with the CLI's cross-session inbox refused where the version has one.

    A version that is not known may have one. Settings in a file are read, relative to the folder
    that the CLI starts in, and passed as text. Settings that decide about the inbox themselves are
    obeyed; with `always`, they may only refuse it too. Raises `UsageError` if they do not, or if
    they cannot be read.
    """
    if version is not None and version_numbers(version) < HAS_INBOX:
        return launch
    settings = read_settings(launch.settings, directory)
    if INBOX in settings:
        if always and not _refuses(settings[INBOX]):
            raise UsageError(f"settings: {INBOX} needs cross_session as well")
        return launch
    text = msgspec.json.encode({**settings, INBOX: REFUSE}).decode()
    return msgspec.structs.replace(launch, settings=text)


def _refuses(value: Raw) -> bool:
    return bytes(value).strip() == bytes(REFUSE)


SIMPLE = "CLAUDE_CODE_SIMPLE"
"""With this variable, as with `--bare`, the CLI calls no hooks."""
_OFF = frozenset({"", "0", "false", "no", "off"})
ALL_OFF = "disableAllHooks"
OBEYS_ALL_OFF = (2, 1, 52)
"""Before this version the setting also switched off the hooks of who started the CLI. 2.1.37 and
2.1.52 were tried. Later versions still leave out those of people and repositories, and it is not
changed there: that is what it is for."""


def is_simple(env: Mapping[str, str]) -> bool:
    """Whether a CLI with these variables calls no hooks."""
    return env.get(SIMPLE, "").strip().lower() not in _OFF


def with_hooks_called(launch: AnyLaunch, directory: Path, version: str | None = None) -> AnyLaunch:
    """The same launch, with the hooks of who started the CLI called, whatever other settings say.

    The settings of a project or a user can set variables, and up to 2.1.120 a repository could so
    switch off all hooks, and with them the rules that are held against each call. Settings of the
    command line take precedence. Raises `UsageError` if these switch the hooks off themselves.
    """
    settings = read_settings(launch.settings, directory)
    env = _variables(settings)
    merged: dict[str, object] = {**settings, "env": env | {SIMPLE: "0"}}
    if version is not None and version_numbers(version) < OBEYS_ALL_OFF:
        if bytes(settings.get(ALL_OFF, Raw(b"false"))).strip() != b"false":
            raise UsageError(
                f"settings: with {ALL_OFF} the CLI {version} calls no hooks, and no rules would"
                " hold"
            )
        merged[ALL_OFF] = False
    return msgspec.structs.replace(launch, settings=msgspec.json.encode(merged).decode())


def _variables(settings: Mapping[str, Raw]) -> dict[str, object]:
    """The variables of settings. Raises `UsageError` if they switch the hooks off."""
    try:
        env = msgspec.json.decode(settings.get("env", b"{}"), type=dict[str, object])
    except ValueError as error:
        raise UsageError(f"settings: env: {error}") from error
    if is_simple({name: str(value) for name, value in env.items()}):
        raise UsageError(f"settings: with {SIMPLE} the CLI calls no hooks, and no rules would hold")
    return env


def check_live_settings(settings: Raw, *, inbox: bool = False) -> None:
    """Check settings that a running CLI is to take up (`apply_flag_settings`).

    Raises `UsageError` if they undo what is forced on it, or cannot be read. With `inbox` they may
    open that.
    """
    try:
        given = msgspec.json.decode(settings, type=dict[str, Raw])
    except ValueError as error:
        raise UsageError(f"settings: they cannot be read: {error}") from error
    if bytes(given.get("env", Raw(b"null"))).strip() != b"null":
        _variables(given)
    if not inbox and INBOX in given and not _refuses(given[INBOX]):
        raise UsageError(f"settings: {INBOX}: messages of other sessions are refused here")


# --- files ---------------------------------------------------------------------------------------

_PATH_RULE = re.compile(
    r"(Read|Edit|Write|MultiEdit|NotebookEdit|NotebookRead|Glob|Grep|LS)\((/[^/].*)\)", re.DOTALL
)
"""A permission rule whose path begins at the folder of its file."""
_SPECIAL = frozenset("*?[]!\\()")
"""What means something in the path of a rule."""


class _Permissions(msgspec.Struct):
    allow: list[str] = []
    ask: list[str] = []
    deny: list[str] = []


class _Sandbox(msgspec.Struct):
    filesystem: dict[str, Raw] = {}


def read_settings(settings: AnyPath | None, directory: Path) -> dict[str, Raw]:
    """Settings as the CLI takes them: JSON, or the path of a file. Raises `UsageError`.

    Paths that begin at the folder of a file are whole paths in what is returned.
    """
    if settings is None:
        return {}
    text = os.fspath(settings)
    try:
        if text.lstrip().startswith("{"):
            return msgspec.json.decode(text, type=dict[str, Raw])
        file = Path(os.path.abspath(directory / text))  # noqa: PTH100 - links stay as they are
        found = msgspec.json.decode(file.read_text(encoding="utf-8-sig"), type=dict[str, Raw])
    except (OSError, ValueError) as error:
        raise UsageError(f"settings: they cannot be read: {error}") from error
    return _with_whole_paths(found, file.parent)


def _with_whole_paths(settings: dict[str, Raw], folder: Path) -> dict[str, Raw]:
    rules = _decode_as(settings.get("permissions"), _Permissions)
    if rules is not None and any(
        map(_PATH_RULE.fullmatch, (*rules.allow, *rules.ask, *rules.deny))
    ):
        settings = _with_whole_rules(settings, rules, folder)
    box = _decode_as(settings.get("sandbox"), _Sandbox)
    if box is not None and box.filesystem:
        places = {name: _whole_places(value, folder) for name, value in box.filesystem.items()}
        settings = _with_change(settings, "sandbox", {"filesystem": places})
    return settings


def _with_whole_rules(
    settings: dict[str, Raw], rules: _Permissions, folder: Path
) -> dict[str, Raw]:
    if _SPECIAL & set(str(folder)):
        raise UsageError(
            f"settings: a rule begins at the folder {folder}, whose name cannot be in a rule"
        )
    found = msgspec.json.decode(settings["permissions"], type=dict[str, Raw])
    whole: dict[str, object] = {
        name: [_whole_rule(rule, folder) for rule in getattr(rules, name)]
        for name in ("allow", "ask", "deny")
        if name in found
    }
    return _with_change(settings, "permissions", whole)


def _whole_rule(rule: str, folder: Path) -> str:
    if (match := _PATH_RULE.fullmatch(rule)) is None:
        return rule
    tool, path = match.groups()
    return f"{tool}(/{folder}{path})"


def _whole_places(value: Raw, folder: Path) -> object:
    places = _decode_as(value, list[str])
    if places is None:
        return value
    return [
        place if place.startswith(("/", "~")) else os.path.normpath(folder / place)
        for place in places
    ]


def _with_change(
    settings: dict[str, Raw], name: str, change: Mapping[str, object]
) -> dict[str, Raw]:
    old = msgspec.json.decode(settings[name], type=dict[str, Raw])
    return {**settings, name: Raw(msgspec.json.encode({**old, **change}))}


def _decode_as(value: Raw | None, kind: type[_T]) -> _T | None:
    """A value, if it is of this kind. The CLI says what is wrong with others."""
    try:
        return None if value is None else msgspec.json.decode(value, type=kind)
    except ValueError:
        return None
