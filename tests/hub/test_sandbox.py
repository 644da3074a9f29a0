"""The sandbox of a session's runs: asked for, reported, journalled, kept over resume and fork."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quarterdeck.domain.errors import LaunchError
from quarterdeck.fronts.http.shapes import session_shape
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol import commands
from quarterdeck.protocol.events import SandboxConnection, SandboxStarted
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ack,
    Connection,
    Hello,
    Start,
    Started,
    Welcome,
)
from quarterdeck.protocol.sandbox import (
    SANDBOX,
    SandboxPaths,
    SandboxReport,
    SandboxSettings,
    SandboxState,
)
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from support import lines
from support.hub_machines import TestMachines, TestRun
from support.runner_sockets import Socket
from support.waiting import until

pytestmark = pytest.mark.anyio
SPEC = SessionSpec(directory="/work")
REPORT = SandboxReport(
    state=SandboxState(mode="protect", kind="bubblewrap", wanted="protect"),
    paths=SandboxPaths(writable=("/work",), hidden=("/data",)),
)
HELLO = Hello(machine="local", runner="r", protocol=PROTOCOL, version="0.1", pid=1)


async def create(hub: Hub, spec: SessionSpec = SPEC) -> str:
    return (await hub.submit(commands.CreateSession(spec=spec, by="ada"))).session


async def start(run: TestRun, report: SandboxReport | None = REPORT) -> None:
    await run.owner.run_started(run.run, 42, "2.1.325", "/work", report)


async def test_a_runs_sandbox_is_in_the_view_and_in_the_audit(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await start(run)
    await start(run)  # told again when it connects again
    view = await hub.session(session)
    assert view.sandbox == REPORT.state
    assert session_shape(view).sandbox == REPORT.state
    (entry,) = [stored.event for stored in await hub.audit(session=session)]
    assert entry == SandboxStarted(run=run.run, state=REPORT.state, paths=REPORT.paths)
    assert (await hub.policy.verify()).good


async def test_a_run_of_which_nothing_is_recorded_counts_as_one_without(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    await start(machines.runs[0], None)
    shown = session_shape(await hub.session(session)).sandbox
    assert (shown.mode, shown.reason) == ("off", "not_recorded")


async def test_the_next_run_does_not_inherit_the_report_of_the_last(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    await start(machines.runs[0])
    await machines.runs[0].end()
    assert (await hub.session(session)).sandbox == REPORT.state
    await hub.submit(commands.ResumeSession(session=session))
    assert (await hub.session(session)).sandbox is None


async def test_connections_are_journalled_once_in_order_and_acknowledged(
    deck: tuple[Hub, TestMachines], journal: MemoryJournal
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await start(run)
    (greeting,) = run.read()
    refused = Connection(number=1, host="evil.example", port=443, allowed=False, count=3)
    await run.owner.run_connected(run.run, refused)
    await run.owner.run_connected(run.run, refused)
    assert run.acknowledged == 1
    run.said = 1
    await run.say(lines.success_answer(greeting["request_id"]))
    entries = [stored.event for stored in await hub.audit(session=session)]
    assert entries[1:] == [
        SandboxConnection(
            run=run.run, number=1, host="evil.example", port=443, allowed=False, count=3
        )
    ]
    assert (await hub.session(session)).said == 2
    again = Hub(journal, lambda token: None, machines=machines)
    machines.hub = again
    async with again.run():
        await machines.runs[-1].owner.run_connected(run.run, refused)
        assert len(await again.audit(session=session)) == 2


@pytest.mark.parametrize("mode", ["off", "protect", "strict"])
async def test_resume_fork_and_restart_keep_the_mode(
    deck: tuple[Hub, TestMachines], mode: str
) -> None:
    hub, machines = deck
    hub.worktree_service.change({}, (), sandbox=SandboxSettings(mode="strict"))
    session = await create(hub, replace(SPEC, sandbox=mode))
    hub.worktree_service.change({}, (), sandbox=SandboxSettings(mode="protect"))
    (run,) = machines.runs
    await run.greet()
    await run.say(lines.init("2.1.325", uuid="i"))
    await run.end()
    await hub.submit(commands.ResumeSession(session=session))
    await hub.submit(commands.ForkSession(session=session, by="ada"))
    assert [spec.sandbox for spec, _ in machines.started] == [mode] * 3


async def test_a_session_without_a_wish_has_the_configured_mode(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    hub.worktree_service.change({}, (), sandbox=SandboxSettings(mode="strict"))
    await create(hub)
    assert machines.started[0][0].sandbox == "strict"


# --- with the sockets of a runner -----------------------------------------------------------------


async def test_a_runner_gets_the_request_beside_a_spec_that_an_older_one_understands() -> None:
    hub, machine = Hub(MemoryJournal(), lambda token: "local"), Socket()
    async with hub.run(), machine.on(hub.runners, "/runner"):
        machine.say(replace(HELLO, can=(SANDBOX,)))
        assert isinstance(await machine.hear(), Welcome)
        await create(hub, replace(SPEC, sandbox="strict", add_dirs=("/more",)))
        wanted = await machine.hear()
        assert isinstance(wanted, Start)
        assert (wanted.spec.sandbox, wanted.spec.sandbox_options) == (None, None)
        assert wanted.sandbox is not None
        assert (wanted.sandbox.mode, wanted.sandbox.allow_edit) == ("strict", ("/more",))
        assert (await hub.machines())[0].sandbox


async def test_an_older_runner_runs_without_a_sandbox_and_the_session_says_so() -> None:
    hub, machine, run = Hub(MemoryJournal(), lambda token: "local"), Socket(), Socket()
    async with hub.run(), machine.on(hub.runners, "/runner"):
        machine.say(HELLO)
        assert isinstance(await machine.hear(), Welcome)
        session = await create(hub)
        wanted = await machine.hear()
        assert isinstance(wanted, Start)
        async with run.on(hub.runners, f"/runner/runs/{wanted.run}"):
            run.say(Started(pid=7, version="2.1.325", directory="/work"))
            assert isinstance(await run.hear(), Ack)
            await until(lambda: (view := hub.view(session)) is not None and bool(view.sandbox))
        view = await hub.session(session)
        assert view.sandbox == SandboxState(wanted="protect", reason="old_runner")


async def test_a_strict_session_does_not_start_on_an_older_runner() -> None:
    hub, machine = Hub(MemoryJournal(), lambda token: "local"), Socket()
    async with hub.run(), machine.on(hub.runners, "/runner"):
        machine.say(HELLO)
        assert isinstance(await machine.hear(), Welcome)
        with pytest.raises(LaunchError, match="update Quarterdeck there"):
            await create(hub, replace(SPEC, sandbox="strict"))
        (view,) = await hub.sessions()
        assert view.state is SessionState.ENDED
        assert "must have one (strict)" in view.detail


async def test_a_strict_session_that_waits_ends_when_an_older_runner_comes() -> None:
    hub, machine = Hub(MemoryJournal(), lambda token: "local"), Socket()
    async with hub.run():
        session = await create(hub, replace(SPEC, sandbox="strict"))
        async with machine.on(hub.runners, "/runner"):
            machine.say(HELLO)
            assert isinstance(await machine.hear(), Welcome)
            await until(lambda: (view := hub.view(session)) is not None and view.run is None)
        assert "must have one (strict)" in (await hub.session(session)).detail
