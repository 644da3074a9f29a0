"""A conversation goes on: forked for a command of the CLI, resumed, continued as the newest."""

from __future__ import annotations

import asyncio

from claude_agent_sdk import ResultMessage, query

from program.programs.show import options, show
from quarterdeck.testing import play


async def main() -> None:
    first = ""
    async for message in query(prompt=play("begun"), options=options()):
        show(message)
        first = getattr(message, "session_id", first)
    print("--- a command of the CLI, in a fork")
    async for message in query(prompt="/cost", options=options(resume=first, fork_session=True)):
        print(type(message).__name__, getattr(message, "num_turns", ""))
        if isinstance(message, ResultMessage):
            print("same id", message.session_id == first)
    print("--- resumed")
    async for message in query(prompt=play("again"), options=options(resume=first)):
        show(message)
        if isinstance(message, ResultMessage):
            print("same id", message.session_id == first)
    print("--- the newest conversation of the folder")
    async for message in query(prompt=play("last"), options=options(continue_conversation=True)):
        show(message)
        if isinstance(message, ResultMessage):
            print("same id", message.session_id == first)


asyncio.run(main())
