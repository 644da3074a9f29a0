"""A tree of three real agents that work together, by the tools that the hub gives them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.hub.agent_tokens import agent_token
from quarterdeck.service.service import cli_secret
from quarterdeck.testing import Gate, RealCli, ScriptedModel, Text, ToolUse, isolated_env, reply
from quarterdeck.testing.request import ModelRequest
from quarterdeck.testing.script import Said
from support.api_client import ApiSeat, Json, api_seat
from support.bounds import SECONDS
from support.clis import VERSIONS
from support.processes import Processes

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

RULES = """
[[rule]]
name = "agents may direct agents"
verdict = "allow"
server = "quarterdeck"

[[rule]]
name = "but not search"
verdict = "deny"
tool = "mcp__quarterdeck__search"
message = "No search here."
"""


def tool(name: str, /, **given: Any) -> ToolUse:
    return ToolUse(f"mcp__quarterdeck__{name}", given)


def results_of(request: ModelRequest) -> list[str]:
    """What the tools of this conversation gave so far."""
    return [
        block.plain
        for message in request.messages
        for block in message.blocks
        if block.type == "tool_result"
    ]


def direct(request: ModelRequest) -> Said | None:
    """What each of the three does next."""
    first, given = request.first_prompt, results_of(request)
    if "HELPER" in first:
        made = ToolUse("Write", {"file_path": "made.txt", "content": "by the helper\n"})
        return reply(Text("the answer is 42")) if given else reply(made)
    if "WORKER" in first:
        return direct_worker(request, given)
    if "LEAD" not in first:
        return None
    if not given:
        return reply(tool("spawn", prompt="You are the WORKER.", name="worker"))
    worker = json.loads(given[0])["session"]
    match given[1:]:
        case []:
            return reply(tool("wait", session=worker, seconds=100))
        case [_]:
            return reply(tool("read", session=worker))
        case [_, _]:
            return reply(tool("changes", session=worker))
        case [_, _, _]:
            return reply(tool("send", session=worker, text="Do the SLOW thing."))
        case [_, _, _, _]:
            return reply(Gate("lead"), tool("interrupt", session=worker))
        case [_, _, _, _, _]:
            return reply(tool("wait", session=worker, seconds=100))
        case [_, _, _, _, _, _]:
            return reply(tool("stop", session=worker))
        case [_, read, changes, *_, waited, stopped]:
            seen = (json.loads(read)["text"], json.loads(changes)["text"], waited, stopped)
            return reply(Text("lead saw: " + " | ".join(seen)))
        case _:
            return None


def direct_worker(request: ModelRequest, given: list[str]) -> Said:
    """What the one in the middle does next."""
    if "SLOW" in request.last_text:
        return reply(Text("slowly "), Gate("slow"), Text("never said"))
    match given:
        case []:
            return reply(tool("spawn", prompt="You are the HELPER.", name="helper"))
        case [made]:
            return reply(tool("wait", session=json.loads(made)["session"], seconds=100))
        case _:
            return reply(Text(f"worker heard: {json.loads(given[1])['answer']}"))


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel(respond=direct) as serving:
        yield serving


@pytest.fixture
async def seat(
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[ApiSeat]:
    """The whole service, with rules, and the newest CLI."""
    newest = clis[VERSIONS[-1]]
    async with api_seat(newest, "runner", model, tmp_path, processes, monkeypatch) as made:
        (tmp_path / "data" / "policy.toml").write_text(RULES)
        await made.deck.hub.policies.refresh()
        yield made


async def start(seat: ApiSeat, prompt: str, **spec: object) -> str:
    env = isolated_env(seat.home, seat.model.url)
    wanted = {"directory": str(seat.work), "env": env, "agents": True, "mode": "acceptEdits"}
    made = await seat.ada.post("sessions", spec=wanted | spec, prompt=prompt)
    return str(made["session"])


async def family(seat: ApiSeat) -> dict[str, Json]:
    found = (await seat.ada.get("sessions"))["sessions"]
    return {each["name"]: each for each in found}


@pytest.mark.parametrize("mode", [None, "strict"])
async def test_three_agents_work_together(mode: str | None, seat: ApiSeat) -> None:
    sandbox = {"sandbox": mode} if mode else {}
    await anyio.run_process(["git", "init", "--quiet", str(seat.work)])
    lead = await start(seat, "You are the LEAD.", name="lead", budget={"session_usd": 5}, **sandbox)
    await seat.model.wait_at_gate("slow")
    seat.model.release("lead")
    ended = await seat.turn_ended(lead)
    read, changes, waited, stopped = ended["text"].removeprefix("lead saw: ").split(" | ")
    assert "[agent] worker heard: the answer is 42" in read, ended
    assert "by the helper" in changes, changes
    assert "made.txt" in changes
    assert (json.loads(waited)["done"], json.loads(waited)["session"]["state"]) == (True, "idle")
    await seat.state(json.loads(stopped)["session"], "ended")
    found = await family(seat)
    worker, helper = found["worker"], found["helper"]
    # The turn was cut off, and the agent that was stopped has no process any more.
    turns = seat.stream.of(worker["session"], "turn.ended")
    assert [turn["outcome"] for turn in turns] == ["completed", "aborted_streaming"]
    assert (worker["state"], worker["pid"], helper["state"]) == ("ended", None, "idle")
    (_, sent) = seat.stream.of(worker["session"], "prompt.queued")
    assert sent["by"] == f"agent:{lead}"
    assert "Do the SLOW thing." in sent["content"]
    assert worker["lineage"] == [lead]
    assert helper["lineage"] == [lead, worker["session"]]
    assert worker["by"] == f"agent:{lead}"
    assert helper["by"] == f"agent:{worker['session']}"
    assert (worker["spec"]["agents"], helper["spec"].get("agents", False)) == (True, False)
    for each in (worker, helper):
        assert each["mode"] == "acceptEdits"
        assert each["spec"]["directory"] == str(seat.work)
        assert each["spec"]["budget"] == {"session_usd": 5.0}
    (queued,) = seat.stream.of(helper["session"], "prompt.queued")
    assert queued["by"] == f"agent:{worker['session']}"
    assert queued["content"].startswith(f'<message from="agent:{worker["session"]}"')
    # Every call is in the audit log, as any call of a tool.
    for name in ("spawn", "wait", "read", "changes", "send", "interrupt", "stop"):
        assert ("policy", "allow") in await seat.verdicts(lead, f"mcp__quarterdeck__{name}")


async def test_a_token_is_worth_no_more_than_the_calls_that_the_cli_announces(
    seat: ApiSeat,
) -> None:
    """The agent reads its own token and calls by itself, past the tools that it was given."""
    session = await start(seat, "hello", name="alone")
    await seat.turn_ended(session)
    run = (await seat.ada.get(f"sessions/{session}"))["run"]
    token = agent_token(cli_secret(seat.deck.home), session, run)
    async with httpx.AsyncClient(timeout=SECONDS, trust_env=False, verify=False) as http:

        async def call(name: str, bearer: str, **given: object) -> httpx.Response:
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": name, "arguments": given},
            }
            headers = {
                "authorization": f"Bearer {bearer}",
                "accept": "application/json, text/event-stream",
            }
            return await http.post(f"{seat.deck.address}/mcp", json=body, headers=headers)

        for name, given in (
            ("spawn", {"prompt": "do it"}),
            ("send", {"session": session, "text": "x"}),
            ("list_sessions", {}),
        ):
            answer = (await call(name, token, **given)).json()["result"]
            assert answer["isError"], answer
            assert "has not announced this call" in answer["content"][0]["text"]
        denied = (await call("search", token, words="x")).json()["result"]
        assert denied["isError"]
        assert denied["content"][0]["text"] == "No search here."
        for wrong in ("x", token[:-2], agent_token(b"another", session, run)):
            assert (await call("list_sessions", wrong)).status_code == 401
        people = seat.deck.access.make_token("eve", Role.VIEWER)
        listed = (await call("list_sessions", people)).json()["result"]
        assert session in listed["content"][0]["text"]
        refused = (await call("send", people, session=session, text="x")).json()["result"]
        assert refused["isError"]
        runner = seat.deck.access.make_token("another", Role.RUNNER)
        assert (await call("list_sessions", runner)).status_code == 401
        await seat.stop(session)
        assert (await call("list_sessions", token)).status_code == 401
    assert len((await seat.ada.get("sessions"))["sessions"]) == 1


async def test_no_session_has_these_tools_unless_it_is_to(seat: ApiSeat) -> None:
    session = await start(seat, "hello", agents=False)
    await seat.turn_ended(session)
    said = [each["line"] for each in seat.stream.of(session, "said")]
    (init,) = [line for line in said if line.get("subtype") == "init"]
    assert not [name for name in init["tools"] if "quarterdeck" in name]
    assert init["mcp_servers"] == []
