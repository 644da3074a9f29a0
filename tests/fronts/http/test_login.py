from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from websockets import InvalidStatus, Subprotocol

from quarterdeck.fronts.http import Access, Places, Role, login_link
from support.front import Front, front
from support.web_sockets import connect

KEY = "x-quarterdeck-page-key"


async def log_in(hub: Front, code: str) -> dict[str, str]:
    """What a page of a browser sends after it has exchanged a code: its cookie and its key."""
    async with hub.client(None) as client:
        answer = await client.post("/login", json={"code": code}, headers={"origin": hub.url})
        assert answer.status_code == 200, answer.text
        cookie = answer.headers["set-cookie"].partition(";")[0]
        return {"cookie": cookie, KEY: answer.json()["page_key"]}


def value_of(page: dict[str, str]) -> str:
    """The value of the cookie."""
    return page["cookie"].partition("=")[2]


async def test_a_code_is_exchanged_for_a_cookie_that_opens_api_and_stream(hub: Front) -> None:
    page = await log_in(hub, hub.access.make_code())
    async with hub.client(None, **page) as client:
        me = (await client.get("/api/whoami")).json()
        assert (me["name"], me["role"]) == ("owner", "owner")
        sent = await client.post(
            "/api/sessions", json={"spec": {"directory": "/x"}}, headers={"origin": hub.url}
        )
        assert sent.status_code == 200
    async with connect(
        f"ws://{hub.host}/api/stream",
        additional_headers={"cookie": page["cookie"], "origin": hub.url},
        subprotocols=[Subprotocol("quarterdeck"), Subprotocol(f"quarterdeck.page-key.{page[KEY]}")],
        proxy=None,
    ) as socket:
        assert socket.subprotocol == "quarterdeck"
        assert '"hello"' in str(await socket.recv())


async def test_the_cookie_alone_opens_nothing(hub: Front) -> None:
    """Every server on the same host gets it, whatever its port."""
    page = await log_in(hub, hub.access.make_code())
    other = await log_in(hub, hub.access.make_code("other"))
    async with hub.client(None, cookie=page["cookie"], origin=hub.url) as client:
        for _ in range(12):  # it is no failure that counts: nobody is kept out by an old tab
            bare = await client.get("/api/whoami")
            assert (bare.status_code, bare.json()["code"]) == (401, "page_key_missing")
        made = await client.post("/api/tokens", json={"name": "x", "role": "owner"})
        assert made.status_code == 401
        for key in ("", "x", other[KEY], value_of(page), value_of(page).rpartition("_")[2]):
            wrong = await client.get("/api/whoami", headers={KEY: key})
            assert wrong.status_code == 401
        assert (await client.get("/api/whoami", headers={KEY: page[KEY]})).status_code == 200
    for protocols in ([], ["quarterdeck"], ["quarterdeck", f"quarterdeck.page-key.{other[KEY]}"]):
        with pytest.raises(InvalidStatus) as refused:
            await connect(
                f"ws://{hub.host}/api/stream",
                additional_headers={"cookie": page["cookie"], "origin": hub.url},
                subprotocols=[Subprotocol(each) for each in protocols] or None,
                proxy=None,
            )
        assert refused.value.response.status_code == 401


async def test_the_page_key_alone_opens_nothing(hub: Front) -> None:
    page = await log_in(hub, hub.access.make_code())
    async with hub.client(None) as client:
        for headers in (
            {KEY: page[KEY]},
            {"authorization": f"Bearer {page[KEY]}"},
            {"cookie": f"{hub.access.cookie}={page[KEY]}", KEY: page[KEY]},
        ):
            assert (await client.get("/api/whoami", headers=headers)).status_code == 401
        assert (await client.post("/login", json={"code": page[KEY]})).status_code == 401


async def test_the_page_key_is_kept_as_a_hash_only(hub: Front, tmp_path: Path) -> None:
    page = await log_in(hub, hub.access.make_code())
    kept = (tmp_path / "data" / "access.json").read_text()
    assert page[KEY] not in kept


async def test_a_login_of_before_there_were_page_keys_is_none_any_more(
    hub: Front, tmp_path: Path
) -> None:
    page = await log_in(hub, hub.access.make_code())
    file = tmp_path / "data" / "access.json"
    kept = json.loads(file.read_text())
    for grant in kept["grants"]:
        grant.pop("page", None)
    file.write_text(json.dumps(kept))
    async with hub.client(None, **page) as client:
        assert (await client.get("/api/whoami")).status_code == 401


