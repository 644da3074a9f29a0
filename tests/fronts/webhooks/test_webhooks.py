"""Webhooks against a real HTTP server: what is delivered, again, and when it is given up."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.webhooks import Backoff, Webhook, WebhookEvent, Webhooks, new_secret
from quarterdeck.fronts.webhooks.outbox import FILE, Outbox
from quarterdeck.protocol.events import Alarmed, BudgetReached, RunEnded, SessionRenamed, TurnEnded
from support.bounds import SECONDS
from support.receiver import Receiver, receiving, status
from support.small_deck import SmallDeck
from support.waiting import until

pytestmark = pytest.mark.anyio

SECRET = new_secret()
QUICK = Backoff(first=0.01, factor=1.0)
TURN = TurnEnded(prompts=(), failed=False, outcome="success", cost_usd=0.5, text="done")


def link(session: str) -> str:
    return f"https://deck.example/sessions/{session}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text(SECRET + "\n")
    return tmp_path


def hook(receiver: Receiver, folder: Path, **more: object) -> Webhook:
    given: dict[str, object] = {"name": "ops", "timeout": 5.0}
    given |= {"url": receiver.url, "secret_file": str(folder / "secret")} | more
    return msgspec.convert(given, Webhook)


def made(deck: SmallDeck, folder: Path, *hooks: Webhook, most_waiting: int = 64) -> Webhooks:
    return Webhooks(deck, folder, hooks, link=link, backoff=QUICK, most_waiting=most_waiting)


@contextlib.asynccontextmanager
async def running(front: Webhooks, folder: Path, *names: str) -> AsyncIterator[Webhooks]:
    """Run it, and wait until these endpoints have begun to read."""
    names = names or ("ops",)
    async with front.run():
        await begun(folder, *names)
        with anyio.fail_after(SECONDS):
            await until(lambda: set(names) <= set(front.counts))
        yield front


async def begun(folder: Path, *names: str) -> None:
    with anyio.fail_after(SECONDS):
        await until(lambda: set(names) <= set(cursors(folder)))


def cursors(folder: Path) -> dict[str, int]:
    """How far each endpoint is, as it is on disk."""
    if not (folder / FILE).exists():
        return {}
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        try:
            return dict(connection.execute("SELECT name, position FROM cursors").fetchall())
        except sqlite3.OperationalError:
            return {}  # it is being made


async def settled(front: Webhooks, count: int, name: str = "ops") -> None:
    """Wait until that many were delivered or given up, and none waits."""
    with anyio.fail_after(SECONDS):
        counts = front.counts[name]
        await until(lambda: counts.delivered + counts.given_up == count and not counts.waiting)


# --- what is delivered ---------------------------------------------------------------------------


async def test_each_event_comes_signed_with_its_position_as_its_id_and_a_link(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session("one", project="work")
    async with receiving() as receiver, running(made(deck, folder, hook(receiver, folder)), folder):
        ask = await deck.ask(session, title="Run a command")
        await deck.journal.append(
            session,
            [
                TURN,
                BudgetReached(scope="session", unit="usd", limit=5.0, spent=5.5),
                Alarmed(alarm="silent", text="Nothing is heard.", action="interrupted"),
                RunEnded(run=f"run-{session}", reason="it crashed", exit_code=1),
            ],
        )
        came = await receiver.until(5)
    by_type = {each.payload["type"]: each for each in came}
    assert set(by_type) == {event.value for event in WebhookEvent}
    assert all(each.is_signed_by(SECRET) for each in came)
    assert not came[0].is_signed_by(new_secret())
    assert [each.id for each in came] == [f"{deck.epoch}-{position}" for position in range(4, 9)]
    assert came[0].headers["content-type"] == "application/json"
    assert "hidden" not in came[0].headers.get("referer", "")
    opened = by_type["ask.opened"].payload
    assert opened["timestamp"].endswith("+00:00")
    assert opened["data"] == {
        "session": {
            "id": session,
            "name": "one",
            "url": link(session),
            "directory": "/tmp",
            "machine": "here",
            "project": "work",
        },
        "ask": ask,
        "kind": "tool",
        "tool": "Bash",
        "title": "Run a command",
    }
    turn = by_type["turn.ended"].payload["data"]
    assert (turn["failed"], turn["cost_usd"], turn["text"]) == (False, 0.5, "done")
    assert by_type["budget.reached"].payload["data"]["spent"] == 5.5
    assert by_type["alarm.raised"].payload["data"]["action"] == "interrupted"
    assert by_type["agent.died"].payload["data"]["reason"] == "it crashed"


async def test_an_agent_that_ended_cleanly_has_not_died(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving() as receiver, running(made(deck, folder, hook(receiver, folder)), folder):
        ended = RunEnded(run=f"run-{session}", reason="stopped", clean=True)
        await deck.journal.append(session, [ended, TURN])
        (only,) = await receiver.until(1)
    assert only.payload["type"] == "turn.ended"


async def test_an_endpoint_gets_only_the_events_and_projects_that_it_wants(folder: Path) -> None:
    deck = SmallDeck()
    mine = await deck.have_session("mine", project="work")
    other = await deck.have_session("other")
    async with receiving() as turns, receiving() as work:
        front = made(
            deck,
            folder,
            hook(turns, folder, name="turns", events=["turn.ended"]),
            hook(work, folder, name="work", projects=["work"]),
        )
        async with running(front, folder, "turns", "work"):
            await deck.ask(mine)
            await deck.journal.append(other, [TURN])
            await deck.journal.append(mine, [TURN])
            await turns.until(2)
            await work.until(2)
            await settled(front, 2, "turns")
            await settled(front, 2, "work")
    assert [each.payload["type"] for each in turns.came] == ["turn.ended"] * 2
    assert [each.payload["data"]["session"]["name"] for each in work.came] == ["mine"] * 2


async def test_a_payload_is_bounded_whatever_an_agent_says(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving() as receiver, running(made(deck, folder, hook(receiver, folder)), folder):
        huge = msgspec.structs.replace(TURN, text="x" * 10_000_000, outcome="\u2028" * 5000)
        await deck.journal.append(session, [huge])
        (only,) = await receiver.until(1)
    assert len(only.body) < 10_000
    assert only.payload["data"]["text"].endswith("x…")


async def test_two_secrets_make_two_signatures_while_one_replaces_the_other(folder: Path) -> None:
    newer = new_secret()
    (folder / "secret").write_text(f"{newer}\n{SECRET}\n")
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving() as receiver, running(made(deck, folder, hook(receiver, folder)), folder):
        await deck.journal.append(session, [TURN])
        (only,) = await receiver.until(1)
    assert only.is_signed_by(SECRET)
    assert only.is_signed_by(newer)


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [status(500), status(302, "location: http://127.0.0.1:1/"), "reset", b"no HTTP at all\r\n\r\n"],
    ids=["500", "redirect", "reset", "nonsense"],
)
async def test_it_is_tried_again_with_the_same_id_and_body(
    answer: bytes | str, folder: Path
) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with (
        receiving(answer, answer) as receiver,
        running(made(deck, folder, hook(receiver, folder)), folder) as front,
    ):
        await deck.journal.append(session, [TURN])
        await settled(front, 1)
    assert len(receiver.came) == 3
    assert len({(each.id, each.body) for each in receiver.came}) == 1
    assert (front.counts["ops"].delivered, front.counts["ops"].failed) == (1, 2)


async def test_an_endpoint_that_hangs_is_left_after_its_time(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving("hang") as receiver:
        slow = hook(receiver, folder, timeout=0.1)
        async with running(made(deck, folder, slow), folder) as front:
            await deck.journal.append(session, [TURN])
            await settled(front, 1)
    assert len(receiver.came) == 2
    assert "0.1 s" in front.counts["ops"].last_error


async def test_an_endless_answer_is_not_read(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with (
        receiving("flood") as receiver,
        running(made(deck, folder, hook(receiver, folder)), folder) as front,
    ):
        await deck.journal.append(session, [TURN])
        await settled(front, 1)
    assert len(receiver.came) == 2
    assert receiver.flooded < 32 * 1024 * 1024  # what fits the sockets, and no more


async def test_nothing_listens_there_and_later_something_does(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving() as receiver:
        pass
    async with running(made(deck, folder, hook(receiver, folder)), folder) as front:
        await deck.journal.append(session, [TURN])
        with anyio.fail_after(SECONDS):
            await until(lambda: front.counts["ops"].failed > 1)
        async with receiving() as back:
            front.change([hook(back, folder)])
            (only,) = await back.until(1)
    assert only.id == f"{deck.epoch}-4"
    assert "ConnectError" in front.counts["ops"].last_error
    assert "hidden" not in front.counts["ops"].last_error


async def test_one_event_that_is_refused_does_not_hold_up_the_others(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving(status(400), status(400)) as receiver:
        patient = Webhooks(
            deck,
            folder,
            [hook(receiver, folder)],
            link=link,
            backoff=Backoff(first=0.3, factor=1.0),
        )
        async with running(patient, folder):
            await deck.journal.append(session, [TURN])
            await receiver.until(1)
            await deck.journal.append(session, [TURN, TURN])
            came = await receiver.until(5)
    assert [each.id.rpartition("-")[2] for each in came][:3] == ["4", "5", "6"]
    assert {each.id.rpartition("-")[2] for each in came[3:]} == {"4", "5"}


async def test_after_its_tries_an_event_is_given_up_with_a_line_in_the_log(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with (
        receiving(usual=status(503)) as receiver,
        running(made(deck, folder, hook(receiver, folder, tries=3)), folder) as front,
    ):
        with caplog.at_level(logging.WARNING):
            await deck.journal.append(session, [TURN])
            await settled(front, 1)
    assert len(receiver.came) == 3
    assert front.counts["ops"].given_up == 1
    assert f"{deck.epoch}-4: gave up after 3 attempts: status 503" in caplog.text
    assert "hidden" not in caplog.text


async def test_what_is_too_old_and_what_is_gone_are_not_tried_again(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving(status(500), status(410)) as receiver:
        short = hook(receiver, folder, give_up_hours=1e-9)
        async with running(made(deck, folder, short), folder) as front:
            await deck.journal.append(session, [TURN])
            await settled(front, 1)
            front.change([hook(receiver, folder)])
            await deck.journal.append(session, [TURN])
            await settled(front, 2)
    assert len(receiver.came) == 2
    assert front.counts["ops"].given_up == 2


async def test_an_endpoint_is_left_alone_for_as_long_as_it_asks(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with (
        receiving(status(429, "retry-after: 1")) as receiver,
        running(made(deck, folder, hook(receiver, folder)), folder) as front,
    ):
        await deck.journal.append(session, [TURN])
        await receiver.until(1)
        began = anyio.current_time()
        # The wait is as long as the longest of our own at most: here that is half an hour.
        await settled(front, 1)
        assert anyio.current_time() - began > 0.9


async def test_a_secret_that_cannot_be_read_sends_nothing_and_is_named(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    (folder / "secret").write_text("too short\n")
    async with (
        receiving() as receiver,
        running(made(deck, folder, hook(receiver, folder)), folder) as front,
    ):
        await deck.journal.append(session, [TURN])
        with anyio.fail_after(SECONDS):
            await until(lambda: front.counts["ops"].failed > 0)
        assert receiver.came == []
        assert "a secret begins with whsec_" in front.counts["ops"].last_error
        (folder / "secret").write_text(SECRET)
        await receiver.until(1)


# --- a dead endpoint, and restarts ---------------------------------------------------------------


async def test_a_dead_endpoint_keeps_a_bounded_number_waiting_and_slows_nobody(
    folder: Path,
) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving(usual="hang") as dead, receiving() as well:
        front = made(
            deck,
            folder,
            hook(dead, folder, name="dead", timeout=0.2, give_up_hours=100.0, tries=100),
            hook(well, folder, name="well"),
            most_waiting=4,
        )
        async with running(front, folder, "dead", "well"):
            for _ in range(50):
                await deck.journal.append(session, [TURN])
            await well.until(50)
            with anyio.fail_after(SECONDS):
                await until(lambda: front.counts["dead"].waiting == 4)
            assert front.counts["dead"].waiting == 4
            # It comes back: all that the journal kept for it follows.
            dead.usual = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
            await settled(front, 50, "dead")
    assert len({each.id for each in dead.came}) == 50


async def test_nothing_is_lost_or_renamed_over_a_restart(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving(usual=status(500)) as receiver:
        async with running(made(deck, folder, hook(receiver, folder)), folder):
            await deck.journal.append(session, [TURN, TURN])
            await receiver.until(4)
        first = {(each.id, each.body) for each in receiver.came}
        # While no hub runs this front, something happens, and the session is renamed.
        await deck.journal.append(session, [TURN, SessionRenamed(name="two", by="me")])
        receiver.came.clear()
        receiver.usual = status(200)
        async with running(made(deck, folder, hook(receiver, folder)), folder) as front:
            await settled(front, 3)
    assert len(receiver.came) == 3
    assert first < {(each.id, each.body) for each in receiver.came}


async def test_a_new_endpoint_begins_with_what_happens_from_now_on(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    await deck.journal.append(session, [TURN])
    async with receiving() as receiver, running(made(deck, folder, hook(receiver, folder)), folder):
        await deck.ask(session)
        (only,) = await receiver.until(1)
    assert only.payload["type"] == "ask.opened"


async def test_another_journal_and_a_shorter_one_begin_anew(folder: Path) -> None:
    outbox = Outbox(folder)
    outbox.begin("ops", "other epoch", 7)
    assert outbox.begin("ops", "this epoch", 3) == 3
    outbox.move("ops", "this epoch", 9)
    assert outbox.begin("ops", "this epoch", 9) == 9
    assert outbox.begin("ops", "this epoch", 5) == 5
    outbox.close()


async def test_endpoints_come_and_go_while_the_hub_runs(folder: Path) -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    front = made(deck, folder)
    async with receiving() as one, receiving() as two, front.run():
        assert front.counts == {}
        front.change([hook(one, folder, name="one")])
        await begun(folder, "one")
        await deck.journal.append(session, [TURN])
        await one.until(1)
        front.change([hook(two, folder, name="two")])
        await begun(folder, "two")
        await deck.journal.append(session, [TURN])
        await two.until(1)
        front.change([])
        with anyio.fail_after(SECONDS):
            await until(lambda: cursors(folder) == {})
        with pytest.raises(UsageError, match="used twice"):
            front.change([hook(one, folder), hook(two, folder)])
    assert len(one.came) == 1


async def test_a_session_that_was_deleted_is_told_of_no_more(folder: Path) -> None:
    deck = SmallDeck()
    gone, stays = await deck.have_session(), await deck.have_session()
    async with receiving() as receiver:
        async with running(made(deck, folder, hook(receiver, folder)), folder):
            pass
        await deck.journal.append(gone, [TURN])
        await deck.journal.append(stays, [TURN])
        await deck.journal.delete(gone, by="me")
        async with running(made(deck, folder, hook(receiver, folder)), folder) as front:
            await settled(front, 1)
    (only,) = receiver.came
    assert only.payload["data"]["session"]["id"] == stays


async def test_a_damaged_outbox_is_put_aside(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / FILE).write_bytes(b"no database at all, " * 100)
    deck = SmallDeck()
    session = await deck.have_session()
    async with receiving() as receiver:
        front = made(deck, folder, hook(receiver, folder))
        async with front.run():
            with anyio.fail_after(SECONDS):
                await until((folder / "webhooks.damaged").exists)
            await begun(folder, "ops")
            await deck.journal.append(session, [TURN])
            await receiver.until(1)
    assert "is damaged" in caplog.text


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("name", ""),
        ("url", "ftp://x/"),
        ("url", "http://"),
        ("url", "http://me:secret@host/"),
        ("url", "http://host:port/"),
        ("url", "http://host/a b"),
        ("secret_file", ""),
        ("timeout", 0.0),
        ("timeout", 61.0),
        ("tries", 0),
        ("give_up_hours", 0.0),
    ],
)
def test_what_cannot_be_right_is_refused_by_its_name(setting: str, value: object) -> None:
    good: dict[str, object] = {"name": "ops", "url": "https://host/x", "secret_file": "s"}
    with pytest.raises(msgspec.ValidationError, match=setting) as refused:
        msgspec.convert(good | {setting: value}, Webhook)
    assert "secret@" not in str(refused.value)


def test_waits_grow_to_a_bound_and_vary_by_chance() -> None:
    backoff = Backoff(first=2.0, factor=3.0, most=100.0, jitter=0.25)
    assert [backoff.after(tries, 0.5) for tries in (1, 2, 3, 4, 5, 1000)] == [
        2.0,
        6.0,
        18.0,
        54.0,
        100.0,
        100.0,
    ]
    assert (backoff.after(1, 0.0), backoff.after(1, 1.0)) == (1.5, 2.5)
