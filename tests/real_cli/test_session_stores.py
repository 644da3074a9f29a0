"""A session in a store, with the newest CLI: by our agent, and by the official SDK.

One store serves both, and each goes on with what the other began, on a machine without the file.
The second turn is the example of the guide from the SDK.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, InMemorySessionStore, ResultMessage, query

from quarterdeck import Agent, Options
from quarterdeck.sdk_transport import install, uninstall
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env, play
from quarterdeck.wire.notices import MirrorError
from support.bounds import SECONDS
from support.clis import VERSIONS
from support.pages import page

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


*_, EXAMPLE = page("docs/how-to/migrate-from-the-official-sdk.md").blocks("python")


def run(example: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, "example", "exec", dont_inherit=True), names)
    return names


def heard(model: ScriptedModel) -> str:
    """What the model knows of the conversation."""
    return "\n".join(text for message in model.turns[-1].messages for text in message.texts)


async def test_a_session_goes_on_from_a_store_on_other_machines(
    clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path
) -> None:
    cli, store, work = clis[VERSIONS[-1]], InMemorySessionStore(), tmp_path / "work"
    work.mkdir()

    def env(name: str) -> dict[str, str]:
        (tmp_path / name).mkdir()
        return isolated_env(tmp_path / name, model.url)

    async def ours(prompt: str, home: str, **more: object) -> str:
        options = Options(claude=cli.command, cwd=work, env=env(home), **more)  # type: ignore[arg-type]
        failed: list[MirrorError] = []
        async with Agent(options, session_store=store) as agent:
            async for message in (query := agent.query(prompt)):
                if isinstance(message, MirrorError):
                    failed.append(message)
            assert query.result is not None
            assert not query.result.failed, query.result.error_text
            assert failed == []
            assert agent.session_id is not None
            return agent.session_id

    with anyio.fail_after(SECONDS):
        session = await ours(play("the first answer"), "one")
        assert store.size == 1
        options = Options(claude=cli.command, cwd=work, env=env("two"))
        prompt = play("the second answer")
        assert await run(EXAMPLE.code)["go_on"](prompt, session, options, store) == (
            "the second answer"
        )
        assert "the first answer" in heard(model)
        install()
        try:
            theirs = ClaudeAgentOptions(
                cli_path=cli.command[-1],
                cwd=work,
                env=env("three"),
                session_store=store,
                resume=session,
            )
            said = [message async for message in query(prompt=play("third"), options=theirs)]
        finally:
            uninstall()
        assert isinstance(said[-1], ResultMessage)
        assert said[-1].session_id == session
        assert "the second answer" in heard(model)
        assert await ours(play("the last answer"), "four", continue_=True) == session
        assert "third" in heard(model)
    assert store.size == 1
