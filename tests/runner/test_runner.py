"""The runner itself: what it takes on, what it refuses, and when it ends."""

from __future__ import annotations

import json
import os
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace as replaced

from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.protocol.runner_frames import Ended, Forget
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runner import Bounds, Limits, Runner, live_runner
from quarterdeck.runner.home import Home, RunRecord
from quarterdeck.runner.machine import memory_available
from quarterdeck.runner.spool import Spool
from quarterdeck.runner.start import Process, start_process
from quarterdeck.runtime.processes import with_variable
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.processes import running as is_running
from support.runners import QUICK, TIMES, running, spec_of
from support.scripted_hub import TOKEN, scripted_hub

pytestmark = pytest.mark.process


async def test_the_hello_says_who_it_is_and_vitals_follow(tmp_path: Path) -> None:
    """MACHINE-1, MACHINE-7, MACHINE-13"""
    before = time.time()
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url, memory=12345) as runner:
        hello = await hub.met()
        assert (hello.machine, hello.protocol, hello.runs) == ("a-machine", 1, ())
        assert hello.closed
        assert hello.worktrees.startswith(hello.closed[0])
        await hub.until(lambda: len(hub.vitals) >= 2)
        assert hub.vitals[0].runs == 0
        assert hub.vitals[0].memory_available == 12345
        state = live_runner(tmp_path / "home")
        assert state is not None
        assert (state.machine, state.runner, state.pid) == ("a-machine", hello.runner, hello.pid)
        assert state.hub_url == hub.url.replace("http", "ws")
        assert before <= state.started <= time.time()
        assert runner.runs == {}
    assert live_runner(tmp_path / "home") is None
    assert not (tmp_path / "home/runner.json").exists()


async def test_the_same_start_twice_is_one_process(tmp_path: Path) -> None:
    """MACHINE-3"""
    spec = spec_of(tmp_path, [fake.Serve()], tmp_path / "record")
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        for _ in range(3):
            await hub.start("one", spec)
        started = await hub.started("one")
        await hub.start("one", spec)
        await hub.until(lambda: len(hub.vitals) > 2)
        assert {each.pid for each in hub.runs["one"].started} == {started.pid}
        await hub.stop("one")
        await hub.ended("one")
        assert len((tmp_path / "record").read_text().splitlines()) == 1


async def test_a_run_that_is_over_is_not_started_again(tmp_path: Path) -> None:
    """MACHINE-3"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url) as runner:
        spec = spec_of(tmp_path, [fake.Exit(0)])
        await hub.start("one", spec)
        await hub.ended("one")
        await hub.until(lambda: not runner.runs)
        await hub.start("one", spec)
        assert "ended already" in await hub.refusal("one")


async def test_more_runs_than_the_limit_are_refused_until_one_ends(tmp_path: Path) -> None:
    """MACHINE-4"""
    limits = Limits(runs=2)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url, limits=limits):
        for name in ("one", "two", "three"):
            await hub.start(name, spec_of(tmp_path, [fake.Serve()]))
        assert "at most 2 agents" in await hub.refusal("three")
        await hub.started("one")
        await hub.stop("one")
        await hub.ended("one")
        await hub.start("four", spec_of(tmp_path, [fake.Serve()]))
        await hub.started("four")
        # The hub has ended the one that was refused: a start that it sent before is too late.
        del hub.refused["three"]
        await hub.stop("four")
        await hub.ended("four")
        await hub.start("three", spec_of(tmp_path, [fake.Serve()]))
        assert "at most 2 agents" in await hub.refusal("three")


async def test_no_cli_is_started_when_memory_is_short(tmp_path: Path) -> None:
    """MACHINE-4"""
    limits = Limits(memory_floor=100 << 20)
    async with (
        scripted_hub() as hub,
        running(tmp_path / "home", hub.url, limits=limits, memory=99 << 20),
    ):
        await hub.start("one", spec_of(tmp_path, [fake.Serve()]))
        assert "99 MiB available, 100 MiB required" in await hub.refusal("one")
        assert not hub.runs["one"].started


def test_the_memory_that_is_left_is_read_from_the_kernel(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  100 kB\nMemFree:  10 kB\nMemAvailable:   42 kB\n")
    assert memory_available(meminfo) == 42 * 1024
    assert memory_available(tmp_path / "none") is None
    meminfo.write_text("MemTotal:  100 kB\n")
    assert memory_available(meminfo) is None


async def test_what_cannot_be_started_is_refused_with_a_reason(tmp_path: Path) -> None:
    """MACHINE-4: and nothing is left of it"""
    good = spec_of(tmp_path, [fake.Serve()])
    cases = {
        "no-folder": (replaced(good, directory="/no/such/folder"), "not a folder"),
        "a-file": (replaced(good, directory=str(tmp_path / "package.json")), "not a folder"),
        "no-cli": (replaced(good, claude="/no/such/claude"), "no such file"),
        "no-model": (replaced(good, model="--a-flag"), "model"),
        "bypass": (replaced(good, mode="bypassPermissions"), "skip_permissions"),
        "no-repository": (replaced(good, worktree="branch"), "not a git repository"),
        "env": (replaced(good, env={"A=B": "c"}), "A=B"),
        "../../escape": (good, "not a valid run id"),
        "": (good, "not a valid run id"),
    }
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url) as runner:
        for run, (spec, words) in cases.items():
            await hub.start(run, spec)
            assert words in await hub.refusal(run), run
        assert runner.runs == {}
        assert list((tmp_path / "home/spool").iterdir()) == []
        assert len(hub.hellos) == 1


async def test_a_program_that_cannot_run_is_refused(tmp_path: Path) -> None:
    """MACHINE-4"""
    broken = tmp_path / "claude"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", SessionSpec(directory=str(tmp_path), claude=str(broken)))
        assert "its interpreter is missing" in await hub.refusal("one")
        assert list((tmp_path / "home/spool").iterdir()) == []


async def test_a_refusal_that_nobody_heard_is_said_again_to_a_start_that_comes_again(
    tmp_path: Path,
) -> None:
    """MACHINE-4"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        spec = spec_of(tmp_path, [fake.Serve()])
        for _ in range(2):
            hub.refused.clear()
            await hub.start("one", replaced(spec, directory="/no/such/folder"))
            await hub.refusal("one")


