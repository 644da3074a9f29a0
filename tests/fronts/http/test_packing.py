"""Answers are sent compressed, and pictures once, by paths of their own."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.fronts.http.pictures import find_picture, with_paths
from quarterdeck.protocol import events as ev
from support.front import Front, front

BYTES = b"\x89PNG" + bytes(range(256)) * 40
PICTURE = base64.b64encode(BYTES).decode()
SOURCE = {"type": "base64", "media_type": "image/png", "data": PICTURE}
CONTENT = [{"type": "text", "text": "look"}, {"type": "image", "source": SOURCE}]
ECHO = {"type": "user", "isReplay": True, "message": {"role": "user", "content": CONTENT}}
RESULT = {
    "type": "user",
    "message": {"content": [{"type": "tool_result", "content": [CONTENT[1]]}]},
    "tool_use_result": {"type": "image", "file": {"base64": PICTURE, "type": "image/png"}},
}


def _said(number: int, line: object) -> ev.Said:
    return ev.Said(run="r", number=number, line=Raw(json.dumps(line).encode()))


async def test_answers_are_compressed_and_a_picture_is_read_by_its_own_path(hub: Front) -> None:
    prompt = ev.PromptQueued(prompt="p", content=Raw(json.dumps(CONTENT).encode()), by="ada")
    await hub.deck.journal.append("s1", [prompt, _said(1, ECHO), _said(2, RESULT)])
    async with hub.client() as client:
        whole = await client.get("/api/sessions/s1/events")
        lean = await client.get("/api/sessions/s1/events", params={"pictures": "false"})
        plain = await client.get("/api/sessions/s1/events", headers={"accept-encoding": "identity"})
        latest = await client.get("/api/sessions/s1/latest", params={"limit": 3})
        assert whole.headers["content-encoding"] == "gzip"
        assert whole.headers["vary"] == "accept-encoding"
        assert "content-encoding" not in plain.headers
        assert plain.json() == whole.json()
        assert whole.text.count(PICTURE) == 4
        assert PICTURE not in lean.text
        assert [one["seq"] for one in lean.json()["events"]] == [
            one["seq"] for one in whole.json()["events"]
        ]
        assert latest.json()["session"]["session"] == "s1"
        assert latest.json()["events"] == lean.json()["events"][-3:]
        assert latest.json()["epoch"] == lean.json()["epoch"]
        queued, _, result = (one["event"] for one in latest.json()["events"])
        source = queued["content"][1]["source"]
        assert source["data"] == ""
        # Both forms in a result are the same picture.
        first = result["line"]["message"]["content"][0]["content"][0]["source"]["url"]
        assert result["line"]["tool_use_result"]["file"] == {
            "base64": "", "type": "image/png", "url": first,
        }  # fmt: skip
        for url in (source["url"], first):
            picture = await client.get(url)
            assert picture.content == BYTES
            assert picture.headers["content-type"] == "image/png"
            assert picture.headers["cache-control"] == "private, max-age=31536000, immutable"
            assert "sandbox" in picture.headers["content-security-policy"]
        for wrong in (url[:-1] + "x", url.replace("/events/", "/events/9"), url.replace("s1", "s")):
            assert (await client.get(wrong)).status_code == 404
    async with hub.client(None) as nobody:
        assert (await nobody.get(url)).status_code == 401


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
        {"kind": "said", "line": {"type": "base64", "data": "short", "pad": PICTURE}},
        {"kind": "said", "line": {"type": "base64", "data": [PICTURE]}},
        {"kind": "said", "line": {"type": "text", "data": PICTURE, "base64": 5}},
        {"kind": "noted", "text": '"base64" "data"' + PICTURE},
    ],
)
def test_a_line_of_another_form_is_passed_on_as_it_is(odd: object) -> None:
    data = json.dumps(odd, separators=(",", ":")).encode()
    assert with_paths("s", 1, data) is data


@pytest.mark.parametrize(
    ("source", "kind", "body"),
    [
        ({"media_type": "image/svg+xml", "data": PICTURE}, "application/octet-stream", BYTES),
        ({"media_type": ["image/png"], "data": PICTURE}, "application/octet-stream", BYTES),
        ({"data": "=" + "A" * 5001}, None, None),
    ],
)
def test_data_of_another_kind_is_given_as_bytes(
    source: dict[str, object], kind: str | None, body: bytes | None
) -> None:
    event = json.dumps({"line": [{"type": "base64", **source}]}).encode()
    path = json.loads(with_paths("a/b", 7, event))["line"][0]["url"]
    assert path.startswith("/api/sessions/a%2Fb/events/7/pictures/")
    found = find_picture(event, path.rpartition("/")[2])
    assert (found and (found.kind, found.body)) == (kind and (kind, body))


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


async def test_only_the_script_that_was_built_into_the_page_is_run(tmp_path: Path) -> None:
    built = tmp_path / "built"
    built.mkdir()
    (built / "index.html").write_text("<script>one()</script><script src='/x.js'></script>" * 30)
    async with front(tmp_path / "data", static=built) as hub, hub.client(None) as client:
        for encoding in ("gzip", "identity"):
            for path in ("/", "/index.html", "/s/some-session"):
                page = await client.get(path, headers={"accept-encoding": encoding})
                policy = page.headers["content-security-policy"]
                (scripts,) = [part for part in policy.split("; ") if part.startswith("script-src")]
                assert scripts.startswith("script-src 'self' 'sha256-")
                assert "unsafe" not in policy
        api = await client.get("/api/whoami")
    assert "sha256" not in api.headers["content-security-policy"]
