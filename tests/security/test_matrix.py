"""Every route, for every identity, from every kind of page: who is let in, and who is not."""

from __future__ import annotations

import json
import re

import httpx
import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.app import openapi_document
from support.front import Front

METHODS = ("get", "post", "put", "patch", "delete")
ROUTES = [
    (method.upper(), path)
    for path, methods in json.loads(openapi_document())["paths"].items()
    for method in METHODS
    if method in methods and path.startswith("/api/")
]
FOR_ALL = {("POST", "/api/logout")}
"""What everybody with a login may do: end it."""
LAST = {*FOR_ALL, ("DELETE", "/api/token")}
"""What ends the access of who asks for it."""
FOR_READERS = {
    *LAST,
    ("POST", "/api/pairing"),
    ("POST", "/api/pairing/cancel"),
    ("POST", "/api/pairing/code"),
    ("POST", "/api/policy/check"),
    ("POST", "/api/policy/explain"),
    ("POST", "/api/policy/replay"),
    ("POST", "/api/push/subscriptions"),
    ("DELETE", "/api/push/subscriptions"),
    ("PATCH", "/api/preferences"),
}
"""Requests that change nothing but what the reader owns."""
FOR_OWNERS = {
    ("GET", "/api/tokens"),
    ("POST", "/api/tokens"),
    ("DELETE", "/api/tokens/{grant_id}"),
    ("POST", "/api/sessions"),
    ("DELETE", "/api/sessions/{session_id}"),
    ("POST", "/api/sessions/{session_id}/fork"),
    ("POST", "/api/sessions/{session_id}/control"),
    ("POST", "/api/policy/grants"),
    ("DELETE", "/api/policy/grants/{grant_id}"),
    ("POST", "/api/import"),
    ("POST", "/api/loops"),
    ("POST", "/api/retention"),
    ("POST", "/api/schedules"),
    ("DELETE", "/api/schedules/{name}"),
    ("POST", "/api/schedules/{name}/resume"),
    ("POST", "/api/schedules/{name}/run"),
    ("POST", "/api/sessions/{session_id}/worktree"),
    ("GET", "/api/machines/{machine}/directories"),
    ("GET", "/api/machines/{machine}/sessions"),
    ("GET", "/api/policy/files/{name}"),
    ("PUT", "/api/policy/files/{name}"),
    ("GET", "/api/hub/findings"),
    ("GET", "/api/shares"),
    ("POST", "/api/logins"),
    ("PUT", "/api/library/templates/{entry_id}"),
}

FOR_OPERATORS = {("GET", "/api/asks/{ask_id}/file")}
"""Files of a machine are for those who steer its agents, and see them anyway."""


def filled(path: str) -> str:
    """A path with an id for each parameter, and a number for that of an event."""
    return re.sub(r"\{[^}]*\}", "01jzzzzzzzzzzzzzzzzzzzzzzz", path.replace("{seq}", "1"))


async def ask(client: httpx.AsyncClient, method: str, path: str, **headers: str) -> httpx.Response:
    body = None if method == "GET" else b"{}"
    if body is not None:
        headers["content-type"] = "application/json"
    return await client.request(method, filled(path), content=body, headers=headers)


def test_the_matrix_names_routes_that_exist() -> None:
    assert set(ROUTES) >= FOR_READERS | FOR_OWNERS
    assert len(ROUTES) > 40


async def test_without_a_token_every_route_is_closed(hub: Front) -> None:
    async with hub.client(None) as nobody:
        for method, path in ROUTES:
            assert (await ask(nobody, method, path)).status_code == 401, (method, path)


@pytest.mark.parametrize("scheme", ["Bearer qd_0_0", "Basic eDp5", "Bearer", "bearer qd_0_0 x"])
async def test_a_made_up_token_opens_no_route(hub: Front, scheme: str) -> None:
    async with hub.client(None, authorization=scheme) as stranger:
        for method, path in ROUTES:
            assert (await ask(stranger, method, path)).status_code in {401, 429}, (method, path)


@pytest.mark.parametrize("role", [Role.RUNNER, Role.METRICS, Role.PROGRAM])
async def test_a_machine_uses_no_route_of_people(hub: Front, role: Role) -> None:
    async with hub.client(role) as machine:
        for method, path in ROUTES:
            if (method, path) in FOR_ALL | {("GET", "/api/whoami")}:
                continue
            assert (await ask(machine, method, path)).status_code == 403, (method, path)


async def test_a_viewer_changes_nothing(hub: Front) -> None:
    wrong: list[tuple[str, str, int]] = []
    async with hub.client(Role.VIEWER) as viewer:
        for method, path in sorted(ROUTES, key=LAST.__contains__):
            reads = method == "GET" or (method, path) in FOR_READERS
            may = reads and (method, path) not in FOR_OWNERS | FOR_OPERATORS
            status = (await ask(viewer, method, path)).status_code
            if (status != 403) is not may:
                wrong.append((method, path, status))
    assert not wrong, "\n".join(map(str, wrong))


async def test_an_operator_does_nothing_that_is_for_owners(hub: Front) -> None:
    async with hub.client(Role.OPERATOR) as operator:
        for method, path in FOR_OWNERS:
            assert (await ask(operator, method, path)).status_code == 403, (method, path)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
async def test_a_page_of_another_origin_uses_no_route_with_any_token(
    hub: Front, origin: str
) -> None:
    async with hub.client(Role.OWNER) as owner:
        for method, path in ROUTES:
            answer = await ask(owner, method, path, origin=origin)
            assert answer.status_code == 403, (method, path)
            assert answer.json()["code"] == "origin_not_allowed"


async def test_no_route_answers_to_a_strange_name(hub: Front) -> None:
    async with hub.client(Role.OWNER, host="evil.example") as rebound:
        for method, path in ROUTES:
            assert (await ask(rebound, method, path)).status_code == 403, (method, path)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"prompt":"' + b"x" * 200_000 + b'"}',
        b"1" * 5_000,
        b'{"spec":{"directory":"' + b"/a" * 20_000 + b'"}}',
    ],
    ids=lambda body: f"{body[:8]!r} of {len(body)}",
)
async def test_no_body_makes_a_route_fail(hub: Front, body: bytes) -> None:
    async with hub.client(Role.OWNER, **{"content-type": "application/json"}) as owner:
        for method, path in ROUTES:
            if method == "GET" or (method, path) in FOR_ALL:
                continue
            answer = await owner.request(method, filled(path), content=body)
            assert answer.status_code < 500, (method, path, answer.text)
