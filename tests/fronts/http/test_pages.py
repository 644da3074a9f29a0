from __future__ import annotations

from pathlib import Path

import pytest

from support.front import Front, front


async def test_without_a_built_deck_a_page_says_what_this_is(hub: Front) -> None:
    async with hub.client(None) as client:
        answer = await client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "Quarterdeck" in answer.text


async def test_a_built_deck_is_served_with_its_own_paths(tmp_path: Path) -> None:
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<title>the deck</title>")
    (built / "assets" / "app-123.js").write_text("1")
    async with front(tmp_path / "data", static=built) as hub, hub.client(None) as client:
        for path in ("/", "/sessions/abc", "/index.html"):
            assert "the deck" in (await client.get(path)).text
        asset = await client.get("/assets/app-123.js")
        assert "immutable" in asset.headers["cache-control"]
        assert asset.headers["content-type"].startswith("text/javascript")
        assert (await client.get("/assets/gone.js")).status_code == 404
        assert (await client.get("/docs")).status_code == 200
        assert (await client.get("/api/nope")).status_code == 401


async def test_a_page_that_did_not_change_is_not_sent_again(hub: Front) -> None:
    async with hub.client(None) as client:
        first = await client.get("/docs")
        again = await client.get("/docs", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_text_is_packed_for_those_who_can_unpack_it(tmp_path: Path) -> None:
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("the deck")
    (built / "assets" / "app-1.js").write_text("deck();" * 10_000)
    (built / "assets" / "dot-1.png").write_bytes(bytes(10_000))
    async with front(tmp_path / "data", static=built) as hub, hub.client(None) as client:
        packed = await client.get("/assets/app-1.js", headers={"accept-encoding": "br, gzip"})
        plain = await client.get("/assets/app-1.js", headers={"accept-encoding": "identity"})
        picture = await client.get("/assets/dot-1.png")
        small = await client.get("/")
        known = {"accept-encoding": "gzip", "if-none-match": packed.headers["etag"]}
        again = await client.get("/assets/app-1.js", headers=known)
    assert packed.text == plain.text == "deck();" * 10_000
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) // 10
    assert packed.headers["etag"] != plain.headers["etag"]
    assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert (again.status_code, again.content) == (304, b"")
    assert all("content-encoding" not in answer.headers for answer in (plain, picture, small))


@pytest.mark.parametrize(
    "path",
    ["/../access.json", "/%2e%2e/access.json", "/assets/..%2f..%2faccess.json", "//etc/passwd"],
)
async def test_there_is_no_way_out_of_the_folder(tmp_path: Path, path: str) -> None:
    built = tmp_path / "built"
    built.mkdir()
    (built / "index.html").write_text("the deck")
    (tmp_path / "access.json").write_text("secret")
    async with front(tmp_path / "data", static=built) as hub, hub.client(None) as client:
        answer = await client.get(path)
    assert "secret" not in answer.text
    assert "root:" not in answer.text


async def test_a_page_is_only_read(hub: Front) -> None:
    async with hub.client(None) as client:
        answer = await client.post("/docs")
        head = await client.head("/docs")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert (head.status_code, head.content) == (200, b"")
