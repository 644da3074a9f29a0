"""Web Push against a real HTTP server that opens what comes, as a browser would."""

from __future__ import annotations

import contextlib
import logging
import stat
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.push import Pace, Push
from quarterdeck.fronts.push.answers import MOST as MOST_SETTLED
from quarterdeck.fronts.push.answers import VALID_SECONDS, AnswerTokens
from quarterdeck.fronts.push.subscriptions import MOST, MOST_OF_ONE, Subscription, SubscriptionStore
from quarterdeck.protocol import events as ev
from support.bounds import SECONDS
from support.push_service import PushService, push_service
from support.receiver import status
from support.small_deck import SmallDeck
from support.waiting import until

pytestmark = pytest.mark.anyio

QUICK = Pace(timeout=SECONDS, pauses=(0.01, 0.01))
CONTACT = "mailto:ada@deck.example"


class House:
    """A push front with a deck behind it, and the access that is valid."""

    def __init__(self, folder: Path, pace: Pace = QUICK) -> None:
        self.deck = SmallDeck()
        self.grants = {"ada"}
        self.push = Push(
            self.deck,
            folder,
            grants=lambda: self.grants,
            contact=CONTACT,
            pace=pace,
            loopback=True,
        )

    async def subscribe(self, service: PushService, grant: str = "ada") -> None:
        await self.push.subscribe(grant, service.endpoint, **service.keys)

    def subscribed(self) -> list[str]:
        return [each.endpoint for each in self.push._store.subscriptions]


@contextlib.asynccontextmanager
async def house(folder: Path, pace: Pace = QUICK) -> AsyncIterator[House]:
    made = House(folder, pace)
    async with made.push.run():
        yield made


# --- what is told --------------------------------------------------------------------------------


async def test_a_browser_is_told_of_a_question_sealed_for_it_and_signed_by_the_hub(
    tmp_path: Path,
) -> None:
    async with push_service() as service, house(tmp_path) as home:
        session = await home.deck.have_session("tidy up")
        await home.deck.ask(session, title="an old question")
        await home.subscribe(service)
        ask = await home.deck.ask(session, title="make test")
        (told,) = await service.until(1)
        assert told == {
            "code": "question",
            "name": "tidy up",
            "body": "Bash: make test",
            "url": f"/s/{session}",
            "tag": ask,
        }
        (came,) = service.receiver.came
        assert came.headers["content-encoding"] == "aes128gcm"
        assert int(came.headers["ttl"]) > 0
        assert b"make test" not in came.body
        claims = service.claims(came, await home.push.public_key())
        assert (claims["aud"], claims["sub"]) == (service.origin, CONTACT)
        assert 0 < claims["exp"] - time.time() <= 24 * 3600


async def test_long_texts_are_cut(tmp_path: Path) -> None:
    async with push_service() as service, house(tmp_path) as home:
        session = await home.deck.have_session("n" * 500)
        await home.subscribe(service)
        await home.deck.ask(session, title="🦀" * 5000)
        (told,) = await service.until(1)
    assert (len(told["name"]), len(told["body"])) == (80, 200)
    assert told["body"].endswith("🦀…")


async def test_a_hub_that_comes_back_tells_of_new_questions_only(tmp_path: Path) -> None:
    async with push_service() as service:
        async with house(tmp_path) as home:
            key = await home.push.public_key()
            await home.subscribe(service)
        again = House(tmp_path)
        session = await again.deck.have_session()
        await again.deck.ask(session, title="while it was away")
        async with again.push.run():
            await again.deck.ask(session, title="now")
            (told,) = await service.until(1)
        assert told["body"] == "Bash: now"
        assert await again.push.public_key() == key
        assert len(service.receiver.came) == 1


async def test_a_question_of_a_session_that_is_gone_is_not_told(tmp_path: Path) -> None:
    async with push_service() as service:
        home = House(tmp_path)
        session = await home.deck.have_session("gone")
        other = await home.deck.have_session("there")
        await home.subscribe(service)
        await home.deck.ask(session)
        await home.deck.journal.delete(session, by="test")
        async with home.push.run():
            await home.deck.ask(other)
            (told,) = await service.until(1)
    assert told["name"] == "there"


