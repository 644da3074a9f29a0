from __future__ import annotations

import msgspec
import pytest

from quarterdeck.fronts.http.app import openapi_document
from quarterdeck.fronts.http.schema import schemas_of
from support.front import Front, Json


@pytest.fixture
def spec() -> Json:
    """The document."""
    found: Json = msgspec.json.decode(openapi_document())
    return found


async def test_the_document_is_served_without_a_token(hub: Front) -> None:
    async with hub.client(None) as client:
        answer = await client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == openapi_document()


def operations(spec: Json) -> list[tuple[str, Json]]:
    """Every operation with its name."""
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in spec["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_document_has_every_route_of_the_api(spec: Json) -> None:
    assert spec["openapi"].startswith("3.1")
    assert {name for name, _ in operations(spec)} == {
        "GET /healthz",
        "POST /login",
        "POST /api/logout",
        "GET /api/whoami",
        "GET /api/tokens",
        "POST /api/tokens",
        "DELETE /api/tokens/{grant_id}",
        "GET /api/asks",
        "POST /api/asks/{ask_id}/answer",
        "GET /api/machines",
        "GET /api/machines/{machine}/directories",
        "GET /api/projects",
        "GET /api/usage",
        "GET /api/audit",
        "GET /api/audit/verify",
        "GET /api/policy",
        "POST /api/policy/check",
        "POST /api/policy/explain",
        "POST /api/policy/replay",
        "GET /api/policy/suggestions",
        "GET /api/policy/grants",
        "POST /api/policy/grants",
        "DELETE /api/policy/grants/{grant_id}",
        "GET /api/push",
        "POST /api/push/subscriptions",
        "DELETE /api/push/subscriptions",
        "GET /api/search",
        "POST /api/import",
        "POST /api/retention",
        "GET /api/sessions",
        "POST /api/sessions",
        "GET /api/sessions/{session_id}",
        "PATCH /api/sessions/{session_id}",
        "DELETE /api/sessions/{session_id}",
        "POST /api/sessions/{session_id}/interrupt",
        "POST /api/sessions/{session_id}/stop",
        "POST /api/sessions/{session_id}/resume",
        "POST /api/sessions/{session_id}/fork",
        "POST /api/sessions/{session_id}/control",
        "GET /api/sessions/{session_id}/prompts",
        "POST /api/sessions/{session_id}/prompts",
        "PATCH /api/sessions/{session_id}/prompts/{prompt_id}",
        "DELETE /api/sessions/{session_id}/prompts/{prompt_id}",
        "GET /api/sessions/{session_id}/events",
        "GET /api/sessions/{session_id}/export",
        "GET /api/sessions/{session_id}/diff",
        "POST /api/sessions/{session_id}/worktree",
    }


def test_every_operation_says_what_it_does_and_how_it_fails(spec: Json) -> None:
    for name, operation in operations(spec):
        assert operation["description"], name
        assert "200" in operation["responses"], name
        for status, response in operation["responses"].items():
            if status != "200":
                (kind,) = response["content"]
                assert kind == "application/problem+json", name


def test_every_reference_leads_somewhere(spec: Json) -> None:
    text = msgspec.json.encode(spec).decode()
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= spec["components"]["schemas"].keys()


def test_bodies_say_that_unknown_members_are_refused(spec: Json) -> None:
    schemas = spec["components"]["schemas"]
    for name in ("NewSession", "SessionSpec", "AllowAnswer", "NewPrompt", "CreateSession"):
        assert schemas[name]["additionalProperties"] is False
    assert schemas["AllowAnswer"]["required"] == ["answer"]
    assert schemas["NewSession"]["properties"]["prompt"] == {}


def test_a_type_that_has_no_schema_is_refused() -> None:
    class Odd(msgspec.Struct):
        what: complex

    with pytest.raises(TypeError, match="there is no schema"):
        schemas_of([Odd])


async def test_the_docs_page_loads_nothing_from_elsewhere(hub: Front) -> None:
    async with hub.client(None) as client:
        for path in ("/docs", "/docs.js", "/login", "/login.js", "/", "/home.js", "/plain.css"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert "//" not in answer.text.replace("// ", "").replace("<!--", "")
