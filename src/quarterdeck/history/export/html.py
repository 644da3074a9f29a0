"""A session as one page of HTML: it opens anywhere, asks for nothing, and runs nothing.

Owns how items look there. The model's text is Markdown, made by a parser that takes no HTML; all
else is text. The parser is slow with texts that are made to be, so whoever exports gives it the
answers apart (`rendered`), in a process with a limit of time. The page brings its own style and a
policy that forbids everything else, so that a picture or a link in what was said fetches nothing by
itself.
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

from quarterdeck.history.export.items import Answer, AnyItem, Call, Note, Outcome, Prompt, Thinking
from quarterdeck.history.export.markdown import facts, moment
from quarterdeck.journal.views import SessionView
from quarterdeck.wire.tools import one_line

LONGEST_MARKDOWN = 20_000
"""Characters of an answer that are read as Markdown; what comes after them is shown as plain text.
The parser needs quadratic time for some texts, and hardly any answer is that long."""

LONGEST_ANSWER = 200_000
"""A longer answer is shown as plain text: markup of that size is nobody's answer."""

_LINKS = ("http://", "https://", "mailto:")
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}
"""Control characters have no place in HTML; these are their pictures."""


def head(view: SessionView) -> str:
    """All before the first item."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = text(one_line(view.name or view.session))
    rows = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts(view))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{title}</h1><dl>{rows}</dl></header>\n<main>\n"
    )


def foot(_: SessionView) -> str:
    """All after the last item."""
    return "</main>\n</body>\n</html>\n"


def item(told: AnyItem, answer: str = "") -> str:
    """One item. An answer is given as HTML: what `rendered` or `plain` has made of it."""
    time = f'<time title="{moment(told.at)}">{moment(told.at)[11:16]}</time>'
    match told:
        case Prompt(text=said, by=by, others=others):
            more = f"<p>and {others} without text</p>" if others else ""
            body = f"<div class=text>{text(said)}</div>{more}"
            return _part(told, "prompt", f"<h2>{text(one_line(by)) or 'Prompt'} {time}</h2>{body}")
        case Answer():
            return _part(told, "answer", answer)
        case Thinking(text=said):
            return _part(told, "thinking", _folded("Thinking", "", f"<pre>{text(said)}</pre>"))
        case Call(tool=tool, title=title, input=given):
            body = f"<pre>{text(given)}</pre>"
            return _part(told, "call", _folded(one_line(tool), title, body))
        case Outcome(tool=tool, title=title, text=said, failed=failed):
            what = f"{one_line(tool) or 'a tool'} {'failed' if failed else 'gave'}"
            kind = "outcome failed" if failed else "outcome"
            return _part(told, kind, _folded(what, title, f"<pre>{text(said)}</pre>"))
        case Note(text=said):
            return _part(told, "note", f"<p>{text(one_line(said, 1000))}</p>")


def text(said: str) -> str:
    """Text, and nothing but text."""
    return html.escape(said.translate(_PICTURES).encode("utf-8", "replace").decode())


def rendered(answers: Sequence[str]) -> list[str]:
    """Answers as HTML, made from their Markdown. May take long."""
    return [_markdown(said) for said in answers]


def plain(said: str) -> str:
    """An answer as HTML, with its Markdown as it was written."""
    return f"<div class=text>{text(said)}</div>"


def _markdown(said: str) -> str:
    rest = ""
    if len(said) > LONGEST_ANSWER:
        return plain(said)
    if len(said) > LONGEST_MARKDOWN:
        end = said.rfind("\n", 0, LONGEST_MARKDOWN) + 1 or LONGEST_MARKDOWN
        said, rest = said[:end], plain(said[end:])
    made = str(_parser().render(said.translate(_PICTURES).encode("utf-8", "replace").decode()))
    return made + rest


def _part(told: AnyItem, kind: str, body: str) -> str:
    return f'<section class="{kind}{" inner" if told.inner else ""}">{body}</section>\n'


def _folded(what: str, title: str, body: str) -> str:
    summary = f"<b>{text(what)}</b> <span>{text(one_line(title))}</span>"
    return f"<details><summary>{summary}</summary>{body}</details>"


class _Parser(MarkdownIt):
    """Takes links to pages and people only; all others stay text."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the parser's own name for it
        return url.strip().lower().startswith(_LINKS)


@cache
def _parser() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # A picture would be fetched, so it stays the link that it is without its first sign.
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
    """The parser aligns cells by a style, which the page's policy forbids."""
    style = str(tokens[at].attrs.pop("style", ""))
    if style:
        tokens[at].attrSet("class", style.rpartition(":")[2])
    return renderer.renderToken(tokens, at, options, env)


@cache
def _style() -> str:
    return (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
