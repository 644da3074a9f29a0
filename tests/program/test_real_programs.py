"""Unchanged programs of the official SDK, with the newest real CLI, through a hub."""

from __future__ import annotations

import json
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from msgspec import Raw
from websockets.exceptions import ConnectionClosed

from program.conftest import Programs, deny_by_hook, deny_by_policy
from quarterdeck.protocol.commands import AnswerAsk, RawAnswer
from quarterdeck.protocol.events import Said
from quarterdeck.protocol.views import AskView
from quarterdeck.testing import ScriptedModel
from support.bounds import SECONDS
from support.inboxes import write_to_inbox
from support.served_deck import until_true
from support.web_sockets import connect

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def _asks(programs: Programs, number: int) -> tuple[AskView, ...]:
    """The open questions, when there are so many."""
    client = programs.deck.client
    with anyio.fail_after(SECONDS):
        while True:
            found = await anyio.to_thread.run_sync(client.asks)
            if len(found) == number:
                return found
            await anyio.sleep(0.1)


PACKAGES = Path(__file__).parents[2] / ".cache" / "sdk-tests" / "packages"
"""Where trio is. `make test` installs it."""
PROGRAMS = {
    "asks.py": (1, "`can_use_tool`, questions, a callback that fails, lasting permissions"),
    "calculates.py": (1, "MCP tools in the program"),
    "errors.py": (3, "a wrong flag, a conversation that does not exist, an error of the API"),
    "extends.py": (1, "plugins, skills, commands, setting sources, an MCP server outside, hooks"),
    "hooked.py": (1, "hooks that deny, replace an input, add context and do not let it stop"),
    "interrupts.py": (1, "an interrupt, and a turn after it"),
    "limits.py": (2, "allowed tools, `max_turns`, `max_budget_usd`"),
    "objects.py": (1, "structured output"),
    "one_shot.py": (1, "`query()`, partial messages, thinking, the callback `stderr`"),
    "resumes.py": (4, "resume, fork, continue, a command of the CLI"),
    "rewinds.py": (1, "file checkpoints and `rewind_files`"),
    "stores.py": (2, "session stores, a file of settings, images, background tasks"),
    "streams.py": (1, "a stream of prompts, prompts that are given back"),
    "subagents.py": (1, "agents of the program and of its folder"),
    "switches.py": (1, "`set_permission_mode`, `set_model`, server info, context usage"),
    "trio_turns.py": (1, "trio, with a callback and a hook"),
}
"""The programs of every feature: how many sessions each has, and what it is about."""


def test_every_program_is_run_and_the_how_to_lists_it() -> None:
    found = {each.name for each in (Path(__file__).parent / "programs").glob("*.py")}
    assert found == PROGRAMS.keys() | {"show.py", "waits.py", "example_stores.py"}
    page = (Path(__file__).parents[2] / "docs/how-to/run-official-sdk-programs.md").read_text()
    for name, (_, about) in PROGRAMS.items():
        assert f"| `{name}` | {about} |" in page


@pytest.mark.parametrize("part", range(4))
async def test_programs_print_the_same_with_the_hub_and_without_it(
    part: int, programs: Programs
) -> None:
    """A session for each query and client, while the deck shows them."""
    names = sorted(PROGRAMS)[part::4]
    deck = programs.deck
    await deck.serve()
    for name in names:
        words = [name, str(PACKAGES)] if name == "trio_turns.py" else [name]
        plain = await programs.start(*words, cli=programs.claude)
        ours = await programs.start(*words)
        expected = await plain.end()
        assert (await ours.end()).splitlines() == expected.splitlines(), name
        assert plain.process.returncode == ours.process.returncode == 0, expected
        assert "Traceback" not in expected, expected
    found = await anyio.to_thread.run_sync(lambda: list(deck.client.sessions()))
    assert Counter(each.name for each in found) == {name: PROGRAMS[name][0] for name in names}
    assert {each.state for each in found} == {"ended"}
    if "asks.py" in names:
        audit = await _audit(programs)
        assert "allow by local's program asks.py Bash: touch allowed" in audit
        assert "deny by local's program asks.py Bash: touch forbidden" in audit


