"""A whole hub tells others: by webhooks that survive its death, and by metrics."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx
import pytest

from quarterdeck.config import parse
from quarterdeck.domain.errors import UsageError
from quarterdeck.service.notifications import (
    NotificationSettings,
    notification_settings,
    session_link,
)
from support.bounds import SECONDS
from support.receiver import receiving, status
from support.served_deck import ServedDeck

pytestmark = pytest.mark.anyio

TOML = """
[[webhooks]]
name = "ops"
url = "{url}"
events = ["agent.died"]
"""


async def test_a_webhook_outlives_a_hub_that_is_killed_and_the_metrics_count_it(
    deck: ServedDeck,
) -> None:
    deck.data.mkdir(mode=0o700)
    async with receiving(usual=status(503)) as receiver:
        (deck.data / "quarterdeck.toml").write_text(TOML.format(url=receiver.url))
        await deck.serve()
        session = await deck.new("--claude", "/nowhere/claude")
        first = (await receiver.until(1))[0]
        assert deck.hub is not None
        deck.hub.kill()
        await deck.hub.wait()
        receiver.usual = status(200)
        seen = len(receiver.came)
        await deck.serve()
        again = (await receiver.until(seen + 1))[-1]
        assert (again.id, again.body) == (first.id, first.body)
        secret = (deck.data / "webhook.secret").read_text().strip()
        assert again.is_signed_by(secret)
        assert again.payload["type"] == "agent.died"
        assert again.payload["data"]["session"]["url"] == session_link(deck.address, session)

        token = (await deck("token", "--role", "metrics")).out.strip()
        bearer = {"authorization": f"Bearer {token}"}
        wanted = 'quarterdeck_webhook_deliveries_total{outcome="delivered",webhook="ops"} 1.0'
        async with httpx.AsyncClient(
            base_url=deck.address, headers=bearer, timeout=SECONDS
        ) as client:
            page = ""
            with anyio.fail_after(SECONDS):
                while wanted not in page:
                    page = (await client.get("/metrics")).text
                    await anyio.sleep(0.05)
        assert "quarterdeck_journal_commit_seconds_bucket" in page
        assert 'quarterdeck_sessions{state="ended"} 1.0' in page
    await deck("stop")
    assert await deck.ends() == 0


def test_the_configuration_becomes_webhooks_and_traces(tmp_path: Path) -> None:
    def settings_of(text: str) -> NotificationSettings:
        read = parse(text, name="q", folder="/f", home="/h", environ={}, overrides={})
        return notification_settings(read.settings, tmp_path)

    text = """
[server]
origins = ["https://deck.example"]
[telemetry]
endpoint = "http://127.0.0.1:4318/v1/traces"
[[webhooks]]
url = "https://a.example/"
[[webhooks]]
name = "two"
url = "https://b.example/"
events = ["turn.ended"]
projects = ["work"]
secret_file = "~/s"
"""
    found = settings_of(text)
    assert found.address == "https://deck.example"
    assert found.telemetry is not None
    one, two = found.webhooks
    assert (one.name, one.secret_file) == ("webhook-1", str(tmp_path / "webhook.secret"))
    assert (two.name, two.secret_file, two.events) == ("two", "/h/s", ("turn.ended",))
    with pytest.raises(UsageError, match="password"):
        settings_of('[[webhooks]]\nurl = "https://me:secret@a.example/"\n')


async def test_an_endpoint_can_be_tried_by_its_name_or_address_without_a_hub(
    deck: ServedDeck,
) -> None:
    deck.data.mkdir(mode=0o700)
    secret = (await deck("webhook", "secret")).out.strip()
    own = deck.command.work / "secret"
    own.write_text(secret)
    async with receiving(status(204), status(204), status(302)) as receiver:
        (deck.data / "quarterdeck.toml").write_text(TOML.format(url=receiver.url))
        said = (await deck("webhook", "test", "ops", "--event", "turn.ended")).out
        assert said.startswith("turn.ended: status 204 after ")
        await deck("webhook", "test", receiver.url, "--secret-file", str(own))
        refused = await deck("webhook", "test", "ops", code=1)
        assert refused.out == "ask.opened: status 302: redirects are not followed\n"
        named, by_address, _ = receiver.came
        assert named.payload["type"] == "turn.ended"
        assert named.is_signed_by((deck.data / "webhook.secret").read_text().strip())
        assert by_address.is_signed_by(secret)
        assert "there is no webhook" in (await deck("webhook", "test", "none", code=1)).err
        wrong = await deck("webhook", "test", "ops", "--event", "nothing", code=2)
        assert "is not one of ask.opened, turn.ended" in wrong.err
