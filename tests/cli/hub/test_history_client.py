"""The commands about the past: search, export, import, retention, backup, restore."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from quarterdeck.cli.hub.search import project, when
from quarterdeck.domain.errors import UsageError
from quarterdeck.testing import ScriptedModel
from support.bounds import SECONDS
from support.left_sessions import left_session
from support.served_deck import ServedDeck, until_true
from support.session_files import Disk

pytestmark = pytest.mark.anyio
OLD = 1_700_000_000


def left_on(deck: ServedDeck, *numbers: int) -> Disk:
    """Sessions where the hub's user had them in a terminal."""
    disk = Disk(deck.command.home / "made")
    for number in numbers:
        left_session(disk, number)
    disk.config.rename(deck.command.home / ".claude")
    return disk


async def test_what_was_left_on_disk_is_imported_found_exported_and_let_go(
    deck: ServedDeck,
) -> None:
    left_on(deck, 1, 2)
    await deck.serve("--no-runner")
    assert "would be: 2 new" in (await deck("import", "--dry-run")).err
    assert (await deck("ps")).out == ""
    done = await deck("import")
    assert done.err.endswith(
        "2 sessions in " + str(deck.command.home / ".claude/projects: 2 new\n")
    )
    assert done.out.count("new      ") == 2
    assert "2 known" in (await deck("import")).err

    shapes = {shape.name: shape for shape in deck.client.sessions()}
    first = shapes["Prompt 10: fix the näme 10"]
    log = (await deck("log", first.session)).out
    assert "> Prompt 10: fix the näme 10\n" in log
    assert "pytest -k t10" in log

    await until_true(lambda: _found(deck, "answer") == 4)
    found = (await deck("search", "pytest", "t10", "--tool", "Bash")).out
    assert found.startswith("2026-03-11 ")
    assert "pytest -k t10" in found
    hits = (await deck("search", "name*", "--json", "--project", first.spec.directory)).out
    assert [json.loads(hit)["session"] for hit in hits.splitlines()] == [first.session] * 2
    nothing = await deck("search", "unheard-of", code=1)
    assert (nothing.out, nothing.err) == ("", "nothing was found\n")
    assert "no word" in (await deck("search", "&&", code=1)).err

    page = deck.command.work / "page.html"
    await deck("export", first.session, str(page))
    assert "Prompt 10: fix the näme 10" in page.read_text()
    assert "exists already" in (await deck("export", first.session, str(page), code=2)).err
    markdown = (await deck("export", first.session)).out
    assert "> Prompt 10: fix the näme 10" in markdown
    lines = (await deck("export", first.session, "--format", "json")).out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, first.head + 1))
    assert "unknown suffix" in (await deck("export", first.session, "x.pdf", code=2)).err

    assert "0 of 2 sessions would go" in (await deck("retention")).err
    assert "a limit is required" in (await deck("retention", "--delete", code=1)).err
    await deck("archive", first.session)
    await anyio.sleep(0.01)  # 0.0000001 days are 8.64 ms: only now a session can be older
    report = await deck("retention", "--days", "0.0000001", "--archived-only")
    assert "1 of 2 sessions would go" in report.err
    await deck("retention", "--days", "0.0000001", "--archived-only", "--delete")
    assert [shape.name for shape in deck.client.sessions()] == ["Prompt 20: fix the näme 20"]
    await deck("stop")
    assert await deck.ends() == 0


def _found(deck: ServedDeck, words: str) -> int:
    from quarterdeck.cli.hub.history_client import HistoryClient
    from quarterdeck.protocol.search import Search

    client = HistoryClient(deck.client.where)
    return len(list(client.search(Search(words=words), 100)))


