"""What the tools tell of sessions: their state, their texts, what was found in them.

Owns the values that come back, and how they are made of views and events. Who may see which session
is decided above, in `tools` for agents and in `people` for people. The texts are those of agents.
They are bounded, so that none fills the caller's context.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

import anyio
import msgspec

from quarterdeck.domain.structs import Value
from quarterdeck.history.story import Answer, Call, Notice, Outcome, Prompt, StoryFold
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.coded_texts import end_text
from quarterdeck.protocol.events import TurnEnded
from quarterdeck.protocol.machine_requests import Changes
from quarterdeck.protocol.search import Hits, Search
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.wire.tools import one_line

EVENTS = 500
"""Events of a session that one `read` looks at."""
LONGEST_TEXT = 20_000
"""Characters that a tool gives back."""
RESULT = 2000
"""Characters of the result of one tool call of another agent."""
SEARCH_PAGES = 5
FOUND = 50

SearchTexts = Callable[[Search], Awaitable[Hits]]


class SessionInfo(Value, omit_defaults=False):
    """A session, as an agent sees it."""

    session: str
    name: str
    state: str
    turns: int
    cost_usd: float
    queued: int
    waits_for_person: bool
    started_by: str
    detail: str = ""


class Waited(Value, omit_defaults=False):
    """The session, and its last answer."""

    session: SessionInfo
    done: bool
    answer: str


class Pages(Value, omit_defaults=False):
    """What an agent did. `next` is null at the end."""

    text: str
    next: int | None


class Found(Value, omit_defaults=False):
    """A text that was found."""

    session: str
    event: int
    text: str


_RESTING = frozenset({SessionState.IDLE, SessionState.WAITING, SessionState.ENDED})


def info_of(view: SessionView) -> SessionInfo:
    """A session in few words."""
    return SessionInfo(
        session=view.session,
        name=view.name,
        state=view.state.value,
        turns=view.turns,
        cost_usd=round(view.cost_usd, 6),
        queued=len(view.queued),
        waits_for_person=bool(view.asks),
        started_by=view.by,
        detail=one_line(end_text(view.ended) if view.ended and view.run is None else "", 500),
    )


async def wait_for(hub: HubApi, view: SessionView, seconds: int) -> Waited:
    """Wait until nothing will happen to a session by itself."""
    with anyio.move_on_after(seconds):
        if not _rests(view):
            async for _ in hub.follow({view.session: view.head}):
                view = await hub.session(view.session)
                if _rests(view):
                    break
    return Waited(session=info_of(view), done=_rests(view), answer=await _last_answer(hub, view))


async def read_pages(hub: HubApi, view: SessionView, after: int) -> Pages:
    """What happened in a session, from an event on."""
    fold = StoryFold()
    texts: list[str] = []
    left = LONGEST_TEXT
    cursor = after
    for stored in await hub.events(view.session, after=after, limit=EVENTS):
        cursor = stored.seq
        for entry in fold.entries(stored.event, stored.at):
            if text := _plain(entry):
                texts.append(text[:left])
                left -= len(texts[-1])
        if left <= 0:
            break
    return Pages(text="\n".join(texts), next=cursor if cursor < view.head else None)


async def find(
    search: SearchTexts, words: str, sessions: Collection[str] | None = None
) -> list[Found]:
    """Where these words are; in the given sessions only, if there are any given."""
    found: list[Found] = []
    before: int | None = None
    for _ in range(SEARCH_PAGES):
        page = await search(Search(words=words, before=before, limit=100))
        found += [
            Found(session=hit.session, event=hit.seq, text=hit.snippet.text)
            for hit in page.hits
            if sessions is None or hit.session in sessions
        ]
        before = page.next
        if before is None or len(found) >= FOUND:
            break
    return found[:FOUND]


def short_diff(changes: Changes) -> Changes:
    """A diff that is not too long."""
    if len(changes.text) <= LONGEST_TEXT:
        return changes
    return msgspec.structs.replace(changes, text=changes.text[:LONGEST_TEXT], text_cut=True)


def _rests(view: SessionView) -> bool:
    return view.state in _RESTING and not (view.run is not None and view.queued)


async def _last_answer(hub: HubApi, view: SessionView) -> str:
    """The text of the last turn, if it is among the last events."""
    for stored in reversed(
        await hub.events(view.session, after=max(0, view.head - EVENTS), limit=EVENTS)
    ):
        if isinstance(stored.event, TurnEnded):
            return stored.event.text[:LONGEST_TEXT]
    return ""


def _plain(entry: object) -> str:
    match entry:
        case Prompt(text=text, by=by):
            return f"[prompt by {by}] {text}"
        case Answer(text=text, inner=False):
            return f"[agent] {text}"
        case Call(tool=tool, title=title, inner=False):
            return f"[{tool}] {title}"
        case Outcome(text=text, failed=failed, inner=False):
            return f"[{'error' if failed else 'result'}] {text[:RESULT]}"
        case Notice(text=text, inner=False):
            return f"[note] {text}"
        case _:
            return ""
