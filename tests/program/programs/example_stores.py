"""The session stores of the SDK's examples: each mirrors a conversation, which is resumed from it.

Redis is one in memory (`fakeredis`), S3 the double that its example brings along, and PostgreSQL
the server that the test has started.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, project_key_for_directory, query

EXAMPLES, PACKAGES, DATABASE = sys.argv[1:]
sys.path.append(PACKAGES)
sys.path.append(EXAMPLES)

import asyncpg  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
import fakeredis  # type: ignore[import-not-found, unused-ignore]  # noqa: E402
from session_stores import (  # type: ignore[import-not-found]  # noqa: E402
    postgres_session_store,
    redis_session_store,
    s3_session_store,
)


async def use(name: str, store: Any) -> None:
    print("---", name)
    first = ""
    async for message in query(prompt="Hello!", options=ClaudeAgentOptions(session_store=store)):
        if isinstance(message, ResultMessage):
            print(message.subtype, message.result)
            first = message.session_id
    listed = await store.list_sessions(project_key_for_directory(Path.cwd()))
    print("listed", [each["session_id"] == first for each in listed])
    again = ClaudeAgentOptions(session_store=store, resume=first)
    async for message in query(prompt="And now?", options=again):
        if isinstance(message, ResultMessage):
            print(message.result, "in the same conversation", message.session_id == first)
    key = {"project_key": project_key_for_directory(Path.cwd()), "session_id": first}
    entries = await store.load(key)
    prompts = [each["message"]["content"] for each in entries if each["type"] == "user"]
    print("mirrored", prompts)
    await store.delete(key)
    print("deleted", await store.load(key))


async def main() -> None:
    redis = fakeredis.FakeAsyncRedis(decode_responses=True)
    await use("Redis", redis_session_store.RedisSessionStore(client=redis, prefix="transcripts"))
    options = s3_session_store.S3SessionStoreOptions(
        bucket="bucket", prefix="transcripts", client=s3_session_store._RecordingClient()
    )
    await use("S3", s3_session_store.S3SessionStore(options=options))
    async with asyncpg.create_pool(DATABASE, min_size=1) as pool:
        store = postgres_session_store.PostgresSessionStore(pool=pool)
        await store.create_schema()
        await use("PostgreSQL", store)


asyncio.run(main())