async def test_three_at_once_survive_kill_9_of_the_hub_each_in_its_own_session(
    programs: Programs,
) -> None:
    deck = programs.deck
    await deck.serve()
    names = ("first", "second", "third")
    running = [await programs.start("waits.py", name, f"touch {name}") for name in names]
    asked = await _asks(programs, 3)
    assert deck.hub is not None
    deck.hub.send_signal(signal.SIGKILL)
    await deck.hub.wait()
    await deck.serve()
    again = await _asks(programs, 3)
    assert {each.opened.ask for each in again} == {each.opened.ask for each in asked}
    for ask in again:
        answer = RawAnswer(body=Raw(b'{"behavior":"allow"}'))
        command = AnswerAsk(ask=ask.opened.ask, answer=answer)
        await anyio.to_thread.run_sync(deck.client.submit, command)
    for name, program in zip(names, running, strict=True):
        said = await program.end()
        assert f"done by {name}" in said, said
    for ask in asked:
        (name,) = [each for each in names if ask.opened.title.endswith(f"touch {each}")]
        await deck.until_state(ask.session, "ended")
        log = (await deck("log", ask.session)).out
        assert log.splitlines().count(f"done by {name}") == 1, log
        assert "> PLAY" in log, "the program's own prompt"
        assert not any(f"done by {other}" in log for other in names if other != name)


async def test_a_program_prints_a_denial_of_the_policy_as_it_prints_one_of_the_cli(
    programs: Programs,
) -> None:
    """One of the programs of every feature; the policy denies what its own callback allows."""
    message = "the policy says no"
    deny_by_policy(programs, "touch allowed", message)
    await programs.deck.serve()
    ours = await programs.start("asks.py")
    said = await ours.end()
    deny_by_hook(programs, "touch allowed", said, message)
    plain = await programs.start("asks.py", cli=programs.claude)
    expected = await plain.end()
    assert said.splitlines() == expected.splitlines()
    assert "asked Bash {'command': 'touch forbidden'" in said, said
    assert "asked Bash {'command': 'touch allowed'" not in said, said
    assert plain.process.returncode == ours.process.returncode == 0, expected
    for number in (0, 1):
        assert not (programs.deck.command.work / f"program-{number}" / "allowed").exists()
    assert "deny by policy Bash: touch allowed" in await _audit(programs)


async def test_a_revoked_token_ends_the_agents_of_its_programs_and_nothing_more_is_allowed(
    programs: Programs,
) -> None:
    """With `token revoke`, as a person does it, while one program works and another one waits."""
    deck = programs.deck
    await deck.serve()
    token = (await deck("token", "--role", "program", "--name", "nightly")).out.strip()
    (grant,) = [
        line for line in (await deck("token", "list")).out.splitlines() if "nightly" in line
    ]
    env = {"QUARTERDECK_TOKEN": token}
    waits = await programs.start("waits.py", "waits", "touch never", **env)
    (ask,) = await _asks_about(programs, "touch never")
    works = await programs.start(
        "waits.py", "works", "answers", "(sleep 987 & wait)", "touch never-either", **env
    )
    working = await _working(programs)
    headers = {"Authorization": f"Bearer {token}"}
    url = f"ws{deck.address.removeprefix('http')}/program"
    async with connect(url, additional_headers=headers) as socket:
        await deck("token", "revoke", grant.split()[0])
        with pytest.raises(ConnectionClosed) as closed, anyio.fail_after(SECONDS):
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401

    # The deck says so at once, and nobody is asked any more.
    for session in (ask.session, working):
        await deck.until_state(session, "ended")
        log = (await deck("log", session)).out
        assert "The token of its program was revoked, or has expired." in log, log
    assert await anyio.to_thread.run_sync(deck.client.asks) == ()
    # The agents end with all that they have started, and the programs learn why.
    for program in (waits, works):
        said = await program.end()
        assert "quarterdeck-claude: the agent was ended" in said, said
        assert "done by" not in said, said
        assert program.process.returncode != 0
    assert not _sleepers()
    late = await programs.start("waits.py", "late", "touch never", **env)
    said = await late.end()
    assert "Nothing was run" in said, said
    assert late.process.returncode != 0
    assert not list(deck.command.work.glob("program-*/never*"))
    assert "touch never" not in await _audit(programs)
    assert len(list(deck.client.sessions())) == 2


