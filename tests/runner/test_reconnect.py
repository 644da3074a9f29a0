"""The link to the hub is cut, stalled, refused, gone for long: nothing lost, nothing doubled."""

from __future__ import annotations

import json
import random
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio
import pytest

from quarterdeck.links.websocket.dial import Redial
from quarterdeck.protocol.runner_frames import Ack, Start, Welcome, Write, frame
from quarterdeck.runner import Runner
from quarterdeck.runner.start import HIGH_WATER
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.relay import relay_to
from support.runners import QUICK, TIMES, running, small, spec_of
from support.scripted_hub import TOKEN, HubRun, ScriptedHub, scripted_hub
from support.waiting import until

pytestmark = pytest.mark.process

SCHEDULES = 50


def prompt(number: int) -> bytes:
    message = {"role": "user", "content": f"prompt {number}"}
    return json.dumps({"type": "user", "message": message}).encode()


def _again(run: HubRun, connections: int) -> bool:
    """Whether there is a newer connection."""
    return run.connections > connections and run.greeted


def results(hub: ScriptedHub, run: str) -> list[str]:
    lines = map(json.loads, hub.runs[run].said)
    return [line["result"] for line in lines if line["type"] == "result"]


@pytest.mark.no_cover  # the same branches, thousands of times
@pytest.mark.parametrize("block", range(5))
async def test_connections_cut_at_any_byte_lose_double_and_reorder_nothing(
    tmp_path: Path, block: int
) -> None:
    """RUN-5, RUN-6: each schedule is one run; what the CLI wrote is known line for line."""
    seeds = range(block * SCHEDULES // 5, (block + 1) * SCHEDULES // 5)
    async with scripted_hub() as hub, relay_to(hub.port) as relay:
        url = f"http://127.0.0.1:{relay.port}"
        async with running(tmp_path / "home", url, limits=small()):
            relay.chance = random.Random(block)
            async with anyio.create_task_group() as group:
                for seed in seeds:
                    group.start_soon(_talk, hub, seed, tmp_path)
            cuts, relay.chance = relay.cuts, None
            for seed in seeds:
                await _check(hub, seed, tmp_path)
            hub.check()
        assert cuts >= 2 * len(seeds)


def _prompts(seed: int) -> list[bytes]:
    return [prompt(number) for number in range(random.Random(seed).randint(1, 5))]


async def _talk(hub: ScriptedHub, seed: int, folder: Path) -> None:
    """Start a run and converse with it while connections are cut."""
    chance = random.Random(-seed)
    name, prompts = f"seed-{seed}", _prompts(seed)
    said = [fake.Stream(300), fake.say(fake.assistant("y" * 300), times=100)]
    await hub.start(name, spec_of(folder / name, [*said, fake.Serve()], folder / f"read-{seed}"))
    for line in prompts:
        await hub.write(name, line)
        await anyio.sleep(chance.random() * 0.03)
    run = hub.runs[name]
    await hub.until(lambda: run.written and run.written[-1] == len(prompts))
    await hub.until(lambda: run.upto >= 400 + 3 * len(prompts))


async def _check(hub: ScriptedHub, seed: int, folder: Path) -> None:
    """End it, and compare what the hub got and the CLI read with what was said."""
    name, prompts = f"seed-{seed}", _prompts(seed)
    run = hub.runs[name]
    await hub.stop(name)
    ended = await hub.ended(name)
    assert ended.clean, (seed, ended)
    assert list(run.lines) == list(range(1, ended.number)), seed
    assert (folder / f"read-{seed}").read_bytes().splitlines()[1:] == prompts, seed
    assert results(hub, name) == [f"echo: prompt {n}" for n in range(len(prompts))], seed
    uuids = [json.loads(line)["uuid"] for line in run.said[:400]]
    assert uuids == sorted(set(uuids)), seed
    assert run.gaps == [], seed


async def test_what_the_hub_has_is_not_sent_again(tmp_path: Path) -> None:
    """RUN-5"""
    script = [fake.say(fake.assistant("x"), times=100), fake.Serve()]
    async with scripted_hub() as hub, relay_to(hub.port) as relay:
        url = f"http://127.0.0.1:{relay.port}"
        async with running(tmp_path / "home", url):
            await hub.start("one", spec_of(tmp_path, script))
            run = hub.runs["one"]
            await hub.until(lambda: run.upto == 100)
            frames = run.frames
            for _ in range(5):
                again = partial(_again, run, run.connections)
                relay.cut()
                await hub.until(again)
            assert run.frames == frames
            assert run.started[0] == run.started[-1]
            await hub.stop("one")
            assert (await hub.ended("one")).number == 101
            hub.check()


async def test_an_agent_works_on_while_the_hub_is_gone_and_the_next_hub_gets_it_all(
    tmp_path: Path,
) -> None:
    """RUN-5, MACHINE-2: a hub that is gone takes nothing with it."""
    words = fake.say(fake.assistant("after"), times=50)
    script = [fake.Expect("user"), fake.Wait(0.3), words, fake.Serve()]
    async with AsyncExitStack() as serving:
        hub = await serving.enter_async_context(scripted_hub())
        async with running(tmp_path / "home", hub.url) as runner:
            await hub.start("one", spec_of(tmp_path, script))
            await hub.write("one", prompt(1))
            await hub.until(lambda: hub.runs["one"].written[-1:] == [1])
            await serving.aclose()
            with anyio.fail_after(SECONDS):
                await until(lambda: runner.runs["one"].spool.last == 50)
            assert hub.runs["one"].upto == 0
            await serving.enter_async_context(scripted_hub(hub))
            await hub.until(lambda: hub.runs["one"].upto == 50)
            (report,) = hub.hellos[-1].runs
            assert (report.run, report.session, report.said) == ("one", "s-one", 50)
            assert (report.written, report.ended) == (1, False)
            await hub.stop("one")
            assert (await hub.ended("one")).clean
            hub.check()


async def test_a_run_that_ends_while_the_hub_is_gone_is_told_to_the_next(tmp_path: Path) -> None:
    """RUN-10, MACHINE-2"""
    script = [fake.Expect("user"), fake.Wait(0.2), fake.say(fake.result()), fake.Exit(5)]
    async with AsyncExitStack() as serving:
        hub = await serving.enter_async_context(scripted_hub())
        async with running(tmp_path / "home", hub.url) as runner:
            await hub.start("one", spec_of(tmp_path, script))
            await hub.write("one", prompt(1))
            await hub.until(lambda: hub.runs["one"].written[-1:] == [1])
            await serving.aclose()
            with anyio.fail_after(SECONDS):
                await until(lambda: not runner.runs["one"].live)
            await serving.enter_async_context(scripted_hub(hub))
            assert (await hub.ended("one")).exit_code == 5
            (report,) = hub.hellos[-1].runs
            assert (report.said, report.ended) == (2, True)
            await hub.until(lambda: not runner.runs)
            hub.check()


async def test_a_flood_while_the_hub_is_away_is_kept_in_bounded_memory(tmp_path: Path) -> None:
    """SPOOL-1, SPOOL-2, SPOOL-3: durable lines all come; deltas leave gaps that are told."""
    count = 400
    script: list[fake.Step] = [fake.Expect("user")]
    for _ in range(10):
        script += [fake.Stream(2_000), fake.say(fake.assistant("kept"), times=count // 10)]
    limits = small(memory=64 * 1024, disk=512 * 1024, segment=32 * 1024)
    async with AsyncExitStack() as serving:
        hub = await serving.enter_async_context(scripted_hub())
        async with running(tmp_path / "home", hub.url, limits=limits) as runner:
            await hub.start("one", spec_of(tmp_path, [*script, fake.Serve()]))
            await hub.write("one", prompt(1))
            await hub.until(lambda: hub.runs["one"].written[-1:] == [1])
            spool = runner.runs["one"].spool
            await serving.aclose()
            most_memory = most_disk = 0
            with anyio.fail_after(SECONDS):
                while spool.last < 20_000 + count:
                    most_memory = max(most_memory, spool.held)
                    most_disk = max(most_disk, spool.size)
                    await anyio.sleep(0.002)
            assert most_memory <= 64 * 1024 + 8 * 32 * 1024
            assert most_disk <= 512 * 1024 + 2 * HIGH_WATER
            assert spool.size <= 512 * 1024
            files = (tmp_path / "home/spool/one").glob("*.log")
            assert sum(file.stat().st_size for file in files) == spool.size
            await serving.enter_async_context(scripted_hub(hub))
            run = hub.runs["one"]
            await hub.until(lambda: run.upto == 20_000 + count)
            await hub.stop("one")
            await hub.ended("one")
        kept = [json.loads(line)["type"] for line in run.said]
        assert kept.count("assistant") == count
        assert 0 < kept.count("stream_event") < 20_000
        assert run.gaps
        hub.check()


async def test_durable_lines_beyond_the_bound_make_the_cli_wait(tmp_path: Path) -> None:
    """SPOOL-4"""
    lines = 5_000
    script = [fake.Expect("user"), fake.say(fake.assistant("z" * 1_000), times=lines), fake.Serve()]
    async with AsyncExitStack() as serving:
        hub = await serving.enter_async_context(scripted_hub())
        limits = small(disk=256 * 1024)
        async with running(tmp_path / "home", hub.url, limits=limits) as runner:
            await hub.start("one", spec_of(tmp_path, script))
            await hub.write("one", prompt(1))
            await hub.until(lambda: hub.runs["one"].written[-1:] == [1])
            spool = runner.runs["one"].spool
            await serving.aclose()
            with anyio.fail_after(SECONDS):
                await until(lambda: spool.full)
            said = spool.last
            await anyio.sleep(0.3)  # long enough for all of it, did nobody hold it back
            assert spool.last == said < lines
            assert spool.size < 256 * 1024 + 2 * HIGH_WATER
            await serving.enter_async_context(scripted_hub(hub))
            await hub.until(lambda: hub.runs["one"].upto == lines)
            await hub.stop("one")
            assert (await hub.ended("one")).number == lines + 1
            assert hub.runs["one"].gaps == []
            hub.check()


async def test_a_hub_that_vanishes_without_a_word_is_noticed(tmp_path: Path) -> None:
    """LINK-3: pings"""
    async with scripted_hub() as hub, relay_to(hub.port) as relay:
        url = f"http://127.0.0.1:{relay.port}"
        redial = Redial(base=0.02, cap=0.1, attempt=0.5, ping=0.2)
        async with running(tmp_path / "home", url, redial=redial):
            await hub.start("one", spec_of(tmp_path, [fake.Serve()]))
            await hub.started("one")
            run = hub.runs["one"]
            again = partial(_again, run, run.connections)
            relay.stall()
            with anyio.fail_after(SECONDS):
                await until(lambda: relay.connections > 4)
            relay.flow()
            await hub.until(again)
            await hub.write("one", prompt(1))
            await hub.until(lambda: run.upto == 3)
            await hub.stop("one")
            await hub.ended("one")
            hub.check()


GARBAGE: list[bytes | str] = [
    b"",
    b"\x00\xff\xfe",
    b"{",
    b"[]",
    b'{"t":"no such thing"}',
    b'{"t":"have","upto":"many"}',
    b'{"t":"write","number":1}',
    b'{"t":"write","number":1}\n\n',
    b'{"t":"write","number":1}\n{"a":1}\n{"b":2}',
    b'{"t":"have","upto":-1}',
    frame(Ack(upto=99)),
    frame(Welcome(hub="x", protocol=1)),
    '{"t":"have","upto":0}',
]


async def test_garbage_on_a_runs_socket_drops_that_connection_with_a_reason(
    tmp_path: Path,
) -> None:
    """LINK-4"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        for name in ("one", "other"):
            await hub.start(name, spec_of(tmp_path / name, [fake.Serve()]))
            await hub.started(name)
        run = hub.runs["one"]
        for garbage in GARBAGE:
            await hub.until(lambda: run.greeted)
            hub.closes.clear()
            again = partial(_again, run, run.connections)
            assert run.socket is not None
            await run.socket.send(garbage)
            await hub.until(again)
            ((code, why),) = hub.closes
            assert code == 1002, garbage
            assert why, garbage
        await hub.until(lambda: run.greeted)
        await hub.write("one", prompt(1))
        await hub.until(lambda: run.upto == 3)
        assert hub.runs["other"].connections == 1
        assert len(hub.hellos) == 1
        for name in ("one", "other"):
            await hub.stop(name)
            assert (await hub.ended(name)).clean
        hub.check()


async def test_garbage_on_the_machines_socket_drops_it_and_disturbs_no_run(tmp_path: Path) -> None:
    """LINK-4"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec_of(tmp_path, [fake.Serve()]))
        await hub.started("one")
        for garbage in (b"", b"{", b'{"t":"start"}', frame(Write(number=1), [b"x"]), "text"):
            await hub.met()
            hub.hellos.clear()
            assert hub.machine is not None
            hub.closes.clear()
            await hub.machine.send(garbage)
            await hub.until(lambda: hub.hellos)
            ((code, why),) = hub.closes
            assert code == 1002, garbage
            assert why, garbage
        assert hub.runs["one"].connections == 1
        await hub.stop("one")
        assert (await hub.ended("one")).clean


async def test_a_hub_of_another_protocol_is_not_served(tmp_path: Path) -> None:
    """LINK-2"""
    async with scripted_hub() as hub:
        hub.welcome = Welcome(hub="new", protocol=2)
        async with running(tmp_path / "home", hub.url):
            await hub.until(lambda: hub.closes)
            code, why = hub.closes[0]
            assert code == 1002
            assert "protocol 2" in why
            hub.welcome = Welcome(hub="old", protocol=1)
            await hub.met()


async def test_a_start_from_a_newer_hub_is_refused_and_not_garbage(tmp_path: Path) -> None:
    """MACHINE-5"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        start = Start(run="new", session="s", spec=spec_of(tmp_path, [fake.Exit(0)]))
        data = frame(start).replace(b'"directory"', b'"from_the_future":1,"directory"')
        await hub.met()
        assert hub.machine is not None
        await hub.machine.send(data)
        assert "from_the_future" in await hub.refusal("new")
        assert len(hub.hellos) == 1


async def test_a_wrong_token_is_tried_again_from_its_file(tmp_path: Path) -> None:
    """LINK-1"""
    file = tmp_path / "token"
    file.write_text("an-old-token\n")
    async with scripted_hub() as hub:
        runner = Runner(tmp_path / "home", hub.url, file, redial=QUICK, times=TIMES)
        async with anyio.create_task_group() as group:
            group.start_soon(runner.run)
            await hub.until(lambda: hub.strangers > 1)
            assert not hub.hellos
            file.write_text(f"{TOKEN}\n")
            await hub.met()
            runner.stop()
