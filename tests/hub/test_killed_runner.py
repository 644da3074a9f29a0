"""A runner is killed while its CLI talks: the real CLI's transcript has the rest."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from msgspec import Raw

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.protocol.commands import SendPrompt
from quarterdeck.protocol.events import PromptSent, Recalled, RunEnded, Said
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.testing import RealCli, ScriptedModel
from quarterdeck.testing.script import Gate, Text, ToolUse, play, reply
from support.bounds import SECONDS
from support.hub_house import House, house, real_spec
from support.processes import Processes
from support.processes import running as is_running
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def written(home: Path) -> str:
    """What the CLI has put into its transcripts so far."""
    files = (home / ".claude" / "projects").glob("*/*.jsonl")
    return "".join(path.read_text(errors="replace") for path in files)


async def kill_runner(house: House, processes: Processes) -> int:
    """Kill the runner, and start another in its place."""
    os.kill(house.runner, signal.SIGKILL)
    with anyio.fail_after(SECONDS):
        await until(lambda: not is_running(house.runner))
    start = house.start_runner
    return processes.started(await anyio.to_thread.run_sync(start))


@pytest.mark.parametrize("version", ["2.1.37", "2.1.325"])
async def test_what_died_unread_with_the_runner_is_in_the_journal_after_all(
    version: str,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
) -> None:
    tools = ("Bash",)
    spec = real_spec(tmp_path, clis[version], model, auto_approve=tools, allowed_tools=tools)
    home = tmp_path / "home"
    call = ToolUse("Bash", {"command": "echo unread"})
    script = play(reply(Text("before "), Gate(), call), Text("the end"))
    async with house(tmp_path, processes) as deck:
        session = await deck.new(spec, json.dumps(script).encode())
        await model.wait_at_gate()
        # It stands still: what the CLI says from here on stays in the pipe.
        os.kill(deck.runner, signal.SIGSTOP)
        model.release("gate")
        with anyio.fail_after(SECONDS):
            await until(lambda: '"name":"Bash"' in written(home).replace(": ", ":"))
        deck.runner = await kill_runner(deck, processes)
        view = await deck.until(session, lambda view: view.state is SessionState.ENDED)
        events = [stored.event for stored in await deck.hub.events(session)]
        ended = [event for event in events if isinstance(event, RunEnded)]
        assert ended[0].coded == CodedText(code=TextCode.RUNNER_KILLED)
        recalled = [event for event in events if isinstance(event, Recalled)]
        assert recalled
        said = {
            line.get("uuid")
            for event in events
            if isinstance(event, Said) and (line := json.loads(bytes(event.line)))
        }
        assert not said & {event.uuid for event in recalled}
        text = b"".join(bytes(event.line) for event in recalled)
        assert b"echo unread" in text
        # The prompt was taken: it does not run again, and the conversation goes on.
        assert view.unsent == ()
        await deck.hub.submit(SendPrompt(session=session, prompt="next", content=Raw(b'"go on"')))
        after = await deck.until(session, lambda view: view.turns == 1)
        assert after.cli_session == view.cli_session
        sent = [e.event for e in await deck.hub.events(session) if isinstance(e.event, PromptSent)]
        assert len(sent) == len({event.prompt for event in sent}) == 2
