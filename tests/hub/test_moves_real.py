"""A machine dies with its runner and CLI: the session goes on on another one, with the real CLI.

Two runners, each with a home folder and a state of its own, at one hub. What they share is a
repository that both can reach, and nothing else.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict
from quarterdeck.history.story import Answer, StoryFold
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import CreateSession, MoveSession, SendPrompt
from quarterdeck.protocol.events import Noted, RunEnded, Said
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runner import spawn_runner
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import ToolUse, play, reply
from support.bounds import SECONDS
from support.clis import VERSIONS
from support.hub_house import end_runner
from support.hub_house import until as until_view
from support.processes import Processes
from support.processes import running as is_running
from support.repositories import commit, git, make_repository
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

BRANCH = "fix"


class Machine:
    """A machine: a home folder, a runner with a state of its own, and a copy of the repository."""

    def __init__(self, name: str, folder: Path, origin: Path) -> None:
        self.name = name
        self.home = folder / "home"
        self.state = folder / "runner"
        self.work = folder / "work"
        self.home.mkdir(parents=True)
        git(folder, "clone", "-q", str(origin), str(self.work))
        self.pid = 0

    async def start(self, url: str, token: Path, processes: Processes) -> None:
        """Start its runner, with its own home folder."""
        start = partial(spawn_runner, self.state, url, token, machine=self.name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(self.home))
            self.pid = processes.started(await anyio.to_thread.run_sync(start))

    def messages(self) -> dict[str, list[str]]:
        """The messages in the transcripts of its CLI, by file below the project's folder.

        The CLI mirrors no line that only says how it talks to the model.
        """
        projects = self.home / ".claude" / "projects"
        return {
            "/".join(path.relative_to(projects).parts[1:]): [
                line for line in path.read_text().splitlines() if "uuid" in json.loads(line)
            ]
            for path in projects.glob("*/**/*.jsonl")
        }

    @property
    def runs(self) -> list[str]:
        """The runs that its runner keeps something of."""
        return [path.name for path in (self.state / "spool").iterdir()]


@asynccontextmanager
async def serving(folder: Path, names: tuple[str, ...]) -> AsyncIterator[tuple[Hub, str]]:
    """A hub that knows the tokens of these machines, which are their names."""
    async with await SqliteJournal.open(folder / "journal.db") as journal:
        hub = Hub(journal, lambda token: token if token in names else None)
        async with hub.run(), serve_endpoint(hub.runners, port=0) as port:
            yield hub, f"ws://127.0.0.1:{port}"


def heard(model: ScriptedModel) -> str:
    """What the model knows of the conversation."""
    return "\n".join(text for message in model.turns[-1].messages for text in message.texts)


async def shown(hub: Hub, session: str) -> list[str]:
    """The texts that the story has."""
    fold = StoryFold()
    events = await hub.events(session)
    story = [entry for each in events for entry in fold.entries(each.event, each.at)]
    return [entry.text for entry in story if isinstance(entry, Answer)]


async def test_a_session_goes_on_on_another_machine_when_its_own_one_dies(
    clis: dict[str, RealCli], model: ScriptedModel, tmp_path: Path, processes: Processes
) -> None:
    origin = tmp_path / "origin.git"
    seed = make_repository(tmp_path / "seed")
    git(tmp_path, "clone", "-q", "--bare", str(seed), str(origin))
    one, two = (Machine(name, tmp_path / name, origin) for name in ("one", "two"))
    env = isolated_env(tmp_path / "unused", model.url)
    del env["HOME"], env["TMPDIR"]
    tools = ("Bash", "Agent", "Task")
    spec = SessionSpec(
        directory=str(one.work),
        machine="one",
        worktree=BRANCH,
        claude=clis[VERSIONS[-1]].command[-1],
        env=env,
        mode="acceptEdits",
        allowed_tools=tools,
        auto_approve=tools,
        sandbox="off",
        session_mirror=True,
    )
    async with serving(tmp_path, ("one", "two")) as (hub, url):

        async def wait(session: str, turns: int) -> SessionView:
            return await until_view(hub, session, lambda view: view.turns >= turns)

        async def turn(session: str, number: int, *replies: object) -> SessionView:
            content = Raw(json.dumps(play(*replies)).encode())  # type: ignore[arg-type]
            await hub.submit(SendPrompt(session=session, prompt=f"p{number}", content=content))
            return await wait(session, number)

        for machine in (one, two):
            token = tmp_path / f"{machine.name}.token"
            token.write_text(machine.name)
            token.chmod(0o600)
            await machine.start(url, token, processes)
        try:
            with anyio.fail_after(SECONDS):
                await until(lambda: len(hub.runners.machines()) == 2)
            sub = ToolUse(
                "Agent",
                {
                    "description": "look",
                    "prompt": play("the subagent's word"),
                    "subagent_type": "general-purpose",
                    "run_in_background": False,
                },
            )
            first = Raw(json.dumps(play(reply(sub), "the first answer")).encode())
            session = (await hub.submit(CreateSession(spec=spec, prompt=first))).session
            view = await wait(session, 1)
            assert view.directory is not None
            tree = Path(view.directory)
            (tree / "new").write_text("made by the agent\n")
            git(tree, "config", "user.email", "a@example.org")
            git(tree, "config", "user.name", "A")
            made = commit(tree, "work")
            git(tree, "push", "-q", "origin", BRANCH)
            move = MoveSession(session=session, machine="two", directory=str(two.work), by="ann")
            with pytest.raises(Conflict, match="stop it first"):
                await hub.submit(move)

            # The machine dies: the runner first, so that it tells nothing more.
            assert view.pid is not None
            os.kill(one.pid, signal.SIGKILL)
            os.kill(view.pid, signal.SIGKILL)
            with anyio.fail_after(SECONDS):
                await until(lambda: not is_running(one.pid))
                await until(lambda: not hub.runners.is_connected("one"))
            lost = view.run
            await hub.submit(move)
            view = await turn(session, 2, "the second answer")
            assert view.machine == "two"
            assert view.cli_session is not None
            assert "the first answer" in heard(model)
            assert view.directory is not None
            assert git(Path(view.directory), "rev-parse", "HEAD") == made
            assert git(Path(view.directory), "branch", "--show-current") == BRANCH
            assert (Path(view.directory) / "new").read_text() == "made by the agent\n"
            assert view.mode == "acceptEdits"

            # Each message that the first machine has on its disk, the second has: to the byte.
            before, after = one.messages(), two.messages()
            assert before.keys() == after.keys()
            assert len(before) == 2, "its own and that of the subagent"
            for name, lines in before.items():
                assert lines
                assert after[name][: len(lines)] == lines
            kinds = [type(each.event) for each in await hub.events(session)]
            assert kinds.count(RunEnded) == 1

            # The machine comes back: its run is nobody's, and its runner forgets it.
            assert one.runs == [lost]
            await one.start(url, tmp_path / "one.token", processes)
            with anyio.fail_after(SECONDS):
                await until(lambda: hub.runners.is_connected("one"))
                await until(lambda: one.runs == [])
            view = await turn(session, 3, "the third answer")
            assert view.machine == "two"
            events = [each.event for each in await hub.events(session)]
            said = [each for each in events if isinstance(each, Said)]
            assert {each.run for each in said} == {lost, view.run}
            last = max(at for at, each in enumerate(events) if getattr(each, "run", "") == lost)
            assert isinstance(events[last], RunEnded)
            texts = await shown(hub, session)
            for text in ("the first answer", "the second answer", "the third answer"):
                assert texts.count(text) == 1, "the mirror is not shown"
            notes = [with_texts(each).text for each in events if isinstance(each, Noted)]
            assert any("'two'" in text for text in notes)

            # `--continue` finds the newest conversation of a folder on the machine that is named.
            there = replace(
                spec,
                machine="two",
                directory=view.directory,
                worktree=None,
                session_mirror=False,
            )
            with pytest.raises(Conflict, match=session):
                await hub.submit(CreateSession(spec=there, cli_latest=True))
            prompt = Raw(json.dumps(play("in a copy")).encode())
            latest = CreateSession(spec=there, prompt=prompt, cli_latest=True, cli_fork=True)
            copied = await wait((await hub.submit(latest)).session, 1)
            assert copied.machine == "two"
            assert copied.cli_session not in {None, view.cli_session}
            assert "the third answer" in heard(model)
        finally:
            with anyio.CancelScope(shield=True):
                for machine in (one, two):
                    if is_running(machine.pid):
                        await end_runner(machine.pid)
