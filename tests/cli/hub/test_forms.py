"""The form of an MCP server at the keyboard of `attach`, and a hub with a certificate."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from quarterdeck.protocol.events import AskAnswered
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.served_deck import ServedDeck

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"colour": {"type": "string"}}}


def form(request_id: str) -> fake.Line:
    return fake.control_request(
        request_id,
        subtype="elicitation",
        mcp_server_name="painter",
        message="Which colour?\x1b[2J",
        requested_schema=SCHEMA,
    )


async def test_a_form_is_filled_in_declined_and_put_away_at_the_keyboard(
    deck: ServedDeck,
) -> None:
    record = deck.command.work / "record"
    asking = [
        step
        for number in range(3)
        for step in (fake.say(form(f"form-{number}")), fake.Expect("control_response"))
    ]
    deck.command.play_fake(fake.Initialize(), *asking, fake.Hang(), record=record)
    await deck.serve()
    session = await deck.new()
    here = deck.command.at_terminal("attach", session)
    await here.expect("┌ Form of the MCP server painter")
    await here.expect("│ Which colour?⟨U+001B⟩[2J")
    await here.expect('"colour": {')
    await here.expect("\n? ")
    here.press("perhaps\n")
    await here.expect("one of the letters above")
    here.press("y not JSON\n")
    await here.expect("JSON is malformed")
    here.press('y {"colour": "red"}\n')
    await here.expect("┌ Form of the MCP server painter")
    await here.expect("\n? ")
    here.press("n\n")
    await here.expect("┌ Form of the MCP server painter")
    await here.expect("\n? ")
    here.press("c\n")
    await deck.until(session, lambda shape: not shape.asks)
    events = deck.client.events(session)
    answers = [
        json.loads(bytes(e.event.answer)) for e in events if isinstance(e.event, AskAnswered)
    ]
    assert [answer["action"] for answer in answers] == ["accept", "decline", "cancel"]
    assert answers[0]["content"] == {"colour": "red"}
    here.press("\x04")
    assert await here.end() == 0
    await deck("stop")
    assert await deck.ends() == 0


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for localhost, signed by itself, and its key."""
    openssl = shutil.which("openssl")
    assert openssl is not None
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    return cert, key


async def test_with_a_certificate_the_commands_and_the_runner_come_over_tls(
    deck: ServedDeck, certificate: tuple[Path, Path]
) -> None:
    cert, key = map(str, certificate)
    deck.command.env["SSL_CERT_FILE"] = cert
    deck.command.play_fake(fake.Initialize(), fake.Hang())
    said = await deck.serve("--certificate", cert, "--key", key, "--allow-host", "localhost")
    assert f"Quarterdeck is at https://localhost:{deck.port}\n" in said
    session = (await deck("new", "--api-billing", str(deck.command.work))).out.strip()
    shown = await deck("ps", "--json")
    assert session in shown.out
    await deck("stop")
    assert await deck.ends() == 0
