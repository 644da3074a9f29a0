"""What every hub does that stands behind a front: subclass `HubContract`, and give it a bench.

The real hub passes this suite, and so does any stand-in that tests of fronts use: a front that
works with one works with the other. For pytest with anyio's plugin, which this module does not
import::

    class TestMyHub(HubContract):
        @asynccontextmanager
        async def bench(self) -> AsyncIterator[HubBench]:
            yield MyBench()
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

import anyio
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, NotFound, QuarterdeckError, UsageError
from quarterdeck.hub.api import HubApi
from quarterdeck.journal.base import Follower
from quarterdeck.journal.views import fold_all
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import AnyCommand
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import UsageBy
from quarterdeck.protocol.views import Deltas

SECONDS = 30.0
"""No wait of the suite is longer."""

_Error = TypeVar("_Error", bound=QuarterdeckError)


class HubBench(Protocol):
    """A hub, and the hand that moves the processes of its sessions."""

    @property
    def hub(self) -> HubApi:
        """The hub."""

    async def ask(self, session: str) -> str:
        """The session's CLI starts if it has not, and asks for a permission. Gives the ask's id."""

    async def end(self, session: str) -> None:
        """The session's CLI ends by itself."""

    async def write(self, session: str, text: str) -> None:
        """The session's model generates a piece of a message. Its CLI starts if it has not."""

    async def say(self, session: str, text: str) -> None:
        """The message is complete, with this text."""


