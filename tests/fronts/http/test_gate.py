from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from websockets.exceptions import InvalidStatus

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http import Places, Role
from quarterdeck.fronts.http.asgi import Receive, Scope, Send
from quarterdeck.links.websocket import CliEndpoint, LinkAccess, WebSocketLink
from support.bounds import SECONDS
from support.front import Front, front
from support.web_sockets import connect

STRANGE_HOSTS = ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "a@127.0.0.1"]


async def refusal(url: str, **headers: str) -> tuple[int, str]:
    """How a WebSocket is refused: the status, and the code of the problem."""
    with pytest.raises(InvalidStatus) as caught:
        async with connect(url, additional_headers=headers, proxy=None):
            pass
    response = caught.value.response
    return response.status_code, msgspec.json.decode(response.body)["code"]


@pytest.mark.parametrize("host", STRANGE_HOSTS)
async def test_a_strange_host_is_refused_everywhere(hub: Front, host: str) -> None:
    async with hub.client() as client:
        for path in ["/", "/healthz", "/login", "/openapi.json", "/api/whoami", "/v1/x", "/runner"]:
            answer = await client.get(path, headers={"host": host})
            assert (answer.status_code, answer.json()["code"]) == (403, "host_not_allowed")


async def test_a_request_without_a_host_or_with_two_is_refused(hub: Front) -> None:
    name, _, port = hub.host.partition(":")
    for hosts in ["", "Host: 127.0.0.1\r\nHost: evil.example\r\n"]:
        async with await anyio.connect_tcp(name, int(port)) as raw:
            await raw.send(f"GET /healthz HTTP/1.0\r\n{hosts}\r\n".encode())
            with anyio.fail_after(SECONDS):
                answer = await raw.receive()
        assert answer.split(b" ")[1] in {b"400", b"403"}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8765", "LOCALHOST:80"])
async def test_every_name_of_loopback_is_taken_with_any_port(hub: Front, host: str) -> None:
    async with hub.client() as client:
        answer = await client.get("/api/whoami", headers={"host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://{host}", "http://localhost", "http://{host}.x"],
)
async def test_a_strange_origin_is_refused_even_with_a_token(hub: Front, origin: str) -> None:
    origin = origin.format(host=hub.host)
    async with hub.client() as client:
        read = await client.get("/api/whoami", headers={"origin": origin})
        write = await client.post("/api/sessions", json={}, headers={"origin": origin})
    for answer in (read, write):
        assert (answer.status_code, answer.json()["code"]) == (403, "origin_not_allowed")


async def test_our_own_origin_is_taken(hub: Front) -> None:
    async with hub.client() as client:
        answer = await client.get("/api/whoami", headers={"origin": hub.url})
    assert answer.status_code == 200


async def test_a_cross_site_websocket_is_refused(hub: Front) -> None:
    token = hub.access.make_token("me", Role.OWNER)
    url = f"ws://{hub.host}/api/stream"
    bearer = f"Bearer {token}"
    assert await refusal(url, origin="http://evil.example", authorization=bearer) == (
        403,
        "origin_not_allowed",
    )
    assert await refusal(url) == (401, "unauthorized")
    assert await refusal(url, authorization="Bearer wrong") == (401, "unauthorized")
    assert await refusal(f"ws://{hub.host}/api/other", authorization=bearer) == (404, "not_found")


async def test_a_runner_token_reads_nothing(hub: Front) -> None:
    token = hub.access.make_token("machine", Role.RUNNER)
    bearer = {"authorization": f"Bearer {token}"}
    async with hub.client(None) as client:
        answer = await client.get("/api/sessions", headers=bearer)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert await refusal(f"ws://{hub.host}/api/stream", **bearer) == (403, "forbidden")
    assert hub.access.runner_named(token) == "machine"
    assert hub.access.runner_named(hub.access.make_token("me", Role.OWNER)) is None


