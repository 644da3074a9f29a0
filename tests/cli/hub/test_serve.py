"""`serve`, `stop` and `status`: the hub comes and goes, the agents go on."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request

import anyio
import pytest

from quarterdeck.testing import fake
from quarterdeck.testing.script import ToolUse, play
from support.bounds import SECONDS
from support.processes import running
from support.served_deck import ServedDeck, until_true

pytestmark = pytest.mark.anyio
TOUCH = ToolUse("Bash", {"command": "touch made", "description": "make it"})


@pytest.mark.real_cli
async def test_ctrl_c_stops_the_hub_and_the_agent_goes_on_and_stop_ends_everything(
    deck: ServedDeck,
) -> None:
    first = await deck.serve()
    assert f"Quarterdeck is at {deck.address}\n" in first
    runner = deck.adopt()
    session = await deck.new(play(TOUCH, "fin"))
    agent = (await deck.until_state(session, "waiting")).pid

    assert deck.hub is not None
    deck.hub.send_signal(signal.SIGINT)
    assert await deck.ends() == 0
    assert "1 agent keeps running; `quarterdeck stop` ends it." in deck.said
    assert agent is not None
    assert running(agent)
    refused = await deck("ps", code=3)
    assert "no hub runs on this machine; start one with: quarterdeck serve" in refused.err

    await deck.serve()
    assert deck.adopt() == runner
    assert (await deck.until_state(session, "waiting")).pid == agent
    await deck("answer", session, "allow")
    await deck.until_state(session, "idle")
    assert (deck.command.work / "made").exists()

    stopped = await deck("stop")
    assert "1 agent and the runner ended." in stopped.out
    assert f"The hub at {deck.address} ended." in stopped.out
    assert await deck.ends() == 0
    assert runner is not None
    await until_true(lambda: not running(agent) and not running(runner))
    assert not (deck.data / "hub.json").exists()
    assert (await deck("stop")).out == "Nothing is running here.\n"


async def test_the_login_link_opens_the_hub_and_is_offered_until_somebody_has_used_it(
    deck: ServedDeck,
) -> None:
    said = await deck.serve("--no-runner")
    found = re.search(rf"Log in once, within ten minutes: {deck.address}/login#(\S+)", said)
    assert found is not None
    body = json.dumps({"code": found[1]}).encode()

    def log_in() -> dict[str, object]:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{deck.address}/login", body, headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            person: dict[str, object] = json.load(answer)
        return person

    assert (await anyio.to_thread.run_sync(log_in))["role"] == "owner"
    await deck("stop")
    await deck.ends()
    again = await deck.serve("--no-runner")
    assert "/login#" not in again
    assert "quarterdeck token --login" in again
    assert f"The hub at {deck.address} ended." in (await deck("stop", "--hub-only")).out
    await deck.ends()


async def test_status_tells_what_runs_and_where_the_data_is(deck: ServedDeck) -> None:
    nothing = await deck("status", code=1)
    assert nothing.out == f"hub      not running\ndata     {deck.data}\n"
    await deck.serve()
    await until_true(lambda: bool(deck.client.machines()))
    status = await deck("status")
    assert f"hub      {deck.address}, version " in status.out
    assert "machine  local, 0 agents" in status.out
    assert f"runner   process {deck.adopt()}, 0 agents, for the hub at ws://" in status.out
    assert "sessions none" in status.out
    report = json.loads((await deck("status", "--json")).out)
    assert report["hub"] == deck.address
    assert [machine["name"] for machine in report["machines"]] == ["local"]
    await deck("stop")
    assert await deck.ends() == 0


async def test_one_data_folder_has_one_hub_and_a_runner_without_agents_follows_it(
    deck: ServedDeck,
) -> None:
    await deck.serve()
    first_runner = deck.adopt()
    second = await deck("serve", "--port", "0", code=1)
    assert f"a hub already serves from {deck.data} at {deck.address}, process " in second.err

    # A killed hub leaves its file behind, and is not taken for a living one.
    assert deck.hub is not None
    os.kill(deck.hub.pid, signal.SIGKILL)
    await deck.ends()
    assert (deck.data / "hub.json").exists()
    assert "no hub runs" in (await deck("ps", code=3)).err

    deck.port = 0
    await deck.serve()
    assert deck.adopt() not in {first_runner, None}
    assert first_runner is not None
    assert not running(first_runner)
    assert "The runner ended." in (await deck("stop")).out
    assert await deck.ends() == 0


async def test_a_runner_with_agents_is_not_left_for_a_hub_at_another_address(
    deck: ServedDeck,
) -> None:
    deck.command.play_fake(fake.Initialize(), fake.Hang())
    await deck.serve()
    await deck.until_state(await deck.new(), "idle")
    await deck("stop", "--hub-only")
    await deck.ends()
    refused = await deck("serve", "--port", "0", code=1)
    assert "the local runner connects to ws://127.0.0.1:" in refused.err
    assert "1 agent and the runner ended." in (await deck("stop")).out
