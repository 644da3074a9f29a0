"""The launch options of a CLI, and the argv made of them.

Owns the checks of the options; `domain.launch_options` lists them. It starts nothing. Options that
travel in `initialize` are not here, but in `agent.options`.

Every value is written as `--flag=value`, in one argument. So no value is taken for a flag, whatever
it begins with, and a flag with several values does not swallow the arguments after it. All versions
from 2.1.37 on accept that form, also with an empty value.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from quarterdeck.claude.flags import SINCE, UNTIL
from quarterdeck.claude.launch_fields import LaunchFields
from quarterdeck.domain.errors import UnsupportedError, UsageError
from quarterdeck.domain.launch_options import (
    LONGEST_ARGUMENT,
    OPTIONS,
    SWITCHED_BY_US,
    Kind,
    Option,
)

_WORD = re.compile(r"[A-Za-z][\w.:\[\]-]*")
_FLAG_NAME = re.compile(r"[A-Za-z][\w-]*")


class Launch(LaunchFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of one CLI process. Options that are not set use the CLI's settings and defaults.

    Texts that hold JSON (`settings`, `mcp_config`, `agents`, `json_schema`) are passed unchanged;
    `settings` and `mcp_config` may also be paths. `flags.SINCE` lists the versions that options
    need, and `require_support` refuses options that a version does not support.
    """

    permission_prompts: bool = True
    """Whether the CLI asks over the link for permission."""
    extra_args: dict[str, str | None] = msgspec.field(default_factory=dict)
    """Flags that have no option here: name without dashes → value, or None for a switch."""

    def __post_init__(self) -> None:
        """Check the options before a process is started."""
        _check_values(self)
        _check_session(self)
        _check_pairs(self)
        _check_extra(self)


FORGETFUL = ((2, 1, 90), (2, 1, 100))
"""From the one to the other `--continue` looks past the sessions of programs. Both neighbours,
2.1.89 and 2.1.101, were tried and find them."""


ARGUMENT_FOLDER = "quarterdeck-launch-"
"""How the names of folders of `ArgumentFiles` begin."""


class ArgumentFiles:
    """A private folder for values that are too long or too private for an argument.

    It is deleted on `close`.

    The CLI reads such a file while it starts: close it when the process has ended.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def write(self, option: str, text: str) -> str:
        """Keep `text` in a file that only this user can read; gives its path."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=ARGUMENT_FOLDER)
        self._count += 1
        path = Path(self._folder.name) / f"{self._count}-{option}"
        path.write_text(text, encoding="utf-8")
        return str(path)

    @property
    def folder(self) -> str | None:
        """The folder, if anything was written."""
        return self._folder.name if self._folder is not None else None

    def close(self) -> None:
        """Remove the files. Safe to call twice."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def to_argv(launch: Launch, files: ArgumentFiles | None = None) -> list[str]:
    """The CLI's arguments for `launch`, without the command itself.

    A value that is too long for one argument is written to a file of `files`, if the CLI can read
    that option from a file. Raises `UsageError` if it cannot, or if `files` is missing. The JSON of
    settings and of MCP servers always goes to `files` if given, since others can read arguments.
    """
    argv = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
    if launch.permission_prompts and launch.sdk_url is None:
        argv += ["--permission-prompt-tool", "stdio"]  # over a WebSocket the CLI asks unbidden
    for option in OPTIONS:
        argv += _arguments(option, getattr(launch, option.name), files)
    for name, value in launch.extra_args.items():
        argv.append(f"--{name}" if value is None else f"--{name}={value}")
    return argv


def require_support(launch: Launch, version: str) -> None:
    """Raise `UnsupportedError` for an option that `version` does not have.

    The CLI would refuse it too, but only after its start, and as an unknown flag. A version that is
    newer than all in the table is taken to have what the newest of them has.
    """
    numbers = version_numbers(version)
    if launch.continue_ and FORGETFUL[0] <= numbers <= FORGETFUL[1]:
        raise UnsupportedError(
            "continue_ (it would begin a new conversation: name the session with resume)",
            version=version,
        )
    for option in _chosen_options(launch):
        if (until := UNTIL.get(option.name)) and numbers > version_numbers(until):
            raise UnsupportedError(
                f"{option.name} ({option.flag}: the last version that has it is {until})",
                version=version,
            )
        if (since := SINCE.get(option.name)) and numbers < version_numbers(since):
            raise UnsupportedError(f"{option.name} ({option.flag})", version=version, since=since)


def _arguments(option: Option, value: object, files: ArgumentFiles | None) -> list[str]:
    match option.kind, value:
        case _, None | ():
            # An empty tuple means «none» where the flag can say so, else the option is not set.
            return [f"{option.flag}="] if value == () and option.kind is Kind.COMMAS_OR_NONE else []
        case Kind.SWITCH, bool():
            return [option.flag] if value else []
        case Kind.SWITCH_OFF, bool():
            return [] if value else [option.flag]
        case ((Kind.COMMAS | Kind.COMMAS_OR_NONE), tuple()):
            return [_argument(option, ",".join(value), files)]
        case Kind.EACH, tuple():
            return [_argument(option, os.fspath(each), files) for each in value]
        case Kind.NUMBER, (int() | float()):
            return [f"{option.flag}={value}"]
        case Kind.VALUE, (str() | os.PathLike()):
            return [_argument(option, os.fspath(value), files)]
        case _:
            raise UsageError(f"{option.name}: {type(value).__name__} is not a valid type for it")


def _argument(option: Option, value: str, files: ArgumentFiles | None) -> str:
    size = len(value.encode("utf-8", "surrogateescape"))
    # Everybody on the machine can read a process's arguments, and JSON of these may hold secrets.
    private = option.json is not None and files is not None and value.lstrip().startswith("{")
    if size <= LONGEST_ARGUMENT and not (private and option.file_flag is not None):
        return f"{option.flag}={value}"
    if option.file_flag is None:
        raise UsageError(
            f"{option.name}: {size} bytes are too many for one argument of a process"
            ", and the CLI cannot read this option from a file"
        )
    if files is None:
        raise UsageError(
            f"{option.name}: {size} bytes need a file: pass ArgumentFiles to to_argv()"
        )
    return f"{option.file_flag}={files.write(option.name, value)}"


def _chosen_options(launch: Launch) -> list[Option]:
    """The options that differ from the defaults, which work on every version."""
    plain = Launch()
    return [each for each in OPTIONS if getattr(launch, each.name) != getattr(plain, each.name)]


def version_numbers(version: str) -> tuple[int, ...]:
    """The three numbers of a version, to compare it with another."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _check_values(launch: Launch) -> None:
    for option in OPTIONS:
        value: object = getattr(launch, option.name)
        items = value if isinstance(value, tuple) else () if value is None else (value,)
        if isinstance(value, str) and option.several:
            raise UsageError(f"{option.name}: expected a tuple, got one text")
        for item in items:
            _check_item(option, item)


