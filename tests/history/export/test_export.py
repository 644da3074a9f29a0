"""Sessions as files: what is told, and that nothing in it is ever more than text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from quarterdeck.history.export import Form
from quarterdeck.protocol.events import IMPORTED, Noted, Recalled, SessionRenamed
from support.exports import HOSTILE, STORY, answer, export, prompt, said

ALLOWED_TAGS = set(
    re.findall(
        r"\w+",
        """
        html head meta title style body header h1 dl dt dd main section h2 time div p details
        summary b span pre code em strong a ul ol li table thead tbody tr th td blockquote hr br
        h3 h4 h5 h6 s
        """,
    )
)


class Page(HTMLParser):
    """What a browser would make of a page, as far as it matters here."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_a_markdown_file_tells_the_story_in_order() -> None:
    text = await export(Form.MARKDOWN, *STORY)
    order = [
        "# One",
        "Directory: /work",
        "> Look around & tell",
        "hm",
        "**Bash**",
        "returned",
        "**All**",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "$0.5000" in text


async def test_a_fence_is_longer_than_any_inside_it() -> None:
    text = await export(Form.MARKDOWN, *STORY)
    assert "````\na\n```\n</pre><script>x\n````" in text


async def test_a_page_tells_the_story_with_calls_folded() -> None:
    page = Page(await export(Form.HTML, *STORY))
    assert sum(tag == "details" for tag, _ in page.tags) == 3
    assert all("open" not in attributes for tag, attributes in page.tags if tag == "details")
    for part in ("Look around & tell", "ls <b> ```", "a\n```\n</pre><script>x", "All"):
        assert part in page.text
    assert ("strong", {}) in page.tags
    assert "script" not in {tag for tag, _ in page.tags}


async def test_what_was_recalled_is_told_as_if_it_had_been_heard() -> None:
    time = "2025-01-02T03:04:05Z"
    lines: list[dict[str, object]] = [
        {"type": "user", "message": {"role": "user", "content": "typed"}, "isReplay": True},
        {
            "type": "assistant",
            "message": {"type": "message", "content": [{"type": "text", "text": "was said"}]},
        },
    ]
    recalled = [
        Recalled(
            run=IMPORTED,
            uuid=str(n),
            line=Raw(json.dumps({**line, "timestamp": time}).encode()),
        )
        for n, line in enumerate(lines)
    ]
    text = await export(Form.MARKDOWN, *recalled)
    assert "## Prompt, 2025-01-02 03:04:05 UTC" in text
    assert text.index("> typed") < text.index("was said")


def check_harmless(html: str) -> None:
    page = Page(html)
    for tag, attributes in page.tags:
        assert tag in ALLOWED_TAGS, tag
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in {"src", "srcset", "style", "background", "action", "ping"}
            if name == "href":
                assert re.match(r"(?i)(https?://|mailto:)", value or ""), value
            if name == "http-equiv":
                assert value == "Content-Security-Policy"
    assert sum(tag == "style" for tag, _ in page.tags) == 1
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", html)
    html.encode()


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_only_text_wherever_it_stands(text: str) -> None:
    call = {"type": "tool_use", "id": "t2", "name": text, "input": {"command": text}}
    result = {"type": "tool_result", "tool_use_id": "t2", "content": text, "is_error": True}
    html = await export(
        Form.HTML,
        SessionRenamed(name=text, by="ann"),
        prompt(text, by=text),
        answer(text),
        said("assistant", [call]),
        said("user", [result], parent_tool_use_id="t0"),
        said("user", text),
        Noted(level="info", text=text),
    )
    check_harmless(html)


@given(st.text(alphabet="<>\"'&`[]()!:/\\\n|*_-#=ajvscript onx\x00", max_size=80))
async def test_no_text_gets_out_of_an_answer(text: str) -> None:
    check_harmless(await export(Form.HTML, answer(text)))


async def test_a_page_forbids_itself_everything_but_its_own_style() -> None:
    html = await export(Form.HTML, *STORY)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert html.index("Content-Security-Policy") < html.index("<style>")


async def test_a_very_long_answer_is_shown_as_plain_text() -> None:
    html = await export(Form.HTML, answer("[" * 250_000))
    assert "[" * 250_000 in html


@pytest.mark.parametrize("form", [Form.MARKDOWN, Form.HTML])
async def test_what_would_not_be_seen_is_marked(form: Form) -> None:
    text = "make test \u2067; touch PWNED \u2069 \x1b[2K\u200b"
    events = [prompt(text), answer(text), *STORY[2:3]]
    found = await export(form, *events)
    assert not re.search("[\u2066-\u2069\x1b\u200b]", found)
    assert found.count("make test ⟨U+2067⟩; touch PWNED ⟨U+2069⟩ ⟨U+001B⟩") == 2
