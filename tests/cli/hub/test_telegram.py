"""The Telegram bot of `quarterdeck serve`: paired, checked by the doctor, killed, and elsewhere."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest

from quarterdeck.testing import fake, play
from quarterdeck.testing.telegram import NO_LIMITS, BotApiServer
from quarterdeck.testing.telegram.objects import Message
from support.bounds import SECONDS
from support.scenes import bash
from support.served_deck import ServedDeck, until_true

pytestmark = [pytest.mark.anyio, pytest.mark.process]

USERS = (11, 12, 13)


@pytest.fixture
async def telegram() -> AsyncIterator[BotApiServer]:
    async with BotApiServer(limits=NO_LIMITS) as server:
        for user in USERS:
            server.sim.add_user(user)
        yield server


def configure(deck: ServedDeck, telegram: BotApiServer, *lines: str) -> Path:
    """Give the hub a bot; the file of its token."""
    deck.data.mkdir(parents=True, mode=0o700, exist_ok=True)
    token = deck.command.home / "telegram.token"
    token.write_text(telegram.token)
    token.chmod(0o600)
    text = f"""
[sandbox]
mode = "off"

[telegram]
token_file = "{token}"
api = "{telegram.url}"
users = {list(USERS)}
project = "work"
{os.linesep.join(lines)}

