"""`serve --tls auto`: a hub with an authority of its own, and who trusts it."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from quarterdeck.cli.hub.findings import look_at_hub
from quarterdeck.cli.local.findings import Finding, Level
from quarterdeck.client import HubClient
from quarterdeck.client.calls import HubAddress
from quarterdeck.client.stream import open_stream
from quarterdeck.domain.errors import LinkRefused
from quarterdeck.runtime.client_tls import client_context
from quarterdeck.runtime.local_ca import (
    AUTHORITY,
    CA_CERTIFICATE,
    HUB_CERTIFICATE,
    read_certificate,
)
from quarterdeck.service.auto_tls import AutoTls
from quarterdeck.service.local_hub import TLS_FOLDER
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.served_deck import ServedDeck


@pytest.mark.process
async def test_commands_runners_and_programs_trust_the_hub_by_its_authority(
    deck: ServedDeck, tmp_path: Path
) -> None:
    deck.command.play_fake(fake.Initialize(), fake.Hang())
    said = await deck.serve("--tls", "auto")
    address = f"https://127.0.0.1:{deck.port}"
    assert f"Quarterdeck is at {address}\n" in said
    assert "SHA-256 fingerprint: " in said
    assert "█" not in said, "a QR code is for a terminal"
    session = (await deck("new", "--api-billing", str(deck.command.work))).out.strip()
    assert session in (await deck("ps", "--json")).out
    ca = deck.data / TLS_FOLDER / CA_CERTIFICATE
    token = tmp_path / "token"
    token.write_text((await deck("token", "--role", "viewer", "--name", "far")).out)
    far = ("ps", "--hub", address, "--token-file", str(token))
    assert session in (await deck(*far, "--ca-file", str(ca), "--json")).out
    assert "CERTIFICATE_VERIFY_FAILED" in (await deck(*far, code=3)).err
    async with HubClient(address, token.read_text().strip(), ca_file=ca) as client:
        assert (await client.whoami()).role == "viewer"
    where = HubAddress(address=address, token=token.read_text().strip(), ca_file=ca)
    async with open_stream(where) as stream:
        assert stream.hello.role == "viewer"
    with pytest.raises(LinkRefused):
        async with HubClient(address, token.read_text().strip()) as client:
            await client.whoami()
    async with httpx.AsyncClient(
        base_url=address, verify=client_context(ca), timeout=SECONDS
    ) as browser:
        page = await browser.get("/trust")
        fingerprint = said.partition("SHA-256 fingerprint: ")[2].partition("\n")[0]
        assert fingerprint in page.text
        assert (await browser.get("/ca.crt")).content == ca.read_bytes()
    assert fingerprint in (await deck("doctor", "--api-billing")).out
    await deck("stop")
    assert await deck.ends() == 0


def tls_findings(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    monkeypatch.setenv("QUARTERDECK_HOME", str(home))
    return [each for each in look_at_hub() if each.topic == "tls"]


async def test_doctor_tells_names_and_ends_and_keys_that_others_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quarterdeck.toml").write_text('[server]\ntls = "auto"\n')
    (note,) = tls_findings(tmp_path, monkeypatch)
    assert note.level is Level.NOTE
    made = await AutoTls.open(tmp_path, "127.0.0.1", ())
    leaf, authority = tls_findings(tmp_path, monkeypatch)
    assert leaf.level is authority.level is Level.OK
    assert "localhost" in leaf.text
    assert f"{made.authority.ends:%Y-%m-%d}" in authority.text
    assert made.authority.fingerprint in authority.text
    for name in (AUTHORITY, HUB_CERTIFICATE):
        (tmp_path / TLS_FOLDER / name).chmod(0o644)
    assert [each.level for each in tls_findings(tmp_path, monkeypatch)].count(Level.PROBLEM) == 2


async def test_doctor_tells_of_a_certificate_that_ends_or_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await AutoTls.open(tmp_path / "made", "127.0.0.1", ())
    file = made.file.certificate
    (tmp_path / "quarterdeck.toml").write_text(f'[server]\ncertificate = "{file}"\n')
    last = read_certificate(file).ends.timestamp()
    for days, level in ((20, Level.OK), (3, Level.WARNING), (-1, Level.PROBLEM)):
        seconds = last - days * 86400

        def clock(now: float = seconds) -> float:
            return now

        monkeypatch.setattr(time, "time", clock)
        (found,) = tls_findings(tmp_path, monkeypatch)
        assert found.level is level, days
