"""A session as a file that people keep: Markdown, or one page of HTML that needs nothing else.

`items` tells what was said and done, in order; `markdown` and `html` write it down. A file is made
piece by piece, so that a long session needs no more memory than a short one, and others may go on
between two items. The Markdown in answers is made into HTML by the caller's `Render`, which has a
process for it. The lossless form, the events themselves, needs no telling and is not made here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from enum import StrEnum

import anyio.lowlevel

from quarterdeck.history.export import html, markdown
from quarterdeck.history.export.items import Answer, AnyItem, StoryFold
from quarterdeck.journal.base import Stored
from quarterdeck.journal.views import SessionView

__all__ = ["Form", "Read", "Render", "exported"]


class Form(StrEnum):
    """What a file looks like."""

    MARKDOWN = "markdown"
    HTML = "html"


Read = Callable[[int], Awaitable[list[Stored]]]
"""A page of the session's events after this number; an empty one is the end."""

Render = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Answers in Markdown, as HTML: one for each."""

_WRITERS = {
    Form.MARKDOWN: (markdown.head, markdown.foot),
    Form.HTML: (html.head, html.foot),
}


async def exported(form: Form, view: SessionView, read: Read, render: Render) -> AsyncIterator[str]:
    """The file, piece by piece: all events up to the last that the view knows."""
    head, foot = _WRITERS[form]
    yield head(view)
    teller = StoryFold()
    seen = 0
    while seen < view.head and (page := await read(seen)):
        seen = page[-1].seq
        told: list[AnyItem] = []
        for stored in page:
            if stored.seq <= view.head:
                told += teller.tell(stored)
                await anyio.lowlevel.checkpoint()
        yield await _written(form, told, render)
    yield foot(view)


async def _written(form: Form, told: list[AnyItem], render: Render) -> str:
    pieces: list[str] = []
    answers: Iterator[str] = iter(())
    if form is Form.HTML:
        answers = iter(await render([each.text for each in told if isinstance(each, Answer)]))
    for each in told:
        if form is Form.MARKDOWN:
            pieces.append(markdown.item(each))
        else:
            pieces.append(html.item(each, next(answers) if isinstance(each, Answer) else ""))
        await anyio.lowlevel.checkpoint()
    return "".join(pieces)