async def test_other_processes_of_the_user_cannot_prompt_the_agent_of_a_program(
    programs: Programs, model: ScriptedModel
) -> None:
    """They write to the inbox of its CLI, while that is idle."""
    deck = programs.deck
    await deck.serve()
    program = await programs.start("waits.py", "idle", "stays")
    await program.hear("stays")
    (shape,) = await anyio.to_thread.run_sync(lambda: list(deck.client.sessions()))
    heads = [
        json.loads(bytes(each.event.line))
        for each in deck.client.events(shape.session)
        if isinstance(each.event, Said)
    ]
    (socket,) = {each["messaging_socket_path"] for each in heads if each.get("subtype") == "init"}
    await write_to_inbox(socket, "from outside")
    assert program.process.stdin is not None
    await program.process.stdin.send(b"\n")
    said = await program.end()
    assert "the second turn" in said, said
    ended = await deck.until_state(shape.session, "ended")
    assert (ended.turns, ended.peer_prompts) == (2, 0)
    assert not any("from outside" in str(turn.messages) for turn in model.turns)
    assert "from outside" not in (await deck("log", shape.session)).out


POLICY = """
default = "cli"

[[rule]]
name = "secrets"
verdict = "deny"
command = "cat secret"
message = "secrets stay where they are"

[[rule]]
name = "the owner pushes"
verdict = "ask"
command = "git push"
answered_by = ["role:owner"]
"""


HOSTILE = {
    "env": {"CLAUDE_CODE_SIMPLE": "1"},
    "crossSessionInbound": "accept",
    "permissions": {"allow": ["Bash(cat secret)"]},
}
"""Settings with which the CLI would call no hooks, and so hold no rule."""


async def test_people_and_program_answer_and_policy_denies_and_ends_are_clean(
    programs: Programs, tmp_path: Path
) -> None:
    deck = programs.deck
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    deck.command.env["QUARTERDECK_POLICY_FILE"] = str(policy)
    settings = Path(deck.command.env["HOME"]) / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps(HOSTILE))
    await deck.serve()
    program = await programs.start(
        "waits.py", "answerer", "answers", "touch a", "touch deny", "cat secret", "git push"
    )
    (ask,) = await _asks_about(programs, "git push")
    await deck("answer", ask.opened.ask, "deny", "-m", "not today")
    said = await program.end()
    assert "the program says no" in said
    assert "secrets stay where they are" in said
    assert "not today" in said
    assert said.count("asked Bash") == 3, "policy denied one before anybody was asked"
    audit = await _audit(programs)
    assert "allow by local's program waits.py Bash: touch a" in audit
    assert "deny by local's program waits.py Bash: touch deny" in audit
    log = (await deck("log", ask.session)).out
    assert "local's program waits.py has answered, and that does not count" in log

    # A program that is ended takes its CLI and all that it started with it, at once.
    for number in (signal.SIGTERM, signal.SIGKILL):
        program = await programs.start(
            "waits.py", "ended", "answers", "(sleep 987 & wait) && (sleep 986 & wait)"
        )
        await program.hear("asked Bash")
        session = await _working(programs)
        program.process.send_signal(number)
        await program.process.wait()
        await deck.until_state(session, "ended")
        await until_true(lambda: not _sleepers())


async def _audit(programs: Programs) -> str:
    """The audit log, with one blank between words."""
    return " ".join((await programs.deck("audit")).out.split())


async def _asks_about(programs: Programs, text: str) -> tuple[AskView, ...]:
    with anyio.fail_after(SECONDS):
        while True:
            found = await anyio.to_thread.run_sync(programs.deck.client.asks)
            if any(text in each.opened.title for each in found):
                return tuple(each for each in found if text in each.opened.title)
            await anyio.sleep(0.1)


async def _working(programs: Programs) -> str:
    """The session that works, when its tool runs."""
    client = programs.deck.client
    with anyio.fail_after(SECONDS):
        while True:
            found = await anyio.to_thread.run_sync(lambda: list(client.sessions()))
            working = [each.session for each in found if each.state == "working"]
            if working and _sleepers():
                return working[0]
            await anyio.sleep(0.1)


def _sleepers() -> list[int]:
    """The processes that the tool of a program has started."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with suppress(OSError):
                words = (each / "cmdline").read_bytes().split(b"\0")
                if words[:2] in ([b"sleep", b"987"], [b"sleep", b"986"]):
                    found.append(int(each.name))
    return found
