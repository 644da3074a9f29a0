"""The audit entries that no CLI causes are kept in sessions of their own."""

from __future__ import annotations

import pytest

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.hub.call_record import CHANGES
from quarterdeck.hub.hub import Hub
from quarterdeck.protocol.commands import DeleteSession
from quarterdeck.protocol.events import Noted
from support.hub_machines import TestMachines

pytestmark = pytest.mark.anyio

CHANGED = CodedText(code=TextCode.POLICY_CHANGED, name="ada", other="policy", commit="1")


async def test_what_people_change_is_in_the_audit_log_and_its_chain(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, _ = deck
    note = hub.cli_access.note
    await note("", CHANGED, by="ada", about="policy")
    await note("", CHANGED, by="bob", about="token")
    entries = await hub.audit(before=hub.position + 1)
    told = [each.event for each in entries if isinstance(each.event, Noted)]
    assert [(each.by, each.about) for each in told] == [("bob", "token"), ("ada", "policy")]
    assert (await hub.policy.verify()).good
    assert await hub.sessions() == []  # it is in nobody's way
    assert [each.session for each in await hub.sessions(archived=True)] == [CHANGES]

    # Whoever deletes it is in the chain, and what comes later is kept in another one.
    await hub.submit(DeleteSession(session=CHANGES, by="eve"))
    await note("", CHANGED, by="ada", about="token")
    (left,) = await hub.audit()
    assert left.session.startswith(f"{CHANGES}-")
    checked = await hub.policy.verify()
    assert checked.good
    assert checked.forgotten == 2
