"""`quarterdeck schedule` and inbound webhooks, with a hub and a fake CLI."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import anyio
import httpx
import pytest

from quarterdeck.runtime.webhook_signature import headers, new_secret, read_keys
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.process]

CONFIG = """
[[schedules]]
name = "green"
every = "1d"
directory = "{work}"
prompt = "Make the tests pass."

[[schedules]]
name = "looped"
every = "1d"
directory = "{work}"
prompt = "Make the tests pass, in turns."

[schedules.loop]
phrase = "ALL DONE"
turns = 3

[[inbound]]
name = "ci"
secret_file = "ci.secret"
directory = "{work}"
prompt = "The build has failed. Find the cause and explain it."
"""
ADD = ("schedule", "add", "nightly", "Update the dependencies.", "--cron", "30 3 * * 1-5")


async def last(deck: ServedDeck, name: str) -> dict[str, object]:
    """The newest start of a schedule."""
    lines = (await deck("schedule", "history", name, "--json")).out.splitlines()
    found = json.loads(lines[0]) if lines else {}
    assert isinstance(found, dict)
    return found


async def until_last(deck: ServedDeck, name: str, state: str) -> dict[str, object]:
    with anyio.fail_after(SECONDS):
        while (found := await last(deck, name)).get("state") != state:  # noqa: ASYNC110 - another process
            await anyio.sleep(0.1)
    return found


async def sessions(deck: ServedDeck) -> int:
    return len((await deck("ps", "--json")).out.splitlines())


async def test_schedules_of_one_hub(deck: ServedDeck) -> None:
    """One hub shows it all: its scenes follow each other."""
    deck.command.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.assistant("ALL DONE"), fake.result("ALL DONE", total_cost_usd=1.25)),
        fake.Serve(),
    )
    deck.data.mkdir(mode=0o700, exist_ok=True)
    (deck.data / "quarterdeck.toml").write_text(CONFIG.format(work=deck.command.work))
    (deck.data / "ci.secret").write_text(new_secret())
    await deck.serve()
    await a_schedule_is_added_run_paused_and_removed(deck)
    await what_is_wrong_is_told(deck)
    await a_wrong_signature_starts_nothing_and_a_right_one_a_session(deck)
    await a_schedule_starts_a_loop(deck)
    await a_time_in_another_zone_starts_a_session(deck)
    await a_hub_that_is_killed_starts_nothing_twice(deck)


async def a_schedule_is_added_run_paused_and_removed(deck: ServedDeck) -> None:
    folder = str(deck.command.work)
    added = await deck(*ADD, "--timezone", "Europe/Berlin", "-C", folder)
    assert added.out.startswith("nightly: cron 30 3 * * 1-5 Europe/Berlin; next: 20")
    listed = (await deck("schedule", "list")).out
    for part in ("nightly", "green", "every 1d", "ci", "request to /in/ci", "never"):
        assert part in listed
    await deck("schedule", "run", "nightly")
    done = await until_last(deck, "nightly", "done")
    assert done["cost_usd"] == 1.25
    shown = (await deck("schedule", "history", "nightly")).out
    assert "done  $1.25" in shown
    assert str(done["session"]) in shown
    assert "paused by" in (await deck("schedule", "pause", "nightly")).out
    assert "20" in (await deck("schedule", "resume", "nightly")).out
    assert "removed" in (await deck("schedule", "rm", "nightly")).out
    assert (
        "there is no schedule 'nightly'"
        in (await deck(*["schedule", "run", "nightly"], code=1)).err
    )


async def what_is_wrong_is_told(deck: ServedDeck) -> None:
    for arguments, code, says in (
        ((*ADD, "-C", "/work", "--timezone", "Mars/Base"), 1, "timezone: there is no time zone"),
        ((*ADD[:4], "-C", "/work"), 2, "one of cron, every and at"),
        ((*ADD[:4], "-C", "/work", "--cron", "x"), 1, "cron: five fields"),
        ((*ADD,), 2, "directory: a schedule needs a directory or a project"),
        ((*ADD, "-C", "/work", "--overlap", "queue"), 2, "overlap"),
        ((*ADD, "-C", "/work", "--mode", "bypassPermissions"), 2, "mode: bypassPermissions"),
    ):
        assert says in (await deck(*arguments, code=code)).err
    refused = await deck("schedule", "rm", "green", code=1)
    assert "is in the configuration" in refused.err


async def a_wrong_signature_starts_nothing_and_a_right_one_a_session(deck: ServedDeck) -> None:
    before = await sessions(deck)
    keys = read_keys(str(deck.data / "ci.secret"))
    body = b'{"log": "it failed"}'
    wrong = headers("m1", int(time.time()), body, (b"another key of 24 bytes....",))
    right = headers("m1", int(time.time()), body, keys)
    async with httpx.AsyncClient(base_url=deck.address, timeout=SECONDS, verify=False) as client:
        assert (await client.post("/in/ci", content=body, headers=wrong)).status_code == 404
        assert (await client.post("/in/ci", content=body)).status_code == 404
        assert await last(deck, "ci") == {}
        assert await sessions(deck) == before
        taken = [await client.post("/in/ci", content=body, headers=right) for _ in range(2)]
        assert [answer.status_code for answer in taken] == [202, 202]
    done = await until_last(deck, "ci", "done")
    assert {answer.json()["id"] for answer in taken} == {done["id"]}
    assert await sessions(deck) == before + 1
    log = (await deck("log", str(done["session"]))).out
    assert "it failed" in log
    assert "<untrusted-data>" in log


async def a_schedule_starts_a_loop(deck: ServedDeck) -> None:
    await deck("schedule", "run", "looped")
    done = await until_last(deck, "looped", "done")
    assert (done["session"], done["cost_usd"]) == (None, 1.25)
    report = json.loads((await deck("loop", "show", str(done["loop"]), "--json")).out)
    assert report["reason"] == "phrase"
    assert "in turns" in json.dumps(report)


async def a_time_in_another_zone_starts_a_session(deck: ServedDeck) -> None:
    soon = datetime.now(ZoneInfo("Asia/Tokyo")) + timedelta(seconds=3)
    when = soon.replace(tzinfo=None).isoformat(timespec="seconds")
    where = ("--at", when, "--timezone", "Asia/Tokyo", "-C", str(deck.command.work))
    await deck("schedule", "add", "once", "Look at {planned}.", *where)
    done = await until_last(deck, "once", "done")
    assert done["planned"] == int(soon.timestamp()) * 1000
    assert done["cause"] == "time"
    assert f"Look at {when[:16]}+09:00." in (await deck("log", str(done["session"]))).out
    assert "never" in (await deck("schedule", "resume", "once")).out  # it has no further time


async def a_hub_that_is_killed_starts_nothing_twice(deck: ServedDeck) -> None:
    before = await sessions(deck)
    await deck("schedule", "run", "green")
    assert deck.hub is not None
    os.kill(deck.hub.pid, signal.SIGKILL)
    with anyio.fail_after(SECONDS):
        await deck.hub.wait()
    await deck.serve()
    await until_last(deck, "green", "done")
    assert await sessions(deck) == before + 1
    assert len((await deck("schedule", "history", "green", "--json")).out.splitlines()) == 1