def _check_item(option: Option, item: object) -> None:
    if option.kind is Kind.NUMBER:
        if isinstance(item, bool) or not isinstance(item, int | float) or not item >= option.least:
            raise UsageError(f"{option.name}: {item!r} is not a number of at least {option.least}")
        return
    if isinstance(item, bool):
        return
    if not isinstance(item, str | os.PathLike):
        raise UsageError(f"{option.name}: {type(item).__name__} is not a valid type for it")
    text = os.fspath(item)
    if "\0" in text:
        raise UsageError(f"{option.name}: it contains a NUL character")
    if not text.strip() and not option.may_be_empty:
        raise UsageError(f"{option.name}: it is empty; omit it instead")
    if option.word and not _WORD.fullmatch(text):
        raise UsageError(f"{option.name}: {text!r} is not a name")
    if option.json == "only" or (option.json == "or path" and text.lstrip().startswith("{")):
        _check_json(option.name, text)


def _check_json(option: str, text: str) -> None:
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise UsageError(f"{option}: it is not a JSON object: {error}") from error


def _check_session(launch: Launch) -> None:
    resuming = launch.resume is not None or launch.continue_
    if launch.resume is not None and launch.continue_:
        raise UsageError("resume and continue_ cannot be combined")
    if launch.fork_session and not resuming:
        raise UsageError("fork_session: there is nothing to fork without resume or continue_")
    if launch.session_id is not None:
        try:
            uuid.UUID(launch.session_id)
        except ValueError:
            raise UsageError(f"session_id: {launch.session_id!r} is not a UUID") from None
        if resuming and not launch.fork_session:
            raise UsageError("session_id: a resumed session has one already; add fork_session")
    if launch.resume_session_at is not None and launch.resume is None:
        raise UsageError("resume_session_at: it names a message of the session in resume")
    if launch.resume_drops_turn is not None and launch.resume is None:
        raise UsageError("resume_drops_turn: it names a turn of the session in resume")


def _check_pairs(launch: Launch) -> None:
    for text, file in (
        ("system_prompt", "system_prompt_file"),
        ("append_system_prompt", "append_system_prompt_file"),
        ("thinking", "max_thinking_tokens"),
    ):
        if getattr(launch, text) is not None and getattr(launch, file) is not None:
            raise UsageError(f"{text} and {file} cannot be combined")
    if launch.model is not None and launch.model == launch.fallback_model:
        raise UsageError("fallback_model: it is the same as model")
    if launch.sdk_url is not None and not launch.sdk_url.startswith(("ws://", "wss://")):
        raise UsageError(
            "sdk_url: the CLI connects only to ws:// or wss://, else it exits silently"
        )


def _check_extra(launch: Launch) -> None:
    ours = {option.flag: option.name for option in OPTIONS}
    ours |= {option.file_flag: option.name for option in OPTIONS if option.file_flag}
    for name, value in launch.extra_args.items():
        if not _FLAG_NAME.fullmatch(name):
            raise UsageError(f"extra_args: {name!r} is not a flag (write it without dashes)")
        if f"--{name}" in SWITCHED_BY_US:
            raise UsageError(f"extra_args: --{name} belongs to the link and cannot be changed")
        if (own := ours.get(f"--{name}")) is not None:
            raise UsageError(f"extra_args: use the option {own} instead of --{name}")
        if value is not None and "\0" in value:
            raise UsageError(f"extra_args: --{name} contains a NUL character")
        if value is not None and len(value.encode("utf-8", "surrogateescape")) > LONGEST_ARGUMENT:
            raise UsageError(f"extra_args: --{name} is too long for one argument of a process")


AnyLaunch = TypeVar("AnyLaunch", bound=Launch)
