from __future__ import annotations

import logging
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from quarterdeck.fronts.http import Access, Places, Role, login_link
from support.front import Front, front


async def log_in(hub: Front, code: str) -> str:
    """The cookie that a code is exchanged for, as a browser sends it."""
    async with hub.client(None) as client:
        answer = await client.post("/login", json={"code": code}, headers={"origin": hub.url})
        assert answer.status_code == 200, answer.text
        return answer.headers["set-cookie"].partition(";")[0]


async def test_a_code_is_exchanged_for_a_cookie_that_opens_api_and_stream(hub: Front) -> None:
    cookie = await log_in(hub, hub.access.make_code())
    async with hub.client(None, cookie=cookie) as client:
        me = (await client.get("/api/whoami")).json()
        assert (me["name"], me["role"]) == ("owner", "owner")
        sent = await client.post(
            "/api/sessions", json={"spec": {"directory": "/x"}}, headers={"origin": hub.url}
        )
        assert sent.status_code == 200
    async with connect(
        f"ws://{hub.host}/api/stream",
        additional_headers={"cookie": cookie, "origin": hub.url},
        proxy=None,
    ) as socket:
        assert '"hello"' in str(await socket.recv())


async def test_a_code_that_nobody_used_makes_no_owner(hub: Front) -> None:
    code = hub.access.make_code()
    owners = [hub.access.has_owner]
    await log_in(hub, code)
    owners.append(hub.access.has_owner)
    assert owners == [False, True]


async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(hub: Front) -> None:
    async with hub.client(None) as client:
        answer = await client.post("/login", json={"code": hub.access.make_code()})
    attributes = answer.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)
    assert "Secure" not in attributes
    assert hub.access.cookie in attributes[0]


async def test_over_tls_the_cookie_is_for_tls_only(tmp_path: Path) -> None:
    places = Places.of(proxies=("127.0.0.1",))
    async with front(tmp_path, places=places) as hub, hub.client(None) as client:
        answer = await client.post(
            "/login",
            json={"code": hub.access.make_code()},
            headers={"x-forwarded-proto": "https"},
        )
    assert "; Secure" in answer.headers["set-cookie"]


async def test_cookies_of_other_servers_on_the_host_do_no_harm(hub: Front) -> None:
    cookie = await log_in(hub, hub.access.make_code())
    strange = f'theme={{"a": "b, c"}}; x; =y; {cookie}; quarterdeck_other=1; z="'
    async with hub.client(None, cookie=strange) as client:
        assert (await client.get("/api/whoami")).status_code == 200


async def test_a_stranger_cannot_make_the_server_read_much(hub: Front) -> None:
    async with hub.client(None) as client:
        answer = await client.post("/login", json={"code": "x" * 5000})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_while_the_file_of_tokens_is_damaged_nobody_gets_in(
    hub: Front, tmp_path: Path
) -> None:
    file = tmp_path / "data" / "access.json"
    async with hub.client() as client:
        good = file.read_bytes()
        file.write_bytes(b"{}")
        answer = await client.get("/api/whoami")
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
        assert str(file) not in answer.text
        file.write_bytes(good)
        assert (await client.get("/api/whoami")).status_code == 200


async def test_a_code_works_once(hub: Front) -> None:
    code = hub.access.make_code()
    await log_in(hub, code)
    async with hub.client(None) as client:
        again = await client.post("/login", json={"code": code})
    assert (again.status_code, again.json()["code"]) == (401, "bad_code")
    assert "set-cookie" not in again.headers


async def test_a_code_is_no_token_and_a_cookie_is_none_either(hub: Front) -> None:
    code = hub.access.make_code()
    cookie = (await log_in(hub, hub.access.make_code())).partition("=")[2]
    token = hub.access.make_token("me", Role.OWNER)
    async with hub.client(None) as client:
        for bearer in (code, cookie):
            answer = await client.get("/api/whoami", headers={"authorization": f"Bearer {bearer}"})
            assert answer.status_code == 401
        for value in (code, token):
            answer = await client.get(
                "/api/whoami", headers={"cookie": f"{hub.access.cookie}={value}"}
            )
            assert answer.status_code == 401
        assert (await client.post("/login", json={"code": token})).status_code == 401


async def test_what_a_cookie_changes_must_come_from_our_own_pages(hub: Front) -> None:
    cookie = await log_in(hub, hub.access.make_code())
    body = {"spec": {"directory": "/x"}}
    async with hub.client(None, cookie=cookie) as client:
        silent = await client.post("/api/sessions", json=body)
        cross = await client.post(
            "/api/sessions", json=body, headers={"sec-fetch-site": "cross-site"}
        )
        same = await client.post(
            "/api/sessions", json=body, headers={"sec-fetch-site": "same-origin"}
        )
    assert (silent.status_code, silent.json()["code"]) == (403, "origin_not_allowed")
    assert cross.status_code == 403
    assert same.status_code == 200


async def test_after_many_wrong_codes_an_address_waits_and_tokens_still_work(hub: Front) -> None:
    code = hub.access.make_code()
    async with hub.client() as client:
        for _ in range(10):
            wrong = await client.post("/login", json={"code": "qd_0_0"})
            assert wrong.status_code == 401
        late = await client.post("/login", json={"code": code})
        assert (late.status_code, late.json()["code"]) == (429, "too_many_failures")
        assert 0 < int(late.headers["retry-after"]) <= 300
        assert (await client.get("/api/whoami")).status_code == 200


async def test_after_many_wrong_tokens_the_wrong_ones_wait_and_the_right_one_does_not(
    hub: Front,
) -> None:
    async with hub.client(None, authorization="Bearer qd_0_0") as client:
        for _ in range(10):
            assert (await client.get("/api/whoami")).status_code == 401
        assert (await client.get("/api/whoami")).status_code == 429
    async with hub.client() as client:
        assert (await client.get("/api/whoami")).status_code == 200
    await log_in(hub, hub.access.make_code())


async def test_a_logout_ends_the_login_for_good(hub: Front) -> None:
    cookie = await log_in(hub, hub.access.make_code())
    async with hub.client(None, cookie=cookie, origin=hub.url) as client:
        out = await client.post("/api/logout")
        assert "Max-Age=0" in out.headers["set-cookie"]
        assert (await client.get("/api/whoami")).status_code == 401


async def test_no_secret_is_in_a_link_that_a_server_sees_nor_in_a_log(
    hub: Front, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    code, token = hub.access.make_code(), hub.access.make_token("me", Role.OWNER)
    link = login_link(hub.url, code)
    before, _, fragment = link.partition("#")
    assert (before, fragment) == (f"{hub.url}/login", code)
    cookie = await log_in(hub, code)
    async with hub.client(None, authorization=f"Bearer {token}") as client:
        await client.get("/api/whoami")
    ours = "".join(r.getMessage() for r in caplog.records if not r.name.startswith("http"))
    for secret in (code, token, cookie.partition("=")[2]):
        assert secret not in ours


async def test_a_login_outlives_the_server(tmp_path: Path) -> None:
    async with front(tmp_path) as first:
        cookie = await log_in(first, first.access.make_code())
    async with front(tmp_path) as second, second.client(None, cookie=cookie) as client:
        assert (await client.get("/api/whoami")).status_code == 200


async def test_another_process_makes_a_code_while_the_server_runs(
    hub: Front, tmp_path: Path
) -> None:
    code = Access(tmp_path / "data").make_code("Ada", Role.VIEWER)
    async with hub.client(None) as client:
        me = await client.post("/login", json={"code": code})
    assert (me.json()["name"], me.json()["role"]) == ("Ada", "viewer")
