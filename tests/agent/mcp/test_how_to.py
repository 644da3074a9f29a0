"""The how-to page about tools: its examples run as they are written."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from quarterdeck import Options, ToolServer, tool
from quarterdeck.agent.mcp import Tool
from quarterdeck.testing.clis import RealCli, isolated_env
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import ToolUse
from support.bounds import SECONDS
from support.clis import PROJECT, VERSIONS

PAGE = (PROJECT / "docs" / "how-to" / "give-the-agent-tools.md").read_text()
SHOP, CONTEXT, FOREIGN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

pytestmark = pytest.mark.anyio


def run(example: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, "example", "exec", dont_inherit=True), names)
    return names


@pytest.mark.real_cli
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_shop_runs_with_the_real_cli(
    version: str, clis: dict[str, RealCli], tmp_path: Path, model: ScriptedModel
) -> None:
    shop = run(SHOP)
    model.enqueue(
        ToolUse("mcp__shop__count", {"fruit": "pear"}),
        ToolUse("mcp__shop__order", {"fruit": "pear"}),
        ToolUse("mcp__shop__count", {"fruit": "kiwi"}),
        "Ordered.",
    )
    env = isolated_env(tmp_path, model.url)
    with anyio.fail_after(SECONDS):
        said = await shop["main"](Options(claude=clis[version].command, cwd=tmp_path, env=env))
    assert said.endswith("Ordered.")
    assert shop["STOCK"]["pear"] == 10
    # The model read each result: a number, a text, and the message of an exception.
    told = [model.turns[number].body.decode() for number in (1, 2, 3)]
    assert '"text":"0"' in told[0]
    assert "10 ordered" in told[1]
    assert "'kiwi'" in told[2]


def test_the_other_examples_make_tools() -> None:
    scan = run(CONTEXT)["scan"]
    assert isinstance(scan, Tool)
    assert list(scan.definition.input_schema["properties"]) == ["folder"]
    assert isinstance(run(FOREIGN)["server"], ToolServer)


def test_every_option_of_the_decorator_is_on_the_page() -> None:
    options = set(inspect.signature(tool).parameters) - {"function"}
    assert [name for name in sorted(options) if f"`{name}`" not in PAGE] == []
