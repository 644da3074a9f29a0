"""The hub, a real runner and real CLIs of every version, together."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.protocol.commands import AllowAnswer, Control, ForkSession, SendPrompt, StopSession
from quarterdeck.protocol.events import Decided, Said
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.testing import RealCli, ScriptedModel
from quarterdeck.testing.script import Text, ToolUse, play
from support.clis import VERSIONS
from support.hub_house import House, real_spec

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def repository(folder: Path) -> None:
    """Make a folder a git repository with one commit."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (("init", "-q", "-b", "main"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *who, *words], cwd=folder, check=True)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_session_runs_asks_resumes_and_forks_on_every_version(
    version: str,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    home: House,
) -> None:
    (tmp_path / "home").mkdir()
    spec = real_spec(tmp_path, clis[version], model)
    repository(Path(spec.directory))
    script = play(ToolUse("Bash", {"command": "touch made.txt"}), Text("done"))
    session = await home.new(spec, json.dumps(script).encode())
    card = await home.ask(session)
    assert card.opened.tool == "Bash"
    await home.answer(card, AllowAnswer(), by="ada")
    view = await home.until(session, lambda view: view.turns == 1)
    assert (Path(spec.directory) / "made.txt").exists()
    assert view.state is SessionState.IDLE
    audit = [stored.event for stored in await home.hub.audit(session=session)]
    assert any(isinstance(e, Decided) and e.by == "ada" and e.tool == "Bash" for e in audit)

    # A control request of a person, and its answer.
    request = Raw(b'{"subtype":"set_model","model":"opus"}')
    await home.hub.submit(Control(session=session, request=request))

    # The CLI is stopped, and resumed by the next prompt: it knows what was said before.
    await home.hub.submit(StopSession(session=session))
    await home.until(session, lambda view: view.state is SessionState.ENDED)
    await home.hub.submit(SendPrompt(session=session, prompt="second", content=Raw(b'"again"')))
    view = await home.until(session, lambda view: view.turns == 2)
    assert len(model.turns[-1].messages) > 2

    # A fork in a worktree of its own: it knows what was said, and has the files as they are.
    fork = await home.hub.submit(ForkSession(session=session, by="ada", worktree="own"))
    await home.hub.submit(
        SendPrompt(session=fork.session, prompt="third", content=Raw(b'"and here"'))
    )
    forked = await home.until(fork.session, lambda view: view.turns == 1)
    assert forked.cli_session != view.cli_session
    assert len(model.turns[-1].messages) > 4
    assert forked.directory is not None
    own = Path(forked.directory)
    assert own != Path(spec.directory)
    assert (own / "made.txt").exists()
    (own / "more.txt").write_text("more\n")
    changes = home.hub.worktree_service.changes
    one, other = await changes(session, text_limit=0), await changes(fork.session, text_limit=0)
    assert [file.path for file in one.files] == ["made.txt"]
    assert [file.path for file in other.files] == ["made.txt", "more.txt"]

    events = [stored.event for stored in await home.hub.events(session)]
    numbers: dict[str, list[int]] = {}
    for event in events:
        if isinstance(event, Said):
            numbers.setdefault(event.run, []).append(event.number)
    assert all(found == sorted(set(found)) for found in numbers.values())