# --- who is told ---------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [404, 410])
async def test_a_browser_that_is_no_more_is_forgotten(tmp_path: Path, code: int) -> None:
    async with push_service(usual=status(code)) as gone, push_service() as there:
        async with house(tmp_path) as home:
            session = await home.deck.have_session()
            await home.subscribe(gone)
            await home.subscribe(there)
            await home.deck.ask(session)
            with anyio.fail_after(SECONDS):
                await until(lambda: home.subscribed() == [there.endpoint])
            await home.deck.ask(session)
            await there.until(2)
        assert len(gone.receiver.came) == 1
    assert [each.endpoint for each in SubscriptionStore(tmp_path, loopback=True).subscriptions] == [
        there.endpoint
    ]


async def test_whose_access_was_taken_back_is_told_nothing_more(tmp_path: Path) -> None:
    async with push_service() as ada, push_service() as ben, house(tmp_path) as home:
        home.grants |= {"ben"}
        session = await home.deck.have_session()
        await home.subscribe(ada)
        await home.subscribe(ben, "ben")
        await home.deck.ask(session)
        await ben.until(1)
        home.grants -= {"ben"}
        await home.deck.ask(session)
        await ada.until(2)
        assert home.subscribed() == [ada.endpoint]
        assert len(ben.receiver.came) == 1


async def test_who_has_unsubscribed_is_told_nothing_more(tmp_path: Path) -> None:
    async with push_service() as one, push_service() as two, house(tmp_path) as home:
        session = await home.deck.have_session()
        await home.subscribe(one)
        await home.subscribe(two)
        await home.push.unsubscribe(one.endpoint)
        await home.push.unsubscribe(one.endpoint)
        await home.deck.ask(session)
        await two.until(1)
        assert not one.receiver.came


# --- services that fail --------------------------------------------------------------------------


async def test_a_failure_is_tried_twice_again_and_then_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failures = (status(500), "reset", status(429))
    async with push_service(*failures) as service, house(tmp_path) as home:
        session = await home.deck.have_session()
        await home.subscribe(service)
        with caplog.at_level(logging.WARNING):
            await home.deck.ask(session, title="first")
            await service.until(3)
            await home.deck.ask(session, title="second")
            told = await service.until(4)
        assert [each["body"] for each in told] == ["Bash: first"] * 3 + ["Bash: second"]
        assert home.subscribed() == [service.endpoint]
    assert "gave up a push" in caplog.text
    assert "hidden" not in caplog.text  # the endpoint is a secret


async def test_a_slow_service_holds_nobody_up(tmp_path: Path) -> None:
    patient = Pace(timeout=SECONDS, pauses=())
    async with (
        push_service(usual="hang") as slow,
        push_service() as quick,
        house(tmp_path, patient) as home,
    ):
        session = await home.deck.have_session()
        await home.subscribe(slow)
        await home.subscribe(quick)
        for number in range(40):
            await home.deck.ask(session, title=str(number))
        # A queue holds so many; the reader may have been quicker than the deliveries.
        await quick.until(1)
        with anyio.fail_after(SECONDS):
            await until(lambda: quick.open(quick.receiver.came[-1])["body"] == "Bash: 39")
        assert len(slow.receiver.came) == 1
        assert all(len(each) <= 16 for each in home.push._waiting.values())


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".invalid", "127.0.0.1:1", "[::1]:1"])
async def test_a_service_that_cannot_be_reached_harms_nobody(
    tmp_path: Path, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    quick = Pace(timeout=SECONDS, pauses=())
    async with push_service() as service, house(tmp_path, quick) as home:
        session = await home.deck.have_session()
        await home.push.subscribe("ada", f"https://{host}/x", **service.keys)
        await home.subscribe(service)
        with anyio.fail_after(SECONDS):
            await home.deck.ask(session)
            await service.until(1)
            await until(lambda: "gave up a push" in caplog.text)
            await home.deck.ask(session)
            await service.until(2)


async def test_a_service_that_never_answers_is_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    impatient = Pace(timeout=0.05, pauses=())
    async with push_service("hang") as service, house(tmp_path, impatient) as home:
        session = await home.deck.have_session()
        await home.subscribe(service)
        with caplog.at_level(logging.WARNING), anyio.fail_after(SECONDS):
            await home.deck.ask(session)
            await until(lambda: "no answer within" in caplog.text)


# --- what is kept --------------------------------------------------------------------------------


def modes(folder: Path) -> dict[str, int]:
    """The files, with who may use them."""
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "http://push.example/x",
        "https:///x",
        "ftp://push.example/x",
        "https://ada:secret@push.example/x",
        "https://push.example:port/x",
        "https://push.example/a b",
        "https://push.example/" + "x" * 3000,
    ],
)
async def test_what_is_no_address_of_a_push_service_is_refused(
    tmp_path: Path, endpoint: str
) -> None:
    async with push_service() as service:
        with pytest.raises(UsageError, match="endpoint"):
            await House(tmp_path).push.subscribe("ada", endpoint, **service.keys)


