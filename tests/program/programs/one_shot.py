"""One query: a text with thinking, in pieces as it is generated, and the callback for stderr."""

from __future__ import annotations

import asyncio

from claude_agent_sdk import query

from program.programs.show import options, show
from quarterdeck.testing import Text, Thinking, play, reply


async def main() -> None:
    wanted = options(include_partial_messages=True, stderr=lambda line: print("stderr", line))
    prompt = play(reply(Thinking("hm"), Text("plain")), reply(Text("unused")))
    async for message in query(prompt=prompt, options=wanted):
        show(message)


asyncio.run(main())
