"""From events of the journal to notifications. Pure.

Owns which events are told as which kind, and the limits of texts. It gives codes and texts of
agents; the words are the web app's (`web/src/text/en/pwa.ts`). Who wants which kind is in the
subscriptions.
"""

from __future__ import annotations

from urllib.parse import quote

from msgspec.structs import replace

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.push.subscriptions import PushKind
from quarterdeck.protocol.coded_texts import end_text
from quarterdeck.protocol.events import AskOpened, BudgetReached, Event, RunEnded, TurnEnded

LONGEST_NAME, LONGEST_BODY = 80, 200
"""Characters. Even at the most bytes per character, a message stays below every service's limit."""


class Note(Value):
    """The content of a notification, for the browser's service worker."""

    code: str
    """What has happened: `question`, `finished`, `failed`, `crashed` or `budget`."""
    name: str
    """Of the session; empty if it has none."""
    body: str
    """What the agent says or wants, or the code of a problem."""
    url: str
    """Where a click leads, on the web app's own origin."""
    tag: str
    """A notification replaces another one with the same tag, also one that the page showed."""
    answer: str = ""
    """A one-time token that denies the question, and with `allow` also allows it once."""
    allow: bool = False
    unit: str = ""
    """Of a budget: `usd` or `tokens`."""
    limit: float = 0


def note_of(session: str, name: str, event: Event) -> tuple[PushKind, Note] | None:
    """The kind and the content of the notification for an event; None if there is none."""
    match event:
        case AskOpened(ask=ask, tool=tool, title=title):
            body = f"{tool}: {title}" if title else tool
            return PushKind.QUESTION, _note(session, "question", name, body, ask)
        case TurnEnded(failed=False, text=text):
            return PushKind.FINISHED, _note(session, "finished", name, text, f"turn:{session}")
        case TurnEnded(problem="interrupted"):
            return None  # a person did that, and knows
        case TurnEnded(outcome=outcome, problem=problem):
            body = problem or outcome
            return PushKind.FAILED, _note(session, "failed", name, body, f"turn:{session}")
        case RunEnded(clean=False):
            body = end_text(event)
            return PushKind.FAILED, _note(session, "crashed", name, body, f"run:{session}")
        case BudgetReached(unit=unit, limit=limit):
            note = _note(session, "budget", name, "", f"budget:{session}")
            return PushKind.BUDGET, replace(note, unit=unit, limit=limit)
        case _:
            return None


def _note(session: str, code: str, name: str, body: str, tag: str) -> Note:
    return Note(
        code=code,
        name=_cut(name, LONGEST_NAME),
        body=_cut(body, LONGEST_BODY),
        url=f"/s/{quote(session, safe='')}",
        tag=tag,
    )


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
