from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import MutableMapping
from typing import Any

import anyio
import msgspec
import pytest

from quarterdeck.fronts.http.app import _make_api, openapi_document
from quarterdeck.fronts.http.openapi import _handlers
from quarterdeck.fronts.http.pages import Pages
from quarterdeck.fronts.http.schema import schemas_of
from quarterdeck.protocol.command_table import TABLE
from support.bounds import SECONDS
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
        "POST /api/pairing/code",
        "POST /api/pairing",
        "POST /api/pairing/cancel",
        "DELETE /api/token",
        "POST /api/sessions/{session_id}/files",
        "GET /api/hub",
        "GET /api/hub/findings",
        "POST /api/logins",
        "GET /api/shares",
        "POST /api/sessions/{session_id}/share",
        "DELETE /api/shares/{grant_id}",
        "GET /shared/session",
        "GET /shared/events",
        "POST /push/answer",
        "GET /api/preferences",
        "PATCH /api/preferences",
        "GET /api/library",
        "PUT /api/library/prompts/{entry_id}",
        "DELETE /api/library/prompts/{entry_id}",
        "PUT /api/library/templates/{entry_id}",
        "DELETE /api/library/templates/{entry_id}",
        "GET /api/machines/{machine}/sessions",
        "GET /api/sessions/{session_id}/latest",
        "GET /api/sessions/{session_id}/events/{seq}/pictures/{digest}",
        "GET /api/sessions/{session_id}/events/{seq}/outputs/{call}",
        "GET /api/asks",
        "POST /api/asks/{ask_id}/answer",
        "GET /api/asks/{ask_id}/file",
        "GET /api/schedules",
        "POST /api/schedules",
        "DELETE /api/schedules/{name}",
        "POST /api/schedules/{name}/pause",
        "POST /api/schedules/{name}/resume",
        "POST /api/schedules/{name}/run",
        "GET /api/schedules/{name}/firings",
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
        "GET /api/policy/files/{name}",
        "PUT /api/policy/files/{name}",
        "GET /api/policy/suggestions",
        "GET /api/policy/grants",
        "POST /api/policy/grants",
        "DELETE /api/policy/grants/{grant_id}",
        "GET /api/loops",
        "POST /api/loops",
        "GET /api/loops/{loop_id}",
        "GET /api/loops/{loop_id}/text",
        "POST /api/loops/{loop_id}/pause",
        "POST /api/loops/{loop_id}/resume",
        "POST /api/loops/{loop_id}/stop",
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
        "GET /api/sessions/{session_id}/diff/file",
        "GET /api/sessions/{session_id}/files",
        "GET /api/sessions/{session_id}/files/content",
        "GET /api/sessions/{session_id}/files/search",
        "GET /api/sessions/{session_id}/remote",
        "GET /api/sessions/{session_id}/checkpoints",
        "POST /api/sessions/{session_id}/move",
        "POST /api/sessions/{session_id}/revert",
        "POST /api/sessions/{session_id}/stage",
        "POST /api/sessions/{session_id}/commit",
        "POST /api/sessions/{session_id}/push",
        "POST /api/sessions/{session_id}/pull-request",
        "POST /api/sessions/{session_id}/rewind",
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


def test_operations_have_short_ids_groups_sentences_and_described_parameters(spec: Json) -> None:
    ids = [operation["operationId"] for _, operation in operations(spec)]
    assert {"createSession", "sendPrompt", "answerAsk", "interrupt"} <= set(ids)
    assert len(ids) == len(set(ids))
    groups = [tag["name"] for tag in spec["tags"]]
    assert all(tag["description"] for tag in spec["tags"])
    used = set()
    for name, operation in operations(spec):
        assert re.fullmatch("[a-z][a-zA-Z]+", operation["operationId"]), name
        assert operation["description"].split()[0] == operation["summary"].split()[0], name
        assert not operation["summary"].endswith("."), name
        (group,) = operation["tags"]
        used.add(group)
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (name, parameter["name"])
        assert operation["security"] in ([], [{"bearer": []}, {"cookie": []}]), name
    assert {name for name, operation in operations(spec) if not operation["security"]} == {
        "GET /healthz",
        "POST /login",
        "POST /push/answer",
    }
    assert used == set(groups)


def test_every_body_has_an_example_that_its_type_accepts(spec: Json) -> None:
    for path, method, said in _handlers(_make_api()):
        operation = spec["paths"][path][method]
        if said.takes is None:
            continue
        example = operation["requestBody"]["content"]["application/json"].get("example")
        assert example is not None, f"write an example of {operation['operationId']}"
        msgspec.json.decode(msgspec.json.encode(example), type=said.takes)


def test_every_reference_leads_somewhere(spec: Json) -> None:
    text = msgspec.json.encode(spec).decode()
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= spec["components"]["schemas"].keys()


def test_bodies_say_that_unknown_members_are_refused(spec: Json) -> None:
    schemas = spec["components"]["schemas"]
    for name in (
        "CreateSessionBody",
        "SessionSpec",
        "AllowAnswer",
        "SendPromptBody",
        "CreateSession",
    ):
        assert schemas[name]["additionalProperties"] is False
    assert schemas["AllowAnswer"]["required"] == ["answer"]
    assert schemas["CreateSessionBody"]["properties"]["prompt"] == {}


def test_frames_of_the_stream_are_in_the_document(spec: Json) -> None:
    schemas = spec["components"]["schemas"]
    kinds = {
        schema["properties"]["t"]["const"]
        for schema in schemas.values()
        if "t" in schema.get("properties", {})
    }
    assert {"follow", "command", "hello", "events", "views", "live", "done", "error"} <= kinds
    for name in ("ServerFrame", "ClientFrame"):
        parts = [part["$ref"].rpartition("/")[2] for part in schemas[name]["anyOf"]]
        assert {schemas[part]["properties"]["t"]["const"] for part in parts} <= kinds
    assert len(schemas["AnyCommand"]["anyOf"]) == len(TABLE)


def test_a_body_has_neither_what_its_path_gives_nor_what_the_login_gives(spec: Json) -> None:
    schemas = spec["components"]["schemas"]
    for row in TABLE:
        if row.body is not None and not row.shared:
            members = schemas[f"{row.command.__name__}Body"]["properties"].keys()
            assert not members & {*row.in_path, "by", "role", "command"}
    assert schemas["SendPromptBody"]["required"] == ["content"]


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


@pytest.mark.anyio
async def test_the_document_is_made_once_and_not_before_somebody_asks() -> None:
    made: list[bytes] = []
    answers: list[tuple[int, bytes]] = []

    def make() -> bytes:
        made.append(b"{}")
        return made[-1]

    pages = Pages(make)

    async def get(path: str) -> None:
        said: list[MutableMapping[str, Any]] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            said.append(message)

        await pages({"type": "http", "method": "GET", "path": path, "headers": []}, send)
        answers.append((said[0]["status"], said[1]["body"]))

    await get("/docs")
    await get("/nowhere.json")
    assert made == []
    answers.clear()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(get, "/openapi.json")
    assert answers == [(200, b"{}")] * 5
    assert made == [b"{}"]


@pytest.mark.process
def test_a_hub_loads_no_library_for_what_it_does_not_do() -> None:
    program = """
import sys
import quarterdeck.service.service
from quarterdeck.fronts.http import app
app._api()
unused = {"claude_agent_sdk", "httpx2", "mcp", "pydantic", "rich", "typer"}
print(*sorted(unused & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=SECONDS, check=True
    )
    assert done.stdout.split() == []
