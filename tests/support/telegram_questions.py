"""Fake CLIs that ask questions, and what they are answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.testing import fake
from quarterdeck.testing.telegram.objects import Message
from support.telegram_house import Guest


def asking(*lines: fake.Line, text: str = "Done.") -> tuple[fake.Step, ...]:
    """A CLI that asks something in its first turn, and ends the turn with the answer."""
    return (
        fake.Initialize(),
        fake.Expect("user", polite=True),
        fake.say(*lines),
        fake.Expect("control_response", polite=True),
        fake.say(fake.assistant(text), fake.result(text)),
        fake.Serve(),
    )


def bash(command: str = "make test", call: str = "ask-1") -> tuple[fake.Line, fake.Line]:
    """The model calls Bash, and the CLI asks."""
    given: fake.Line = {"command": command}
    return fake.assistant(fake.tool_use("Bash", given)), fake.can_use_tool("Bash", given, call)


def tool(name: str, given: fake.Line) -> tuple[fake.Line, fake.Line]:
    """The model calls a tool, and the CLI asks."""
    return fake.assistant(fake.tool_use(name, given)), fake.can_use_tool(name, given)


def answers(record: Path) -> list[Any]:
    """The answers to questions that a fake CLI has read."""
    rows = [msgspec.json.decode(line) for line in record.read_bytes().splitlines()[1:]]
    return [
        row["response"]["response"]
        for row in rows
        if row.get("type") == "control_response" and row["response"].get("subtype") == "success"
    ]


async def asked(ada: Guest, *lines: fake.Line, tmp_path: Path, text: str = "asks") -> Message:
    """Have a question asked; gives its message."""
    ada.play(*asking(*(lines or bash())), record=tmp_path / "record")
    ada.type("go")
    return await ada.hears(text)


PLAN: fake.Line = {"plan": "# Goal\n\n1. Split the parser."}


async def planned(ada: Guest, tmp_path: Path) -> Message:
    """Have a plan made; gives its message."""
    lines = tool("ExitPlanMode", PLAN)
    return await asked(ada, *lines, tmp_path=tmp_path, text="has a plan")


FORM: fake.Line = {
    "type": "object",
    "required": ["title"],
    "properties": {
        "title": {"type": "string"},
        "kind": {"type": "string", "enum": ["bug", "idea"]},
    },
}


def form() -> fake.Line:
    """An MCP server asks for two values."""
    return fake.control_request(
        "ask-1",
        subtype="elicitation",
        mcp_server_name="tracker",
        message="Describe it.",
        requested_schema=FORM,
    )
