"""The parity table, witnessed: the same rules and calls, does the real CLI ask or not?

One session for many rows. Each call is a turn of the scripted model; what the CLI asks is denied,
so that it does not run, and what it does not ask about runs a program that is not there.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck import Agent, Deny, Options, ToolServer, tool
from quarterdeck.agent.asks import AnyAsk
from quarterdeck.testing import RealCli, ScriptedModel, ToolUse, isolated_env, play
from support.bounds import SECONDS
from support.parity import NEWEST, OLDEST, Row, filled, rows
from support.scenes import result_of, tool_results

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


IN_CWD = ("in.txt", "sub/a", "sub/x.env", ".env", "secret/a", "src/a", "src/locked/a", "single/a")
IN_HOME = ("x", "docs/a", "private/a")
OUTSIDE = ("abs/a", "abs/d/a", "other/a")


@tool(always_load=True)
def add(a: str) -> str:
    """Add one."""
    return a + "1"


@tool(always_load=True)
def sub(a: str) -> str:
    """Take one away."""
    return a[1:]


@tool(always_load=True)
def now(a: str) -> str:
    """Tell the time."""
    return a


def furnish(folder: Path) -> dict[str, str]:
    """The folders that the rows speak of, and what lies in them."""
    places = {name: folder / name for name in ("cwd", "home", "outside")}
    for name, files in (("cwd", IN_CWD), ("home", IN_HOME), ("outside", OUTSIDE)):
        for file in files:
            path = places[name] / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text\n")
    return {name: str(path) for name, path in places.items()}


async def witness(
    cli: RealCli, model: ScriptedModel, folder: Path, lines: list[Row]
) -> dict[str, str]:
    """What the CLI does with each row, by the id of its call."""
    places = furnish(folder)
    permissions: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for row in lines:
        for verb, given in row.rules.items():
            permissions[verb] += [rule for rule in given if rule not in permissions[verb]]
    asked: set[str] = set()

    async def decide(ask: AnyAsk) -> Deny:
        asked.add(ask.request.tool_use_id)
        return Deny("the witness has seen it")

    options = Options(
        claude=cli.command,
        cwd=places["cwd"],
        env=isolated_env(Path(places["home"]), model.url),
        settings=msgspec.json.encode({"permissions": filled(permissions, places)}).decode(),
    )
    servers = (ToolServer("calc", (add, sub)), ToolServer("clock", (now,)))
    calls = [ToolUse(_named(row.tool, cli.version), filled(row.input, places)) for row in lines]
    async with Agent(options, decide=decide, tools=servers) as agent:
        with anyio.fail_after(SECONDS):
            messages = [message async for message in agent.query(play(*calls, "end"))]
    answers = tool_results(messages)
    refused = {each.tool_use_id for each in result_of(messages).permission_denials}
    seen: dict[str, str] = {}
    for row, answer in zip(lines, answers, strict=True):
        if answer.tool_use_id in asked:
            what = "asks"
        elif answer.tool_use_id in refused or "denied" in answer.text:
            what = "denies"
        else:
            what = "runs"
        seen[f"{row.tool} {row.call} {row.rules}"] = what
    return seen


def _named(tool_name: str, version: str) -> str:
    return "Task" if tool_name == "Agent" and version == OLDEST else tool_name


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("session", sorted({row.session for row in rows()}))
async def test_the_cli_does_what_the_table_says(
    version: str,
    session: str,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
) -> None:
    lines = [row for row in rows() if row.session == session and row.seen(version) is not None]
    told = {f"{row.tool} {row.call} {row.rules}": row.seen(version) for row in lines}
    assert await witness(clis[version], model, tmp_path, lines) == told
