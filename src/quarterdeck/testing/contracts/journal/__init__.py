"""What every engine of the journal must do: subclass `JournalContract`, and give it a journal.

For pytest with anyio's plugin, which this module does not import::

    class TestMyJournal(JournalContract):
        @asynccontextmanager
        async def journal(self) -> AsyncIterator[Journal]:
            async with MyJournal(clock=self.clock) as journal:
                yield journal

        @asynccontextmanager
        async def together(self) -> AsyncIterator[tuple[Journal, Journal]]:
            async with MyJournal(…) as one, MyJournal(…) as other:
                yield one, other

An engine that outlives its program passes `DurableJournalContract`, whose `journal` opens the same
journal each time it is called within one test.
"""

from __future__ import annotations

from quarterdeck.testing.contracts.journal.appends import AppendContract
from quarterdeck.testing.contracts.journal.audit_chain import ChainContract
from quarterdeck.testing.contracts.journal.durable import DurableContract
from quarterdeck.testing.contracts.journal.followers import FollowContract
from quarterdeck.testing.contracts.journal.overview import DeleteContract, OverviewContract
from quarterdeck.testing.contracts.journal.shared_records import ConditionContract, TogetherContract
from quarterdeck.testing.contracts.journal.snapshots import SnapshotContract
from quarterdeck.testing.contracts.journal.usage import UsageContract

__all__ = ["DurableJournalContract", "JournalContract"]


class JournalContract(
    AppendContract,
    FollowContract,
    SnapshotContract,
    OverviewContract,
    DeleteContract,
    ChainContract,
    UsageContract,
    ConditionContract,
    TogetherContract,
):
    """What every engine passes."""


class DurableJournalContract(JournalContract, DurableContract):
    """What an engine passes whose journal outlives the program."""
