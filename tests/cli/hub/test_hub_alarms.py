"""What is wrong between several hubs, as `status` and `doctor` say it."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import pytest

from quarterdeck.cli.hub import findings, processes
from quarterdeck.cli.hub.journal_findings import look_at_journal
from quarterdeck.cli.local.findings import Level
from quarterdeck.config import Settings
from quarterdeck.config.settings import JournalSettings
from quarterdeck.journal.postgres import PostgresJournal
from quarterdeck.protocol.shapes import HubAlarm, MachineList
from quarterdeck.protocol.views import MachineView
from quarterdeck.runtime.local_hub import HubState

ALARMS = (
    HubAlarm(code="other_configuration", hub="https://b.example:8765"),
    HubAlarm(code="other_policy", hub="https://c.example:8765"),
    HubAlarm(code="unreachable", hub="http://127.0.0.1:8765"),
)

UNREACHABLE = (
    "the hub at http://127.0.0.1:8765 does not answer this hub: set its journal.hub_address to an"
    " address that other hubs reach"
)


def test_status_names_the_hub_and_the_file() -> None:
    report = processes.Report(data=None, here=(), hub="http://a", sessions={}, alarms=ALARMS)
    told = [text for name, text in processes._lines(report) if name == "ALARM"]
    assert told == [
        "the hub at https://b.example:8765 has another quarterdeck.toml: make them alike",
        "the hub at https://c.example:8765 has another policy.toml: make them alike",
        UNREACHABLE,
    ]


def test_the_doctor_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def call(self, call: Any) -> MachineList:
            assert call.path == "/api/machines"
            machine = MachineView(name="box", connected=True, version="1")
            return MachineList(machines=(machine,), alarms=ALARMS)

    monkeypatch.setattr(findings, "connect", lambda _: Client())
    hub = HubState(pid=1, address="http://a", version="1")
    found = list(findings._machines(hub))
    assert [each.level for each in found] == [*[Level.PROBLEM] * 3, Level.OK]
    assert "b.example:8765 has another quarterdeck.toml" in found[0].text
    assert "hub_address" in found[2].advice


@pytest.mark.anyio
async def test_the_doctor_asks_each_hub_that_announced_itself(postgres_url: str) -> None:
    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.0 503 No\r\ncontent-length: 0\r\n\r\n")

    async with (
        await anyio.create_tcp_listener(local_port=0, local_host="0.0.0.0") as listener,
        anyio.create_task_group() as tasks,
        await PostgresJournal.open(postgres_url) as journal,
    ):
        tasks.start_soon(listener.serve, answer)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        settings = Settings(journal=JournalSettings(url=postgres_url))

        async def levels() -> list[tuple[Level, str]]:
            found = await anyio.to_thread.run_sync(lambda: list(look_at_journal(settings)))
            return [(each.level, each.text) for each in found if each.topic == "hubs"]

        await journal.announce("a", f"http://0.0.0.0:{port}")
        assert await levels() == []  # a hub alone needs no address
        await journal.announce("b", "http://127.0.0.1:9")
        await journal.announce("c", "http://0.0.0.0:9")
        sick, gone, loopback = sorted(await levels(), key=lambda each: f":{port}" not in each[1])
        assert (sick[0], "is not healthy: HTTP 503" in sick[1]) == (Level.PROBLEM, True)
        assert (gone[0], "does not answer" in gone[1]) == (Level.PROBLEM, True)
        assert (loopback[0], "on another machine" in loopback[1]) == (Level.WARNING, True)
        tasks.cancel_scope.cancel()
