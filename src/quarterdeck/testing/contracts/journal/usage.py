"""What was used, in sums that are always up to date."""

from __future__ import annotations

from quarterdeck.journal.base import Journal
from quarterdeck.journal.usage import midnight, total
from quarterdeck.protocol.events import (
    Event,
    Metered,
    ModelTokens,
    RateLimited,
    RunEnded,
    RunStarting,
    SessionCreated,
    TurnEnded,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.usage import UsageBy, UsageRow, Used
from quarterdeck.testing.contracts.journal.support import Contract, answer_event, ask_event

NOON = midnight(1_800_000_000_000) + 12 * 3_600_000
DAY = 24 * 3_600_000


def turn(model: str, cost: float, tokens: int, *, failed: bool = False) -> TurnEnded:
    """The end of a turn with one model."""
    used = ModelTokens(model=model, cost_usd=cost, input=tokens, output=2)
    return TurnEnded(
        prompts=(), failed=failed, outcome="completed", cost_usd=cost, models=(used,), tool_calls=3
    )


def began(directory: str, machine: str, project: str | None = None) -> list[Event]:
    """A session with a run."""
    spec = SessionSpec(directory=directory, project=project)
    return [SessionCreated(spec=spec, by="ann"), RunStarting(run="r1", machine=machine)]


class UsageContract(Contract):
    """What was used."""

    async def test_what_turns_used_is_summed_by_everything_that_can_be_asked_for(self) -> None:
        self.moment = NOON / 1000
        async with self.journal() as journal:
            await journal.append("a", [*began("/x", "here", "deck"), turn("opus", 0.5, 10)])
            await journal.append("b", [*began("/y", "there"), turn("haiku", 0.25, 20)])
            self.moment += DAY / 1000
            now = NOON + DAY
            await journal.append("b", [turn("opus", 1.0, 30, failed=True)])
            rows = await journal.usage(UsageBy.MODEL)
            assert [(row.key, row.used.cost_usd, row.used.input) for row in rows] == [
                ("haiku", 0.25, 20),
                ("opus", 1.5, 40),
            ]
            assert [row.used.turns for row in await journal.usage(UsageBy.DAY)] == [2, 1]
            assert await _keys(journal, UsageBy.PROJECT) == {"deck": 0.5, "/y": 1.25}
            assert await _keys(journal, UsageBy.MACHINE) == {"here": 0.5, "there": 1.25}
            assert await _keys(journal, UsageBy.SESSION) == {"a": 0.5, "b": 1.25}
            today = await journal.usage(UsageBy.SESSION, since=midnight(now))
            assert [(row.key, row.used.failed, row.used.tool_calls) for row in today] == [
                ("b", 1, 3)
            ]
            before = await journal.usage(UsageBy.SESSION, until=midnight(now))
            assert [row.key for row in before] == ["a", "b"]
            assert await journal.usage(UsageBy.DAY, since=now + DAY) == []

    async def test_what_was_metered_counts_until_the_turn_s_end_tells_what_it_was(self) -> None:
        def metered_event(cost: float, tokens: int, calls: int) -> Metered:
            used = ModelTokens(model="opus", cost_usd=cost, input=tokens)
            return Metered(run="r1", models=(used,), tool_calls=calls)

        async with self.journal() as journal:
            await journal.append("a", [*began("/x", "here"), metered_event(0.2, 100, 1)])
            await journal.append("a", [metered_event(0.4, 150, 2)])
            (row,) = await journal.usage(UsageBy.MODEL)
            assert (row.used.input, row.used.turns, row.used.tool_calls) == (150, 0, 2)
            assert (row.used.cost_usd, row.used.estimated_usd) == (0.4, 0.4)
            await journal.append("a", [turn("opus", 0.3, 160)])
            (row,) = await journal.usage(UsageBy.MODEL)
            assert (row.used.input, row.used.turns, row.used.tool_calls) == (160, 1, 3)
            assert (round(row.used.cost_usd, 9), round(row.used.estimated_usd, 9)) == (0.3, 0.0)
            # Nobody tells the end of this one: what was metered of it stays.
            await journal.append(
                "a", [metered_event(0.1, 50, 1), RunEnded(run="r1", reason="killed")]
            )
            (row,) = await journal.usage(UsageBy.MODEL)
            assert (row.used.input, row.used.turns) == (210, 1)
            view = await journal.summary("a")
            assert view is not None
            assert view.account.tokens == row.used.tokens
            assert round(view.account.usd, 9) == round(row.used.cost_usd, 9) == 0.4

    async def test_the_time_for_which_questions_were_open_is_summed(self) -> None:
        self.moment = NOON / 1000
        async with self.journal() as journal:
            await journal.append("a", [*began("/x", "here"), ask_event("q1"), ask_event("q2")])
            self.moment += 1.5
            await journal.append("a", [answer_event("q1")])
            self.moment += 0.5
            await journal.append("a", [RunEnded(run="r1", reason="killed")])
            used = total(await journal.usage(UsageBy.DAY))
            assert (used.asks, used.waiting_ms) == (2, 3500)

    async def test_what_a_deleted_session_used_stays_spent(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [*began("/x", "here"), turn("opus", 0.5, 10)])
            before = await journal.usage(UsageBy.PROJECT)
            await journal.delete("a", by="ann")
            assert await journal.usage(UsageBy.PROJECT) == before
            assert total(before).cost_usd == 0.5

    async def test_where_the_accounts_stand_is_what_was_told_last(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", began("/x", "here"))
            for status, used in (("allowed", 0.5), ("rejected", 1.0)):
                limited = RateLimited(status=status, limit="five_hour", resets_at=NOON, used=used)
                await journal.append("a", [limited])
            (state,) = await journal.limits()
            assert (state.machine, state.limit, state.status) == ("here", "five_hour", "rejected")
            assert (state.resets_at, state.used, state.session) == (NOON, 1.0, "a")

    async def test_without_events_nothing_was_used(self) -> None:
        async with self.journal() as journal:
            assert await journal.usage(UsageBy.DAY) == []
            assert await journal.limits() == []
            assert total([UsageRow(key="x", used=Used(turns=2))]) == Used(turns=2)


async def _keys(journal: Journal, by: UsageBy) -> dict[str, float]:
    return {row.key: row.used.cost_usd for row in await journal.usage(by)}
