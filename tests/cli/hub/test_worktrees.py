"""Projects and worktrees from the command line, with a hub that is configured while it runs."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from quarterdeck.client import calls
from quarterdeck.testing import fake
from support.processes import running
from support.repositories import git, make_repository
from support.served_deck import ServedDeck, until_true

pytestmark = pytest.mark.anyio


def configure(deck: ServedDeck, text: str) -> None:
    """Another configuration in the place of the old one, as editors do it."""
    deck.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = deck.data / "fresh.toml"
    fresh.write_text(text)
    fresh.replace(deck.data / "quarterdeck.toml")


async def test_a_project_is_worked_on_in_a_worktree_and_the_work_is_merged(
    deck: ServedDeck,
) -> None:
    repository = make_repository(deck.command.home / "repository")
    deck.command.play_fake(fake.Serve())
    log = deck.data / "hub.log"
    project = f"[projects.web]\ndirectory = '{repository}'\nenv = {{ KEY = 'hunter2' }}\n"
    configure(deck, f"[log]\nfile = 'hub.log'\n{project}")
    await deck.serve()
    assert (await deck("projects")).out == f"web  {repository}\n"
    assert "hunter2" not in (await deck("projects", "--json")).out

    session = (await deck("new", "--project", "web", "-", "--worktree", "task")).out.strip()
    shape = await deck.until_state(session, "idle")
    assert (shape.spec.project, shape.spec.directory) == ("web", str(repository))
    assert "no project 'wbe'" in (await deck("new", "--project", "wbe", "-", code=1)).err
    await deck("new", str(deck.command.work))
    listed = await deck("ps", "--project", "web", "--json")
    assert [json.loads(line)["session"] for line in listed.out.splitlines()] == [session]

    assert shape.directory is not None
    (Path(shape.directory) / "made").write_text("work\n")
    diff = await deck("worktree", "diff", session)
    assert "+work\n" in diff.out
    files, summary = diff.out.splitlines()[-2:]
    assert files.split() == ["added", "+1", "-0", "made"]
    assert summary == "1 file, +1 -0, 0 commits on task since main, 1 not committed"
    refused = await deck("worktree", "merge", session, code=1)
    assert "made; commit them, or give a message" in refused.err
    assert str(shape.directory) in (await deck("worktree", "keep", session)).out
    await deck("worktree", "discard", session, code=1)
    await deck("stop", session)
    await deck.until_state(session, "ended")
    merged = await deck("worktree", "merge", session, "--commit", "The work")
    assert merged.out.startswith("task is merged into main, which is now at ")
    assert git(repository, "log", "-1", "--format=%s") == "The work"

    # The configuration is changed, spoilt, and mended, while the hub runs.
    configure(deck, f"[log]\nfile = 'hub.log'\n{project}[projects.api]\ndirectory = '/srv/api'\n")
    await until_true(lambda: len(deck.client.call(calls.projects()).projects) == 2)
    configure(deck, "[projects.api]\ndirectry = '/srv/api'\n")
    await until_true(lambda: "did you mean directory?" in log.read_text())
    assert len(deck.client.call(calls.projects()).projects) == 2
    said = log.read_text()
    assert "projects.api.directory: not there -> /srv/api\n" in said
    assert "the configuration was not applied" in said
    assert "hunter2" not in said
    await deck("stop")
    assert await deck.ends() == 0


async def test_the_doctor_looks_at_a_hub_that_runs_and_at_one_that_does_not(
    deck: ServedDeck,
) -> None:
    deck.command.play_fake(fake.Serve())
    configure(deck, f"[server]\nport = {deck.port}\nprot = 1\n[policy]\nfile = 'none.toml'\n")

    async def findings(*arguments: str, code: int) -> dict[str, list[tuple[str, str]]]:
        done = await deck("doctor", "--json", *arguments, code=code)
        found: dict[str, list[tuple[str, str]]] = {}
        for each in json.loads(done.out)["findings"]:
            found.setdefault(each["topic"], []).append((each["level"], each["text"]))
        return found

    wrong = await findings(code=1)
    assert wrong["config"][0][0] == "problem"
    assert "server.prot" in wrong["config"][0][1]
    assert wrong["hub"] == [("note", "not running")]
    configure(deck, f"[server]\nport = {deck.port}\n")
    right = await findings(code=0)
    assert right["port"] == [("ok", f"127.0.0.1 port {deck.port} is free")]
    assert right["data"] == [("ok", f"{deck.data} is private and writable")]
    assert {"disk", "clock", "policy"} <= right.keys()
    deck.data.chmod(0o755)
    assert (await findings(code=0))["data"][0][0] == "warning"
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=deck.port)
    async with listener:
        taken = await findings(code=1)
    assert "is used by another program" in taken["port"][0][1]
    configure(deck, "[policy]\nfile = 'none.toml'\n")
    assert (await findings(code=1))["policy"][0][0] == "problem"

    configure(deck, "")
    await deck.serve()
    runner = deck.adopt()
    assert runner is not None
    # Its clock has been heard; on one machine it may be no millisecond ahead.
    await until_true(
        lambda: any(each.clock_ahead_ms is not None for each in deck.client.machines())
    )
    there = await findings(code=0)
    assert there["hub"][0][0] == "ok"
    assert there["runner"][0][0] == "ok"
    assert there["machine"][0][0] == "ok"
    assert running(runner)
    await deck("stop")
    assert await deck.ends() == 0
