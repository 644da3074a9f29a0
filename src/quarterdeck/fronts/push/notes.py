"""From events of the journal to notifications. Pure.

Owns which events are told as which kind, the words, and the limits of texts. Who wants which kind
is in the subscriptions.
"""

from __future__ import annotations

from urllib.parse import quote

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.push.subscriptions import PushKind
from quarterdeck.protocol.coded_texts import end_text
from quarterdeck.protocol.events import AskOpened, BudgetReached, Event, RunEnded, TurnEnded

LONGEST_TITLE, LONGEST_BODY = 100, 200
"""Characters. Even at the most bytes per character, a message stays below every service's limit."""


class Note(Value):
    """The content of a notification, for the browser's service worker."""

    title: str
    body: str
    url: str
    """Where a click leads, on the web app's own origin."""
    tag: str
    """A notification replaces another one with the same tag, also one that the page showed."""
    answer: str = ""
    """A one-time token that denies the question, and with `allow` also allows it once."""
    allow: bool = False


def note_of(session: str, name: str, event: Event) -> tuple[PushKind, Note] | None:
    """The kind and the content of the notification for an event; None if there is none."""
    who = name or "An agent"
    match event:
        case AskOpened(ask=ask, tool=tool, title=title):
            body = f"{tool}: {title}" if title else tool
            return PushKind.QUESTION, _note(session, f"{who} waits for you", body, ask)
        case TurnEnded(failed=False, text=text):
            tag = f"turn:{session}"
            return PushKind.FINISHED, _note(session, f"{who} has finished", text, tag)
        case TurnEnded(problem="interrupted"):
            return None  # a person did that, and knows
        case TurnEnded(outcome=outcome, problem=problem):
            tag = f"turn:{session}"
            return PushKind.FAILED, _note(session, f"{who} has failed", problem or outcome, tag)
        case RunEnded(clean=False):
            tag = f"run:{session}"
            return PushKind.FAILED, _note(session, f"{who} has died", end_text(event), tag)
        case BudgetReached(unit=unit, limit=limit):
            amount = f"{limit:g} US dollars" if unit == "usd" else f"{limit:g} tokens"
            body = f"The limit of {amount} is reached."
            return PushKind.BUDGET, _note(
                session, f"{who}: budget spent", body, f"budget:{session}"
            )
        case _:
            return None


def _note(session: str, title: str, body: str, tag: str) -> Note:
    return Note(
        title=_cut(title, LONGEST_TITLE),
        body=_cut(body, LONGEST_BODY),
        url=f"/s/{quote(session, safe='')}",
        tag=tag,
    )


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
