"""The endpoint, with the official client: who comes in, and which calls are served."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from msgspec import Raw

from quarterdeck.fronts.mcp import McpEndpoint
from quarterdeck.fronts.mcp.server import AT_ONCE, PREFIX, TOOLS
from quarterdeck.hub.agent_tokens import agent_token
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.policy.decide import Rules
from quarterdeck.policy.file import read_policy
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, CreateSession, SendPrompt
from quarterdeck.protocol.events import Decided, Event, LeftToCli
from quarterdeck.protocol.sessions import SessionSpec, agent_name
from support import lines
from support.agent_family import Family
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio

POLICY = """
[[rule]]
name = "no stop"
verdict = "deny"
tool = "mcp__quarterdeck__stop"
message = "Agents are not stopped here."
"""


class Served:
    """The endpoint on a port, and agents that call."""

    def __init__(self, family: Family, port: int) -> None:
        self.family = family
        self.url = f"http://127.0.0.1:{port}/mcp"

    async def token(self, session: str) -> str:
        run = (await self.family.view(session)).run
        assert run is not None
        return agent_token(self.family.hub._secret, session, run)

    @asynccontextmanager
    async def client(self, session: str) -> AsyncIterator[ClientSession]:
        """The official client, with the token of a session's run."""
        headers = {"Authorization": f"Bearer {await self.token(session)}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=SECONDS, trust_env=False) as http,
            streamable_http_client(self.url, http_client=http) as (read, write, *_),
            ClientSession(read, write) as client,
        ):
            await client.initialize()
            yield client

    async def announce(
        self, session: str, name: str, call: str, /, *, allow: bool = True, **given: object
    ) -> None:
        """The CLI tells of a tool call, and a rule allows it, as before it makes it."""
        block = {"type": "tool_use", "id": call, "name": PREFIX + name, "input": given}
        await self.family.run(session).say(
            lines.line(
                type="assistant",
                message={"role": "assistant", "content": [block], "model": "m", "id": call},
                uuid=f"u-{call}",
                session_id=lines.SESSION,
            )
        )
        if allow:
            await self.record(session, decided(call))

    async def record(self, session: str, *events: Event) -> None:
        """Journal events of a session."""
        live = self.family.hub._sessions[session]
        async with live.in_order():
            for event in events:
                live.note(event, None, live.supervisor.now)
            await live.append()


@pytest.fixture
async def served(family: Family) -> AsyncIterator[Served]:
    policy = read_policy(POLICY, "policy").policy
    assert policy is not None
    endpoint = McpEndpoint(family.hub, family.tools, lambda _: Rules(policies=(policy,)))
    async with endpoint.run(), serve_endpoint(endpoint) as port:
        yield Served(family, port)


def decided(call: str, verdict: str = "allow", **more: Any) -> Decided:
    return Decided(
        tool="x", title="x", verdict=verdict, by="policy", **{"tool_use_id": call, **more}
    )


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def working(served: Served) -> str:
    """A session in a turn."""
    session = await served.family.person()
    await served.family.hub.submit(
        SendPrompt(session=session, prompt="p1", content=Raw(b'"go"'), by="ada")
    )
    await served.family.run(session).take_prompt()
    return session


async def test_the_tools_are_listed_and_an_announced_call_is_served_once(served: Served) -> None:
    session = await working(served)
    async with served.client(session) as client:
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == set(TOOLS)
        before = await client.call_tool("list_sessions", {})
        assert before.is_error
        assert "has not announced" in text_of(before)
        (refused,) = [each.event for each in await served.family.hub.audit(session=session)]
        assert isinstance(refused, Decided)
        assert (refused.tool, refused.verdict) == (f"{PREFIX}list_sessions", "deny")
        assert refused.caller == agent_name(session)
        await served.announce(session, "spawn", "t1", prompt="work")
        wrong = await client.call_tool("list_sessions", {})
        assert wrong.is_error
        made = await client.call_tool("spawn", {"prompt": "work"})
        assert not made.is_error, text_of(made)
        child = json.loads(text_of(made))["session"]
        assert (await served.family.view(child)).lineage == (session,)
        again = await client.call_tool("spawn", {"prompt": "work"})
        assert again.is_error


