"""The page `relay` of the reference: what it shows is valid, and nothing is missing on it."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from quarterdeck.fronts import relay
from quarterdeck.fronts.http.relay_access import TOKEN_PROTOCOL
from quarterdeck.fronts.relay import connection, errors, feed, outbound
from quarterdeck.fronts.relay.endpoint import MOST_FRONTENDS, MOST_OF_ONE, PROTOCOL
from quarterdeck.fronts.relay.inbound import parse
from support.pages import page
from support.relay_shapes import SHAPES

PAGE = page("docs/reference/relay.md")
SOURCES = "".join(
    file.read_text() for file in sorted(Path(inspect.getfile(relay)).parent.glob("*.py"))
)


def section(title: str) -> str:
    """What the page says under a heading, smaller headings and all."""
    found = re.search(rf"^(##+) {title}$", PAGE.text, re.MULTILINE)
    assert found is not None, title
    end = rf"^#{{1,{len(found[1])}}} "
    return re.split(end, PAGE.text[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]


def lines_in(text: str) -> list[str]:
    """The lines of the examples."""
    blocks = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_every_line_that_a_frontend_sends_is_one_that_the_relay_reads() -> None:
    sent = lines_in(section("What a frontend sends"))
    assert len(sent) >= 4
    for line in sent:
        parse(line.replace("…", "x").encode())


def test_every_line_that_a_frontend_receives_is_json() -> None:
    received = lines_in(section("What a frontend receives"))
    assert {json.loads(line)["type"] for line in received} == {
        "control_request", "control_cancel_request", "status", "position", "error"
    }  # fmt: skip


def test_every_shape_of_an_answer_is_read_by_its_row() -> None:
    rows = re.findall(r"^\| `(\{.*?\})` \|", section("Answers"), re.MULTILINE)
    assert len(rows) == 6 < len(SHAPES)
    for row in rows:
        line = row.replace(":ID", ':"q1"').replace("…", "x")
        parse(json.dumps({"type": "control_response", **json.loads(line)}).encode())


def test_every_status_is_on_the_page() -> None:
    texts = [value for value in vars(outbound).values() if str(value).startswith("claude code")]
    assert len(texts) == 6
    assert [text for text in texts if f"| `{text}` |" not in section("Statuses")] == []


def test_every_code_of_an_error_is_on_the_page() -> None:
    codes = set(re.findall(r'BadLine\(\s*"(\w+)"', SOURCES))
    codes |= set(re.findall(r'return "(\w+)", ', inspect.getsource(errors)))
    named = set(re.findall(r"`(\w+)`", section("Errors")))
    others = {"internal", "failed", "cli_timeout", "not_found"}
    """Reasons of the hub, of which the page names some only."""
    assert sorted(codes - named - others) == []


def test_every_parameter_code_and_limit_is_on_the_page() -> None:
    named = re.findall(r"^\| `(\w+)=", section("Addresses"), re.MULTILINE)
    assert set(named) == feed._KNOWN
    ends = section("The end")
    for code in (connection.TOO_SLOW, connection.UNAVAILABLE, connection.RESTARTING):
        assert f"| {code} |" in ends
    assert PROTOCOL in PAGE.text
    assert TOKEN_PROTOCOL in PAGE.text
    assert f"429 if {MOST_FRONTENDS} frontends" in PAGE.text
    assert f"or {MOST_OF_ONE} of the same person" in PAGE.text


@pytest.mark.parametrize("subtype", ["initialize", "interrupt", "end_session"])
def test_every_request_that_is_not_passed_on_is_on_the_page(subtype: str) -> None:
    assert f'case "{subtype}":' in SOURCES
    assert f"| `{subtype}` |" in section("Control requests")
