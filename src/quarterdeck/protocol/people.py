"""What the hub keeps for a person: preferences, saved prompts and session templates.

The shapes of requests and answers, with their limits. A *person* is the name and role of a login.
It knows neither HTTP nor how anything is stored.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.commands import Id
from quarterdeck.protocol.sandbox import SandboxMode
from quarterdeck.protocol.sessions import Budget
from quarterdeck.protocol.shapes import Body

LONGEST_DRAFT = 100_000
LONGEST_SETTING = 1000
LONGEST_PROMPT = 100_000
LONGEST_TITLE = 100
MOST_CHANGES = 500
"""Changes of preferences in one request."""

Title = Annotated[str, Meta(min_length=1, max_length=LONGEST_TITLE, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""One line without control characters."""
Word = Annotated[str, Meta(min_length=1, max_length=250, pattern=r"^[^\x00-\x1f\x7f]+$")]
Path = Annotated[str, Meta(max_length=4096)]
Moment = Annotated[int, Meta(ge=0, le=2**53)]
"""In ms since 1970."""


# --- preferences ---------------------------------------------------------------------------------


class PreferenceKind(StrEnum):
    """What a preference is about. All but settings have a session's id as their key."""

    PIN = "pin"
    """A boolean: the session stays at the top of the list."""
    READ = "read"
    """The number of the last event that was read. The greatest number wins."""
    DRAFT = "draft"
    """The text in the session's composer."""
    SETTING = "setting"
    """A choice of the web app, by its name."""


class PreferenceChange(Body):
    """A preference that a device has changed."""

    kind: PreferenceKind
    key: Id
    value: (
        bool | Annotated[int, Meta(ge=0, le=2**53)] | Annotated[str, Meta(max_length=LONGEST_DRAFT)]
    )
    at: Moment
    """When it was changed there. The newest pin or setting wins. A time in the future counts as
    now."""
    base: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Of a draft: the `version` that the device had before the change."""


class NewPreferences(Body):
    """What a device has changed since its last report to the hub."""

    changes: Annotated[tuple[PreferenceChange, ...], Meta(max_length=MOST_CHANGES)]


class Preference(Value, omit_defaults=False):
    """A preference as the hub has it."""

    kind: PreferenceKind
    key: str
    value: bool | int | str
    at: int
    version: int


class PreferencePage(Value, omit_defaults=False):
    """The preferences with a greater `version` than the one asked for."""

    preferences: tuple[Preference, ...]
    version: int
    """The greatest of all: what to ask with the next time."""


# --- saved prompts and templates -----------------------------------------------------------------


class NewSavedPrompt(Body):
    """A prompt for the library."""

    name: Title
    text: Annotated[str, Meta(min_length=1, max_length=LONGEST_PROMPT)]
    shared: bool = False
    """Everybody may use it. Its author and owners may change it."""
    version: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """The version that this replaces; 0 for a new one."""


class SavedPrompt(Value, omit_defaults=False):
    """A prompt of the library."""

    id: str
    name: str
    text: str
    shared: bool
    by: str
    """Its author."""
    may_change: bool
    """Whether you may change and delete it."""
    updated: int
    version: int


class TemplateSpec(Body):
    """How a session of a template is started. No member can hold a secret or skip permissions."""

    directory: Path = ""
    machine: Word | None = None
    project: Word | None = None
    worktree: Word | None = None
    model: Word | None = None
    mode: Literal["default", "plan", "acceptEdits", "dontAsk"] | None = None
    effort: Word | None = None
    policy: Word | None = None
    sandbox: SandboxMode | None = None
    budget: Budget | None = None


class NewTemplate(Body):
    """A template for sessions."""

    name: Title
    spec: TemplateSpec
    prompt: Annotated[str, Meta(max_length=LONGEST_PROMPT)] = ""
    shared: bool = False
    version: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """The version that this replaces; 0 for a new one."""


class SessionTemplate(Value, omit_defaults=False):
    """A template for sessions."""

    id: str
    name: str
    spec: TemplateSpec
    prompt: str
    shared: bool
    by: str
    may_change: bool
    updated: int
    version: int


class Library(Value, omit_defaults=False):
    """Your own prompts and templates and the shared ones, by name."""

    prompts: tuple[SavedPrompt, ...]
    templates: tuple[SessionTemplate, ...]