async def test_a_call_that_names_itself_is_held_to_that(served: Served) -> None:
    session = await working(served)
    async with served.client(session) as client:
        await served.announce(session, "list_sessions", "t1")
        await served.announce(session, "list_sessions", "t2")
        for named, served_now in (("t3", False), ("t2", True), ("t2", False), ("t1", True)):
            meta: Any = {"claudecode/toolUseId": named}
            result = await client.call_tool("list_sessions", {}, meta=meta)
            assert (result.is_error is not True) is served_now, named


async def test_a_call_is_not_served_before_it_is_allowed_nor_with_other_arguments(
    served: Served,
) -> None:
    """A process of the agent calls by itself, while a person still thinks about the call."""
    session = await working(served)
    given = {"prompt": "work"}
    async with served.client(session) as client:
        await served.announce(session, "spawn", "t1", allow=False, prompt="work")
        assert (await client.call_tool("spawn", given)).is_error
        await served.record(session, LeftToCli(tool_use_id="t1"))
        assert (await client.call_tool("spawn", given)).is_error
        await served.family.run(session).say(
            lines.requests(
                "q1",
                subtype="can_use_tool",
                tool_name=f"{PREFIX}spawn",
                tool_use_id="t1",
                input=given,
            )
        )
        (ask,) = await served.family.hub.asks(session=session)
        assert (await client.call_tool("spawn", given)).is_error
        await served.family.hub.submit(
            AnswerAsk(ask=ask.opened.ask, answer=AllowAnswer(), by="ada", role="owner")
        )
        for other in ({"prompt": "other work"}, {"prompt": "work", "mode": "plan"}):
            assert (await client.call_tool("spawn", other)).is_error
        made = await client.call_tool("spawn", given)
    assert not made.is_error, text_of(made)


async def test_what_a_rule_denies_is_denied_here_too(served: Served) -> None:
    session = await working(served)
    child = await served.family.spawn(session)
    await served.announce(session, "stop", "t1", session=child)
    async with served.client(session) as client:
        result = await client.call_tool("stop", {"session": child})
    assert result.is_error
    assert text_of(result) == "Agents are not stopped here."
    assert not served.family.run(child).stops


async def refusals(served: Served, session: str) -> list[tuple[str, str]]:
    """The calls that were refused here, and why."""
    found = [each.event for each in await served.family.hub.audit(session=session)]
    return [
        (each.tool.removeprefix(PREFIX), each.coded[0].detail)
        for each in found
        if isinstance(each, Decided) and each.verdict == "deny"
    ]


async def test_every_refusal_leaves_an_entry(served: Served) -> None:
    """Also of a session that is not the agent's, of a limit, and of arguments that are none."""
    session = await working(served)
    other = await served.family.person()
    served.family.limit(children=0, messages_per_hour=0)
    child = await served.family.hub.spawn(
        CreateSession(spec=SessionSpec(directory="/work"), by=agent_name(session)), (session,)
    )
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("read", {"session": other}, "there is no session"),
        ("read", {"session": "none"}, "there is no session"),
        ("spawn", {"prompt": "work"}, "stop one first"),
        ("send", {"session": child.session, "text": "x"}, "messages within an hour"),
        ("spawn", {"prompt": "work", "mode": "auto"}, "stop one first"),
    ]
    async with served.client(session) as client:
        for number, (name, given, _) in enumerate(calls):
            await served.announce(session, name, f"t{number}", **given)
            assert (await client.call_tool(name, given)).is_error, name
        assert (await client.call_tool("read", {"session": 7})).is_error
        assert (await client.call_tool("n" * 500, {})).is_error
    found = await refusals(served, session)
    expected = [*((name, why) for name, _, why in calls), ("read", "read: "), ("n" * 99, "no tool")]
    assert len(found) == len(expected)
    for (tool, detail), (name, why) in zip(found, expected, strict=True):
        assert tool.startswith(name)
        assert why in detail
        assert len(tool) <= 100


