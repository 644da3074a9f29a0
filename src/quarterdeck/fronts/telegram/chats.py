"""Where a chat or a topic works, and how: its binding and its preferences. Pure.

A *place* is a chat, or one topic of it. Its binding says in which directory its sessions work, and
its preferences say how. For every preference the first that says something counts: an option in
the message, the place, the project, the configuration, the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.projects import Project
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire.tools import FOR_PEOPLE

Verbosity = Literal["quiet", "normal", "verbose"]
VERBOSITIES: tuple[Verbosity, ...] = ("quiet", "normal", "verbose")
EFFORTS = ("low", "medium", "high", "max", "auto")
MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk")
"""That nothing is asked is never a preference: a person says so for one session, in the web app."""
PLAN_MODES: Mapping[str, str] = {"on": "plan", "auto": "auto", "off": "default"}
"""The words of `/planmode`, and the permission modes that they stand for."""
Word = Annotated[str, Meta(max_length=500)]


class Place(Value):
    """A chat, or a topic in it."""

    chat: int
    thread: int | None = None

    @property
    def key(self) -> str:
        """As a part of a message's name."""
        return f"{self.chat}.{self.thread or 0}"


class Binding(Value):
    """Where sessions of a place work. All empty: as configured."""

    project: Word | None = None
    directory: Word | None = None
    machine: Word | None = None
    worktree: Word | None = None
    """The branch of a git worktree; `*` makes a new one for each session."""


class Preferences(Value):
    """How sessions of a place work, and how they are shown. None: nothing was chosen here."""

    model: Word | None = None
    mode: Word | None = None
    effort: Word | None = None
    approve: Word | None = None
    """Names of tools that are allowed without a question, with commas between them."""
    verbose: Verbosity | None = None
    rich: bool | None = None
    """Answers as rich messages of Bot API 10.1."""
    drafts: bool | None = None
    """Progress as a draft, in private chats."""
    follow: Literal["own", "all"] | None = None
    """Questions and notices of this place's sessions, or of all sessions."""
    trigger: Literal["all", "mentions"] | None = None
    """In groups: every message is a prompt, or only those that mention or answer the bot."""
    cooldown: bool | None = None
    """Plans that come again at once after a pause are sent back without a question."""


NAMES = tuple(Preferences.__struct_fields__)

DEFAULTS = Preferences(
    verbose="normal", rich=False, drafts=True, follow="own", trigger="all", cooldown=False
)

Source = Literal["message", "chat", "project", "config", "default"]


class Chosen(Value):
    """A preference that holds, and who said so."""

    value: str | bool | None
    source: Source


def choose_preference(
    name: str,
    *,
    message: Preferences,
    chat: Preferences,
    project: Project | None,
    config: Preferences,
) -> Chosen:
    """The value of a preference, by the order of who may say something."""
    sources: tuple[tuple[Source, object], ...] = (
        ("message", message),
        ("chat", chat),
        ("project", project),
        ("config", config),
    )
    for source, values in sources:
        value = getattr(values, name, None)
        if value is not None:
            return Chosen(value=value, source=source)
    return Chosen(value=getattr(DEFAULTS, name), source="default")


def spec_for(
    binding: Binding,
    *,
    message: Preferences,
    chat: Preferences,
    projects: Mapping[str, Project],
    config: Preferences,
    default: Binding,
    cooldown_seconds: float,
    name: str | None,
) -> SessionSpec:
    """How a new session is started. Raises `UsageError` if nothing says where.

    What the project says is left to the hub.
    """
    where = binding if binding.project or binding.directory else default
    if not where.project and not where.directory:
        raise UsageError(
            "this chat has no project yet: choose one with /ctx, or a folder with /browse"
        )
    project = projects.get(where.project or "")
    found = {
        each: choose_preference(each, message=message, chat=chat, project=project, config=config)
        for each in ("model", "mode", "effort", "cooldown")
    }
    own: dict[str, Any] = {
        each: str(row.value)
        for each, row in found.items()
        if each != "cooldown" and row.value is not None and row.source != "project"
    }
    return SessionSpec(
        directory=where.directory or "",
        project=where.project,
        machine=where.machine,
        worktree=where.worktree,
        name=name,
        plan_cooldown=cooldown_seconds if found["cooldown"].value is True else None,
        auto_approve=approved_tools(message.approve or chat.approve or config.approve),
        **own,
    )


def approved_tools(given: str | None) -> tuple[str, ...]:
    """The names of a list of tools. Raises `UsageError` for what no list may have."""
    names = tuple(dict.fromkeys(name.strip() for name in (given or "").split(",") if name.strip()))
    for name in names:
        if name in FOR_PEOPLE:
            raise UsageError(f"approve: {name}: questions and plans always need a person")
        if not re.fullmatch(r"[A-Za-z][\w.-]{0,127}", name):
            raise UsageError(f"approve: {name!r} is no name of a tool")
    return names


# --- options in a message ------------------------------------------------------------------------

_OPTION = re.compile(r"\s*--(model|mode|effort|plan)(?:[= ]\s*([^\s]+))?(?=\s|$)")


def split_options(text: str) -> tuple[Preferences, str]:
    """The options at the beginning of a message, and the rest: `--model opus Run the tests.`"""
    found: dict[str, Any] = {}
    at = 0
    while match := _OPTION.match(text, at):
        name, value = match[1], match[2]
        if name == "plan":
            found["mode"] = "plan"
            at = match.start(2) if value is not None else match.end()
            continue
        if value is None:
            raise UsageError(f"--{name}: a value is missing")
        found[name] = check_preference(name, value)
        at = match.end()
    rest = text[at:].strip() if found else text.strip()
    return Preferences(**found), rest


def check_preference(name: str, value: str) -> str:
    """A value as it is stored. Raises `UsageError` for one that cannot be right."""
    known: tuple[str, ...] = {"mode": MODES, "effort": EFFORTS, "verbose": VERBOSITIES}.get(
        name, ()
    )
    for each in known:
        if each.lower() == value.lower():
            return each
    if known:
        raise UsageError(f"{name}: one of {', '.join(known)}")
    if not value.isprintable() or len(value) > 100:
        raise UsageError(f"{name}: at most 100 printable characters are wanted")
    return value


def with_preference(preferences: Preferences, name: str, value: str | None) -> Preferences:
    """The preferences with one of them changed; None takes it back. Raises `UsageError`."""
    if name not in NAMES:
        raise UsageError(f"there is no preference {name!r}; these there are: {', '.join(NAMES)}")
    if value is None:
        return replace(preferences, **{name: None})
    if name == "approve":
        return replace(preferences, approve=", ".join(approved_tools(value)))
    if name in {"rich", "drafts", "cooldown"}:
        words = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
        if value.lower() not in words:
            raise UsageError(f"{name}: on or off")
        return replace(preferences, **{name: words[value.lower()]})
    choices = {"follow": ("own", "all"), "trigger": ("all", "mentions")}.get(name)
    if choices is not None:
        if value.lower() not in choices:
            raise UsageError(f"{name}: one of {', '.join(choices)}")
        return replace(preferences, **{name: value.lower()})
    return replace(preferences, **{name: check_preference(name, value)})
