"""A session as Markdown: readable as it is, and by any program that knows Markdown.

Owns how items look there. What tools were given and gave stands in fences that nothing inside can
close.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from quarterdeck.history.export.items import Answer, AnyItem, Call, Note, Outcome, Prompt, Thinking
from quarterdeck.journal.views import SessionView
from quarterdeck.wire.tools import one_line

_FENCES = re.compile(r"`{3,}")
_MARKS = re.compile(r"([\\`*_\[\]<>#|])")


def head(view: SessionView) -> str:
    """The title, and what is known of the session as a whole."""
    lines = [f"# {plain(view.name or view.session)}", ""]
    lines += [f"- {name}: {plain(value)}" for name, value in facts(view)]
    return "\n".join(lines) + "\n"


def facts(view: SessionView) -> list[tuple[str, str]]:
    """What is known of the session as a whole, for people."""
    found = [
        ("Session", view.session),
        ("Directory", view.directory or view.spec.directory),
        ("Machine", view.machine or view.spec.machine or ""),
        ("Project", view.spec.project or ""),
        ("Model", view.spec.model or ""),
        ("Session of the CLI", view.cli_session or ""),
        ("Begun", moment(view.created)),
        ("Last event", moment(view.updated)),
        ("Turns", str(view.turns) if view.turns else ""),
        ("Cost", f"${view.cost_usd:.4f}" if view.cost_usd else ""),
    ]
    return [(name, value) for name, value in found if value]


def moment(at: int) -> str:
    """A time, the same for every reader: in UTC."""
    try:
        return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return ""


def item(told: AnyItem) -> str:
    """One item, with an empty line before it."""
    match told:
        case Prompt(text=text, by=by, others=others):
            who = f" of {plain(by)}" if by else ""
            more = f"\n\n_(and {others} without text)_" if others else ""
            quoted = "\n".join(f"> {line}".rstrip() for line in text.splitlines())
            return f"\n## Prompt{who}, {moment(told.at)}\n\n{quoted}{more}\n"
        case Answer(text=text):
            label = "_A subagent:_\n\n" if told.inner else ""
            return f"\n{label}{text}\n"
        case Thinking(text=text):
            return f"\n_Thinking:_\n\n{fenced(text)}\n"
        case Call(tool=tool, title=title, input=given):
            return f"\n**{plain(tool)}** {plain(title)}\n\n{fenced(given, 'json')}\n"
        case Outcome(tool=tool, title=title, text=text, failed=failed):
            what = "failed" if failed else "gave"
            return f"\n_{plain(tool or 'a tool')} {what}_ {plain(title)}\n\n{fenced(text)}\n"
        case Note(text=text):
            return f"\n_{plain(text)}_\n"


def foot(_: SessionView) -> str:
    """Nothing more."""
    return ""


def fenced(text: str, language: str = "") -> str:
    """A text that stays as it is, whatever it holds."""
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def plain(text: str) -> str:
    """A line in which nothing is markup."""
    return _MARKS.sub(r"\\\1", one_line(text, 500))
