"""Worktrees and projects by way of the hub, with a real runner and the fake CLI."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.domain.errors import Conflict, LinkClosed, LinkRefused, NotFound
from quarterdeck.hub.machine_requests import MachineRequests
from quarterdeck.protocol.commands import StopSession
from quarterdeck.protocol.events import WorktreeSettled
from quarterdeck.protocol.machine_requests import MACHINE_REQUESTS, Folders, SeeFolders, TreeAction
from quarterdeck.protocol.projects import Project
from quarterdeck.protocol.runner_frames import Header, Hello, MachineRequest, Reply
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.testing import fake
from support.hub_house import house
from support.processes import Processes
from support.repositories import git, make_repository
from support.runners import program

pytestmark = pytest.mark.anyio


async def test_a_session_of_a_project_works_in_a_worktree_and_its_work_is_merged(
    tmp_path: Path, processes: Processes
) -> None:
    repository = make_repository(tmp_path / "project")
    claude = program(tmp_path / "cli", [fake.Serve()])
    env = {"A": "b", "HOME": str(tmp_path / "home")}
    async with house(tmp_path, processes) as home:
        service = home.hub.worktree_service
        service.change({"web": Project(directory=str(repository), model="opus", env=env)}, ())
        with pytest.raises(NotFound, match="there is no project"):
            await home.new(SessionSpec(project="wbe", claude=claude))
        session = await home.new(SessionSpec(project="web", claude=claude, worktree="task"))
        view = await home.until(session, lambda view: view.directory is not None)
        # What is stored is what it was started with: a project that changes does not change it.
        service.change({}, ())
        assert (view.spec.model, view.spec.env, view.spec.project) == ("opus", env, "web")
        assert view.directory is not None
        (Path(view.directory) / "made").write_text("work\n")

        changes = await service.changes(session)
        assert [file.path for file in changes.files] == ["made"]
        with pytest.raises(Conflict, match="made; commit them, or give a message") as refused:
            await service.settle(session, TreeAction.MERGE, by="ada")
        assert refused.value.code == "uncommitted"
        with pytest.raises(Conflict, match="stop it first"):
            await service.settle(session, TreeAction.DISCARD, by="ada")

        await home.hub.submit(StopSession(session=session))
        await home.until(session, lambda view: view.state is SessionState.ENDED)
        done = await service.settle(session, TreeAction.MERGE, by="ada", message="Work")
        assert (repository / "made").read_text() == "work\n"
        assert git(repository, "status", "--porcelain") == ""
        events = [stored.event for stored in await home.hub.events(session)]
        (settled,) = [event for event in events if isinstance(event, WorktreeSettled)]
        assert (settled.action, settled.by, settled.commit) == ("merge", "ada", done.commit)
        with pytest.raises(Conflict, match="there is no branch"):
            await service.settle(session, TreeAction.DISCARD, by="ada")

        # And in the repository itself, without a worktree.
        plain = await home.new(SessionSpec(directory=str(repository), claude=claude, env=env))
        await home.until(plain, lambda view: view.directory is not None)
        (repository / "made").write_text("more\n")
        assert [file.status for file in (await service.changes(plain)).files] == ["modified"]
        with pytest.raises(Conflict, match="has no worktree of its own"):
            await service.settle(plain, TreeAction.KEEP, by="ada")

        service.change({}, (str(tmp_path),))
        listed = await service.folders("local", str(tmp_path))
        assert "project" in [folder.name for folder in listed.folders]
        with pytest.raises(LinkRefused, match="'box' is not connected"):
            await service.folders("box")
        (machine,) = await home.hub.machines()
        assert machine.clock_ahead_ms is not None
        assert abs(machine.clock_ahead_ms) < 60_000


class Machine:
    """A machine that answers as the test wants."""

    def __init__(self, can: tuple[str, ...] = (MACHINE_REQUESTS,)) -> None:
        self.can = can
        self.asked: list[str] = []
        self.requests = MachineRequests(self.send, self.hello)
        self.told = anyio.Event()

    def send(self, machine: str, header: Header, /, *lines: bytes) -> None:
        assert isinstance(header, MachineRequest)
        self.asked.append(header.request)
        self.told.set()

    def hello(self, machine: str) -> Hello | None:
        return Hello(machine=machine, runner="r", protocol=1, version="0.0.1", pid=1, can=self.can)

    async def folders(self, seconds: float = 30.0) -> Folders:
        return await self.requests.run("box", SeeFolders(), Folders, seconds)


async def test_a_machine_request_ends_with_its_connection_or_its_timeout() -> None:
    machine = Machine()
    with pytest.raises(Conflict) as silent:
        await machine.folders(seconds=0.01)
    assert silent.value.code == "machine_silent"

    async def cut() -> None:
        await machine.told.wait()
        machine.requests.forget_machine("another")
        machine.requests.forget_machine("box")

    machine.told = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(cut)
        with pytest.raises(LinkClosed, match="it may have been done all the same"):
            await machine.folders()


async def test_only_the_machine_that_was_asked_can_answer_and_only_once() -> None:
    machine = Machine()
    line = msgspec.json.encode(Folders(path="/right"))
    wrong = msgspec.json.encode(Folders(path="/wrong"))

    async def answer() -> None:
        await machine.told.wait()
        (id_,) = machine.asked
        machine.requests.take_reply("another", Reply(request=id_), [wrong])
        machine.requests.take_reply("box", Reply(request="unknown"), [wrong])
        machine.requests.take_reply("box", Reply(request=id_), [line])
        machine.requests.take_reply("box", Reply(request=id_), [wrong])

    async with anyio.create_task_group() as group:
        group.start_soon(answer)
        assert (await machine.folders()).path == "/right"
    machine.requests.take_reply("box", Reply(request=machine.asked[0]), [wrong])


async def test_a_runner_without_machine_requests_is_sent_none() -> None:
    machine = Machine(can=())
    with pytest.raises(Conflict, match=r"is too old for this: update it"):
        await machine.folders()
    assert machine.asked == []
