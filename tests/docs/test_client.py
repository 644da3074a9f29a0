"""The page about the hub client describes every public name and method. Its guide's examples run in
`tests/client/test_real_hub.py`.
"""

from __future__ import annotations

import re

from quarterdeck import client
from quarterdeck.client import Hub, HubAsk, HubClient, HubQuery, HubSession, HubTurn, SessionClient
from quarterdeck.wire.controls import SessionControls
from support.pages import page

REFERENCE = page("docs/reference/client.md")
INSIDE = {"pass_live", "took", "update_view"}
"""What only the feed calls."""
OWNERS = (Hub, HubSession, HubQuery, HubAsk, HubClient, SessionClient, HubTurn, SessionControls)


def test_every_public_name_and_method_of_the_client_is_on_its_page() -> None:
    spans = re.findall(r"`([^`\n]+)`", REFERENCE.prose)
    described = {word for span in spans for word in re.findall(r"\w+", span)}
    members = {name for owner in OWNERS for name in vars(owner) if not name.startswith("_")}
    assert sorted({*client.__all__, *(members - INSIDE)} - described) == []