async def test_two_runners_do_not_share_a_home(tmp_path: Path) -> None:
    """HOME-1"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.met()
        second = Runner(tmp_path / "home", hub.url, TOKEN)
        with pytest.raises(Conflict, match="another runner uses"):
            await second.run()
        assert live_runner(tmp_path / "home") is not None


async def test_a_runner_of_no_use_ends_by_itself(tmp_path: Path) -> None:
    """MACHINE-8"""
    times = replaced(TIMES, idle=0.2)
    runner = Runner(tmp_path / "home", "http://127.0.0.1:9", TOKEN, times=times, redial=QUICK)
    with anyio.fail_after(SECONDS):
        await runner.run()


async def test_a_runner_with_a_run_stays_without_a_hub_and_then_ends(tmp_path: Path) -> None:
    """MACHINE-8"""
    times = replaced(TIMES, idle=0.2)
    async with AsyncExitStack() as serving:
        hub = await serving.enter_async_context(scripted_hub())
        runner = Runner(tmp_path / "home", hub.url, TOKEN, times=times, redial=QUICK)
        async with anyio.create_task_group() as group:
            group.start_soon(runner.run)
            await hub.start("one", spec_of(tmp_path, [fake.Wait(1.0), fake.say(fake.result())]))
            await hub.started("one")
            await serving.aclose()
            await anyio.sleep(0.6)
            assert not runner.ended.is_set()
            with anyio.fail_after(SECONDS):
                await runner.ended.wait()
        # What it said is there for the next runner and the next hub.
        await serving.enter_async_context(scripted_hub(hub))
        async with running(tmp_path / "home", hub.url):
            assert (await hub.ended("one")).exit_code == 0
            assert [json.loads(line)["type"] for line in hub.runs["one"].said] == ["result"]
            hub.check()


async def test_a_runner_that_is_stopped_ends_its_runs_and_tells_their_ends(tmp_path: Path) -> None:
    """MACHINE-9"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url) as runner:
        names = ("one", "two", "three")
        for name in names:
            await hub.start(name, spec_of(tmp_path, [fake.Serve()]))
        pids = [(await hub.started(name)).pid for name in names]
        runner.stop()
        for name in names:
            assert (await hub.ended(name)).clean
        with anyio.fail_after(SECONDS):
            await runner.ended.wait()
        assert not any(map(is_running, pids))
        assert list((tmp_path / "home/spool").iterdir()) == []


async def test_a_second_stop_is_in_a_hurry(tmp_path: Path) -> None:
    """MACHINE-9"""
    stubborn = [fake.IgnoreTerm(), fake.say(fake.result()), fake.Hang()]
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url) as runner:
        await hub.start("one", spec_of(tmp_path, stubborn))
        await hub.until(lambda: hub.runs["one"].lines)
        before = anyio.current_time()
        runner.stop()
        runner.stop()
        with anyio.fail_after(SECONDS):
            await runner.ended.wait()
        assert anyio.current_time() - before < 2
    assert not is_running(hub.runs["one"].started[0].pid)


