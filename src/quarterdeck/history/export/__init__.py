"""A session as a file that people keep: Markdown, or one HTML page that needs nothing else.

`history.story` says what happened; `markdown` and `html` write it down. A file is made piece by
piece, so that a long session needs no more memory than a short one, and the event loop is free
between two entries. The caller's `Render` turns the Markdown of answers into HTML, in a process of
its own. The lossless form, the events themselves, is not made here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from enum import StrEnum

import anyio.lowlevel

from quarterdeck.history.export import html, markdown
from quarterdeck.history.story import (
    CLI_NOTICE,
    CLI_TEXT,
    TURN_CAUSE,
    Answer,
    AnyEntry,
    Notice,
    StoryFold,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored

__all__ = ["Form", "Read", "Render", "export_session"]


class Form(StrEnum):
    """The format of a file."""

    MARKDOWN = "markdown"
    HTML = "html"


Read = Callable[[int], Awaitable[list[Stored]]]
"""A page of the session's events after this number; an empty page is the end."""

Render = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Renders answers from Markdown to HTML, one for each."""

_WRITERS = {
    Form.MARKDOWN: (markdown.head, markdown.foot),
    Form.HTML: (html.head, html.foot),
}


SHOWN = frozenset(
    {
        "session.created", "session.renamed", "prompt.changed", "prompt.cancelled", "ask.opened",
        "ask.answered", "ask.withdrawn", "turn.ended", "noted", "budget.reached", "alarm",
        "said.broken", CLI_NOTICE, CLI_TEXT, TURN_CAUSE,
    }
)  # fmt: skip
"""The notices of a file. Ends of runs, and connections that lost output, are added to them."""


async def export_session(
    form: Form, view: SessionView, read: Read, render: Render
) -> AsyncIterator[str]:
    """The file, piece by piece: all events up to the last one that the view knows."""
    head, foot = _WRITERS[form]
    yield head(view)
    fold = StoryFold()
    seen = 0
    while seen < view.head and (page := await read(seen)):
        seen = page[-1].seq
        entries: list[AnyEntry] = []
        for stored in page:
            if stored.seq <= view.head:
                found = fold.entries(stored.event, stored.at)
                entries += [entry for entry in found if _is_shown(entry)]
                await anyio.lowlevel.checkpoint()
        yield await _write(form, entries, render)
    yield foot(view)


def _is_shown(entry: AnyEntry) -> bool:
    if not isinstance(entry, Notice) or entry.code in SHOWN:
        return True
    return entry.code in {"run.ended", "run.link_found"} and entry.tone in {"warn", "bad"}


async def _write(form: Form, entries: list[AnyEntry], render: Render) -> str:
    pieces: list[str] = []
    answers: Iterator[str] = iter(())
    if form is Form.HTML:
        answers = iter(await render([each.text for each in entries if isinstance(each, Answer)]))
    for each in entries:
        if form is Form.MARKDOWN:
            pieces.append(markdown.item(each))
        else:
            pieces.append(html.item(each, next(answers) if isinstance(each, Answer) else ""))
        await anyio.lowlevel.checkpoint()
    return "".join(pieces)