async def test_a_hub_is_backed_up_while_it_works_and_restored_when_it_is_stopped(
    deck: ServedDeck,
) -> None:
    left_on(deck, 1, 2)
    assert "nothing to back up" in (await deck("backup", "x", code=2)).err
    await deck.serve("--no-runner")
    await deck("import")
    (deck.data / "policies").mkdir(exist_ok=True)
    (deck.data / "policies" / "mine.toml").write_text('default = "ask"\n')
    backup = deck.command.work / "hub.backup"
    done = await deck("backup", str(backup))
    assert done.err.startswith(f"{backup}: 2 sessions, 32 events, ")
    assert "is valid: 2 sessions" in (await deck("restore", "--check", str(backup))).err
    assert "a hub already serves from" in (await deck("restore", str(backup), code=1)).err
    kept = deck.client.session((await deck("import", "--json")).out.split('"session":"')[1][:26])
    for shape in list(deck.client.sessions()):
        await deck("rm", shape.session)
    await deck("stop")
    assert await deck.ends() == 0

    cut = deck.command.work / "cut.backup"
    cut.write_bytes(backup.read_bytes()[:-4096])
    assert "not as long as it should be" in (await deck("restore", str(cut), code=1)).err
    tokens = (deck.data / "access.json").read_bytes()
    (deck.data / "policies" / "mine.toml").unlink()
    (deck.data / "cli.secret").write_bytes(b"another")
    restored = await deck("restore", str(backup))
    assert (deck.data / "access.json").read_bytes() == tokens
    assert (deck.data / "policies" / "mine.toml").read_text() == 'default = "ask"\n'
    assert (deck.data / "cli.secret").read_bytes() == b"another"
    assert "restored 2 sessions, 32 events" in restored.err
    assert "journal.db.before-" in restored.err
    await deck.serve("--no-runner")
    assert deck.client.session(kept.session) == kept
    await until_true(lambda: _found(deck, "answer") == 4)
    await deck("stop")
    assert await deck.ends() == 0


@pytest.mark.real_cli
async def test_a_session_from_a_terminal_is_adopted_and_gone_on_with(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    """What a real CLI wrote without us is gone on with by a real CLI through the hub."""
    work, id_ = deck.command.work, str(uuid4())
    env = deck.command.env
    terminal = [env["QUARTERDECK_CLAUDE"], "-p", "remember the word unicorn", "--session-id", id_]
    with anyio.fail_after(SECONDS):
        await anyio.run_process(terminal, env=env, cwd=work)
    await deck.serve()
    done = await deck("import", id_)
    assert "may still run in a terminal" in done.out
    (shape,) = deck.client.sessions()
    assert (shape.cli_session, shape.directory or shape.spec.directory) == (id_, str(work))

    refused = await deck("send", shape.session, "too early", code=1)
    assert "by another process: end it there" in refused.err
    _age(deck.command.home, id_)
    await deck("send", shape.session, "and now here")
    await deck.until(shape.session, lambda shape: shape.turns == 1)
    spoken = [text for message in model.turns[-1].messages for text in message.texts]
    assert "remember the word unicorn" in " ".join(spoken)
    after = deck.client.session(shape.session)
    assert after.cli_session == id_
    log = (await deck("log", shape.session)).out
    assert log.index("> remember the word unicorn") < log.index("> and now here")
    await deck("stop", shape.session)
    await deck.until_state(shape.session, "ended")
    # What was heard here is not taken in once more.
    assert "1 known" in (await deck("import", id_)).err
    await deck("stop")
    assert await deck.ends() == 0


def _age(home: Path, id_: str) -> None:
    (path,) = (home / ".claude" / "projects").glob(f"*/{id_}.jsonl")
    os.utime(path, (OLD, OLD))


def test_a_time_is_a_day_a_moment_or_an_age() -> None:
    assert when(None, "--since") is None
    assert when("7d", "--since", now=10 * 86400) == 3 * 86_400_000
    assert when("90min", "--since", now=5400) == 0
    expected = time.mktime((2026, 11, 1, 8, 30, 0, 0, 0, -1)) * 1000
    assert when("2026-11-01T08:30", "--since") == expected
    assert when("2026-11-01T08:30+00:00", "--since") == 1793521800000
    with pytest.raises(UsageError, match="--until"):
        when("soon", "--until")


def test_a_project_is_a_name_or_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert project("alpha") == "alpha"
    assert project(".") == str(tmp_path.resolve())
    assert project("/a/../b") == "/b"
