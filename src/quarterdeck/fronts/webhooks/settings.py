"""The settings of an endpoint, and the events that exist.

Plain values, made from the configuration. Invalid ones are refused, with the name of the setting.
"""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import urlsplit

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value

LONGEST_NAME = 64
LONGEST_TIMEOUT = 60.0


class WebhookEvent(StrEnum):
    """The events of webhooks; also the `type` of the payload."""

    ASK_OPENED = "ask.opened"
    """An agent waits for a person."""
    TURN_ENDED = "turn.ended"
    BUDGET_REACHED = "budget.reached"
    AGENT_DIED = "agent.died"
    """A CLI ended, neither because its work was done nor because a person stopped it."""
    ALARM_RAISED = "alarm.raised"


class Webhook(Value, forbid_unknown_fields=True):
    """An endpoint: its URL and its events."""

    name: str
    """Its name in the log, in the metrics, and in stored cursors."""
    url: str
    secret_file: str
    """The file with the secret that signs the payloads, as `new_secret` makes it."""
    events: tuple[WebhookEvent, ...] = ()
    """The events to send; empty: all."""
    projects: tuple[str, ...] = ()
    """Only for sessions of these projects; empty: all sessions."""
    timeout: float = 10.0
    """Seconds for one attempt, from the connection to the headers of the answer."""
    tries: int = 15
    give_up_hours: float = 24.0
    """A payload is given up after so many attempts, or at this age."""

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        if not 0 < len(self.name) <= LONGEST_NAME or not self.name.isprintable():
            raise UsageError(f"webhook: name: 1 to {LONGEST_NAME} printable characters required")
        _check_url(self.name, self.url)
        if not self.secret_file:
            raise UsageError(f"webhook {self.name}: secret_file: a file is required")
        if not 0 < self.timeout <= LONGEST_TIMEOUT:
            raise UsageError(
                f"webhook {self.name}: timeout: must be above 0 and at most {LONGEST_TIMEOUT:g} s"
            )
        if not 1 <= self.tries <= 100:
            raise UsageError(f"webhook {self.name}: tries: must be from 1 to 100")
        if not 0 < self.give_up_hours <= 168:
            raise UsageError(f"webhook {self.name}: give_up_hours: must be above 0 and at most 168")


class Backoff(Value):
    """Exponential backoff between attempts, with jitter: from `first` seconds up to `most`.

    Each wait is `factor` times as long as the one before, and varies randomly by up to
    `jitter` of it, so that a hub does not retry many payloads at the same moment.
    """

    first: float = 2.0
    factor: float = 3.0
    most: float = 1800.0
    jitter: float = 0.25

    def after(self, tries: int, chance: float) -> float:
        """The wait after that many attempts; `chance` is from 0 to 1."""
        # The exponent is bounded too: a large power would overflow a float.
        wait = min(self.most, self.first * self.factor ** min(tries - 1, 50))
        return wait * (1 - self.jitter + 2 * self.jitter * chance)


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        there = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port  # raises for an invalid port
    except ValueError:
        there, parts = False, urlsplit("")
    if not there or not url.isascii() or not url.isprintable() or " " in url:
        # The URL itself may contain a secret, and this may be logged.
        raise UsageError(f"webhook {name}: url: an http or https URL is required")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"webhook {name}: url: must not contain a user or a password")
