"""Cards: what is kept of a request that a person is asked about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.sessions import SessionSpec
from support import lines
from support.hub_machines import hub_with

pytestmark = pytest.mark.anyio

VERSION = "2.1.325"
TOOL = {
    "subtype": "can_use_tool",
    "tool_name": "Bash",
    "input": {"command": "touch x"},
    "tool_use_id": "toolu_1",
    "a_member_of_tomorrow": {"deep": [1, None]},
}
ELICITATION = {
    "subtype": "elicitation",
    "mcp_server_name": "forms",
    "message": "Which?",
    "a_member_of_tomorrow": True,
}
PLAN = {**TOOL, "tool_name": "ExitPlanMode", "input": {"plan": "first"}}
REWRITING = """
[[rule]]
name = "dry"
verdict = "rewrite"
command = "touch"
rewrite = { set = { command = "touch y" } }

[[rule]]
name = "asked"
verdict = "ask"
command = "touch"
"""


@pytest.mark.parametrize("request_", [TOOL, ELICITATION, PLAN])
async def test_a_card_has_the_request_as_it_came_with_members_that_we_do_not_know(
    request_: dict[str, object],
) -> None:
    hub, machines = hub_with(MemoryJournal())
    async with hub.run():
        spec = SessionSpec(directory="/work")
        await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"')))
        run = machines.runs[-1]
        await run.greet(VERSION)
        await run.take_prompt(VERSION)
        await run.say(lines.requests("q1", **request_))
        (card,) = await hub.asks()
    assert json.loads(bytes(card.opened.request)) == request_


async def test_a_card_has_the_input_that_a_rule_has_put_in_the_place_of_what_came(
    tmp_path: Path,
) -> None:
    (tmp_path / "policy.toml").write_text(REWRITING)
    hub, machines = hub_with(MemoryJournal(), policies=Policies(tmp_path))
    async with hub.run():
        spec = SessionSpec(directory="/work")
        await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"')))
        run = machines.runs[-1]
        await run.greet(VERSION)
        await run.take_prompt(VERSION)
        await run.say(lines.requests("q1", **TOOL))
        (card,) = await hub.asks()
    assert json.loads(bytes(card.opened.request)) == {**TOOL, "input": {"command": "touch y"}}