[projects.work]
directory = "{deck.command.work}"
claude = "{deck.command.env["QUARTERDECK_CLAUDE"]}"
api_billing = true
"""
    (deck.data / "quarterdeck.toml").write_text(text)
    return token


async def pair(deck: ServedDeck, telegram: BotApiServer, user: int) -> None:
    """Pair a user, as a person does it."""
    code = (await deck("telegram", "pair", "--name", f"person-{user}")).out.strip()
    telegram.sim.type(user, f"/pair {code}")
    await telegram.wait_for_message(user, f"You are person-{user}, owner", timeout=SECONDS)


async def test_the_bot_of_a_hub_is_paired_and_checked(
    deck: ServedDeck, telegram: BotApiServer
) -> None:
    deck.command.play_fake(fake.Initialize(), fake.Serve())
    token = configure(deck, telegram)
    await deck.serve()
    await pair(deck, telegram, 11)
    telegram.sim.type(11, "hello")
    await telegram.wait_for_message(11, "echo: hello", timeout=SECONDS)
    listed = (await deck("token", "list")).out
    assert "person-11  telegram:11" in listed
    assert "telegram bot" in listed

    token.chmod(0o644)
    findings = await doctor(deck)
    assert ("ok", "the token is that of @test_bot") in findings
    assert ("ok", "the bot of the running hub gets updates") in findings
    assert any(level == "ok" and "the menu has all" in text for level, text in findings)
    assert any(
        level == "warning" and "can read the bot's token" in text for level, text in findings
    )
    token.write_text("123:wrong")
    assert ("problem", "Telegram does not accept the token") in await doctor(deck, code=1)

    await deck("stop")


async def doctor(deck: ServedDeck, code: int = 0) -> list[tuple[str, str]]:
    report = json.loads((await deck("doctor", "--json", code=code)).out)
    return [(row["level"], row["text"]) for row in report["findings"] if row["topic"] == "telegram"]


async def test_a_bot_without_users_does_not_start(deck: ServedDeck, telegram: BotApiServer) -> None:
    configure(deck, telegram)
    file = deck.data / "quarterdeck.toml"
    file.write_text(file.read_text().replace("[11, 12, 13]", "[]"))
    done = await deck("serve", "--port", "0", code=2)
    assert "name the Telegram users" in done.err


POINTS = ("opened", "sent", "received", "journalled", "written", "edited")
"""The steps of a question after which the hub is killed."""


def asks_one_after_the_other() -> list[fake.Step]:
    """A CLI that asks a question in each turn."""
    steps: list[fake.Step] = [fake.Initialize()]
    for point in POINTS:
        given: fake.Line = {"command": f"make {point}"}
        steps += [
            fake.Expect("user", polite=True, timeout=SECONDS),
            fake.say(
                fake.assistant(fake.tool_use("Bash", given)),
                fake.can_use_tool("Bash", given, f"ask-{point}"),
            ),
            fake.Expect("control_response", polite=True, timeout=SECONDS),
            fake.say(fake.assistant(f"Done: {point}."), fake.result(f"Done: {point}.")),
        ]
    return [*steps, fake.Serve()]


class Watch:
    """Holds a hub between two steps of a question, and kills it there."""

    def __init__(self, deck: ServedDeck, telegram: BotApiServer, record: Path) -> None:
        self._deck = deck
        self._telegram = telegram
        self._record = record

    def count(self, file: str, query: str) -> int:
        """What a query counts in a file of the hub."""
        with closing(sqlite3.connect(self._deck.data / file, timeout=SECONDS)) as database:
            found: int = database.execute(query).fetchone()[0]
        return found

    @property
    def opened(self) -> int:
        """Questions in the journal that are open."""
        return self.count("journal.db", "SELECT count(*) FROM asks WHERE settled IS NULL")

    @property
    def settled(self) -> int:
        """Questions in the journal that are answered."""
        return self.count("journal.db", "SELECT count(*) FROM asks WHERE settled IS NOT NULL")

    @property
    def presses(self) -> int:
        """Presses that the front has stored and not done."""
        return self.count("telegram.db", "SELECT count(*) FROM inbox WHERE lane LIKE '%:press'")

    @property
    def written(self) -> int:
        """Answers that the CLI has read."""
        return self._record.read_bytes().count(b'"behavior":"allow"')

    @contextmanager
    def telegram_fails(self, method: str) -> Iterator[None]:
        """Nothing of this kind reaches a chat."""
        self._telegram.fail("error", method, times=1_000_000)
        yield
        self._telegram.fail("error", method, times=0)

    @contextmanager
    def journal_held(self) -> Iterator[None]:
        """The hub can write nothing."""
        file = self._deck.data / "journal.db"
        with closing(sqlite3.connect(file, timeout=SECONDS, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            yield
            database.execute("ROLLBACK")

    @contextmanager
    def runner_held(self) -> Iterator[None]:
        """Nothing reaches the CLI."""
        runner = self._deck.adopt()
        assert runner is not None
        os.kill(runner, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(runner, signal.SIGCONT)

    async def kill(self) -> None:
        """Kill the hub."""
        assert self._deck.hub is not None
        os.kill(self._deck.hub.pid, signal.SIGKILL)
        await self._deck.ends()


async def test_a_hub_that_is_killed_after_each_step_of_a_question_loses_and_doubles_nothing(
    deck: ServedDeck, telegram: BotApiServer, tmp_path: Path
) -> None:
    record, user = tmp_path / "record", USERS[0]
    deck.command.play_fake(*asks_one_after_the_other(), record=record)
    configure(deck, telegram)
    await deck.serve()
    await pair(deck, telegram, user)
    watch = Watch(deck, telegram, record)

    async def card_of(point: str, text: str = "") -> Message:
        def look() -> Message | None:
            shown = [one for one in telegram.sim.from_bot(user) if f"make {point}" in one.shown]
            return next((one for one in shown if text in one.shown), None)

        return await telegram.wait_for(look, SECONDS)

    async def allow(point: str) -> None:
        telegram.sim.press(user, (await card_of(point)).message_id, "✅ Allow")

    for number, point in enumerate(POINTS):
        if point == "opened":
            with watch.telegram_fails("sendMessage"):
                telegram.sim.type(user, point)
                await until_true(lambda: watch.opened == 1)
                await watch.kill()
            assert not [one for one in telegram.sim.from_bot(user) if "make" in one.shown]
        else:
            telegram.sim.type(user, point)
            await card_of(point)
        match point:
            case "sent":
                await watch.kill()
            case "received":
                with watch.journal_held():
                    await allow(point)
                    await until_true(lambda: watch.presses == 1)
                    await watch.kill()
                assert (watch.opened, watch.settled) == (1, number)
            case "journalled":
                with watch.runner_held():
                    await allow(point)
                    await until_true(lambda before=number: watch.settled == before + 1)  # type: ignore[misc]
                    await watch.kill()
                    assert watch.written == number
            case "written":
                with watch.telegram_fails("editMessageText"):
                    await allow(point)
                    await until_true(lambda before=number: watch.written == before + 1)  # type: ignore[misc]
                    await watch.kill()
                assert "Allowed by" not in (await card_of(point)).shown
            case "edited":
                await allow(point)
                await card_of(point, "Allowed by")
                await watch.kill()
        await deck.serve()
        if point in {"opened", "sent"}:
            await allow(point)
        await card_of(point, f"✅ Allowed by person-{user}")
        await telegram.wait_for_message(user, f"Done: {point}.", timeout=SECONDS)
    texts = [one.shown for one in telegram.sim.from_bot(user)][1:]
    for point in POINTS:
        assert sum(f"make {point}" in text for text in texts) == 1, texts
        assert sum(f"Done: {point}." in text for text in texts) == 1, texts
    assert len(texts) == 2 * len(POINTS), texts
    assert (watch.written, watch.settled, watch.opened) == (len(POINTS), len(POINTS), 0)
    await deck("stop")


@pytest.mark.real_cli
async def test_with_the_real_cli_each_command_runs_once_whenever_the_hub_is_killed(
    deck: ServedDeck, telegram: BotApiServer
) -> None:
    configure(deck, telegram)
    traces = {user: deck.command.work / f"trace-{user}" for user in USERS}
    prompts = {user: play(bash(f"echo once >> {trace}"), "Done.") for user, trace in traces.items()}
    await kill_while_asked(deck, telegram, prompts)
    assert [trace.read_text() for trace in traces.values()] == ["once\n"] * len(USERS)


async def kill_while_asked(
    deck: ServedDeck, telegram: BotApiServer, prompts: dict[int, str]
) -> None:
    """Have a question of each user asked and answered while the hub is killed again and again."""
    await deck.serve()
    for user in prompts:
        await pair(deck, telegram, user)

    async def work(user: int) -> None:
        telegram.sim.type(user, prompts[user])
        card = await telegram.wait_for_message(user, "🔐", timeout=SECONDS)
        telegram.sim.press(user, card.message_id, "✅ Allow")

        def closed() -> Message | None:
            found = [
                one for one in telegram.sim.from_bot(user) if one.message_id == card.message_id
            ]
            return found[0] if found and "Allowed by" in found[0].shown else None

        await telegram.wait_for(closed, SECONDS)
        await telegram.wait_for_message(user, "Done.", timeout=SECONDS)

    async def kill() -> None:
        """Kill the hub after its first call, then after two more, and so on."""
        for count in range(1, 5):
            before = len(telegram.calls)

            def called(before: int = before, count: int = count) -> bool:
                calls = telegram.calls[before:]
                done = [one for one in calls if one.method in {"sendMessage", "editMessageText"}]
                return len(done) >= count

            with anyio.move_on_after(8):
                await telegram.wait_for(called, SECONDS)
            assert deck.hub is not None
            os.kill(deck.hub.pid, signal.SIGKILL)
            await deck.ends()
            await deck.serve()

    with anyio.fail_after(2 * SECONDS):
        async with anyio.create_task_group() as tasks:
            for user in prompts:
                tasks.start_soon(work, user)
            await kill()
    for user in prompts:
        texts = [one.shown for one in telegram.sim.from_bot(user)][1:]
        assert sum("Allowed by" in text for text in texts) == 1, texts
        assert sum("Done." in text for text in texts) == 1, texts
        assert len(texts) == 2, texts
    await deck("stop")


async def test_the_bot_runs_elsewhere_with_a_token_that_only_reads(
    deck: ServedDeck, telegram: BotApiServer, tmp_path: Path
) -> None:
    deck.command.play_fake(fake.Initialize(), fake.Serve())
    configure(deck, telegram)
    config = tmp_path / "telegram.toml"
    both = (deck.data / "quarterdeck.toml").read_text()
    config.write_text(both)
    (deck.data / "quarterdeck.toml").write_text(both.replace("token_file", "# token_file"))
    await deck.serve()
    token = tmp_path / "hub.token"
    token.write_text((await deck("token", "--role", "viewer", "--name", "bot")).out)
    token.chmod(0o600)
    state = tmp_path / "state.db"
    bot = await deck.command.start(
        "telegram",
        *("--hub", deck.address, "--token-file", str(token)),
        *("--state", str(state), "--config", str(config)),
    )
    try:
        await pair(deck, telegram, 11)
        telegram.sim.type(11, "hello")
        await telegram.wait_for_message(11, "echo: hello", timeout=SECONDS)
        assert state.exists()
        # What people write while the hub is away is done when it is there again, once.
        assert deck.hub is not None
        os.kill(deck.hub.pid, signal.SIGKILL)
        await deck.ends()
        telegram.sim.type(11, "still there?")
        await telegram.wait_for_message(11, "The hub does not answer", timeout=SECONDS)
        await deck.serve()
        await telegram.wait_for_message(11, "echo: still there?", timeout=SECONDS)
        echoes = [one for one in telegram.sim.from_bot(11) if "echo: still" in one.shown]
        assert len(echoes) == 1
    finally:
        bot.send_signal(signal.SIGINT)
        with anyio.fail_after(SECONDS):
            assert await bot.wait() == 0
    done = await deck("telegram", code=2)
    assert "--hub is missing" in done.err
    done = await deck("telegram", "pair", "--role", "runner", code=2)
    assert "--role" in done.err
    await deck("stop")
