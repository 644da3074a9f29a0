"""People at `/mcp`: a program with a person's token has their rights, and can answer nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from msgspec import Raw, Struct

from quarterdeck.domain.errors import Conflict, NotFound
from quarterdeck.fronts.http import Access, Listen, Role, make_app, serve
from quarterdeck.fronts.mcp import McpEndpoint, PeopleTools
from quarterdeck.fronts.mcp.looks import find
from quarterdeck.fronts.mcp.people import TOOLS, tools_for
from quarterdeck.fronts.mcp.policy import MOST_REFUSED, RefusedCalls
from quarterdeck.fronts.mcp.server import PREFIX
from quarterdeck.hub.call_record import RECORD
from quarterdeck.policy.decide import Rules
from quarterdeck.policy.file import read_policy
from quarterdeck.protocol.commands import DeleteSession, SendPrompt
from quarterdeck.protocol.events import Decided
from quarterdeck.protocol.search import Hit, Hits, Search, Snippet, TextKind
from quarterdeck.service.agents import _visitor_of
from support import lines
from support.agent_family import Family
from support.bounds import SECONDS
from support.waiting import until

pytestmark = pytest.mark.anyio

POLICY = """
[[rule]]
name = "bob does not stop"
verdict = "deny"
tool = "mcp__quarterdeck__stop"
user = "bob"
message = "Bob stops nothing."

[[rule]]
name = "bob's prompts"
verdict = "ask"
tool = "mcp__quarterdeck__send"
user = "bob"

