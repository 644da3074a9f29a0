"""Answers are sent compressed, and the pictures of a prompt once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.fronts.http.echoes import without_pictures
from quarterdeck.protocol import events as ev
from support.front import Front, front

PICTURE = "iVBOR" + "A" * 40_000
CONTENT = [
    {"type": "text", "text": "look"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
]
ECHO = {"type": "user", "isReplay": True, "message": {"role": "user", "content": CONTENT}}


async def test_a_page_of_events_is_compressed_and_has_a_picture_once(hub: Front) -> None:
    prompt = ev.PromptQueued(prompt="p", content=Raw(json.dumps(CONTENT).encode()), by="ada")
    echo = ev.Said(run="r", number=1, line=Raw(json.dumps(ECHO, separators=(",", ":")).encode()))
    await hub.deck.journal.append("s1", [prompt, echo])
    async with hub.client() as client:
        whole = await client.get("/api/sessions/s1/events")
        lean = await client.get("/api/sessions/s1/events", params={"echoes": "false"})
        plain = await client.get("/api/sessions/s1/events", headers={"accept-encoding": "identity"})
    assert whole.headers["content-encoding"] == "gzip"
    assert whole.headers["vary"] == "accept-encoding"
    assert "content-encoding" not in plain.headers
    assert plain.json() == whole.json()
    assert whole.text.count(PICTURE) == 2
    assert lean.text.count(PICTURE) == 1
    assert [one["seq"] for one in lean.json()["events"]] == [
        one["seq"] for one in whole.json()["events"]
    ]
    (said,) = [one["event"] for one in lean.json()["events"] if one["event"]["kind"] == "said"]
    assert said["line"]["message"]["content"][1]["source"]["data"] == ""


async def test_small_answers_other_kinds_and_streams_are_sent_as_they_are(hub: Front) -> None:
    async with hub.client() as client:
        assert "content-encoding" not in (await client.get("/healthz")).headers
        made = await client.post("/api/tokens", json={"name": "x" * 60, "role": "viewer"})
        assert "content-encoding" not in made.headers
        async with client.stream(
            "GET", "/api/sessions/s1/events", headers={"accept": "text/event-stream"}
        ) as stream:
            assert "content-encoding" not in stream.headers


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": "said", "line": {"isReplay": True, "source": "x", "pad": PICTURE}},
        {
            "kind": "said",
            "line": {"message": {"content": "x"}, "isReplay": True, "source": PICTURE},
        },
        {
            "kind": "said",
            "line": {
                "isReplay": False,
                "message": {"content": CONTENT},
                "tool": '"isReplay":true',
            },
        },
        {"kind": "noted", "text": '"isReplay":true "source"' + PICTURE},
    ],
)
def test_a_line_of_another_form_is_passed_on_as_it_is(odd: object) -> None:
    data = json.dumps(odd, separators=(",", ":")).encode()
    assert json.loads(without_pictures(data)) == odd


async def test_the_page_that_draws_diagrams_has_no_origin(tmp_path: Path) -> None:
    built = tmp_path / "built"
    (built / "diagram").mkdir(parents=True)
    (built / "index.html").write_text("<title>the deck</title>")
    (built / "diagram" / "index.html").write_text("<title>Diagram</title>" * 100)
    async with front(tmp_path / "data", static=built) as hub, hub.client(None) as client:
        for encoding in ("gzip", "identity"):
            headers = {"accept-encoding": encoding}
            frame = (await client.get("/diagram/index.html", headers=headers)).headers
            assert frame["content-security-policy"].startswith("sandbox allow-scripts;")
            assert "frame-ancestors 'self'" in frame["content-security-policy"]
            assert frame["x-frame-options"] == "SAMEORIGIN"
        app = (await client.get("/")).headers
    assert app["x-frame-options"] == "DENY"
    assert "sandbox" not in app["content-security-policy"]
