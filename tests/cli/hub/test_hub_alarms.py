"""What is wrong between several hubs, as `status` and `doctor` say it."""

from __future__ import annotations

from typing import Any

import pytest

from quarterdeck.cli.hub import findings, processes
from quarterdeck.cli.local.findings import Level
from quarterdeck.protocol.shapes import HubAlarm, MachineList
from quarterdeck.protocol.views import MachineView
from quarterdeck.runtime.local_hub import HubState

ALARMS = (
    HubAlarm(code="other_configuration", hub="https://b.example:8765"),
    HubAlarm(code="other_policy", hub="https://c.example:8765"),
)


def test_status_names_the_hub_and_the_file() -> None:
    report = processes.Report(data=None, here=(), hub="http://a", sessions={}, alarms=ALARMS)
    told = [text for name, text in processes._lines(report) if name == "ALARM"]
    assert told == [
        "the hub at https://b.example:8765 has another quarterdeck.toml: make them alike",
        "the hub at https://c.example:8765 has another policy.toml: make them alike",
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
    assert [each.level for each in found] == [Level.PROBLEM, Level.PROBLEM, Level.OK]
    assert "b.example:8765 has another quarterdeck.toml" in found[0].text