async def test_a_service_on_this_machine_is_refused_where_no_test_wants_it(tmp_path: Path) -> None:
    async with push_service() as service:
        push = Push(SmallDeck(), tmp_path, grants=set, contact=CONTACT)
        with pytest.raises(UsageError, match="https"):
            await push.subscribe("ada", service.endpoint, **service.keys)


async def test_the_files_are_closed_to_others(tmp_path: Path) -> None:
    async with push_service() as service:
        home = House(tmp_path)
        await home.subscribe(service)
        await home.push.public_key()
    assert modes(tmp_path) == {"push.json": 0o600, "push.key": 0o600}


async def test_there_are_never_too_many_subscriptions(tmp_path: Path) -> None:
    async with push_service() as service:
        keys = service.keys
    kept = SubscriptionStore(tmp_path)

    def add(grant: str, name: str) -> None:
        kept.add(Subscription(grant=grant, endpoint=f"https://push.example/{name}", **keys))

    for number in range(MOST_OF_ONE + 2):
        add("ada", f"ada-{number}")
        add("ada", f"ada-{number}")
    own = [each.endpoint.rpartition("-")[2] for each in kept.subscriptions]
    assert own == [str(number) for number in range(2, MOST_OF_ONE + 2)]
    for number in range(MOST - MOST_OF_ONE):
        add(f"other-{number}", f"other-{number}")
    with pytest.raises(Conflict):
        add("late", "late")
    assert len(kept.subscriptions) == MOST
    assert len(SubscriptionStore(tmp_path).subscriptions) == MOST


async def test_files_that_are_damaged_are_put_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "push.json").write_text("[{}]")
    (tmp_path / "push.key").write_text("no key")
    async with push_service() as service:
        home = House(tmp_path)
        assert not home.subscribed()
        await home.push.public_key()
        await home.subscribe(service)
    names = ["push.json", "push.json.damaged", "push.key", "push.key.damaged"]
    assert sorted(modes(tmp_path)) == names
    assert "moved aside" in caplog.text


# --- kinds, and answers from a notification ------------------------------------------------------


async def test_each_browser_is_told_of_the_kinds_that_it_wants(tmp_path: Path) -> None:
    async with push_service() as desk, push_service() as phone, house(tmp_path) as home:
        session = await home.deck.have_session("tidy up")
        await home.push.subscribe("ada", desk.endpoint, **desk.keys, kinds=("finished", "failed"))
        await home.push.subscribe("ada", phone.endpoint, **phone.keys, kinds=("budget", "question"))
        ended = ev.TurnEnded(prompts=(), failed=False, outcome="success", cost_usd=0, text="Done.")
        events: list[ev.Event] = [
            ended,
            replace(ended, failed=True, outcome="error", problem="interrupted"),
            replace(ended, failed=True, outcome="error", problem="rate_limit"),
            ev.RunEnded(run="r", reason="it was killed"),
            ev.RunEnded(run="r", reason="it was stopped", clean=True),
            ev.BudgetReached(scope="session", unit="usd", limit=5, spent=5.1),
        ]
        await home.deck.journal.append(session, events)
        ask = await home.deck.ask(session, title="make test")
        told = await desk.until(3)
        assert [(note["code"], note["name"], note["body"]) for note in told] == [
            ("finished", "tidy up", "Done."),
            ("failed", "tidy up", "rate_limit"),
            ("crashed", "tidy up", "it was killed"),
        ]
        spent, question = await phone.until(2)
        assert (spent["code"], spent["unit"], spent["limit"]) == ("budget", "usd", 5)
        assert question["tag"] == ask
        assert "answer" not in question  # nobody asked for buttons


async def opened(home: House, session: str, request: dict[str, object]) -> str:
    ask = f"{session}.{new_id()}"
    event = ev.AskOpened(
        ask=ask,
        run="run",
        request_id="r",
        ask_kind=ev.AskKind.TOOL,
        tool=str(request["tool_name"]),
        title="what it says of itself",
        request=Raw(msgspec.json.encode(request)),
    )
    await home.deck.journal.append(session, [event])
    return ask