@pytest.mark.parametrize("scheme", ["", "Bearer", "Bearer qd_x_y", "Basic {token}", "{token}"])
async def test_without_a_right_token_nobody_gets_in(hub: Front, scheme: str) -> None:
    token = hub.access.make_token("me", Role.OWNER)
    headers = {"authorization": scheme.format(token=token)} if scheme else {}
    async with hub.client(None) as client:
        for path in ["/api/sessions", "/api/whoami", "/api/nowhere"]:
            answer = await client.get(path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_token_that_was_taken_back_opens_nothing(hub: Front) -> None:
    async with hub.client() as client:
        assert (await client.get("/api/whoami")).status_code == 200
        hub.access.revoke(hub.access.grants()[0].id)
        assert (await client.get("/api/whoami")).status_code == 401


ALLOWED = {
    Role.OWNER: {"read", "steer", "manage"},
    Role.OPERATOR: {"read", "steer"},
    Role.VIEWER: {"read"},
}
REQUESTS = [
    ("read", "GET", "/api/sessions", None),
    ("read", "GET", "/api/sessions/{s}/events", None),
    ("read", "GET", "/api/asks", None),
    ("read", "GET", "/api/audit", None),
    ("read", "GET", "/api/machines", None),
    ("read", "GET", "/api/usage", None),
    ("steer", "POST", "/api/sessions/{s}/prompts", {"content": "x"}),
    ("steer", "POST", "/api/asks/{a}/answer", {"answer": {"answer": "allow"}}),
    ("steer", "POST", "/api/sessions/{s}/interrupt", None),
    ("steer", "PATCH", "/api/sessions/{s}", {"name": "x"}),
    ("manage", "POST", "/api/sessions", {"spec": {"directory": "/x"}}),
    ("manage", "PATCH", "/api/sessions/{s}", {"auto_approve": ["Bash"]}),
    ("manage", "POST", "/api/sessions/{s}/control", {"request": {"subtype": "x"}}),
    ("manage", "POST", "/api/sessions/{s}/fork", None),
    ("manage", "DELETE", "/api/sessions/{s}", None),
]


@pytest.mark.parametrize("role", list(ALLOWED))
async def test_each_role_may_do_what_the_table_says_and_no_more(hub: Front, role: Role) -> None:
    async with hub.client(role) as client:
        for right, method, path, body in REQUESTS:
            session = await hub.deck.have_session()
            ask = await hub.deck.ask(session)
            before = len(hub.deck.submitted)
            answer = await client.request(method, path.format(s=session, a=ask), json=body)
            if right in ALLOWED[role]:
                # A session that has a process is not deleted, whoever wants it.
                good = 409 if method == "DELETE" else 200
                assert answer.status_code == good, (role, method, path, answer.text)
            else:
                assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
                assert len(hub.deck.submitted) == before


async def test_every_answer_keeps_browsers_from_harm(hub: Front) -> None:
    async with hub.client() as client:
        answers = [await client.get(path) for path in ["/", "/api/whoami", "/nope", "/docs"]]
        answers.append(await client.get("/", headers={"host": "evil.example"}))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers
    assert answers[1].headers["cache-control"] == "no-store"


async def test_a_named_proxy_is_believed_and_a_stranger_is_not(tmp_path: Path) -> None:
    forwarded = {
        "host": "deck.example",
        "x-forwarded-host": "deck.example",
        "x-forwarded-proto": "https",
        "x-forwarded-for": "6.6.6.6, 198.51.100.7",
        "origin": "https://deck.example",
    }
    places = Places.of(hosts=("deck.example",), proxies=("127.0.0.0/8",))
    async with front(tmp_path / "behind", places=places) as behind, behind.client() as client:
        answer = await client.get("/api/whoami", headers=forwarded)
        assert answer.status_code == 200
        assert "strict-transport-security" in answer.headers
    places = Places.of(hosts=("deck.example",), proxies=("192.0.2.1",))
    async with front(tmp_path / "strange", places=places) as strange, strange.client() as client:
        answer = await client.get("/api/whoami", headers={**forwarded, "host": "inner:80"})
        assert answer.json()["code"] == "host_not_allowed"


def test_a_configuration_that_cannot_be_right_is_refused() -> None:
    cases: tuple[dict[str, Any], ...] = (
        {"hosts": ("deck.example:80",)},
        {"hosts": ("*",)},
        {"hosts": ("",)},
        {"origins": ("deck.example",)},
        {"origins": ("https://deck.example/path",)},
        {"proxies": ("not an address",)},
    )
    for wrong in cases:
        with pytest.raises(UsageError):
            Places.of(**wrong)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """An endpoint that says where it was reached."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": scope["path"]})
        await send({"type": "websocket.close", "code": 1000})
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})


async def test_runners_and_clis_reach_their_endpoints_and_pages_do_not(tmp_path: Path) -> None:
    async with front(tmp_path, runner=echo, cli=echo) as hub:
        for path in ["/", "/v1/ws/abc", "/runner", "/runner/runs/r1"]:
            async with connect(f"ws://{hub.host}{path}", proxy=None) as reached:
                assert await reached.recv() == path
            assert await refusal(f"ws://{hub.host}{path}", origin=hub.url) == (
                403,
                "origin_not_allowed",
            )
        async with hub.client(None) as client:
            assert (await client.post("/v1/session/abc/events")).text == "/v1/session/abc/events"
            assert (await client.get("/")).headers["content-type"].startswith("text/html")


async def test_the_token_of_one_session_opens_no_other_and_nothing_else(tmp_path: Path) -> None:
    links = {"/v1/ws/one": WebSocketLink(), "/v1/ws/two": WebSocketLink()}
    doors = {path: LinkAccess(link, f"token-of-{path[-3:]}") for path, link in links.items()}
    async with front(tmp_path, cli=CliEndpoint(doors.get)) as hub:
        bearer = {"authorization": "Bearer token-of-one"}
        with pytest.raises(InvalidStatus) as caught:
            async with connect(f"ws://{hub.host}/v1/ws/two", additional_headers=bearer, proxy=None):
                pass
        assert caught.value.response.status_code == 401
        async with hub.client(None) as client:
            posted = await client.post(
                "/v1/session/two/events", json={"events": []}, headers=bearer
            )
            api = await client.get("/api/sessions", headers=bearer)
        assert (posted.status_code, api.status_code) == (401, 401)
        async with connect(f"ws://{hub.host}/v1/ws/one", additional_headers=bearer, proxy=None):
            pass
