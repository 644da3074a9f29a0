"""How an endpoint is set up, and which events there are.

Plain values: whoever reads the configuration makes them. Refuses what cannot be right, with the
name of the setting.
"""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import urlsplit

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value

LONGEST_NAME = 64
LONGEST_TIMEOUT = 60.0


class WebhookEvent(StrEnum):
    """What an endpoint can be told; also the `type` of the payload."""

    ASK_OPENED = "ask.opened"
    """An agent waits for a person."""
    TURN_ENDED = "turn.ended"
    BUDGET_REACHED = "budget.reached"
    AGENT_DIED = "agent.died"
    """A CLI has ended, and not because its work was done or somebody stopped it politely."""
    ALARM_RAISED = "alarm.raised"


class Webhook(Value, forbid_unknown_fields=True):
    """An endpoint: where to post, and what."""

    name: str
    """Names it in the log, in the metrics, and in what is kept about it over a restart."""
    url: str
    secret_file: str
    """Holds the secret that the payloads are signed with, as `new_secret` makes it."""
    events: tuple[WebhookEvent, ...] = ()
    """Which events; empty: all."""
    projects: tuple[str, ...] = ()
    """Of sessions of these projects only; empty: of all sessions."""
    timeout: float = 10.0
    """Seconds for one try, from the connection to the headers of the answer."""
    tries: int = 15
    give_up_hours: float = 24.0
    """An event is given up after so many tries, or when it is that old."""

    def __post_init__(self) -> None:
        """Refuse what cannot be right."""
        if not 0 < len(self.name) <= LONGEST_NAME or not self.name.isprintable():
            raise UsageError(f"webhook: name: 1 to {LONGEST_NAME} printable characters are wanted")
        _check_url(self.name, self.url)
        if not self.secret_file:
            raise UsageError(f"webhook {self.name}: secret_file: a file is wanted")
        if not 0 < self.timeout <= LONGEST_TIMEOUT:
            raise UsageError(
                f"webhook {self.name}: timeout: above 0 and up to {LONGEST_TIMEOUT:g} s is wanted"
            )
        if not 1 <= self.tries <= 100:
            raise UsageError(f"webhook {self.name}: tries: a number from 1 to 100 is wanted")
        if not 0 < self.give_up_hours <= 168:
            raise UsageError(f"webhook {self.name}: give_up_hours: above 0 and up to 168 is wanted")


class Backoff(Value):
    """How long to wait between tries: so long at first, then `factor` times as long, up to `most`.

    Each wait is made longer or shorter by chance, by up to `jitter` of it, so that a hub with many
    events does not knock with all of them at the same moment.
    """

    first: float = 2.0
    factor: float = 3.0
    most: float = 1800.0
    jitter: float = 0.25

    def after(self, tries: int, chance: float) -> float:
        """The wait after that many tries; `chance` is from 0 to 1."""
        # The exponent is bounded too: a power of a large number of tries would not fit a float.
        wait = min(self.most, self.first * self.factor ** min(tries - 1, 50))
        return wait * (1 - self.jitter + 2 * self.jitter * chance)


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        there = parts.scheme in {"http", "https"} and bool(parts.hostname)
        _ = parts.port  # raises for one that is no number
    except ValueError:
        there, parts = False, urlsplit("")
    if not there or not url.isascii() or not url.isprintable() or " " in url:
        # The address itself may hold a secret, and this may be logged.
        raise UsageError(f"webhook {name}: url: an http or https address is wanted")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"webhook {name}: url: no user and no password may be in it")