async def test_a_notification_allows_only_what_it_shows_completely_once_and_in_its_login(
    tmp_path: Path,
) -> None:
    async with push_service() as service, house(tmp_path) as home:
        session = await home.deck.have_session("tidy up")
        await home.push.subscribe("ada", service.endpoint, **service.keys, buttons=True)
        command = {"command": "make test", "description": "harmless"}
        first = await opened(home, session, {"tool_name": "Bash", "input": command})
        (note,) = await service.until(1)
        assert note["body"] == "Bash: make test"  # the command, and not what is said of it
        assert note["allow"] is True
        token = note["answer"]
        redeem = home.push.redeem
        assert await redeem(token, {"bob"}, allow=True) is None
        assert await redeem(token[:-1] + "x", {"ada"}, allow=True) is None
        assert await redeem("", {"ada"}, allow=True) is None
        assert await redeem(token, {"ada", "bob"}, allow=True) == ("ada", first)
        assert await redeem(token, {"ada"}, allow=False) is None

        hostile: list[dict[str, object]] = [
            {"command": "x" * 181},
            {"command": "make test\nrm -rf ~"},
            {"command": "make test\u202e"},
            {"command": "m\u0430ke test"},
            {"command": "make test" + " " * 60 + "; rm -rf ~"},
            {"command": "make test", "dangerouslyDisableSandbox": True},
            {"command": ""},
            {"command": ["make", "test"]},
        ]
        for given in hostile:
            await opened(home, session, {"tool_name": "Bash", "input": given})
        await opened(home, session, {"tool_name": "Write", "input": {"file_path": "/a"}})
        notes = (await service.until(10))[1:]
        assert len(notes) == 9
        assert not any(note.get("allow") for note in notes)
        last = notes[-1]["answer"]
        assert await redeem(last, {"ada"}, allow=True) is None
        assert await redeem(last, {"ada"}, allow=False) is not None


def test_a_token_ends_with_its_question_and_with_time_and_works_at_every_hub() -> None:
    now, secret = 1000.0, b"s" * 32
    one, other = AnswerTokens(clock=lambda: now), AnswerTokens(clock=lambda: now + 3600)
    token = one.issue(secret, "ada", "ask", allow=True)
    one.forget_ask("ask")
    assert one.redeem(secret, token, {"ada"}, allow=False) is None
    # Another hub knows it by the secret, and no other secret does.
    assert other.redeem(b"t" * 32, token, {"ada"}, allow=True) is None
    assert other.redeem(secret, token, {"ada"}, allow=True) == ("ada", "ask")
    assert other.redeem(secret, token, {"ada"}, allow=True) is None
    deny = one.issue(secret, "ada", "second", allow=False)
    body, _, seal = deny.partition(".")
    forged = urlsafe_b64encode(urlsafe_b64decode(body).replace(b"false", b"true")).decode()
    for wrong in (
        f"{forged}.{seal}",
        f"{body}.",
        f".{seal}",
        body,
        "\udc80." + seal,
        f"{body}.\udc80",
        "x" * 10_000,
    ):
        assert one.redeem(secret, wrong, {"ada"}, allow=True) is None
    assert one.redeem(secret, deny, {"ada"}, allow=True) is None
    now += VALID_SECONDS + 1
    assert one.redeem(secret, deny, {"ada"}, allow=False) is None
    for number in range(MOST_SETTLED + 1):
        one.forget_ask(str(number))
    assert len(one._settled) == MOST_SETTLED


async def test_plans_and_questions_have_no_buttons(tmp_path: Path) -> None:
    async with push_service() as service, house(tmp_path) as home:
        session = await home.deck.have_session("plan")
        await home.push.subscribe("ada", service.endpoint, **service.keys, buttons=True)
        for kind in (ev.AskKind.PLAN, ev.AskKind.QUESTIONS):
            event = ev.AskOpened(
                ask=f"{session}.{new_id()}",
                run="run",
                request_id="r",
                ask_kind=kind,
                tool="ExitPlanMode",
                title="a plan",
                request=Raw(b"{}"),
            )
            await home.deck.journal.append(session, [event])
        assert not any("answer" in note for note in await service.until(2))