async def test_of_several_cookies_of_our_name_the_right_one_counts(hub: Front) -> None:
    page = await log_in(hub, hub.access.make_code())
    planted = f"{hub.access.cookie}=planted"
    async with hub.client(None, **{KEY: page[KEY]}) as client:
        for cookie in (f"{planted}; {page['cookie']}", f"{page['cookie']}; {planted}"):
            for _ in range(12):
                answer = await client.get("/api/whoami", headers={"cookie": cookie})
                assert answer.status_code == 200


@pytest.mark.parametrize(
    ("role", "scheme", "days"),
    [
        (Role.OWNER, "http", 30),
        (Role.OWNER, "https", 90),
        (Role.OPERATOR, "http", 90),
        (Role.VIEWER, "http", 90),
    ],
)
async def test_a_login_lasts_shorter_for_owners_without_tls(
    tmp_path: Path, role: Role, scheme: str, days: int
) -> None:
    places = Places.of(proxies=("127.0.0.1",))
    async with front(tmp_path, places=places) as hub, hub.client(None) as client:
        answer = await client.post(
            "/login",
            json={"code": hub.access.make_code("me", role)},
            headers={"x-forwarded-proto": scheme},
        )
        assert f"Max-Age={days * 86400};" in answer.headers["set-cookie"]
        (grant,) = hub.access.grants()
        assert grant.expires is not None
        assert round(grant.expires - grant.made) == days * 86400


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
    page = await log_in(hub, hub.access.make_code())
    strange = f'theme={{"a": "b, c"}}; x; =y; {page["cookie"]}; quarterdeck_other=1; z="'
    async with hub.client(None, **{"cookie": strange, KEY: page[KEY]}) as client:
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
    page = await log_in(hub, hub.access.make_code())
    cookie = value_of(page)
    token = hub.access.make_token("me", Role.OWNER)
    async with hub.client(None) as client:
        for bearer in (code, cookie):
            answer = await client.get("/api/whoami", headers={"authorization": f"Bearer {bearer}"})
            assert answer.status_code == 401
        for value in (code, token):
            answer = await client.get(
                "/api/whoami",
                headers={"cookie": f"{hub.access.cookie}={value}", KEY: page[KEY]},
            )
            assert answer.status_code == 401
        assert (await client.post("/login", json={"code": token})).status_code == 401


async def test_what_a_cookie_changes_must_come_from_our_own_pages(hub: Front) -> None:
    page = await log_in(hub, hub.access.make_code())
    body = {"spec": {"directory": "/x"}}
    async with hub.client(None, **page) as client:
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


async def test_after_many_wrong_codes_the_wrong_ones_wait_and_a_right_one_works(hub: Front) -> None:
    code = hub.access.make_code()
    async with hub.client() as client:
        for _ in range(10):
            wrong = await client.post("/login", json={"code": "qd_0_0"})
            assert wrong.status_code == 401
        late = await client.post("/login", json={"code": "qd_0_0"})
        assert (late.status_code, late.json()["code"]) == (429, "too_many_failures")
        assert 0 < int(late.headers["retry-after"]) <= 300
        assert (await client.get("/api/whoami")).status_code == 200
        assert (await client.post("/login", json={"code": code})).status_code == 200


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
    page = await log_in(hub, hub.access.make_code())
    async with hub.client(None, **page, origin=hub.url) as client:
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
    page = await log_in(hub, code)
    async with hub.client(None, **page) as client:
        await client.get("/api/whoami")
    async with hub.client(None, authorization=f"Bearer {token}") as client:
        await client.get("/api/whoami")
    ours = "".join(r.getMessage() for r in caplog.records if not r.name.startswith("http"))
    for secret in (code, token, value_of(page), page[KEY]):
        assert secret not in ours


async def test_a_login_outlives_the_server(tmp_path: Path) -> None:
    async with front(tmp_path) as first:
        page = await log_in(first, first.access.make_code())
    async with front(tmp_path) as second, second.client(None, **page) as client:
        assert (await client.get("/api/whoami")).status_code == 200


async def test_another_process_makes_a_code_while_the_server_runs(
    hub: Front, tmp_path: Path
) -> None:
    code = Access(tmp_path / "data").make_code("Ada", Role.VIEWER)
    async with hub.client(None) as client:
        me = await client.post("/login", json={"code": code})
    assert (me.json()["name"], me.json()["role"]) == ("Ada", "viewer")
