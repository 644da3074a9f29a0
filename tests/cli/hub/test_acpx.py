"""`quarterdeck acp` driven by acpx, a headless client of another make, with the newest real CLI.

acpx has neither forks nor forms: `test_acp.py` shows those with the client of the `acp` package.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import anyio
import pytest

from quarterdeck.testing import Gate, ScriptedModel, Text, play, reply
from support.bounds import SECONDS
from support.command_line import COMMAND
from support.scenes import bash
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

ACPX = Path(__file__).parents[3] / ".cache/acpx/node_modules/acpx/dist/cli.js"

Line = dict[str, Any]


class Acpx:
    """The command, with `quarterdeck acp` as its agent. `make test` installs it."""

    def __init__(self, deck: ServedDeck) -> None:
        self._deck = deck

    async def __call__(self, *arguments: str, options: tuple[str, ...] = ()) -> list[Line]:
        """What it prints, line by line. Its helper for a session ends when that is closed."""
        assert ACPX.is_file(), "run: make .cache/acpx/.installed"
        agent = shlex.join([*COMMAND, "acp", "--api-billing"])
        line = ["node", str(ACPX), "--agent", agent, "--format", "json", "--ttl", "10", *options]
        command = self._deck.command
        with anyio.fail_after(SECONDS):
            while True:
                done = await anyio.run_process(
                    [*line, *arguments], cwd=command.work, env=command.env, check=False
                )
                rows = [row for row in done.stdout.splitlines() if row.strip()]
                found: list[Line] = [json.loads(row) for row in rows]
                assert found, done.stderr.decode()
                if b"QUEUE_OWNER_CLOSED" not in rows[-1]:  # the helper was about to end
                    return found

    async def say(self, text: str, *options: str) -> tuple[str, str]:
        """The stop reason of a prompt's turn, and the text."""
        lines = await self("prompt", "-s", "one", text, options=options)
        updates = [line["params"]["update"] for line in lines if "update" in line.get("params", {})]
        said = [
            update["content"]["text"]
            for update in updates
            if update["sessionUpdate"] == "agent_message_chunk"
        ]
        results = [line.get("result") or {} for line in lines]
        reasons = [result["stopReason"] for result in results if "stopReason" in result]
        assert len(reasons) == 1, lines
        return reasons[0], "".join(said)


async def test_acpx_drives_a_session_of_the_hub(deck: ServedDeck, model: ScriptedModel) -> None:
    """new, list, prompt, permissions, mode, model, cancel, close, and an old session again."""
    await deck.serve()
    acpx = Acpx(deck)
    made = (await acpx("sessions", "new", "--name", "one"))[-1]
    session = made["acpxSessionId"]
    (listed,) = await acpx("sessions", "list")
    assert [each["sessionId"] for each in listed["sessions"]] == [session]
    assert listed["source"] == "agent"

    allowed = await acpx.say(play(bash("touch made"), "all done"), "--approve-all")
    assert allowed == ("end_turn", "all done")
    assert (deck.command.work / "made").exists()
    denied = await acpx.say(play(bash("touch not"), "so be it"), "--deny-all")
    assert denied == ("end_turn", "so be it")
    assert not (deck.command.work / "not").exists()

    await acpx("set-mode", "-s", "one", "acceptEdits")
    await acpx("set", "-s", "one", "model", "haiku")
    shape = await deck.until(session, lambda shape: shape.mode == "acceptEdits")
    assert shape.spec.model == "haiku"

    ends: list[tuple[str, str]] = []

    async def slow() -> None:
        ends.append(await acpx.say(play(reply(Text("slow "), Gate("never")))))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(slow)
        await model.wait_at_gate("never")
        await acpx("cancel", "-s", "one")
    assert [reason for reason, _ in ends] == ["cancelled"]

    # Closed there, it goes on here; and another acpx takes it up again.
    await acpx("sessions", "close", "one")
    assert (await deck.until_state(session, "idle")).pid is not None
    again = (await acpx("sessions", "new", "--name", "one", "--resume-session", session))[-1]
    assert again["acpxSessionId"] == session
    assert await acpx.say(play("still here")) == ("end_turn", "still here")
    await acpx("sessions", "close", "one")  # ends its helper
    await deck("stop")
    await deck.ends()
