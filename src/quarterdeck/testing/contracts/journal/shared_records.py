"""What several hubs on one journal rely on: conditions, owners, leases, shared values."""

from __future__ import annotations

import anyio

from quarterdeck.domain.errors import (
    Conflict,
    JournalError,
    NotFound,
    StaleFence,
    StaleHead,
    StaleLease,
    UsageError,
)
from quarterdeck.journal.base import Journal, Lease, Owner, SharedChanges
from quarterdeck.journal.shared_records import LARGEST_VALUE
from quarterdeck.protocol.events import RunEnded, RunStarting, SessionDeleted
from quarterdeck.protocol.sessions import INBOUND
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.testing.contracts.journal.support import (
    SECONDS,
    Contract,
    answer_event,
    ask_event,
    chance,
    created_event,
    error_of,
    note,
    prompt,
    read_all,
    take,
    texts,
)


def starting_event(machine: str, run: str = "r1") -> RunStarting:
    """A run begins."""
    return RunStarting(run=run, machine=machine)


class ConditionContract(Contract):
    """Appends that store nothing unless a condition holds."""

    async def test_an_append_after_another_head_stores_nothing(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [created_event()], after=0)
            await journal.append("a", [note("2")], after=1)
            for after in (0, 1, 3):
                error = await error_of(journal.append("a", [note("x")], after=after), StaleHead)
                assert (error.head, error.code) == (2, "stale_head")
            await error_of(journal.append("b", [note("x")], after=1), StaleHead)
            await error_of(journal.append("a", [], after=1), StaleHead)
            assert await journal.append("a", [], after=2) == []
            await error_of(journal.delete("a", by="ann", after=1), StaleHead)
            assert texts(await journal.read("a")) == ["2"]
            assert (await journal.head("b"), journal.position) == (0, 2)
            assert await journal.summary("b") is None

    async def test_of_many_appends_after_one_head_exactly_one_is_stored(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [created_event()])
            lost: list[StaleHead] = []

            async def write(number: int) -> None:
                try:
                    await journal.append("a", [note(str(number))], after=1)
                except StaleHead as error:
                    lost.append(error)

            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(write, number)
            assert len(lost) == 19
            assert await journal.head("a") == 2

    async def test_an_append_with_an_old_fence_stores_nothing(self) -> None:
        async with self.journal() as journal:
            first = await journal.raise_fence("box", "hub1")
            await journal.append("a", [created_event(), starting_event("box")], claim="hub1")
            owner = await journal.owner("a")
            assert owner is not None
            assert (owner.hub, owner.fence > first) == ("hub1", True)
            await journal.append("a", [note("1")], fence=owner.fence)
            then = await journal.raise_fence("box", "hub2")
            assert then > owner.fence
            assert await journal.fence("a") == then
            error = await error_of(journal.append("a", [note("x")], fence=owner.fence), StaleFence)
            assert (error.owner, error.code) == ("hub2", "stale_fence")
            await error_of(journal.append("a", [note("x")], claim="hub1"), StaleFence)
            await error_of(journal.append("a", [], fence=owner.fence), StaleFence)
            await error_of(journal.append("a", [], snapshot=b"x", fence=owner.fence), StaleFence)
            await error_of(journal.delete("a", by="ann", fence=owner.fence), StaleFence)
            await journal.append("a", [note("2")], fence=then, claim="hub2")
            assert texts(await journal.read("a")) == ["1", "2"]
            assert await journal.latest_snapshot("a") is None

    async def test_a_fence_is_raised_only_for_sessions_with_a_run_on_that_machine(self) -> None:
        async with self.journal() as journal:
            for machine in ("box", "far"):
                await journal.raise_fence(machine, "hub1")
            await journal.append("runs", [created_event(), starting_event("box")], claim="hub1")
            await journal.append("far", [created_event(), starting_event("far")], claim="hub1")
            ended = RunEnded(run="r1", reason="done")
            await journal.append(
                "ended", [created_event(), starting_event("box"), ended], claim="hub1"
            )
            await journal.append("idle", [created_event()], claim="hub1")
            await journal.append("free", [created_event()])
            await journal.raise_fence("box", "hub2")
            owners = {session: owner.hub for session, owner in (await journal.owners()).items()}
            assert owners == {"runs": "hub2", "far": "hub1", "ended": "hub1", "idle": "hub1"}
            assert await journal.owner("free") is None
            assert await journal.fence("free") == 0
            machine_owner = await journal.machine_owner("box")
            assert machine_owner is not None
            assert machine_owner.hub == "hub2"
            assert await journal.machine_owner("other") is None
            await journal.append("old", [created_event(), starting_event("")])
            await journal.raise_fence("local", "hub3")
            assert (await journal.owners())["old"] == await journal.machine_owner("")

    async def test_a_session_without_a_run_is_claimed_with_the_append(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [created_event()], claim="hub1")
            first = await journal.fence("a")
            await journal.append("a", [prompt("p1")], claim="hub1")
            assert await journal.fence("a") == first
            await journal.append("a", [prompt("p2")], claim="hub2")
            assert await journal.fence("a") > first
            await error_of(journal.append("a", [note("x")], fence=first), StaleFence)
            await error_of(journal.append("a", [note("x")], claim="hub3", after=1), StaleHead)
            owner = await journal.owner("a")
            assert owner is not None
            assert owner.hub == "hub2"
            await error_of(journal.append("a", [note("x")], claim=""), UsageError)

    async def test_a_run_starts_on_no_machine_of_another_hub(self) -> None:
        async with self.journal() as journal:
            begin = [created_event(), starting_event("box")]
            await journal.raise_fence("box", "hub2")
            error = await error_of(journal.append("a", begin, claim="hub1"), StaleFence)
            assert error.owner == "hub2"
            assert await journal.owner("a") is None
            assert await journal.summary("a") is None
            await journal.append("a", begin, claim="hub2")
            await journal.append("b", begin)  # a hub that is alone gives no condition
            await journal.append("c", [created_event(), starting_event(INBOUND)], claim="hub1")

    async def test_a_session_whose_cli_came_by_itself_is_taken_over_with_its_run(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [created_event(), starting_event(INBOUND)], claim="hub1")
            fence = await journal.fence("a")
            await error_of(journal.append("a", [note("x")], claim="hub2"), StaleFence)
            assert await journal.take_over("a", "hub2") > fence
            await error_of(journal.append("a", [note("x")], fence=fence), StaleFence)
            await journal.append("a", [note("1")], claim="hub2")
            await journal.delete("a", by="ann")
            for session in ("a", "nobody"):
                await error_of(journal.take_over(session, "hub1"), NotFound)

    async def test_a_lease_has_one_holder_and_its_work_is_stored_only_while_it_has(self) -> None:
        self.moment = 1_700_000_000.0
        async with self.journal() as journal:
            lease = await journal.take_lease("clock", "hub1", 3600)
            assert lease is not None
            assert await journal.take_lease("clock", "hub2", 3600) is None
            assert await journal.take_lease("other", "hub2", 3600) is not None
            await journal.append("a", [note("1")], lease=lease)
            assert await journal.renew_lease(lease, 3600)
            again = await journal.take_lease("clock", "hub1", 3600)
            assert again is not None
            assert again.fence > lease.fence
            await error_of(journal.append("a", [note("x")], lease=lease), StaleFence)
            assert not await journal.renew_lease(lease, 3600)
            await journal.release_lease(lease)
            assert await journal.take_lease("clock", "hub2", 3600) is None
            await journal.release_lease(again)
            await error_of(journal.append("a", [note("x")], lease=again), StaleFence)
            await error_of(journal.delete("a", by="ann", lease=again), StaleFence)
            await error_of(journal.append("a", [], lease=Lease(name="no", fence=1)), StaleFence)
            taken = await journal.take_lease("clock", "hub2", 3600)
            assert taken is not None
            await journal.append("a", [note("2")], lease=taken)
            assert texts(await journal.read("a")) == ["1", "2"]
            for seconds in (0, -1, float("nan"), float("inf")):
                await error_of(journal.take_lease("clock", "hub2", seconds), UsageError)

    async def test_a_machine_is_taken_only_from_its_known_owner_and_under_the_lease(self) -> None:
        async with self.journal() as journal:
            assert await journal.machine_owners() == {}
            first = await journal.raise_fence("box", "hub1", after=0)
            for after in (0, first + 1):
                await error_of(journal.raise_fence("box", "hub2", after=after), StaleFence)
            lease = await journal.take_lease("clock", "hub2", 3600)
            assert lease is not None
            then = await journal.raise_fence("box", "hub2", after=first, lease=lease)
            await journal.release_lease(lease)
            await error_of(journal.raise_fence("box", "hub3", after=then, lease=lease), StaleLease)
            await journal.announce("hub2", "http://two")
            found = await journal.machine_owners()
            assert found == {"box": Owner(hub="hub2", fence=then, url="http://two")}
            assert found["box"] == await journal.machine_owner("box")

    async def test_a_lease_that_ran_out_is_taken_by_another(self) -> None:
        async with self.journal() as journal:
            lease = await journal.take_lease("clock", "hub1", 0.001)
            assert lease is not None
            with anyio.fail_after(SECONDS):
                taken = await journal.take_lease("clock", "hub2", 60)
                while taken is None:
                    await anyio.sleep(0.002)
                    taken = await journal.take_lease("clock", "hub2", 60)
            assert taken.fence > lease.fence
            await error_of(journal.append("a", [note("x")], lease=lease), StaleFence)

    async def test_a_shared_value_is_changed_only_by_whoever_knows_it(self) -> None:
        async with self.journal() as journal:
            assert await journal.shared_value("tokens", "a") is None
            assert await journal.shared_version("tokens") == 0
            first = await journal.share("tokens", "a", b"\x00one", expected=0)
            error = await error_of(journal.share("tokens", "a", b"x", expected=0), Conflict)
            assert error.code == "changed"
            then = await journal.share("tokens", "a", b"two", expected=first)
            assert then > first
            await error_of(journal.share("tokens", "a", None, expected=first), Conflict)
            await journal.share("tokens", "b", b"")
            await journal.share("other", "a", b"else")
            found = await journal.shared_values("tokens")
            assert {key: each.value for key, each in found.items()} == {"a": b"two", "b": b""}
            value = await journal.shared_value("tokens", "a")
            assert value == found["a"]
            gone = await journal.share("tokens", "a", None, expected=then)
            assert await journal.shared_version("tokens") == gone
            assert await journal.shared_value("tokens", "a") is None
            assert list(await journal.shared_values("tokens")) == ["b"]
            back = await journal.share("tokens", "a", b"three", expected=0)
            assert back > gone
            await error_of(journal.share("", "a", b"x"), UsageError)
            await error_of(journal.share("tokens", "a\0", b"x"), UsageError)

    async def test_shared_values_are_stored_all_or_none_and_only_while_a_lease_is_held(
        self,
    ) -> None:
        async with self.journal() as journal:
            lease = await journal.take_lease("clock", "hub1", 3600)
            assert lease is not None
            first = await journal.share_all("rows", {"a": b"1", "b": b"2"}, lease=lease)
            known = {"a": first, "b": first, "c": 0}
            then = await journal.share_all("rows", {"a": b"3", "b": None, "c": b""}, expected=known)
            some = {"a": b"x", "d": b"x"}
            await error_of(journal.share_all("rows", some, expected={"a": first}), Conflict)
            await error_of(journal.share_all("rows", some, expected={"d": 1}), Conflict)
            # Another holder has the lease: the one before it stores nothing, whatever it expects.
            await journal.release_lease(lease)
            taken = await journal.take_lease("clock", "hub2", 3600)
            assert taken is not None
            for stale in (lease, Lease(name="none", fence=taken.fence)):
                await error_of(journal.share_all("rows", some, lease=stale), StaleFence)
                await error_of(journal.share("rows", "a", None, lease=stale), StaleFence)
            found = await journal.shared_values("rows")
            assert {key: each.value for key, each in found.items()} == {"a": b"3", "c": b""}
            assert {each.version for each in found.values()} == {then}
            assert await journal.share("rows", "a", b"4", expected=then, lease=taken) > then

    async def test_a_shared_value_has_a_name_and_a_size(self) -> None:
        async with self.journal() as journal:
            large = bytes(LARGEST_VALUE // 2 + 1)
            await error_of(journal.share_all("rows", {"a": large, "b": large}), UsageError)
            await error_of(journal.share_all("rows", {}), UsageError)
            await error_of(journal.share_all("rows", {"a": b"", "": b""}), UsageError)
            await error_of(journal.share_all("rows", {"a": b""}, expected={"b": 0}), UsageError)
            assert await journal.shared_values("rows") == {}
            assert await journal.shared_version("rows") == 0

    async def test_what_was_changed_after_a_version_is_told_in_order(self) -> None:
        async with self.journal() as journal:
            assert await journal.shared_changes("rows") == SharedChanges(changes=())
            first = await journal.share_all("rows", {"b": b"1", "a": b"2"})
            await journal.share("other", "z", b"")
            then = await journal.share("rows", "b", None)

            async def after(version: int) -> tuple[list[tuple[str, bytes | None, int]], bool]:
                found = await journal.shared_changes("rows", after=version)
                return [(each.key, each.value, each.version) for each in found.changes], found.whole

            assert await after(0) == ([("a", b"2", first), ("b", None, then)], False)
            assert await after(first) == ([("b", None, then)], False)
            assert await after(then) == ([], False)
            # Removals may be forgotten: who does not know of them gets all that is there.
            await journal.forget_removed("rows", before=then)
            await journal.forget_removed("rows", before=first)
            assert await after(first) == ([("a", b"2", first)], True)
            assert await after(0) == ([("a", b"2", first)], True)
            assert await after(then) == ([], False)
            assert list(await journal.shared_values("rows")) == ["a"]
            assert await journal.shared_version("rows") == then
            back = await journal.share("rows", "b", b"3", expected=0)
            assert await after(then) == ([("b", b"3", back)], False)

    async def test_hubs_tell_each_other_where_they_are(self) -> None:
        async with self.journal() as journal:
            await journal.announce("hub1", "http://one")
            await journal.announce("hub2", "http://two")
            await journal.append("a", [created_event()], claim="hub1")
            await journal.raise_fence("box", "hub2")
            owner, machine = await journal.owner("a"), await journal.machine_owner("box")
            assert owner is not None
            assert machine is not None
            assert (owner.url, machine.url) == ("http://one", "http://two")
            await journal.announce("hub1", "http://moved")
            assert (await journal.owners())["a"].url == "http://moved"
            assert {place.hub for place in await journal.hubs()} == {"hub1", "hub2"}
            assert all(place.at > 1_600_000_000_000 for place in await journal.hubs())
            await journal.forget_hub("hub1")
            left = await journal.owner("a")
            assert left is not None
            assert (left.hub, left.url) == ("hub1", "")

    async def test_a_closed_journal_shares_nothing(self) -> None:
        async with self.journal() as journal:
            await journal.close()
            for call in (journal.raise_fence("box", "hub1"), journal.owners()):
                assert (await error_of(call, JournalError)).code == "closed"


class TogetherContract(Contract):
    """Two journals on one database: `together` opens them."""

    async def test_each_sees_what_the_other_appends_in_order_without_gap_or_double(self) -> None:
        async with self.together() as (one, other):
            followers = [(each, each.follow(after=0)) for each in (one, other)]
            alone = [(each, each.follow({"a": 0})) for each in (one, other)]
            counts: list[int] = []

            async def write(journal: Journal, session: str, seed: int) -> None:
                dice = chance(seed)
                for turn in range(30):
                    size = dice.randrange(1, 5)
                    stored = await journal.append(session, [note(f"{seed}.{turn}")] * size)
                    journal.follow({session: stored[-1].seq})  # it was published before
                    counts.append(len(stored))
                    if dice.random() < 0.3:
                        await anyio.sleep(dice.random() / 200)

            async with anyio.create_task_group() as group:
                for seed, (journal, session) in enumerate(
                    [(one, "a"), (other, "a"), (one, "b"), (other, "c"), (other, "b")]
                ):
                    group.start_soon(write, journal, session, seed)
            everything = await take(one.follow(after=0), sum(counts))
            assert [each.position for each in everything] == list(range(1, len(everything) + 1))
            for _, follower in followers:
                assert await take(follower, len(everything)) == everything
            of_a = [each for each in everything if each.session == "a"]
            assert [each.seq for each in of_a] == list(range(1, len(of_a) + 1))
            for _, follower in alone:
                assert await take(follower, len(of_a)) == of_a
            for journal in (one, other):
                assert await read_all(journal, "a") == of_a
                assert journal.position == sum(counts)
            assert await one.summary("a") == await other.summary("a")

    async def test_what_one_appends_the_other_goes_on_from(self) -> None:
        async with self.together() as (one, other):
            follower = other.follow()
            first = await one.append("a", [created_event("deck"), ask_event("q1")])
            assert await take(follower, 2) == first
            assert await other.head("a") == 2
            (then,) = await other.append("a", [answer_event("q1")], after=2)
            assert (then.seq, then.position) == (3, 3)
            await error_of(one.append("a", [answer_event("q1")], after=2), StaleHead)
            assert await one.open_asks() == []
            found = await one.find_ask("q1")
            assert found is not None
            assert found.settled == then
            assert await one.links() == await other.links()
            view = await one.summary("a")
            assert view is not None
            assert (view.name, view.head) == ("deck", 3)

    async def test_who_followed_one_goes_on_at_the_other_at_once(self) -> None:
        async with self.together() as (one, other):
            await one.append("a", [created_event("deck"), ask_event("q1")])
            for number in range(20):
                last = (await one.append("a", [note(str(number))]))[-1]
                # It may not have been told yet: it is, when this has been answered.
                assert await other.reaches(last.position)
                follower = other.follow(after=last.position)
                (then,) = await one.append("a", [note(str(number))])
                assert await take(follower, 1) == [then]
                assert not await other.reaches(then.position + 1)

    async def test_a_session_that_one_deletes_is_gone_for_the_other(self) -> None:
        async with self.together() as (one, other):
            await one.append("a", [created_event()] + [note(str(n)) for n in range(20)])
            await one.append("b", [note("of another")])
            late = other.follow(after=0)
            last = await one.delete("a", by="ann")
            found: list[Stored] = []
            with anyio.fail_after(SECONDS):
                while not any(isinstance(each.event, SessionDeleted) for each in found):
                    found += await anext(late)
            assert found[-1] == last
            assert await other.summary("a") is None
            await other.append("b", [note("after it")])
            assert texts(await take(one.follow({"b": 0}), 2)) == ["of another", "after it"]

    async def test_what_is_shared_is_the_same_for_both(self) -> None:
        async with self.together() as (one, other):
            await one.raise_fence("box", "hub1")
            await one.append("a", [created_event(), starting_event("box")], claim="hub1")
            fence = await other.fence("a")
            assert await other.raise_fence("box", "hub2") > fence
            await error_of(one.append("a", [note("x")], fence=fence), StaleFence)
            lease = await one.take_lease("clock", "hub1", 3600)
            assert lease is not None
            assert await other.take_lease("clock", "hub2", 3600) is None
            version = await one.share("tokens", "a", b"1")
            await error_of(other.share("tokens", "a", b"2", expected=version - 1), Conflict)
            await other.share("tokens", "a", b"2", expected=version)
            value = await one.shared_value("tokens", "a")
            assert value is not None
            assert value.value == b"2"

    async def test_of_two_answers_at_once_exactly_one_wins(self) -> None:
        async with self.together() as (one, other):
            won: list[int] = []
            for number in range(10):
                session = f"s{number}"
                await one.append(session, [created_event(), ask_event(f"q{number}")])

                async def answer(journal: Journal, session: str, ask: str) -> None:
                    try:
                        await journal.append(session, [answer_event(ask)], after=2)
                        won.append(1)
                    except StaleHead:
                        pass

                async with anyio.create_task_group() as group:
                    for journal in (one, other):
                        group.start_soon(answer, journal, session, f"q{number}")
            assert len(won) == 10
            assert await other.open_asks() == []
