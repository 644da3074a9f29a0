"""A start in a sandbox: its launcher waits meanwhile, and is gone whatever happens to the start."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from quarterdeck.domain.errors import LaunchError, LinkClosed
from quarterdeck.protocol.runner_frames import Start
from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runner import Limits, start
from quarterdeck.runner.home import Home
from quarterdeck.runner.sandbox import OwnPaths
from quarterdeck.runner.start import Process, start_process
from quarterdeck.sandbox import Kind, Probe
from quarterdeck.testing import fake
from quarterdeck.worktrees.worktrees import Worktrees
from support.bounds import SECONDS
from support.boxes import KINDS, require
from support.processes import offspring, running
from support.runners import TIMES, spec_of

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc is read"),
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.value)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """A kind that works here, as if it were the only one."""
    wanted: Kind = request.param
    require(wanted)
    monkeypatch.setattr("quarterdeck.sandbox.choose", lambda spec=None: wanted)
    return wanted


def ran(folder: Path) -> Path:
    """A file that the CLI of `session` makes in its folder."""
    return folder / "work" / "ran"


def session(folder: Path) -> SessionSpec:
    """A session whose CLI leaves a trace that it ran."""
    spec = spec_of(folder / "work", [fake.say(fake.result()), fake.Exit(3)])
    assert spec.claude is not None
    cli = Path(spec.claude)
    cli.write_text(cli.read_text().replace("exec ", f"echo ran > {ran(folder)}\nexec ", 1))
    ran(folder).touch()  # Landlock makes nothing new in the top folder of a project
    return spec


def placed(spec: SessionSpec) -> set[str]:
    """What is in the project, but for the home folder of the CLI."""
    return {path.name for path in Path(spec.directory).iterdir()} - {".home"}


async def begin(
    folder: Path,
    spec: SessionSpec,
    request: SandboxRequest | None,
    wanted: Callable[[], bool] = lambda: True,
) -> Process:
    """Start it as a runner does."""
    home = Home(folder / "home")
    home.spool.mkdir(parents=True, exist_ok=True)
    worktrees = Worktrees(home.worktrees, TIMES.git)
    asked = Start(run="one", session="s", spec=spec, sandbox=request)
    return await start_process(asked, home, worktrees, Limits(), TIMES, OwnPaths(), wanted)


async def end_of(process: Process) -> LinkClosed:
    """Wait for the end of the CLI, and clean up."""
    assert process.link is not None
    try:
        with anyio.fail_after(SECONDS):
            while True:
                await process.link.receive()
    except LinkClosed as closed:
        return closed
    finally:
        await process.link.close()
        process.release()


def waiting() -> list[int]:
    """The launchers that this process has started, and that wait."""

    def command(pid: int) -> bytes:
        return Path(f"/proc/{pid}/cmdline").read_bytes()

    return [each.pid for each in offspring() if command(each.pid).endswith(b"\0-\0")]


async def test_a_launcher_waits_with_the_mark_of_the_run_and_becomes_the_cli(
    tmp_path: Path, kind: Kind
) -> None:
    seen: list[tuple[int, bytes]] = []

    def wanted() -> bool:
        seen.extend((pid, Path(f"/proc/{pid}/environ").read_bytes()) for pid in waiting())
        return True

    process = await begin(tmp_path, session(tmp_path), SandboxRequest(), wanted)
    (record,) = Home(tmp_path / "home").leftover_runs()
    closed = await end_of(process)
    assert closed.exit_code == 3
    assert ran(tmp_path).read_text() == "ran\n"
    ((pid, environment),) = seen
    assert pid == process.started.pid == record.pid
    # So the next runner finds it, whenever this one is killed.
    assert f"{record.mark}=1".encode() in environment.split(b"\0")
    report = process.started.sandbox
    assert report is not None
    assert report.state.kind == kind.value


async def test_a_start_that_is_no_longer_wanted_leaves_nothing(tmp_path: Path, kind: Kind) -> None:
    seen: list[int] = []

    def wanted() -> bool:
        seen.extend(waiting())
        return False

    spec = session(tmp_path)
    before = placed(spec)
    with pytest.raises(LaunchError, match="stopped before it started"):
        await begin(tmp_path, spec, SandboxRequest(), wanted)
    assert len(seen) == 1
    assert not any(map(running, seen))
    assert ran(tmp_path).read_text() == ""
    assert placed(spec) == before
    assert not Home(tmp_path / "home").leftover_runs()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_if_the_launcher_is_killed_no_cli_runs_without_a_sandbox(
    tmp_path: Path, kind: Kind, number: signal.Signals
) -> None:
    def wanted() -> bool:
        (pid,) = waiting()
        os.kill(pid, number)
        return True

    refused = ""
    try:
        process = await begin(tmp_path, session(tmp_path), SandboxRequest(), wanted)
    except LaunchError as error:  # its end was noticed before the order was sent
        refused = str(error)
    else:
        assert (await end_of(process)).signal == number
    assert not refused or "the sandbox could not be made" in refused
    assert ran(tmp_path).read_text() == ""


async def test_a_start_that_is_cancelled_or_fails_leaves_no_launcher(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = session(tmp_path)
    with pytest.raises(LaunchError, match="is not a folder"):
        await begin(tmp_path, replace(spec, directory=f"{tmp_path}/gone"), SandboxRequest())
    assert not waiting()

    async def prepare(*_: object, **__: object) -> None:
        assert len(waiting()) == 1
        scope.cancel()
        await anyio.sleep_forever()

    monkeypatch.setattr(start, "prepare", prepare)
    with anyio.CancelScope() as scope:
        await begin(tmp_path, spec, SandboxRequest())
    assert scope.cancelled_caught
    assert not waiting()


async def test_what_is_too_long_to_be_started_is_refused(tmp_path: Path, kind: Kind) -> None:
    spec = session(tmp_path)
    spec = replace(spec, env={**spec.env, "LONG": "x" * 128 * 1024})
    before = placed(spec)
    with pytest.raises(LaunchError, match="too long"):
        await begin(tmp_path, spec, SandboxRequest())
    assert not waiting()
    assert placed(spec) == before


@pytest.mark.parametrize("known", [False, True], ids=["not tried before", "known to fail"])
async def test_without_a_sandbox_the_cli_is_started_as_it_is_and_no_launcher_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    missing = (Probe(kind=Kind.BUBBLEWRAP, works=False, why="it is not installed"),)
    monkeypatch.setattr("quarterdeck.sandbox.choose", lambda spec=None: None)
    monkeypatch.setattr("quarterdeck.sandbox.probe", lambda: missing)
    monkeypatch.setattr("quarterdeck.sandbox.last_probe", lambda: missing if known else None)
    seen: list[int] = []

    def wanted() -> bool:
        seen.extend(waiting())
        return True

    process = await begin(tmp_path, session(tmp_path), SandboxRequest(), wanted)
    assert not waiting()
    assert (await end_of(process)).exit_code == 3
    assert len(seen) == (0 if known else 1)
    assert process.started.pid not in seen
    assert ran(tmp_path).read_text() == "ran\n"


@pytest.mark.parametrize("request_", [None, SandboxRequest(mode="off")])
async def test_without_a_wish_for_a_sandbox_no_launcher_is_started(
    tmp_path: Path, request_: SandboxRequest | None
) -> None:
    def wanted() -> bool:
        assert not waiting()
        return True

    process = await begin(tmp_path, session(tmp_path), request_, wanted)
    assert (await end_of(process)).exit_code == 3


async def test_the_record_names_the_files_of_the_arguments_for_the_next_runner(
    tmp_path: Path,
) -> None:
    spec = replace(session(tmp_path), settings='{"model": "opus"}')
    process = await begin(tmp_path, spec, None)
    (record,) = Home(tmp_path / "home").leftover_runs()
    assert record.arguments is not None
    folder = anyio.Path(record.arguments)
    try:
        assert [path.name async for path in folder.iterdir()] == ["1-settings"]
    finally:
        await end_of(process)
    assert not await folder.exists()