async def test_a_cancelled_runner_leaves_no_process(tmp_path: Path) -> None:
    """MACHINE-9"""
    async with scripted_hub() as hub:
        runner = Runner(tmp_path / "home", hub.url, TOKEN, times=TIMES, redial=QUICK)
        async with anyio.create_task_group() as group:
            group.start_soon(runner.run)
            await hub.start("one", spec_of(tmp_path, [fake.Serve()]))
            pid = (await hub.started("one")).pid
            group.cancel_scope.cancel()
    assert not is_running(pid)


async def test_a_stop_that_comes_before_the_start_is_done_refuses_it(tmp_path: Path) -> None:
    """MACHINE-6"""
    slow = tmp_path / "slow.sh"
    slow.write_text("#!/bin/sh\nsleep 0.5\necho 2.1.325\n")
    slow.chmod(0o755)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", SessionSpec(directory=str(tmp_path), claude=str(slow)))
        await hub.stop("one")
        assert "stopped before" in await hub.refusal("one")


@pytest.mark.parametrize("forget", [False, True])
async def test_a_stop_that_comes_when_the_process_is_just_there_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: bool
) -> None:
    """MACHINE-6"""
    there, go_on = anyio.Event(), anyio.Event()

    async def late(*given: Any) -> Process:
        process = await start_process(*given)
        there.set()
        await go_on.wait()
        return process

    monkeypatch.setattr("quarterdeck.runner.runner.start_process", late)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url) as runner:
        await hub.start("one", spec_of(tmp_path, [fake.Serve()]))
        with anyio.fail_after(SECONDS):
            await there.wait()
        await hub.stop("one")
        if forget:
            await hub.say(Forget(run="one"))
        await hub.until(lambda: "one" in runner._unwanted and (not forget or runner._unneeded))
        go_on.set()
        await hub.until(lambda: not runner._starting)
        if not forget:
            await hub.ended("one")
        await hub.until(lambda: not runner.runs)


async def test_runs_that_nobody_came_for_are_deleted_in_the_end(tmp_path: Path) -> None:
    """SPOOL-5: by age, and beyond a size the oldest first"""
    home = Home(tmp_path / "home")
    now = time.time()
    for index, age in enumerate((100.0, 30.0, 20.0, 10.0)):
        record = RunRecord(run=f"run-{index}", session="s", mark="NO_SUCH_MARK", directory="/")
        spool = Spool.create(home.folder_of(record.run), Bounds())
        spool.add([b"x" * 1000])
        spool.end(Ended(number=2, reason="It ended."))
        home.write_record(record)
        touch(home.folder_of(record.run), now - age)
    times = replaced(TIMES, idle=0.4, kept_ended=60.0)
    limits = Limits(kept_ended=2_500)
    runner = Runner(
        tmp_path / "home", "http://127.0.0.1:9", TOKEN, times=times, limits=limits, redial=QUICK
    )
    with anyio.fail_after(SECONDS):
        await runner.run()
    assert sorted(path.name for path in home.spool.iterdir()) == ["run-2", "run-3"]


async def test_a_damaged_folder_of_a_run_does_not_keep_a_runner_from_its_work(
    tmp_path: Path,
) -> None:
    """HOME-2"""
    spool = tmp_path / "home/spool"
    (spool / "empty").mkdir(parents=True)
    (spool / "torn").mkdir()
    (spool / "torn/run.json").write_text('{"run": "to')
    (spool / "lies").mkdir()
    (spool / "lies/run.json").write_text('{"run":"x","session":"s","mark":"M","directory":"/"}')
    (spool / "odd").mkdir()
    (spool / "odd/run.json").write_text('{"run":"odd","session":"s","mark":"M","directory":"/"}')
    (spool / "odd/00000001.log").write_bytes(b"E\0\0\0\0\0\0\0\x01\0\0\0\x02no")
    (spool / "a-file").write_text("")
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec_of(tmp_path, [fake.Exit(0)]))
        await hub.ended("one")


async def test_every_process_of_a_run_carries_a_mark_of_its_own(tmp_path: Path) -> None:
    """HOME-3"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec_of(tmp_path, [fake.Serve()]))
        pid = (await hub.started("one")).pid
        record = msgspec.json.decode(
            (tmp_path / "home/spool/one/run.json").read_bytes(), type=RunRecord
        )
        assert record.pid == pid
        assert {process.pid for process in with_variable(record.mark)} == {pid}


@pytest.mark.parametrize("url", ["", "127.0.0.1:1", "ftp://x", "http://", "http://u:p@host"])
def test_an_address_that_is_none_is_refused_at_once(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="hub: "):
        Runner(tmp_path, url, TOKEN)


def touch(folder: Path, when: float) -> None:
    for path in folder.iterdir():
        os.utime(path, (when, when))
