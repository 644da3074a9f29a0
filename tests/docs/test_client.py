"""The pages about the hub client: the example runs, and every public method is described."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec import Raw

from quarterdeck import client
from quarterdeck.client import HubClient, HubTurn, SessionClient
from quarterdeck.fronts.http import Role
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import AnswerAsk, SendPrompt
from support.bounds import SECONDS
from support.front import Front, front
from support.pages import page
from support.processes import Processes
from support.waiting import until

REFERENCE = page("docs/reference/client.md")
GUIDE = page("docs/how-to/drive-the-hub-from-python.md")
LINE = {
    "type": "assistant",
    "uuid": "u1",
    "session_id": "c1",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "All tests pass."}]},
}
INSIDE = {"took", "showed"}
"""What only the feed calls."""


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Front]:
    async with front(tmp_path / "data") as running:
        yield running


def test_every_public_name_and_method_of_the_client_is_on_its_page() -> None:
    spans = re.findall(r"`([^`\n]+)`", REFERENCE.prose)
    described = {word for span in spans for word in re.findall(r"\w+", span)}
    members = {
        name
        for owner in (HubClient, SessionClient, HubTurn)
        for name in vars(owner)
        if not name.startswith("_")
    }
    assert sorted({*client.__all__, *(members - INSIDE)} - described) == []


@pytest.mark.anyio
@pytest.mark.process
async def test_the_example_of_the_guide_runs(
    served: Front, tmp_path: Path, processes: Processes
) -> None:
    (example,) = GUIDE.blocks("python")
    program = tmp_path / "example.py"
    program.write_text(example.code)
    token = served.access.make_token("reader", Role.OWNER)
    environment = {
        "PATH": os.environ["PATH"],
        "QUARTERDECK_URL": served.url,
        "QUARTERDECK_TOKEN": token,
    }
    with anyio.fail_after(SECONDS):
        async with await anyio.open_process(
            [sys.executable, str(program)], env=environment, stderr=None
        ) as running:
            processes.started(running.pid)
            await until(lambda: any(isinstance(c, SendPrompt) for c in served.deck.submitted))
            await served.deck.ask("nightly")
            await until(lambda: any(isinstance(c, AnswerAsk) for c in served.deck.submitted))
            run = (await served.deck.session("nightly")).run or "run"
            said = ev.Said(run=run, number=1, line=Raw(msgspec.json.encode(LINE)))
            ended = ev.TurnEnded(prompts=("1",), failed=False, outcome="success", cost_usd=0.5)
            await served.deck.journal.append(
                "nightly", [ev.PromptSent(prompt="1", run=run), said, ended]
            )
            assert running.stdout is not None
            printed = b"".join([part async for part in running.stdout]).decode()
            await running.wait()
    assert running.returncode == 0
    assert printed == "All tests pass.\n0.50 USD\n"
    (answered,) = [c for c in served.deck.submitted if isinstance(c, AnswerAsk)]
    assert answered.by == "reader"
    assert msgspec.to_builtins(answered.answer) == {"answer": "deny", "message": "Not at night."}
