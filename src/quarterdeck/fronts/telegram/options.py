"""The settings of the front, as the configuration gives them. Plain values."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.chats import Binding, Preferences
from quarterdeck.fronts.telegram.display import Leaves

HEALTH = "health"
"""The stored name of what the front last heard from Telegram."""


class StoredHealth(Value):
    """What the front last heard from Telegram, for `doctor`."""

    polled: float
    failure: str = ""
    failed: float = 0.0
    """When a part of the front failed and was started again; 0: never since the start."""
    part: str = ""
    """That part, and the kind of error."""


class QuietHours(Value):
    """Minutes of the day between which messages make no sound."""

    begin: int
    end: int

    def holds(self, minute: int) -> bool:
        """Whether it is quiet in this minute of the day."""
        if self.begin <= self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


class Transcription(Value):
    """A service that writes down voice notes, with the interface of OpenAI's."""

    url: str
    key_file: str = ""
    """A file with its key."""
    model: str = "whisper-1"


class Options(Value):
    """The settings of the front."""

    users: frozenset[int]
    """Who may talk to the bot."""
    leaves: Leaves = Leaves()
    preferences: Preferences = Preferences()
    binding: Binding = Binding()
    plan_cooldown: float = 30.0
    quiet: QuietHours | None = None
    daily: int | None = None
    """The minute of the day at which the summary of the day before is sent."""
    timezone: str = ""
    """Empty: the one of this machine."""
    transcription: Transcription | None = None

    def local(self, at: float) -> datetime:
        """A time as people here see it."""
        if self.timezone:
            return datetime.fromtimestamp(at, ZoneInfo(self.timezone))
        return datetime.fromtimestamp(at).astimezone()
