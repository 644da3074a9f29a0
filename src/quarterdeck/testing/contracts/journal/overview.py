"""What the events come to, and what is left of a deleted session."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.journal.audit_pages import SEARCHED
from quarterdeck.journal.views import PROMPTS_KEPT, fold_all
from quarterdeck.protocol.audit import ACCESS, AuditKind
from quarterdeck.protocol.events import (
    AskWithdrawn,
    Decided,
    Noted,
    ProgramActed,
    PromptTaken,
    RunEnded,
    RunStarting,
    Said,
    SandboxConnection,
    SessionArchived,
    SessionDeleted,
    SessionRenamed,
)
from quarterdeck.testing.contracts.journal.support import (
    Contract,
    answer_event,
    ask_event,
    created_event,
    error_of,
    note,
    prompt,
    take,
)


class OverviewContract(Contract):
    """What the events come to."""

    async def test_a_summary_is_the_fold_of_all_events(self) -> None:
        async with self.journal() as journal:
            await journal.append(
                "a", [created_event("deck"), RunStarting(run="r1", machine="here")]
            )
            await journal.append("a", [Said(run="r1", number=7, line=Raw(b"{}"))])
            await journal.append("a", [ask_event("q1"), ask_event("q2"), answer_event("q1")])
            await journal.append("a", [Said(run="r1", number=8, line=Raw(b"{}")), note("x")])
            view = await journal.summary("a")
            assert view is not None
            assert view == fold_all(None, await journal.read("a"))
            assert (view.name, view.said, view.head, set(view.asks)) == ("deck", 8, 8, {"q2"})
            assert await journal.summaries() == [view]
            assert await journal.summary("b") is None

    async def test_every_prompt_is_known_also_those_that_the_view_has_forgotten(self) -> None:
        async with self.journal() as journal:
            await journal.append("b", [created_event("other"), prompt("elsewhere")])
            ids = [f"p{number}" for number in range(PROMPTS_KEPT + 3)]
            await journal.append("a", [created_event("deck"), *map(prompt, ids)])
            await journal.append("a", [PromptTaken(prompt=id_) for id_ in ids])
            await journal.append("a", [prompt("one more")])
            view = await journal.summary("a")
            assert view is not None
            assert (len(view.prompts), view.prompts_forgotten) == (PROMPTS_KEPT, 4)
            assert "p0" not in view.prompts
            for id_ in ("p0", ids[-1], "one more"):
                assert await journal.has_prompt("a", id_)
            assert not await journal.has_prompt("a", "elsewhere")
            assert not await journal.has_prompt("nowhere", "p0")
            await journal.delete("a", by="ann")
            assert not await journal.has_prompt("a", "p0")

    async def test_the_size_of_a_session_is_that_of_its_events(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [created_event("deck"), note("x" * 1000)])
            await journal.append("b", [created_event("other")])
            await journal.append("c", [created_event("gone")])
            await journal.delete("c", by="ann")
            expected = {
                name: sum(len(stored.json) for stored in await journal.read(name)) for name in "ab"
            }
            assert await journal.sizes() == expected
            assert expected["a"] > 1000

    async def test_sessions_are_listed_newest_first_in_pages(self) -> None:
        async with self.journal() as journal:
            names = [f"s{number}" for number in range(10)]
            for name in names:
                await journal.append(name, [created_event(name)])
            await journal.append("s3", [SessionArchived(archived=True, by="ann")])
            await journal.append("s0", [SessionRenamed(name="zero", by="ann")])
            await journal.delete("s5", by="ann")
            listed: list[str] = []
            while page := await journal.summaries(after=listed[-1] if listed else None, limit=3):
                listed += [view.session for view in page]
            assert listed == ["s9", "s8", "s7", "s6", "s4", "s2", "s1", "s0"]
            assert [view.session for view in await journal.summaries(archived=True)] == ["s3"]
            assert len(await journal.summaries(archived=None)) == 9
            assert [v.session for v in await journal.summaries(after="s5", limit=1)] == ["s4"]
            assert await journal.summaries(after="nobody") == []

    async def test_questions_are_open_until_they_are_answered_withdrawn_or_their_run_ends(
        self,
    ) -> None:
        async with self.journal() as journal:
            await journal.append("a", [ask_event("q1"), ask_event("q2"), ask_event("q3")])
            await journal.append("b", [ask_event("q4", run="r2"), ask_event("q5", run="r3")])
            await journal.append("a", [answer_event("q2")])
            await journal.append("a", [AskWithdrawn(ask="q3", reason="cancelled")])
            await journal.append("b", [RunEnded(run="r2", reason="killed")])
            opened = await journal.open_asks()
            assert [card.opened.ask for card in opened] == ["q1", "q5"]
            assert [card.session for card in opened] == ["a", "b"]
            assert opened[0].opened == ask_event("q1")

    async def test_questions_that_nobody_answered_are_found_with_what_settled_them(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [ask_event("q1"), ask_event("q2"), ask_event("q3")])
            await journal.append("b", [ask_event("q4", run="r2"), ask_event("q5", run="r3")])
            await journal.append("a", [answer_event("q2")])
            assert await journal.unanswered_asks() == []
            (end,) = await journal.append("b", [RunEnded(run="r2", reason="killed")])
            (gone,) = await journal.append("a", [AskWithdrawn(ask="q3", reason="cancelled")])
            (last,) = await journal.append("a", [RunEnded(run="r1", reason="killed")])
            found = await journal.unanswered_asks()
            assert [(each.ask.opened.ask, each.settled) for each in found] == [
                ("q1", last),
                ("q3", gone),
                ("q4", end),
            ]
            assert found[0].ask.opened == ask_event("q1")

    async def test_a_question_is_found_with_what_settled_it(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [ask_event("q1"), ask_event("q2"), ask_event("q3")])
            (stored,) = await journal.append("a", [answer_event("q2")])
            (ended,) = await journal.append("a", [RunEnded(run="r1", reason="killed")])
            await journal.append("a", [answer_event("q2"), AskWithdrawn(ask="q1", reason="late")])
            first, second = await journal.find_ask("q1"), await journal.find_ask("q2")
            assert first is not None
            assert second is not None
            assert (first.ask.session, first.ask.seq, first.settled) == ("a", 1, ended)
            assert (second.ask.opened.ask, second.settled) == ("q2", stored)
            assert await journal.find_ask("nothing") is None

    async def test_the_audit_has_decisions_and_answers_in_the_order_of_all_events(self) -> None:
        def decided_event(title: str) -> Decided:
            return Decided(tool="Bash", title=title, verdict="allow", by="policy")

        async with self.journal() as journal:
            await journal.append("a", [decided_event("1"), note("x"), ask_event("q1")])
            await journal.append("b", [decided_event("2")])
            await journal.append("a", [answer_event("q1"), decided_event("3")])
            whole = await journal.audit()
            kinds = [each.event.title if isinstance(each.event, Decided) else "!" for each in whole]
            assert kinds == ["1", "2", "!", "3"]
            assert await journal.audit(session="a") == [whole[0], *whole[2:]]
            assert await journal.audit(after=whole[1].position, limit=1) == [whole[2]]
            assert await journal.audit(session="nobody") == []
            # Backwards, as people read it.
            end = whole[-1].position + 1
            assert await journal.audit(before=end) == whole[::-1]
            assert await journal.audit(before=whole[3].position, limit=2) == [whole[2], whole[1]]
            of_a = await journal.audit(before=end, session="a", limit=2)
            assert of_a == [whole[3], whole[2]]
            assert await journal.audit(after=whole[0].position, before=whole[2].position) == [
                whole[1]
            ]
            assert await journal.audit(before=whole[0].position) == []
            await error_of(journal.audit(before=-1), UsageError)

    async def test_the_audit_has_pages_of_one_kind_of_entry(self) -> None:
        def decided_event(title: str, verdict: str = "allow", by: str = "policy") -> Decided:
            return Decided(tool="Bash", title=title, verdict=verdict, by=by)

        def connected_event(host: str, *, allowed: bool) -> SandboxConnection:
            return SandboxConnection(run="r1", number=1, host=host, port=443, allowed=allowed)

        async with self.journal() as journal:
            events = [
                decided_event("1"),
                decided_event("2", "deny"),
                ask_event("q1"),
                answer_event("q1"),
                decided_event("3", by="person"),
                connected_event("a.example", allowed=True),
                connected_event("b.example", allowed=False),
                Noted(level=ACCESS, text="a token was made"),
                note("x"),
                ProgramActed(
                    run="r1", number=2, by="script", act="hook", what="PreToolUse", refused=True
                ),
            ]
            stored = await journal.append("a", events)
            (other,) = await journal.append("b", [decided_event("4", "deny")])
            end = other.position + 1

            async def page(kind: str, **more: Any) -> list[int]:
                given = {"before": end} | more
                found = await journal.audit_page(AuditKind(kind), **given)
                return [each.position for each in found.entries]

            def at(*places: int) -> list[int]:
                return [stored[place].position for place in places]

            assert await page("denied") == [other.position, *at(9, 6, 1)]
            assert await page("people") == at(4, 3)
            assert await page("changes") == at(7)
            assert await page("programs") == at(9)
            assert await page("sandbox") == at(6, 5)
            assert await page("refused") == at(6)
            assert await page("denied", session="a") == at(9, 6, 1)
            assert await page("denied", after=stored[1].position, before=stored[9].position) == at(
                6
            )
            assert await page("denied", limit=2) == [other.position, *at(9)]
            first = await journal.audit_page(AuditKind.DENIED, before=end, limit=2)
            assert first.next == stored[9].position
            rest = await journal.audit_page(AuditKind.DENIED, before=first.next, limit=3)
            assert [each.position for each in rest.entries] == at(6, 1)
            assert rest.next is None
            await error_of(journal.audit_page(AuditKind.DENIED, before=-1), UsageError)

    async def test_a_page_of_a_rare_kind_of_entry_reads_a_bounded_part_of_the_audit(self) -> None:
        async with self.journal() as journal:
            rare = Decided(tool="Bash", title="rare", verdict="deny", by="policy")
            usual = Decided(tool="Bash", title="x", verdict="allow", by="policy")
            (wanted,) = await journal.append("a", [rare])
            for _ in range(SEARCHED // 500):
                await journal.append("a", [usual] * 500)
            end = wanted.position + SEARCHED + 1
            page = await journal.audit_page(AuditKind.DENIED, before=end)
            assert page.entries == ()
            assert page.next == wanted.position + 1
            rest = await journal.audit_page(AuditKind.DENIED, before=page.next)
            assert rest.entries == (wanted,)
            assert rest.next is None


class DeleteContract(Contract):
    """Forgetting."""

    async def test_of_a_deleted_session_only_the_deletion_is_left(self) -> None:
        async with self.journal() as journal:
            await journal.append(
                "a", [created_event(), note("secret"), ask_event("q1"), answer_event("q1")]
            )
            await journal.append("b", [note("1")])
            last = await journal.delete("a", by="ann")
            assert last.event == SessionDeleted(by="ann")
            assert last.seq == await journal.head("a") == 5
            assert await journal.read("a") == [last]
            assert await journal.summary("a") is None
            assert await journal.find_ask("q1") is None
            assert await journal.open_asks() == []
            assert await journal.audit() == []
            assert [each.session for each in await take(journal.follow(after=0), 2)] == ["b", "a"]

    async def test_followers_learn_of_it_wherever_they_are(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [note(str(number)) for number in range(10)])
            followers = [journal.follow({"a": 3}), journal.follow(), journal.follow(after=2)]
            last = await journal.delete("a", by="ann")
            for follower in followers:
                assert await take(follower, 1) == [last]

    async def test_a_deleted_session_stays_deleted(self) -> None:
        async with self.journal() as journal:
            await journal.append("a", [note("1")])
            await journal.delete("a", by="ann")
            await error_of(journal.append("a", [note("2")]), NotFound)
            await error_of(journal.delete("a", by="ann"), NotFound)
            await error_of(journal.delete("nobody", by="ann"), NotFound)
            assert len(await journal.read("a")) == 1
