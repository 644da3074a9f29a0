"""Sessions to export: a story with everything in it, and text that means harm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Raw

from quarterdeck.history.export import Form, export_session, html
from quarterdeck.journal.base import Journal
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.events import Event, PromptQueued, Said, SessionCreated, TurnEnded
from quarterdeck.protocol.sessions import SessionSpec

SESSION = "s1"


def said(kind: str, content: object, **more: Any) -> Said:
    """A line of the CLI."""
    body = {"role": kind, "content": content, "type": "message", "id": "m", "model": "opus"}
    line = {"type": kind, "message": body, "session_id": "c", "uuid": "u", **more}
    return Said(run="r", number=1, line=Raw(json.dumps(line).encode()))


def answer(text: str) -> Said:
    """What the model said."""
    return said("assistant", [{"type": "text", "text": text}])


def prompt(text: str, by: str = "ann") -> PromptQueued:
    """What a person asked for."""
    return PromptQueued(prompt=text, content=Raw(json.dumps(text).encode()), by=by)


async def export(form: Form, *events: Event) -> str:
    """The file of a session with these events."""
    journal = MemoryJournal(clock=lambda: 1_760_000_000.0)
    created = SessionCreated(spec=SessionSpec(directory="/work", name="One"), by="ann")
    await journal.append(SESSION, [created, *events])
    return await export_of(journal, form, SESSION, page=2)


async def export_of(journal: Journal, form: Form, session: str, page: int = 100) -> str:
    """The file of a session in a journal, read in pages of so many events."""
    view = await journal.summary(session)
    assert view is not None
    read = partial(journal.read, session, limit=page)
    pieces = export_session(form, view, lambda after: read(after=after), in_this_process)
    return "".join([piece async for piece in pieces])


async def in_this_process(answers: Sequence[str]) -> list[str]:
    """Render without a worker: what these tests export is no danger to them."""
    return html.render(answers)


CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls <b> ```"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "a\n```\n</pre><script>x"}
STORY = (
    prompt("Look around & tell"),
    said("assistant", [{"type": "thinking", "thinking": "hm", "signature": "x"}]),
    said("assistant", [CALL]),
    said("user", [RESULT]),
    answer("**All** fine: `x`"),
    TurnEnded(prompts=(), failed=False, outcome="success", cost_usd=0.5),
)

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![picture](https://evil.example/p.png)",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "[x](vbscript:x) [y](file:///etc/passwd) [z](//evil.example/x)",
    "<a href='https://evil.example' onmouseover=x>y</a>",
    '[x](https://ok.example "\\"><script>")',
    '```"><script>alert(1)</script>\ncode\n```',
    "| a |\n|:-:|\n| <svg onload=x> |",
    "</section></main><style>*{background:url(https://evil.example)}</style>",
    "<!-- --><meta http-equiv=refresh content=0;url=https://evil.example>",
    "&lt;script&gt; \x00 \x1b[31m",
    "[ref]\n\n[ref]: javascript:alert(1)",
    "<https://ok.example/?a=<b>>  <javascript:alert(1)>",
]
