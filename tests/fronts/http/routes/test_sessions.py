from __future__ import annotations

import pytest

from quarterdeck.domain.errors import (
    Conflict,
    JournalError,
    LaunchError,
    LinkClosed,
    RequestRefused,
    RequestTimeout,
    UnsupportedError,
)
from quarterdeck.fronts.http import Role
from quarterdeck.protocol.commands import (
    Control,
    ForkSession,
    Interrupt,
    ResumeSession,
    SendPrompt,
    StopSession,
)
from support.front import Front


async def test_a_session_is_made_read_changed_and_deleted(hub: Front) -> None:
    async with hub.client() as client:
        made = await client.post("/api/sessions", json={"spec": {"directory": "/srv"}})
        session = made.json()["session"]
        assert made.status_code == 200
        path = f"/api/sessions/{session}"
        shown = (await client.get(path)).json()
        assert (shown["spec"], shown["by"], shown["head"]) == (
            {"directory": "/srv"},
            "the owner",
            3,
        )
        changed = await client.patch(
            path, json={"name": "new", "auto_approve": [], "archived": True}
        )
        assert (changed.json()["name"], changed.json()["archived"]) == ("new", True)
        assert (await client.post(f"{path}/stop")).status_code == 200
        assert (await client.delete(path)).json() == {"session": session}
        gone = await client.get(path)
        assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


async def test_an_empty_auto_approve_list_takes_every_approval_back(hub: Front) -> None:
    session = await hub.deck.have_session(auto_approve=["Read"])
    async with hub.client() as client:
        answer = await client.patch(f"/api/sessions/{session}", json={"auto_approve": []})
    assert answer.status_code == 200
    assert (await hub.deck.session(session)).spec.auto_approve == ()


async def test_nothing_to_change_is_an_error(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.client() as client:
        answer = await client.patch(f"/api/sessions/{session}", json={})
    assert (answer.status_code, answer.json()["detail"]) == (400, "body: nothing to change")


async def test_the_same_session_id_twice_makes_one_session(hub: Front) -> None:
    body = {"spec": {"directory": "/srv"}, "session": "mine"}
    async with hub.client() as client:
        first = (await client.post("/api/sessions", json=body)).json()
        second = (await client.post("/api/sessions", json=body)).json()
    assert first == {"session": "mine"}
    assert second == {"session": "mine", "repeated": True}


async def test_sessions_are_listed_newest_first_a_page_at_a_time(hub: Front) -> None:
    made = [await hub.deck.have_session(str(number)) for number in range(5)]
    seen: list[str] = []
    after: str | None = None
    async with hub.client(Role.VIEWER) as client:
        while True:
            query = {"limit": 2} | ({"after": after} if after else {})
            page = (await client.get("/api/sessions", params=query)).json()
            seen += [session["session"] for session in page["sessions"]]
            after = page["next"]
            if after is None:
                break
    assert sorted(seen) == sorted(made)
    assert len(seen) == 5


async def test_prompts_are_queued_listed_changed_and_cancelled(hub: Front) -> None:
    session = await hub.deck.have_session()
    path = f"/api/sessions/{session}/prompts"
    async with hub.client(Role.OPERATOR) as client:
        named = await client.post(path, json={"prompt": "p1", "content": "do it"})
        unnamed = await client.post(path, json={"content": [{"type": "text", "text": "more"}]})
        assert named.json()["prompt"] == "p1"
        changed = await client.patch(f"{path}/p1", json={"content": "do that"})
        assert changed.status_code == 200
        cancelled = await client.delete(f"{path}/{unnamed.json()['prompt']}")
        assert cancelled.status_code == 200
        queued = (await client.get(path)).json()["prompts"]
        unknown = await client.delete(f"{path}/nope")
    assert [(prompt["prompt"], prompt["content"]) for prompt in queued] == [("p1", "do that")]
    assert unknown.status_code == 404


async def test_who_wishes_something_is_what_the_server_knows(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.client(Role.OPERATOR) as client:
        told = await client.post(
            f"/api/sessions/{session}/prompts", json={"content": "x", "by": "the owner"}
        )
        sent = await client.post(f"/api/sessions/{session}/prompts", json={"content": "x"})
    assert told.status_code == 400
    assert "by: unknown field" in told.json()["detail"]
    assert sent.status_code == 200
    assert hub.deck.submitted[-1].by == "the operator"


async def test_every_verb_reaches_the_hub(hub: Front) -> None:
    session = await hub.deck.have_session()
    path = f"/api/sessions/{session}"
    async with hub.client() as client:
        for verb, body in [
            ("interrupt", None),
            ("control", {"request": {"subtype": "set_model", "model": "x"}, "timeout": 5}),
            ("fork", {"name": "copy"}),
            ("fork", None),
            ("stop", None),
            ("resume", None),
        ]:
            answer = await client.post(f"{path}/{verb}", json=body)
            assert answer.status_code == 200, (verb, answer.text)
    assert [type(command) for command in hub.deck.submitted[1:]] == [
        Interrupt,
        Control,
        ForkSession,
        ForkSession,
        StopSession,
        ResumeSession,
    ]


async def test_a_control_request_gives_the_answer_of_the_cli(hub: Front) -> None:
    session = await hub.deck.have_session()
    body = {"request": {"subtype": "get_context_usage"}}
    async with hub.client() as client:
        answer = await client.post(f"/api/sessions/{session}/control", json=body)
    assert answer.json() == {"session": session, "answer": {"ok": True}}
    command = hub.deck.submitted[-1]
    assert isinstance(command, Control)
    assert bytes(command.request) == b'{"subtype":"get_context_usage"}'


async def test_history_is_paged_and_says_where_it_goes_on(hub: Front) -> None:
    session = await hub.deck.have_session()
    await hub.deck.say(session, *map(str, range(7)))
    numbers: list[int] = []
    after: int | None = 0
    async with hub.client(Role.VIEWER) as client:
        while after is not None:
            query = {"after": after, "limit": 4}
            page = (await client.get(f"/api/sessions/{session}/events", params=query)).json()
            assert page["epoch"] == hub.deck.epoch
            numbers += [event["seq"] for event in page["events"]]
            after = page["next"]
    assert numbers == list(range(1, 11))


async def test_secrets_of_a_spec_are_masked_wherever_it_is_shown(hub: Front) -> None:
    session = await hub.deck.have_session(
        env={"KEY": "hush"},
        mcp_servers={"db": {"command": "x", "env": {"PW": "hush"}, "headers": {"a": "hush"}}},
    )
    async with hub.client() as client:
        shown = [
            (await client.get(f"/api/sessions/{session}")).text,
            (await client.get("/api/sessions")).text,
            (await client.get(f"/api/sessions/{session}/events")).text,
        ]
    for text in shown:
        assert "hush" not in text
        assert '"KEY":"…"' in text
        assert '"PW":"…"' in text
        assert '"command":"x"' in text


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Conflict("already_answered", "by Ada"), 409, "already_answered"),
        (RequestRefused("set_model", "no such model"), 422, "cli_refused"),
        (RequestTimeout("set_model", 5), 504, "cli_timeout"),
        (LinkClosed("the machine is away"), 409, "disconnected"),
        (UnsupportedError("seed_read_state", version="2.1.37"), 422, "unsupported"),
        (LaunchError("no CLI"), 422, "launch_failed"),
        (JournalError("the disk is full"), 503, "journal_unavailable"),
    ],
)
async def test_what_the_hub_raises_becomes_a_problem_document(
    hub: Front, error: Exception, status: int, code: str
) -> None:
    session = await hub.deck.have_session()
    hub.deck.fails = error
    async with hub.client() as client:
        answer = await client.post(f"/api/sessions/{session}/interrupt")
    body = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code)
    assert body["type"] == f"urn:quarterdeck:problem:{code}"
    assert body["detail"] == str(error)


