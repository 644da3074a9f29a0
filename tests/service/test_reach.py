"""How other devices reach the hub: addresses, the three ways to https, the doctor's findings."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quarterdeck.config.settings import ServerSettings
from quarterdeck.domain.errors import Conflict
from quarterdeck.service.auto_tls import AutoTls
from quarterdeck.service.reach import HubReach
from quarterdeck.service.service import far_login

pytestmark = pytest.mark.anyio


def reach(server: ServerSettings, tls: AutoTls | None = None, name: str | None = None) -> HubReach:
    return HubReach(server, tls, lambda: "http://127.0.0.1:8765", tailscale=lambda: name)


async def test_a_hub_on_loopback_is_reached_by_nobody_else() -> None:
    found = await reach(ServerSettings()).reach()
    assert found.addresses == ()
    assert (found.https.way, found.https.certificate, found.https.trust) == ("none", None, False)


async def test_a_proxy_and_a_plain_network_are_reached_by_what_is_configured() -> None:
    proxied = ServerSettings(
        proxies=("127.0.0.1",), hosts=("deck.example",), origins=("https://deck.example/",)
    )
    found = await reach(proxied, name="me.tail.ts.net").reach()
    assert found.addresses == ("https://deck.example",)
    assert (found.https.way, found.https.tailscale) == ("proxy", "me.tail.ts.net")
    anywhere = ServerSettings(host="0.0.0.0", insecure=True, hosts=("10.0.0.5", "fd00::5"))
    assert reach(anywhere).addresses() == ("http://10.0.0.5:8765", "http://[fd00::5]:8765")
    one = ServerSettings(host="10.0.0.5", insecure=True)
    assert reach(one).addresses() == ("http://10.0.0.5:8765",)


async def test_certificates_are_checked_for_their_dates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.service.auto_tls.tailscale_name", lambda: None)
    tls = await AutoTls.open(tmp_path, "127.0.0.1", ("deck.example",))
    found = (await reach(ServerSettings(), tls).reach()).https
    assert (found.way, found.trust) == ("auto", True)
    assert found.certificate is not None
    assert "deck.example" in found.certificate.names
    assert found.certificate.problem == ""

    files = ServerSettings(
        certificate=str(tls.file.certificate), hosts=("deck.example",), host="::"
    )
    found = (await reach(files).reach()).https
    assert (found.way, found.problem) == ("files", "")
    assert reach(files).addresses() == ("http://deck.example:8765",)
    broken = ServerSettings(certificate=str(tmp_path / "none.pem"))
    found = (await reach(broken).reach()).https
    assert found.certificate is None
    assert "none.pem" in found.problem

    begun = datetime.now(UTC) - timedelta(days=4000)
    old = await AutoTls.open(tmp_path / "old", "127.0.0.1", (), clock=lambda: begun)
    found = (await reach(ServerSettings(), old).reach()).https
    assert found.certificate is not None
    assert found.certificate.problem == "expired"


@pytest.mark.process
async def test_the_findings_are_those_of_the_doctor_or_an_error_in_words() -> None:
    says = '{"command":null,"findings":[{"topic":"a","level":"note","text":"b","advice":""}]}'
    program = (sys.executable, "-c", f"print('{says}'); raise SystemExit(1)")
    server = ServerSettings()
    good = HubReach(server, None, lambda: "", doctor=program)
    assert [(each.topic, each.level) for each in await good.findings()] == [("a", "note")]
    for wrong in ((sys.executable, "-c", "print(1)"), ("/no/such/program",)):
        with pytest.raises(Conflict, match="no report"):
            await HubReach(server, None, lambda: "", doctor=wrong).findings()


def test_the_terminal_shows_a_code_for_another_device_if_it_can_reach_the_hub() -> None:
    assert far_login((), "code") == ""
    shown = far_login(("https://deck.example", "https://other"), "qd_code")
    first, *picture = shown.splitlines()
    assert first == "Or on another device: https://deck.example/login#qd_code"
    assert len(picture) > 10
