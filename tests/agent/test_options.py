"""Options: what cannot be right is refused when they are made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypedDict

import msgspec
import pytest

from quarterdeck import AgentDefinition, McpStdioServer, Options, UsageError


class Point(msgspec.Struct):
    x: int


class Line(msgspec.Struct):
    start: Point
    end: Point


class Node(msgspec.Struct):
    children: list[Node] = []


@dataclass
class Data:
    x: int


class Typed(TypedDict):
    x: int


@pytest.mark.parametrize("kind", [Point, Line, Data, Typed, dict[str, int]])
def test_a_type_of_output_is_an_object_at_its_root(kind: type) -> None:
    schema = Options(output_type=kind).schema()
    assert schema is not None
    assert schema["type"] == "object"
    assert "$ref" not in schema


@pytest.mark.parametrize("kind", [int, str, list[int], Point | None, Point | Node | None])
def test_a_type_of_output_that_is_no_object_is_refused_with_a_hint(kind: type) -> None:
    with pytest.raises(UsageError, match=r"output_type: .*(only accepts a JSON object|union)"):
        Options(output_type=kind)


def test_a_type_of_output_that_cannot_be_described_is_refused() -> None:
    with pytest.raises(UsageError, match="output_type"):
        Options(output_type=object)


def test_a_type_that_holds_itself_is_whole() -> None:
    schema = Options(output_type=Node).schema()
    assert schema is not None
    assert schema["type"] == "object"
    assert "#/$defs/Node" in json.dumps(schema["properties"])
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    assert "Node" in definitions


def test_servers_become_a_flag_beside_those_that_are_one() -> None:
    options = Options(
        mcp_config=("servers.json",), mcp_servers={"files": McpStdioServer(command="serve")}
    )
    first, second = options.as_flags().mcp_config
    assert first == "servers.json"
    assert json.loads(str(second)) == {
        "mcpServers": {"files": {"type": "stdio", "command": "serve"}}
    }
    assert options.beyond_flags() == []
    assert Options().as_flags() == Options()


def test_options_that_no_flag_can_say_are_named() -> None:
    definition = AgentDefinition(description="d", prompt="p")
    options = Options(cwd=".", model="sonnet", subagents={"a": definition}, output_type=Point)
    assert options.beyond_flags() == ["cwd", "subagents", "output_type"]
