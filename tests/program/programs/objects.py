"""A query that gets an object back, first a wrong one; with a subagent defined and a budget."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import AgentDefinition, query

from program.programs.show import options, show
from quarterdeck.testing import Text, ToolUse, play, reply

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def main() -> None:
    structured: dict[str, Any] = {"type": "json_schema", "schema": SCHEMA}
    worker = AgentDefinition(description="Works.", prompt="You work.", tools=["Read"])
    wanted = options(output_format=structured, agents={"worker": worker}, max_budget_usd=5.0)
    steps = (
        reply(ToolUse("StructuredOutput", {"n": "seven"})),
        reply(ToolUse("StructuredOutput", {"n": 7})),
        reply(Text("ok")),
    )
    async for message in query(prompt=play(*steps), options=wanted):
        show(message)


asyncio.run(main())
