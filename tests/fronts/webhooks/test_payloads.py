"""The payloads, and the page that describes them."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from quarterdeck.config.settings import WebhookSettings
from quarterdeck.fronts.webhooks import Webhook, WebhookEvent, new_secret
from quarterdeck.fronts.webhooks.payloads import SAMPLES, AnyPayload, event_of, sample
from quarterdeck.protocol.events import Event, Noted, RunEnded
from quarterdeck.runtime.webhook_signature import headers
from support.pages import page

PAGE = page("docs/reference/webhooks.md")
AT = 1794787200000


def link(session: str) -> str:
    return f"https://deck.example/s/{session}"


def sections() -> dict[str, str]:
    parts = re.split(
        r"^### `([a-z.]+)`$", PAGE.text.partition("\n## Signatures")[0], flags=re.MULTILINE
    )
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def fields(kind: type[msgspec.Struct]) -> Iterator[str]:
    yield from (field.name for field in msgspec.structs.fields(kind))


def test_every_event_has_its_section_with_a_sample_as_the_hub_sends_it() -> None:
    found = sections()
    assert sorted(found) == sorted(WebhookEvent)
    for event in WebhookEvent:
        (shown,) = re.findall(r"```json\n(.*?)```", found[event], re.DOTALL)
        sent = msgspec.json.encode(sample(event, AT, link))
        assert json.loads(shown) == json.loads(sent), event
        assert event_of(SAMPLES[event]) is event
        assert msgspec.json.decode(sent, type=AnyPayload) == sample(event, AT, link)


def test_every_member_of_every_payload_is_on_the_page() -> None:
    found = sections()
    for kind in get_args(AnyPayload):
        data = msgspec.structs.fields(kind)[-1].type
        section = found[str(kind.__struct_config__.tag)]
        missing = [name for name in fields(data) if f"`{name}`" not in section]
        assert missing in ([], ["session"]), kind


def test_every_setting_is_a_row_and_is_the_configurations() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.text.partition("\n## What is sent")[0], re.MULTILINE)
    assert sorted(rows) == sorted(fields(Webhook)) == sorted(fields(WebhookSettings))
    events = next(f for f in msgspec.structs.fields(WebhookSettings) if f.name == "events")
    assert sorted(get_args(get_args(events.type)[0])) == sorted(WebhookEvent)


def test_the_receiver_of_the_page_takes_what_we_sign_and_nothing_else() -> None:
    (block,) = PAGE.blocks("python")
    names: dict[str, Any] = {}
    exec(compile(block.code, "receiver", "exec"), names)
    check = names["is_from_the_hub"]
    secret, other = new_secret(), new_secret()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    now = int(time.time())
    good = headers("e-1", now, b"{}", (b"x" * 32, key))
    assert check(good, b"{}", secret)
    assert not check(good, b"{ }", secret)
    assert not check(good, b"{}", other)
    assert not check({**good, "webhook-id": "e-2"}, b"{}", secret)
    assert not check(headers("e-1", now - 3600, b"{}", (key,)), b"{}", secret)


@pytest.mark.parametrize(
    "event",
    [Noted(level="info", text="x"), RunEnded(run="r", reason="done", clean=True)],
)
def test_other_events_are_not_told(event: Event) -> None:
    assert event_of(event) is None
