"""The runners' end at the hub: who may speak there, and as whom."""

from __future__ import annotations

import anyio
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from quarterdeck.hub.hub import Hub
from quarterdeck.hub.runners import BAD_FRAME
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.policy.calls import input_of
from quarterdeck.policy.decide import Call, decide
from quarterdeck.policy.needs import Context
from quarterdeck.policy.specifiers import Behavior
from quarterdeck.protocol.runner_frames import PROTOCOL, Hello, Welcome, frame, read_hub_frame
from quarterdeck.protocol.sessions import SessionSpec
from support.bounds import SECONDS
from support.web_sockets import connect

pytestmark = pytest.mark.anyio
TOKENS = {"for-box": "box"}


def hello(machine: str) -> bytes:
    return frame(Hello(machine=machine, runner="r", protocol=PROTOCOL, version="0", pid=1))


async def answer(url: str, said: bytes, token: str = "for-box") -> bytes:
    """The first frame that the hub answers with."""
    headers = {"Authorization": f"Bearer {token}"}
    with anyio.fail_after(SECONDS):
        async with connect(url, additional_headers=headers) as socket:
            await socket.send(said)
            received = await socket.recv()
            return received if isinstance(received, bytes) else received.encode()


async def test_a_token_is_for_one_machine_and_for_no_other() -> None:
    hub = Hub(MemoryJournal(), TOKENS.get)
    async with hub.run(), serve_endpoint(hub.runners) as port:
        url = f"ws://127.0.0.1:{port}/runner"
        header, _ = read_hub_frame(await answer(url, hello("box")))
        assert isinstance(header, Welcome)
        with pytest.raises(ConnectionClosed) as closed:
            await answer(url, hello("local"))
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == BAD_FRAME
        assert [machine.name for machine in await hub.machines()] == ["box"]


async def test_what_a_runner_closes_is_denied_to_agents_on_its_machine_alone() -> None:
    """MACHINE-13"""
    hub = Hub(MemoryJournal(), TOKENS.get)
    said = Hello(
        machine="box",
        runner="r",
        protocol=PROTOCOL,
        version="0",
        pid=1,
        closed=("/srv/runner",),
        worktrees="/srv/runner/worktrees",
    )
    async with hub.run(), serve_endpoint(hub.runners) as port:
        await answer(f"ws://127.0.0.1:{port}/runner", frame(said))

    def verdict(command: str, machine: str | None) -> Behavior:
        rules = hub.policies.rules_for(SessionSpec(directory="/srv/shop", machine=machine))
        call = Call(tool="Bash", input=input_of("Bash", command), context=Context(cwd="/srv/shop"))
        return decide(call, rules).behavior

    for command in ("cat ../runner/spool/x", "cat ~/.local/share/quarterdeck/cli.token"):
        assert verdict(command, "box") is Behavior.DENY
        assert verdict(command, None) is Behavior.ALLOW
    assert verdict("cat /srv/runner/worktrees/shop/x", "box") is Behavior.ALLOW


async def test_garbage_and_strangers_are_turned_away() -> None:
    hub = Hub(MemoryJournal(), TOKENS.get)
    async with hub.run(), serve_endpoint(hub.runners) as port:
        url = f"ws://127.0.0.1:{port}/runner"
        for said in (b"\xff\xfe", b"{}", b'{"t":"vitals","runs":1,"memory_available":1,"load":0}'):
            with pytest.raises(ConnectionClosed):
                await answer(url, said)
        with pytest.raises((ConnectionClosed, InvalidStatus)):
            await answer(url, hello("box"), token="wrong")
        with pytest.raises(ConnectionClosed):
            await answer(f"{url}/runs/nobody", hello("box"))
        assert await hub.machines() == []
