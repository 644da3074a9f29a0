"""A session as one HTML page: it needs no other file, fetches nothing and runs nothing.

Owns how entries look in it. The model's answers are Markdown, rendered by a parser that accepts no
HTML; everything else is escaped text. Some texts make the parser slow, so the caller renders the
answers (`render`) in a process with a time limit. The page has its own style and a content security
policy that forbids everything else: no image or link in it is fetched by itself.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import MutableMapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from quarterdeck.domain.marks import mark_characters
from quarterdeck.history.export.markdown import capitalize, moment, properties, readable
from quarterdeck.history.story import Answer, AnyEntry, Call, Notice, Outcome, Prompt, Thinking
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.wire.tools import one_line

LONGEST_MARKDOWN = 20_000
"""Characters of an answer that are parsed as Markdown; the rest is shown as plain text. The parser
needs quadratic time for some texts, and hardly any answer is that long."""

LONGEST_ANSWER = 200_000
"""A longer answer is shown as plain text."""

_LINKS = ("http://", "https://", "mailto:")


def head(view: SessionView) -> str:
    """Everything before the first entry."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = text(one_line(view.name or view.session))
    rows = "".join(
        f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in properties(view)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{title}</h1><dl>{rows}</dl></header>\n<main>\n"
    )


def foot(_: SessionView) -> str:
    """Everything after the last entry."""
    return "</main>\n</body>\n</html>\n"


def item(entry: AnyEntry, answer: str = "") -> str:
    """One entry. An answer is given as HTML, made by `render` or `plain`."""
    time = f'<time title="{moment(entry.at)}">{moment(entry.at)[11:16]}</time>'
    match entry:
        case Prompt(text=prompt, by=by, others=others):
            more = f"<p>and {others} without text</p>" if others else ""
            body = f"<div class=text>{text(prompt)}</div>{more}"
            head = f"<h2>{text(one_line(by)) or 'Prompt'} {time}</h2>"
            return _section(entry, "prompt", head + body)
        case Answer():
            return _section(entry, "answer", answer)
        case Thinking(text=thought):
            body = f"<pre>{text(thought)}</pre>"
            return _section(entry, "thinking", _details("Thinking", "", body))
        case Call(tool=tool, title=title, input=input_):
            body = f"<pre>{text(readable(input_))}</pre>"
            return _section(entry, "call", _details(one_line(tool), title, body))
        case Outcome(tool=tool, title=title, text=result, failed=failed):
            what = f"{one_line(tool) or 'a tool'} {'failed' if failed else 'returned'}"
            kind = "outcome failed" if failed else "outcome"
            return _section(entry, kind, _details(what, title, f"<pre>{text(result)}</pre>"))
        case Notice(text=notice):
            line = one_line(capitalize(notice), 1000)
            return _section(entry, "note", f"<p>{text(line)}</p>")


def text(value: str) -> str:
    """Text with all markup escaped, and a mark for each character that would not be seen.

    Control characters are not allowed in HTML at all.
    """
    return html.escape(mark_characters(value))


def render(answers: Sequence[str]) -> list[str]:
    """Render answers from Markdown to HTML. May take long."""
    return [_render_answer(answer) for answer in answers]


def plain(answer: str) -> str:
    """An answer as HTML, its Markdown unrendered."""
    return f"<div class=text>{text(answer)}</div>"


def _render_answer(answer: str) -> str:
    rest = ""
    if len(answer) > LONGEST_ANSWER:
        return plain(answer)
    if len(answer) > LONGEST_MARKDOWN:
        end = answer.rfind("\n", 0, LONGEST_MARKDOWN) + 1 or LONGEST_MARKDOWN
        answer, rest = answer[:end], plain(answer[end:])
    made = str(_parser().render(mark_characters(answer)))
    return made + rest


def _section(entry: AnyEntry, kind: str, body: str) -> str:
    return f'<section class="{kind}{" inner" if entry.inner else ""}">{body}</section>\n'


def _details(what: str, title: str, body: str) -> str:
    summary = f"<b>{text(what)}</b> <span>{text(one_line(title))}</span>"
    return f"<details><summary>{summary}</summary>{body}</details>"


class _Parser(MarkdownIt):
    """Accepts only links to pages and mail addresses; others stay text."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the parser's own name for it
        return url.strip().lower().startswith(_LINKS)


@cache
def _parser() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # An image would be fetched, so it stays a link.
    parser.disable(["image", "html_block", "html_inline"])
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("th_open", _cell)
    parser.add_render_rule("td_open", _cell)
    return parser


def _link(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    at: int,
    options: Any,
    env: MutableMapping[str, Any],
) -> str:
    tokens[at].attrSet("rel", "noopener noreferrer nofollow")
    return renderer.renderToken(tokens, at, options, env)


def _cell(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    at: int,
    options: Any,
    env: MutableMapping[str, Any],
) -> str:
    """The parser aligns cells with a style, which the page's policy forbids."""
    style = str(tokens[at].attrs.pop("style", ""))
    if style:
        tokens[at].attrSet("class", style.rpartition(":")[2])
    return renderer.renderToken(tokens, at, options, env)


@cache
def _style() -> str:
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
