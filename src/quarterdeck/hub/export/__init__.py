"""A session as a file that people keep: Markdown, or one page of HTML that needs nothing else.

`items` tells what was said and done, in order; `markdown` and `html` write it down. A file is made
piece by piece, so that a long session needs no more memory than a short one. The lossless form, the
events themselves, needs no telling and is not made here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import StrEnum

from quarterdeck.hub.export import html, markdown
from quarterdeck.hub.export.items import Teller
from quarterdeck.journal.base import Stored
from quarterdeck.journal.views import SessionView

__all__ = ["Form", "exported"]


class Form(StrEnum):
    """What a file looks like."""

    MARKDOWN = "markdown"
    HTML = "html"


Read = Callable[[int], Awaitable[list[Stored]]]
"""A page of the session's events after this number; an empty one is the end."""

_WRITERS = {
    Form.MARKDOWN: (markdown.head, markdown.item, markdown.foot),
    Form.HTML: (html.head, html.item, html.foot),
}


async def exported(form: Form, view: SessionView, read: Read) -> AsyncIterator[str]:
    """The file, piece by piece: all events up to the last that the view knows."""
    head, item, foot = _WRITERS[form]
    yield head(view)
    teller = Teller()
    seen = 0
    while seen < view.head and (page := await read(seen)):
        seen = page[-1].seq
        told = (each for stored in page if stored.seq <= view.head for each in teller.tell(stored))
        yield "".join(map(item, told))
    yield foot(view)