async def test_a_call_is_found_however_many_events_follow_its_announcement(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.fronts.mcp.server.LOOKED_AT", 4)
    session = await working(served)
    await served.announce(session, "list_sessions", "t1")
    await served.announce(session, "spawn", "t2", prompt="work")
    noise = [decided(f"other-{number}", caller="person eve") for number in range(40)]
    await served.record(session, *noise)
    async with served.client(session) as client:
        assert not (await client.call_tool("list_sessions", {})).is_error
        assert not (await client.call_tool("spawn", {"prompt": "work"})).is_error
        assert (await client.call_tool("spawn", {"prompt": "work"})).is_error


async def test_a_session_has_few_calls_under_way(served: Served) -> None:
    session = await working(served)
    child = await served.family.spawn(session)
    for number in range(AT_ONCE + 1):
        await served.announce(session, "wait", f"t{number}", session=child, seconds=100)
    refused: list[str] = []
    async with served.client(session) as client, anyio.create_task_group() as group:

        async def wait() -> None:
            result = await client.call_tool("wait", {"session": child, "seconds": 100})
            if result.is_error:
                refused.append(text_of(result))
                await served.family.turn(child)

        for _ in range(AT_ONCE + 1):
            group.start_soon(wait)
    assert len(refused) == 1
    assert "under way already" in refused[0]
    ((tool, why),) = await refusals(served, session)
    assert (tool, why) == ("wait", refused[0])


@pytest.mark.parametrize(
    ("method", "status"), [("GET", 405), ("DELETE", 405), ("PUT", 405), ("POST", 200)]
)
async def test_only_requests_with_a_token_of_a_run_are_answered(
    method: str, status: int, served: Served
) -> None:
    session = await served.family.person()
    good = f"Bearer {await served.token(session)}"
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as http:
        for given in ("", "Bearer x", good[:-1], good.replace("Bearer", "Basic"), "Bearer"):
            headers = accept | ({"authorization": given} if given else {})
            answer = await http.request(method, served.url, headers=headers, json=body)
            assert answer.status_code == 401, given
        headers = accept | {"authorization": good}
        answer = await http.request(method, served.url, headers=headers, json=body)
        assert answer.status_code == status
        await served.family.run(session).end()
        answer = await http.request(method, served.url, headers=headers, json=body)
        assert answer.status_code == 401


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"jsonrpc": "2.0"}', b"x" * 2_000_000])
async def test_what_is_no_request_is_refused(body: bytes, served: Served) -> None:
    session = await served.family.person()
    headers = {
        "authorization": f"Bearer {await served.token(session)}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    }
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as http:
        answer = await http.post(served.url, headers=headers, content=body)
    assert 400 <= answer.status_code < 500


@pytest.mark.process
async def test_the_command_serves_the_same_on_stdin_and_stdout(served: Served) -> None:
    session = await working(served)
    env = {
        "PATH": os.environ["PATH"],
        "QUARTERDECK_URL": served.url.removesuffix("/mcp"),
        "QUARTERDECK_TOKEN": await served.token(session),
        "QUARTERDECK_RUN_of_the_agent": "1",
    }
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "quarterdeck.cli", "mcp"], env=env
    )
    async with stdio_client(command) as (read, write), ClientSession(read, write) as client:
        with anyio.fail_after(SECONDS):
            await client.initialize()
            assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)
            await served.announce(session, "spawn", "t1", prompt="work")
            made = await client.call_tool("spawn", {"prompt": "work"})
    assert not made.is_error, text_of(made)
    assert json.loads(text_of(made))["started_by"] == f"agent:{session}"


@pytest.mark.process
async def test_the_command_says_why_it_cannot_serve(served: Served, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("qd_0123456789ab_not-of-an-agent")
    hub = served.url.removesuffix("/mcp")
    named = ["--hub", hub, "--token-file", str(token)]
    agents: dict[str, str] = {"QUARTERDECK_RUN_x": "1"}
    for arguments, more, code, words in (
        (named, {}, 3, "must be a person's token, or the token of an agent's run"),
        (named, agents, 4, "a person's token is reserved for people"),
        ([], {}, 2, "name the hub and the token"),
    ):
        with anyio.fail_after(SECONDS):
            done = await anyio.run_process(
                [sys.executable, "-m", "quarterdeck.cli", "mcp", *arguments],
                env={"PATH": os.environ["PATH"], **more},
                check=False,
            )
        assert (done.returncode, done.stdout) == (code, b"")
        assert words in done.stderr.decode()