async def test_what_nobody_foresaw_is_logged_and_not_shown(
    hub: Front, caplog: pytest.LogCaptureFixture
) -> None:
    session = await hub.deck.have_session()
    hub.deck.fails = ZeroDivisionError("a secret of the inside")
    async with hub.client() as client:
        answer = await client.post(f"/api/sessions/{session}/interrupt")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.json()["instance"] in caplog.text
    assert "a secret of the inside" in caplog.text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "body: not JSON: it is not complete"),
        (b"[]", "body: expected an object, got a list"),
        (b'{"spec":{"directory":"/x","modle":"y"}}', "body: spec.modle: unknown field"),
        (b'{"spec":{"directory":"x"}}', "body: spec.directory: must be an absolute path"),
        (b'{"spec":{"directory":"/x"},"prompt":"\xff"}', "not UTF-8 at byte 37"),
        (
            b'{"spec":{"directory":"/x"},"session":""}',
            "body: session: expected text with a length of at least 1",
        ),
        (b"[" * 100_000, ""),
        (b'{"spec":{"directory":"/x","mcp_servers":' + b'{"a":' * 50_000, ""),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused_with_its_place(
    hub: Front, body: bytes, says: str
) -> None:
    async with hub.client() as client:
        answer = await client.post(
            "/api/sessions", content=body, headers={"content-type": "application/json"}
        )
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert says in answer.json()["detail"]
    assert hub.deck.submitted == []


async def test_a_body_that_is_no_json_is_refused_by_its_type(hub: Front) -> None:
    async with hub.client() as client:
        answer = await client.post("/api/sessions", data={"spec": "x"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


async def test_a_body_that_is_too_large_is_refused_and_not_read(hub: Front) -> None:
    session = await hub.deck.have_session()
    path = f"/api/sessions/{session}/prompts"
    headers = {"content-type": "application/json"}
    async with hub.client() as client:
        told = await client.post(path, content=b" " * (33 * 1024 * 1024), headers=headers)
    assert (told.status_code, told.json()["code"]) == (413, "too_large")


async def test_an_image_of_ten_megabytes_passes_byte_for_byte(hub: Front) -> None:
    session = await hub.deck.have_session()
    content = b'[{"type":"image","data":"' + b"A" * 10_000_000 + b'"}]'
    async with hub.client() as client:
        answer = await client.post(
            f"/api/sessions/{session}/prompts",
            content=b'{"content": ' + content + b"}",
            headers={"content-type": "application/json"},
        )
    assert answer.status_code == 200
    command = hub.deck.submitted[-1]
    assert isinstance(command, SendPrompt)
    assert bytes(command.content) == content