async def error_of(call: Awaitable[object], kind: type[_Error]) -> _Error:
    """The error that a call ends in. Fails when there is none."""
    try:
        await call
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was expected")


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another task makes true."""
    with anyio.fail_after(SECONDS):
        while not condition():  # noqa: ASYNC110 - any task, in any way
            await anyio.sleep(0.005)


async def create(hub: HubApi, session: str | None = None, name: str = "one") -> str:
    """A session that starts."""
    spec = SessionSpec(directory="/work", name=name)
    outcome = await hub.submit(cmd.CreateSession(spec=spec, session=session, by="ann"))
    return outcome.session


async def take(follower: Follower, count: int) -> list[Stored]:
    """The next events of a follower, this many or more."""
    found: list[Stored] = []
    with anyio.fail_after(SECONDS):
        while len(found) < count:
            found += await anext(follower)
    return found


def of_session(session: str, ask: str) -> list[AnyCommand]:
    """One command of each kind that names a session, a prompt or a question."""
    return [
        cmd.RenameSession(session=session, name="new"),
        cmd.ArchiveSession(session=session),
        cmd.ChangeSession(session=session, ask_timeout=1.0),
        cmd.DeleteSession(session=session),
        cmd.StopSession(session=session),
        cmd.ResumeSession(session=session),
        cmd.ForkSession(session=session),
        cmd.Interrupt(session=session),
        cmd.Control(session=session, request=Raw(b'{"subtype":"mcp_status"}')),
        cmd.SendPrompt(session=session, content=Raw(b'"do"')),
        cmd.ChangePrompt(session=session, prompt="p", content=Raw(b'"do"')),
        cmd.CancelPrompt(session=session, prompt="p"),
        cmd.AnswerAsk(ask=ask, answer=cmd.AllowAnswer()),
    ]


class HubContract:
    """What every hub passes."""

    def bench(self) -> AbstractAsyncContextManager[HubBench]:
        """A hub without sessions."""
        raise AssertionError("a suite for a hub says how one is made: override bench()")

    # --- sessions ------------------------------------------------------------------------------

    async def test_a_session_is_created_once_by_its_id(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            assert await create(hub, "mine") == "mine"
            head = (await hub.session("mine")).head
            again = cmd.CreateSession(spec=SessionSpec(directory="/x"), session="mine", by="bob")
            outcome = await hub.submit(again)
            assert (outcome.session, outcome.repeated) == ("mine", True)
            view = await hub.session("mine")
            assert (view.head, view.name, view.by) == (head, "one", "ann")
            assert view.spec.directory == "/work"
            assert view.run is not None
            other = await create(hub)
            assert other != "mine"
            assert {each.session for each in await hub.sessions()} == {"mine", other}

    async def test_what_names_no_session_is_not_found_and_changes_nothing(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            before = hub.position
            for command in of_session("nobody", "nobody.ask"):
                await error_of(hub.submit(command), NotFound)
            await error_of(hub.session("nobody"), NotFound)
            await error_of(hub.events("nobody"), NotFound)
            assert hub.position == before
            assert await hub.asks(session="nobody") == []

    async def test_changes_are_events_by_the_person_who_made_them(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session = await create(hub)
            head = (await hub.session(session)).head
            await hub.submit(cmd.RenameSession(session=session, name="two", by="bob"))
            change = cmd.ChangeSession(
                session=session, auto_approve=("Read",), ask_timeout=9.0, by="bob"
            )
            await hub.submit(change)
            view = await hub.session(session)
            assert (view.name, view.spec.auto_approve) == ("two", ("Read",))
            assert view.spec.ask_timeout == 9.0
            events = [stored.event for stored in await hub.events(session, after=head)]
            (renamed,) = [each for each in events if isinstance(each, ev.SessionRenamed)]
            (changed,) = [each for each in events if isinstance(each, ev.SpecChanged)]
            assert (renamed.by, changed.by) == ("bob", "bob")

    async def test_an_archived_session_is_listed_apart(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session, other = await create(hub), await create(hub)
            await hub.submit(cmd.ArchiveSession(session=session))
            again = await hub.submit(cmd.ArchiveSession(session=session))
            assert again.repeated
            assert [view.session for view in await hub.sessions()] == [other]
            assert [view.session for view in await hub.sessions(archived=True)] == [session]
            await hub.submit(cmd.ArchiveSession(session=session, archived=False))
            assert len(await hub.sessions()) == 2

    async def test_sessions_are_listed_newest_first_a_page_at_a_time(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            made = [await create(hub) for _ in range(5)]
            first = [view.session for view in await hub.sessions(limit=3)]
            rest = [view.session for view in await hub.sessions(limit=3, after=first[-1])]
            assert first + rest == made[::-1]

    async def test_only_a_session_without_a_process_is_deleted_or_resumed(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session = await create(hub)
            for command in (
                cmd.DeleteSession(session=session),
                cmd.ResumeSession(session=session),
            ):
                error = await error_of(hub.submit(command), Conflict)
                assert error.code == "running"
            await bench.end(session)
            stopped = await hub.submit(cmd.StopSession(session=session))
            assert stopped.repeated
            first = (await hub.session(session)).ended
            assert first is not None
            await hub.submit(cmd.ResumeSession(session=session))
            assert (await hub.session(session)).run not in {None, first.run}

    async def test_a_deleted_session_is_gone_and_its_last_event_tells_so(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session = await create(hub)
            await bench.end(session)
            head = (await hub.session(session)).head
            follower = hub.follow({session: head})
            await hub.submit(cmd.DeleteSession(session=session, by="bob"))
            (last,) = await take(follower, 1)
            assert last.seq == head + 1
            assert last.event == ev.SessionDeleted(by="bob")
            await error_of(hub.session(session), NotFound)
            assert await hub.sessions() == []

    # --- prompts -------------------------------------------------------------------------------

    async def test_a_prompt_is_queued_once_by_its_id_until_the_cli_is_ready(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session = await create(hub)
            send = cmd.SendPrompt(session=session, prompt="p", content=Raw(b'"a"'), by="bob")
            outcome = await hub.submit(send)
            assert (outcome.session, outcome.prompt, outcome.repeated) == (session, "p", False)
            again = await hub.submit(send)
            assert (again.prompt, again.repeated) == ("p", True)
            (queued,) = (await hub.session(session)).queued
            assert (queued.prompt, bytes(queued.content), queued.by) == ("p", b'"a"', "bob")

    async def test_a_queued_prompt_is_changed_and_cancelled(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session = await create(hub)
            for prompt in ("p", "q"):
                send = cmd.SendPrompt(session=session, prompt=prompt, content=Raw(b'"a"'))
                await hub.submit(send)
            change = cmd.ChangePrompt(session=session, prompt="p", content=Raw(b'"b"'), by="bob")
            assert (await hub.submit(change)).prompt == "p"
            assert (await hub.submit(cmd.CancelPrompt(session=session, prompt="q"))).prompt == "q"
            (left,) = (await hub.session(session)).queued
            assert (left.prompt, bytes(left.content), left.by) == ("p", b'"b"', "bob")
            cancel = cmd.CancelPrompt(session=session, prompt="q")
            error = await error_of(hub.submit(cancel), Conflict)
            assert error.code == "not_queued"
            await error_of(hub.submit(cmd.CancelPrompt(session=session, prompt="x")), NotFound)

    async def test_a_prompt_that_is_no_content_is_refused(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session = await create(hub)
            head = (await hub.session(session)).head
            send = cmd.SendPrompt(session=session, content=Raw(b"7"))
            await error_of(hub.submit(send), UsageError)
            assert (await hub.session(session)).head == head

    # --- questions -----------------------------------------------------------------------------

    async def test_the_first_answer_to_a_question_counts(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session, other = await create(hub), await create(hub)
            ask = await bench.ask(session)
            (card,) = await hub.asks()
            assert (card.session, card.opened.ask) == (session, ask)
            assert await hub.asks(session=other) == []
            answer = cmd.AnswerAsk(ask=ask, answer=cmd.AllowAnswer(), by="bob", role="owner")
            outcome = await hub.submit(answer)
            assert (outcome.session, outcome.ask) == (session, ask)
            assert await hub.asks() == []
            assert (await hub.session(session)).asks == {}
            late = cmd.AnswerAsk(ask=ask, answer=cmd.DenyAnswer(), by="ann", role="owner")
            error = await error_of(hub.submit(late), Conflict)
            assert error.code == "already_answered"
            audited = [stored.event for stored in await hub.audit(session=session)]
            (answered,) = [event for event in audited if isinstance(event, ev.AskAnswered)]
            assert (answered.ask, answered.by, answered.allowed) == (ask, "bob", True)

    # --- live text -----------------------------------------------------------------------------

    async def test_text_is_told_as_it_is_generated_until_its_message_is_complete(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session, other = await create(hub), await create(hub)
            heard: list[Deltas] = []
            leave = hub.live(heard.append)
            assert hub.so_far(session) == ()
            await bench.write(session, "half ")
            await bench.write(session, "a word")
            await until(lambda: _text(heard) == "half a word")
            assert {(each.session, each.thinking) for each in heard} == {(session, False)}
            await until(lambda: _text(hub.so_far(session)) == "half a word")
            assert len(hub.so_far(session)) == 1
            assert hub.so_far(other) == ()
            head = (await hub.session(session)).head
            await bench.say(session, "half a word and more")
            await until(lambda: hub.so_far(session) == ())
            assert (await hub.session(session)).head > head, "the message is in the journal"
            leave()
            await bench.write(session, "another")
            await until(lambda: _text(hub.so_far(session)) == "another")
            assert _text(heard) == "half a word"

    # --- reading -------------------------------------------------------------------------------

    async def test_a_view_is_the_fold_of_its_events(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session = await create(hub)
            await hub.submit(cmd.RenameSession(session=session, name="two", by="bob"))
            await bench.ask(session)
            await bench.end(session)
            events = await hub.events(session)
            view = await hub.session(session)
            assert [stored.seq for stored in events] == list(range(1, view.head + 1))
            assert fold_all(None, events) == view

    async def test_a_view_in_memory_is_the_one_of_the_journal(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session = await create(hub)
            assert hub.view("nobody") is None
            await hub.submit(cmd.RenameSession(session=session, name="two", by="bob"))
            for step in (bench.ask, bench.end):
                await step(session)
                held = hub.view(session)
                assert held is None or held == await hub.session(session)
            await hub.submit(cmd.DeleteSession(session=session))
            assert hub.view(session) is None

    async def test_a_history_is_read_a_page_at_a_time(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            session = await create(hub)
            for number in range(10):
                await hub.submit(cmd.RenameSession(session=session, name=f"name {number}"))
            found: list[Stored] = []
            while page := await hub.events(session, after=found[-1].seq if found else 0, limit=3):
                assert len(page) <= 3
                found += page
            assert found == await hub.events(session)

    async def test_followers_get_every_event_once(self) -> None:
        async with self.bench() as bench:
            hub = bench.hub
            one, other = await create(hub), await create(hub)
            head = (await hub.session(one)).head
            everything, some = hub.follow(), hub.follow({one: 0})
            await hub.submit(cmd.RenameSession(session=other, name="not this"))
            await hub.submit(cmd.RenameSession(session=one, name="this"))
            seen = await take(some, head + 1)
            assert seen == await hub.events(one)
            both = await take(everything, 2)
            assert {stored.session for stored in both} == {one, other}
            assert both[-1].position == hub.position
            error = await error_of(_follow(hub, {one: 1000}), UsageError)
            assert one in str(error)

    async def test_usage_and_machines_can_be_read(self) -> None:
        async with self.bench() as bench:
            report = await bench.hub.usage(UsageBy.DAY)
            assert report.by is UsageBy.DAY
            assert isinstance(await bench.hub.machines(), list)
            assert bench.hub.epoch


async def _follow(hub: HubApi, cursors: dict[str, int]) -> object:
    return await anext(hub.follow(cursors))


def _text(deltas: Iterable[Deltas]) -> str:
    return "".join(each.text for each in deltas)
