"""A client that changes mode and model between turns, and asks what there is."""

from __future__ import annotations

import asyncio

from claude_agent_sdk import ClaudeSDKClient

from program.programs.show import options, show
from quarterdeck.testing import Text, Thinking, ToolUse, play, reply


async def turn(client: ClaudeSDKClient, prompt: str) -> None:
    await client.query(prompt)
    async for message in client.receive_response():
        show(message)


async def main() -> None:
    async with ClaudeSDKClient(options(system_prompt="Be brief.")) as client:
        info = await client.get_server_info()
        # With the hub, hooks are applied also where the program has none.
        print("info", sorted((info or {}).keys() - {"hooks_applied"}))
        await turn(client, play("first"))
        await client.set_permission_mode("acceptEdits")
        await client.set_model("claude-haiku-4-5")
        write = ToolUse("Write", {"file_path": "written", "content": "x"})
        await turn(client, play(reply(write), reply(Thinking("hm"), Text("second"))))
        await client.set_model(None)
        await client.set_permission_mode("default")
        await turn(client, play("third"))
        print("context", sorted(await client.get_context_usage()))


asyncio.run(main())
