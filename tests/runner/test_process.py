"""The runner as a process: detached, killed, stopped, and followed by another."""

from __future__ import annotations

import os
import signal
import stat
import sys
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from quarterdeck.domain.errors import LaunchError
from quarterdeck.runner import live_runner, spawn_runner
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.processes import Processes
from support.processes import running as is_running
from support.runners import running, spec_of
from support.scripted_hub import TOKEN, ScriptedHub, scripted_hub
from support.waiting import until


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


async def spawn(processes: Processes, home: Path, hub: ScriptedHub, token_file: Path) -> int:
    start = partial(spawn_runner, home, hub.url, token_file, machine="detached")
    return processes.started(await anyio.to_thread.run_sync(start))


async def gone(*pids: int) -> None:
    with anyio.fail_after(SECONDS):
        await until(lambda: not any(map(is_running, pids)))


async def test_a_detached_runner_is_nobodys_child_and_has_a_session_of_its_own(
    tmp_path: Path, processes: Processes, token_file: Path
) -> None:
    """HOME-4"""
    home = tmp_path / "home"
    async with scripted_hub() as hub:
        pid = await spawn(processes, home, hub, token_file)
        hello = await hub.met()
        assert (hello.pid, hello.machine) == (pid, "detached")
        assert os.getsid(pid) == pid
        assert os.getsid(pid) != os.getsid(0)
        assert await spawn(processes, home, hub, token_file) == pid
        assert len(hub.hellos) == 1
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        os.kill(pid, signal.SIGHUP)
        os.kill(pid, signal.SIGTERM)
        await gone(pid)
        assert live_runner(home) is None
        assert TOKEN not in (home / "runner.log").read_text()


async def test_a_killed_runner_leaves_nothing_after_the_next_start(
    tmp_path: Path, processes: Processes, token_file: Path
) -> None:
    """HOME-3, RUN-13: no process, and no line that was said."""
    home = tmp_path / "home"
    pid_file = tmp_path / "child.pid"
    words = fake.say(fake.assistant("kept"), times=40)
    script = [
        fake.IgnoreTerm(),
        fake.SpawnChild(str(pid_file)),
        fake.say(fake.result()),
        fake.Expect("user"),
        words,
        fake.Hang(),
    ]
    async with scripted_hub() as hub:
        runner = await spawn(processes, home, hub, token_file)
        await hub.start("one", spec_of(tmp_path, script))
        cli = processes.started((await hub.started("one")).pid)
        await hub.until(lambda: hub.runs["one"].upto == 1)
        child = processes.started(int(pid_file.read_text()))
        hub.acknowledging = False
        await hub.write("one", b'{"type":"user","message":{"role":"user","content":"x"}}')
        await hub.until(lambda: hub.runs["one"].upto == 41)
        os.kill(runner, signal.SIGKILL)
        await gone(runner)
        assert is_running(child)
        # The hub was killed as well, before it had committed.
        run = hub.runs["one"]
        run.upto = 1
        run.lines = {1: run.lines[1]}
        hub.acknowledging = True
        await hub.until(lambda: hub.machine is None)
        second = await spawn(processes, home, hub, token_file)
        ended = await hub.ended("one")
        assert "runner was killed" in ended.reason
        assert ended.number == 42
        assert len(run.lines) == 41
        (report,) = hub.hellos[-1].runs
        assert (report.said, report.written, report.ended) == (41, 1, True)
        assert not is_running(cli)
        assert not is_running(child)
        os.kill(second, signal.SIGTERM)
        await gone(second)
        assert list((home / "spool").iterdir()) == []
        hub.check()


async def test_the_next_runner_ends_no_process_but_those_of_its_home(
    tmp_path: Path, processes: Processes, token_file: Path
) -> None:
    """HOME-3"""
    async with scripted_hub() as hub, scripted_hub() as other_hub:
        runner = await spawn(processes, tmp_path / "one", hub, token_file)
        await hub.start("same", spec_of(tmp_path, [fake.Serve()]))
        cli = processes.started((await hub.started("same")).pid)
        async with running(tmp_path / "other", other_hub.url):
            await other_hub.start("same", spec_of(tmp_path, [fake.Serve()]))
            other = (await other_hub.started("same")).pid
            os.kill(runner, signal.SIGKILL)
            await gone(runner)
            second = await spawn(processes, tmp_path / "one", hub, token_file)
            await hub.ended("same")
            assert not is_running(cli)
            assert is_running(other)
            os.kill(second, signal.SIGTERM)
            await gone(second)


async def test_a_stopped_runner_ends_its_runs_in_order(
    tmp_path: Path, processes: Processes, token_file: Path
) -> None:
    """MACHINE-9"""
    async with scripted_hub() as hub:
        runner = await spawn(processes, tmp_path / "home", hub, token_file)
        await hub.start("one", spec_of(tmp_path, [fake.Serve()]))
        cli = processes.started((await hub.started("one")).pid)
        os.kill(runner, signal.SIGINT)
        assert (await hub.ended("one")).clean
        await gone(runner, cli)


async def test_agents_outlive_the_hub_that_started_them(
    tmp_path: Path, processes: Processes, token_file: Path
) -> None:
    """HOME-4, MACHINE-2"""
    async with scripted_hub() as first:
        runner = await spawn(processes, tmp_path / "home", first, token_file)
        await first.start("one", spec_of(tmp_path, [fake.Serve()]))
        cli = processes.started((await first.started("one")).pid)
    assert is_running(runner)
    second = ScriptedHub()
    second.port = first.port
    async with scripted_hub(second) as hub:
        hello = await hub.met()
        assert [report.run for report in hello.runs] == ["one"]
        assert (await hub.started("one")).pid == cli
        os.kill(runner, signal.SIGTERM)
        await hub.ended("one")
        await gone(runner)


@pytest.mark.process
def test_a_runner_that_cannot_start_says_why(tmp_path: Path, token_file: Path) -> None:
    """HOME-4"""
    with pytest.raises(LaunchError, match="is not the address of a hub"):
        spawn_runner(tmp_path / "home", "ftp://nowhere", token_file)


@pytest.mark.process
async def test_a_runner_in_the_foreground_ends_by_itself(tmp_path: Path, token_file: Path) -> None:
    """MACHINE-8"""
    home = tmp_path / "home"
    command = [sys.executable, "-m", "quarterdeck.runner", "--home", str(home), "--idle", "0.1"]
    command += ["--hub", "http://127.0.0.1:9", "--token-file", str(token_file)]
    with anyio.fail_after(SECONDS):
        done = await anyio.run_process(command, check=False)
    assert done.returncode == 0
    assert b"no run and no hub" in done.stderr
    assert "no run and no hub" in (home / "runner.log").read_text()