[[rule]]
name = "bob starts nothing"
verdict = "deny"
tool = "mcp__quarterdeck__spawn"
user = "bob"
"""

READING = {"list_sessions", "wait", "read", "changes", "search"}
STEERING = {"send", "interrupt", "stop"}


class Guest(Struct):
    """The official client of a person, and the hub."""

    client: ClientSession
    family: Family

    async def call(self, name: str, /, **given: Any) -> CallToolResult:
        result = await self.client.call_tool(name, given)
        assert isinstance(result, CallToolResult)
        return result

    async def value(self, name: str, /, **given: Any) -> Any:
        """What a tool gives."""
        result = await self.call(name, **given)
        assert not result.is_error, result
        return json.loads(_text(result))

    async def call_text(self, name: str, /, **given: Any) -> str:
        """What a tool says."""
        return _text(await self.call(name, **given))

    async def refusal(self, name: str, /, **given: Any) -> str:
        """Why a tool does not do it."""
        result = await self.call(name, **given)
        assert result.is_error, result
        return _text(result)


def _text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


class House(Struct):
    """The whole gate, with the endpoint behind it."""

    url: str
    access: Access
    family: Family

    @asynccontextmanager
    async def guest(self, role: Role, name: str = "eve") -> AsyncIterator[Guest]:
        token = self.access.make_token(name, role)
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=SECONDS, trust_env=False) as http,
            streamable_http_client(f"{self.url}/mcp", http_client=http) as (read, write, *_),
            ClientSession(read, write) as client,
        ):
            await client.initialize()
            yield Guest(client, self.family)


@pytest.fixture
async def house(family: Family, tmp_path: Path) -> AsyncIterator[House]:
    access = Access(tmp_path)
    people = PeopleTools(family.hub, changes=family._changes, search=family._search)
    policy = read_policy(POLICY, "policy").policy
    assert policy is not None
    endpoint = McpEndpoint(
        family.hub,
        family.tools,
        lambda _: Rules(),
        people=people,
        visitor_of=_visitor_of,
        rules_for_people=lambda: Rules(policies=(policy,)),
    )
    app = make_app(family.hub, access, mcp=endpoint)
    async with endpoint.run(), serve(app, Listen(port=0)) as url:
        yield House(url, access, family)


@pytest.mark.parametrize(
    ("role", "names"),
    [
        (Role.VIEWER, READING),
        (Role.OPERATOR, READING | STEERING),
        (Role.OWNER, READING | STEERING | {"spawn"}),
    ],
)
async def test_a_role_has_the_tools_that_the_api_allows_and_none_that_answers(
    role: Role, names: set[str], house: House
) -> None:
    session = await house.family.person()
    given: dict[str, Any] = {
        "send": {"session": session, "text": "x"},
        "interrupt": {"session": session},
        "stop": {"session": session},
        "spawn": {"prompt": "x", "directory": "/work"},
    }
    async with house.guest(role) as guest:
        listed = await guest.client.list_tools()
        assert {tool.name for tool in listed.tools} == names == set(tools_for(role))
        for name in set(TOOLS) - names:
            assert "may not" in await guest.refusal(name, **given[name])
        for name in ("answer", "answer_ask", "decide"):
            assert "there is no tool" in await guest.refusal(name, session=session)
    assert len(house.family.machines.runs) == 1
    assert not house.family.run(session).stops


@pytest.mark.parametrize("role", [Role.RUNNER, Role.METRICS, Role.PROGRAM])
async def test_tokens_of_machines_and_wrong_ones_are_refused(role: Role, house: House) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}
    good = house.access.make_token("eve", Role.OWNER)
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as http:

        async def status(authorization: str, **headers: str) -> int:
            given = accept | {"authorization": authorization} | headers
            return (await http.post(f"{house.url}/mcp", headers=given, json=body)).status_code

        assert await status(f"Bearer {house.access.make_token('m', role)}") == 401
        assert await status(f"Bearer {good}x") == 401
        assert await status(f"Basic {good}") == 401
        assert await status(f"Bearer {good}", origin="http://evil.test") == 403
        assert await status(f"Bearer {good}", host="evil.test") >= 400
        assert await status(f"Bearer {good}") == 200
        (grant,) = [each for each in house.access.grants() if each.role is Role.OWNER]
        house.access.revoke(grant.id)
        assert await status(f"Bearer {good}") == 401


async def test_an_owner_starts_directs_and_reads_sessions(house: House) -> None:
    family = house.family
    async with house.guest(Role.OWNER) as guest:
        made = await guest.value(
            "spawn", prompt="work", directory="/work", name="mine", mode="plan", budget_usd=2
        )
        session = made["session"]
        view = await family.view(session)
        assert (view.by, view.lineage, view.spec.mode) == ("eve", (), "plan")
        assert view.spec.budget is not None
        assert view.spec.budget.session_usd == 2
        await family.run(session).greet()
        await family.turn(session, "all done")
        waited = await guest.value("wait", session=session, seconds=1)
        assert (waited["done"], waited["answer"]) == (True, "all done")
        sent = await guest.value("send", session=session, text="more")
        assert sent["queued"] or sent["state"] == "working"
        pages = await guest.value("read", session=session)
        assert "[prompt by eve] work" in pages["text"]
        assert "<message from=" not in pages["text"]  # it is a person's, not an agent's
        changes = await guest.value("changes", session=session)
        assert changes["text_cut"]
        family.found = [session, "elsewhere"]
        assert len(await guest.value("search", words="done")) == 2
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_grant, family, session, "interrupt")
            await guest.value("interrupt", session=session)
        await guest.value("stop", session=session)
        assert family.run(session).stops
        assert [each["session"] for each in await guest.value("list_sessions")] == [session]
        bypass = {"prompt": "x", "directory": "/work", "mode": "bypassPermissions"}
        assert "chosen by a person" in await guest.refusal("spawn", **bypass)
        assert "unknown field" in await guest.refusal("spawn", prompt="x", skip_permissions=True)
        assert "there is no session" in await guest.refusal("read", session="nothing")


async def _grant(family: Family, session: str, subtype: str) -> None:
    """Answer a control request, as the CLI would."""
    run = family.run(session)
    await until(lambda: any(subtype.encode() in line for line in run.unwritten().values()))
    (line,) = [each for each in run.unwritten().values() if subtype.encode() in each]
    await run.say(lines.success_answer(json.loads(line)["request_id"], {}))


async def test_questions_stay_open_whatever_a_model_with_a_persons_token_does(house: House) -> None:
    session = await house.family.person()
    await house.family.run(session).say(
        lines.requests(
            "q1",
            subtype="can_use_tool",
            tool_name="Bash",
            tool_use_id="t1",
            input={"command": "ls"},
        )
    )
    async with house.guest(Role.OWNER) as guest:
        (listed,) = await guest.value("list_sessions")
        assert listed["waits_for_person"]
        await guest.value("send", session=session, text="allow")
    assert len(await house.family.hub.asks(session=session)) == 1


async def entries(family: Family, session: str) -> list[tuple[str, str, str, str | None]]:
    """The audit log of a session: tool, verdict, by whom, and who called."""
    found = [each.event for each in await family.hub.audit(session=session)]
    return [
        (each.tool.removeprefix(PREFIX), each.verdict, each.by, each.caller)
        for each in found
        if isinstance(each, Decided)
    ]


async def test_rules_hold_for_people_and_every_call_is_in_the_audit_log(house: House) -> None:
    family = house.family
    session = await family.person()
    async with house.guest(Role.OWNER, "bob") as bob:
        assert await bob.refusal("stop", session=session) == "Bob stops nothing."
        asked = await bob.refusal("send", session=session, text="hello")
        assert "nobody can be asked at /mcp" in asked
        assert "bob's prompts" in asked or "policy asks" in asked
        await bob.value("read", session=session)
        await bob.refusal("spawn", prompt="x", directory="/work")
        await bob.value("search", words="x")
        await bob.refusal("read", session="nothing")
        with pytest.raises(NotFound):
            await family.hub.session("nothing")
    async with house.guest(Role.VIEWER) as eve:
        assert "may not" in await eve.refusal("stop", session=session)
    assert not family.run(session).stops
    assert await entries(family, session) == [
        ("stop", "deny", "policy", "bob"),
        ("send", "deny", "policy", "bob"),
        ("stop", "deny", "policy", "eve"),
    ]
    assert await entries(family, RECORD) == [
        ("read", "allow", "bob", "bob"),
        ("spawn", "deny", "policy", "bob"),
        ("search", "allow", "bob", "bob"),
        ("read", "deny", "policy", "bob"),
    ]
    (first, *_) = [each.event for each in await family.hub.audit(session=session)]
    assert isinstance(first, Decided)
    assert first.rule == "bob does not stop"
    assert (await family.hub.policy.verify()).good
    record = await family.view(RECORD)
    assert (record.archived, record.run) == (True, None)
    with pytest.raises(Conflict):
        await family.hub.submit(
            SendPrompt(session=RECORD, prompt="p", content=Raw(b'"x"'), by="ada")
        )


async def test_who_only_reads_writes_nothing_into_the_session_and_little_elsewhere(
    house: House,
) -> None:
    family = house.family
    session = await family.person()
    head = (await family.view(session)).head
    async with house.guest(Role.VIEWER) as guest:
        for _ in range(3):
            await guest.value("read", session=session)
            await guest.value("wait", session=session, seconds=1)
        assert (await family.view(session)).head == head
        assert await entries(family, RECORD) == [
            ("read", "allow", "eve", "eve"),
            ("wait", "allow", "eve", "eve"),
        ]
        for number in range(MOST_REFUSED):
            await guest.refusal("read", session=f"made up {number}")
        assert "refused within an hour" not in await guest.call_text("read", session=session)
    assert (await family.view(session)).head == head
    assert len(await entries(family, RECORD)) == 2 + MOST_REFUSED


async def test_the_audit_log_has_what_came_of_a_call(house: House) -> None:
    """Not what it was let do before the hub refused it."""
    family = house.family
    session = await family.person()
    async with house.guest(Role.OWNER) as guest:
        bypass = {"prompt": "x", "directory": "/work", "mode": "bypassPermissions"}
        await guest.refusal("spawn", **bypass)
        await guest.refusal("send", session="nothing", text="x")
        await guest.refusal("send", session=session, text="x", more=1)
        await guest.refusal("send", session=RECORD, text="x")
        await guest.value("send", session=session, text="x")
    assert await entries(family, session) == [("send", "allow", "eve", "eve")]
    assert await entries(family, RECORD) == [
        ("spawn", "deny", "policy", "eve"),
        ("send", "deny", "policy", "eve"),
        ("send", "deny", "policy", "eve"),
        ("send", "deny", "policy", "eve"),
    ]


async def test_a_call_whose_caller_does_not_wait_is_in_the_audit_log(house: House) -> None:
    family = house.family
    session = await family.person()
    token = house.access.make_token("eve", Role.OPERATOR)
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
    }
    call = {"name": "interrupt", "arguments": {"session": session}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    run = family.run(session)
    async with (
        httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as http,
        anyio.create_task_group() as group,
    ):

        async def ask() -> None:
            await http.post(f"{house.url}/mcp", headers=headers, json=body)

        group.start_soon(ask)
        await until(lambda: any(b"interrupt" in line for line in run.unwritten().values()))
        group.cancel_scope.cancel()
    await _grant(family, session, "interrupt")

    async def noted() -> bool:
        return await entries(family, session) == [("interrupt", "allow", "eve", "eve")]

    with anyio.fail_after(SECONDS):
        while not await noted():  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_deleted_record_is_begun_anew(house: House) -> None:
    hub = house.family.hub
    async with house.guest(Role.VIEWER) as guest:
        await guest.value("search", words="one")
        await hub.submit(DeleteSession(session=RECORD, by="ada"))
        await guest.refusal("stop", session="two")
        await guest.refusal("stop", session="three")
    (record,) = await hub.sessions(archived=True)
    assert record.session.startswith(f"{RECORD}-")
    assert len(await entries(house.family, record.session)) == 2


async def test_who_is_refused_too_often_is_not_heard_any_more(house: House) -> None:
    async with house.guest(Role.VIEWER) as guest:
        for _ in range(MOST_REFUSED):
            assert "may not" in await guest.refusal("stop", session="s")
        assert "refused within an hour" in await guest.refusal("list_sessions")
    assert len(await entries(house.family, RECORD)) == MOST_REFUSED


def test_refusals_are_forgotten_after_an_hour() -> None:
    refused = RefusedCalls()
    for _ in range(MOST_REFUSED):
        refused.add("eve", 0.0)
    with pytest.raises(Conflict):
        refused.admit("eve", 3599.0)
    refused.admit("bob", 3599.0)
    refused.admit("eve", 3600.0)


async def test_a_deleted_session_is_not_there(house: House) -> None:
    session = await house.family.person()
    await house.family.run(session).end()
    await house.family.hub.submit(DeleteSession(session=session, by="ada"))
    async with house.guest(Role.VIEWER) as guest:
        assert await guest.value("list_sessions") == []
        assert "there is no session" in await guest.refusal("read", session=session)


async def test_a_search_ends_when_enough_is_found() -> None:
    asked: list[int | None] = []

    async def search(wanted: Search) -> Hits:
        asked.append(wanted.before)
        hit = Hit(
            session="s",
            seq=1,
            at=1,
            kind=TextKind.ANSWER,
            snippet=Snippet(text="x", ranges=()),
            tool=None,
            name="",
            project=None,
            machine="",
            directory="",
        )
        return Hits(hits=(hit,) * 30, next=len(asked), behind=0)

    assert len(await find(search, "x")) == 50
    assert asked == [None, 1]
