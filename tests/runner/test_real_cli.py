"""A runner with the real CLI: the one thing that a fake cannot prove."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.runner.spool import Spool
from quarterdeck.sandbox import Kind
from quarterdeck.testing.clis import RealCli, isolated_env
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import Gate, play, reply
from support.bounds import SECONDS
from support.boxes import KINDS, require
from support.runners import running
from support.scripted_hub import ScriptedHub, scripted_hub
from support.waiting import until

pytestmark = pytest.mark.real_cli

NEWEST = "2.1.325"


def prompt(text: str) -> bytes:
    message = {"role": "user", "content": text}
    return json.dumps({"type": "user", "message": message}).encode()


def said(hub: ScriptedHub, run: str, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in hub.runs[run].said]
    return [line for line in lines if line["type"] == kind]


def _has_result(spool: Spool) -> bool:
    return any(b'"type":"result"' in record.data for record in spool.batch(spool.acknowledged))


@pytest.fixture
def spec(clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path) -> SessionSpec:
    (command,) = clis[NEWEST].command
    (tmp_path / "work").mkdir()
    env = isolated_env(tmp_path / "cli-home", model.url)
    return SessionSpec(directory=str(tmp_path / "work"), claude=command, env=env)


async def test_a_turn_goes_on_while_the_hub_is_away_and_is_resumed_by_a_second_run(
    tmp_path: Path, spec: SessionSpec, model: ScriptedModel
) -> None:
    """RUN-5, RUN-6"""
    async with AsyncExitStack() as serving:
        hub = await serving.enter_async_context(scripted_hub())
        async with running(tmp_path / "home", hub.url) as runner:
            await hub.start("one", spec)
            assert (await hub.started("one")).version == NEWEST
            await hub.write("one", prompt(play(reply("before ", Gate(), "after"))))
            await model.wait_at_gate()
            await serving.aclose()
            model.release("gate")
            spool = runner.runs["one"].spool
            with anyio.fail_after(SECONDS):
                await until(
                    lambda: any(
                        b'"type":"result"' in r.data for r in spool.batch(spool.acknowledged)
                    )
                )
            await serving.enter_async_context(scripted_hub(hub))
            await hub.until(lambda: said(hub, "one", "result"), 40)
            (result,) = said(hub, "one", "result")
            assert result["result"] == "after"
            assert b"before " in b"".join(hub.runs["one"].said)
            await hub.stop("one")
            assert (await hub.ended("one")).clean

            await hub.start("two", spec, Origin(cli_session=result["session_id"]))
            await hub.write("two", prompt(play(reply("again"))))
            await hub.until(lambda: said(hub, "two", "result"), 40)
            assert said(hub, "two", "result")[0]["session_id"] == result["session_id"]
            assert said(hub, "two", "result")[0]["result"] == "again"
            await hub.stop("two")
            assert (await hub.ended("two")).clean
            hub.check()


async def test_a_session_that_is_not_there_ends_with_the_clis_own_words(
    tmp_path: Path, spec: SessionSpec
) -> None:
    """RUN-2"""
    missing = "00000000-0000-4000-8000-000000000000"
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec, Origin(cli_session=missing))
        ended = await hub.ended("one", 40)
        assert not ended.clean
        words = " ".join(ended.stderr) + b" ".join(hub.runs["one"].said).decode()
        assert missing in words


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cli_in_a_sandbox_works_stops_and_is_resumed(
    tmp_path: Path, spec: SessionSpec, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-15"""
    await anyio.to_thread.run_sync(require, kind)
    monkeypatch.setattr("quarterdeck.sandbox.choose", lambda spec=None: kind)
    origin = Origin()
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        for run in ("one", "two"):
            await hub.start(run, spec, origin, sandbox=SandboxRequest())
            report = (await hub.started(run)).sandbox
            assert report is not None
            assert report.state.kind == kind.value
            await hub.write(run, prompt(play(reply(f"said in {run}"))))
            await hub.until(lambda run=run: said(hub, run, "result"), 40)
            (result,) = said(hub, run, "result")
            assert result["result"] == f"said in {run}"
            assert origin.cli_session in {None, result["session_id"]}
            origin = Origin(cli_session=result["session_id"])
            await hub.stop(run)
            assert (await hub.ended(run)).clean
        hub.check()
