"""The audit log's chain: a reader can verify that it is as it was written."""

from __future__ import annotations

from quarterdeck.journal.base import Journal
from quarterdeck.journal.chain import Check, Link
from quarterdeck.protocol.audit import Checked, Head
from quarterdeck.protocol.events import Decided
from quarterdeck.testing.contracts.journal.support import (
    Contract,
    answer_event,
    ask_event,
    created_event,
    note,
)


def decided_event(title: str) -> Decided:
    """An entry of the audit log."""
    return Decided(tool="Bash", title=title, verdict="allow", by="policy")


async def all_links(journal: Journal, limit: int = 1000) -> list[Link]:
    """The chain, page by page."""
    found: list[Link] = []
    while page := await journal.links(after=found[-1].position if found else 0, limit=limit):
        found += page
    return found


async def check_chain(journal: Journal, expected: Head | None = None) -> Checked:
    """What a check of the whole chain comes to."""
    check = Check(journal.epoch, expected)
    while page := await journal.links(after=check.after):
        check.add(page)
    return check.result()


class ChainContract(Contract):
    """What every engine does for the audit log."""

    async def test_every_decision_and_answer_is_sealed_with_all_before_it(self) -> None:
        async with self.journal() as journal:
            assert (await check_chain(journal)).entries == 0
            await journal.append(
                "a", [created_event(), decided_event("1"), note("x"), ask_event("q1")]
            )
            await journal.append("b", [decided_event("2"), decided_event("3")])
            await journal.append("a", [answer_event("q1")])
            links = await all_links(journal, limit=1)
            assert [link.entry for link in links] == await journal.audit()
            assert len({link.seal for link in links}) == 4
            result = await check_chain(journal)
            assert result.good
            assert (result.entries, result.forgotten) == (4, 0)
            assert result.head == Head(position=links[-1].position, seal=links[-1].seal.hex())

    async def test_a_head_that_was_kept_is_found_again_after_more_entries(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [decided_event("1"), decided_event("2")])
            head = (await check_chain(journal)).head
            await journal.append("a", [decided_event("3")])
            assert (await check_chain(journal, head)).good
            other = Head(position=head.position, seal="0" * 64)
            assert not (await check_chain(journal, other)).good
            beyond = Head(position=head.position + 100, seal=head.seal)
            assert not (await check_chain(journal, beyond)).good

    async def test_the_chain_is_good_after_a_session_was_deleted(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [decided_event("1"), ask_event("q1"), answer_event("q1")])
            await journal.append("b", [decided_event("2")])
            head = (await check_chain(journal)).head
            await journal.delete("a", by="ann")
            await journal.append("b", [decided_event("3")])
            result = await check_chain(journal, head)
            assert result.good, result.flaws
            assert (result.entries, result.forgotten) == (3, 2)  # the deletion is an entry
