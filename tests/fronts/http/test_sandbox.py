"""The sandbox by the API alone, with the real CLI: no policy refuses anything, the kernel does."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest

from quarterdeck.protocol.roles import Role
from quarterdeck.sandbox import choose
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env, play, reply
from support.api_client import ApiSeat, Json, api_seat
from support.bounds import SECONDS
from support.processes import Processes
from support.scenes import bash
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

PROBE = """\
# Says in `log` what could be done. Nobody can tell from the command line what it does.
try() {{ if (eval "$2") >/dev/null 2>&1; then echo "$1" >> log; fi; }}
try project 'echo text > made.txt'
try commit 'git add made.txt && git commit -qm made'
try hook 'echo evil > .git/hooks/pre-commit'
try config 'git config core.hooksPath /tmp'
try settings 'mkdir -p .claude && echo "{{}}" > .claude/settings.json'
try token 'cat {data}/runner.token'
try journal 'cat {data}/journal.db'
try key 'cat ~/.ssh/id_ed25519'
"""


@pytest.fixture
async def seat(
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[ApiSeat]:
    """The whole service, on a machine that can make a sandbox."""
    if choose() is None:
        pytest.skip("no kind of sandbox works here")
    async with api_seat(clis["2.1.325"], "runner", model, tmp_path, processes, monkeypatch) as made:
        git(made.work, "init", "-q")
        git(made.work, "config", "user.email", "ada@example.org")
        git(made.work, "config", "user.name", "Ada")
        (made.work / "log").touch()
        (made.work / "probe.sh").write_text(PROBE.format(data=tmp_path / "data"))
        (made.home / ".ssh").mkdir()
        (made.home / ".ssh" / "id_ed25519").write_text("a key\n")
        yield made


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


async def run_probe(seat: ApiSeat, **spec: object) -> str:
    """A session that skips permissions and runs the probe; the answer to what is asked is yes."""
    env = isolated_env(seat.home, seat.model.url)
    claude = seat._cli.command[-1]
    full = {"directory": str(seat.work), "claude": claude, "env": env, "skip_permissions": True}
    prompt = play(reply(bash("sh probe.sh")), reply("done"))
    session = str(
        (await seat.ada.post("sessions", spec={**full, **spec}, prompt=prompt))["session"]
    )
    await end_of_turn(seat, session)
    return session


async def end_of_turn(seat: ApiSeat, session: str) -> None:
    def next_thing() -> Json | None:
        asks = seat.stream.of(session, "ask.opened")
        if asks and not seat.stream.of(session, "ask.answered"):
            return asks[0]
        return next(iter(seat.stream.of(session, "turn.ended")), None)

    found = await seat.stream.until(next_thing)
    if found["kind"] == "ask.opened":
        await seat.answer(found, "allow")
        await seat.stream.until(lambda: seat.stream.of(session, "turn.ended") or None)


def log(seat: ApiSeat) -> list[str]:
    return (seat.work / "log").read_text().split()


async def test_a_script_of_the_agent_writes_no_hook_and_reads_no_secret(seat: ApiSeat) -> None:
    session = await run_probe(seat)
    assert log(seat) == ["project", "commit"]
    shape = await seat.ada.get(f"sessions/{session}")
    assert (shape["sandbox"]["mode"], shape["sandbox"]["wanted"]) == ("protect", "protect")
    entries = (await seat.bob.get("audit", session=session))["events"]
    (started,) = [row["event"] for row in entries if row["event"]["kind"] == "sandbox.started"]
    assert started["state"]["kind"] == shape["sandbox"]["kind"]
    assert str(seat.work) in started["paths"]["writable"]

    # What a command says of it is a hint beside the call, with the rule that an owner may grant.
    hook = seat.work / ".git" / "hooks" / "post-commit"
    await seat.send(session, reply(bash(f"echo evil > {hook}")), reply("a pity"))
    await seat.stream.until(lambda: len(seat.stream.of(session, "turn.ended")) == 2 or None)
    (hint,) = seat.stream.of(session, "sandbox.refused")
    assert (hint["tool"], hint["access"], hint["target"]) == ("Bash", "write", str(hook))
    assert hint["rule"] == f"Edit(/{hook.parent})"
    await seat.ada.post("policy/grants", rules=[hint["rule"]], directory=str(seat.work))
    await seat.stop(session)
    await seat.ada.post(f"sessions/{session}/resume")
    await seat.send(session, reply(bash(f"echo good > {hook}")), reply("at last"))
    await seat.stream.until(lambda: len(seat.stream.of(session, "turn.ended")) == 3 or None)
    assert hook.read_text() == "good\n"
    await seat.stop(session)
    left = {".git", "log", "made.txt", "probe.sh"}
    with anyio.fail_after(SECONDS):  # the runner removes what the sandbox needed
        await until(lambda: {path.name for path in seat.work.iterdir()} == left)
    assert not (seat.work / ".git" / "hooks" / "pre-commit").exists()


async def test_without_the_sandbox_the_same_script_does_all_of_it(seat: ApiSeat) -> None:
    session = await run_probe(seat, sandbox="off")
    assert log(seat) == [
        "project",
        "commit",
        "hook",
        "config",
        "settings",
        "token",
        "journal",
        "key",
    ]
    shape = await seat.ada.get(f"sessions/{session}")
    assert shape["sandbox"].get("mode", "off") == "off"
    assert shape["sandbox"]["reason"] == "chosen"
    await seat.stop(session)


async def test_a_strict_session_reaches_the_model_alone_also_after_it_is_resumed(
    seat: ApiSeat,
) -> None:
    code = "import urllib.request as u; u.urlopen('http://refused.example/', timeout=20)"
    (seat.work / "probe.sh").write_text(f'python3 -c "{code}" || echo refused >> log\n')
    session = await run_probe(seat, sandbox="strict")
    await seat.stop(session)
    await seat.ada.post(f"sessions/{session}/resume")
    await seat.state(session, "idle")
    shape = await seat.ada.get(f"sessions/{session}")
    assert (shape["sandbox"]["mode"], shape["sandbox"]["network"]) == ("strict", "model")
    assert log(seat) == ["refused"]
    entries = [row["event"] for row in (await seat.bob.get("audit", session=session))["events"]]
    hosts = {
        (entry["host"], entry["allowed"])
        for entry in entries
        if entry["kind"] == "sandbox.connection"
    }
    assert ("refused.example", False) in hosts
    (hint,) = seat.stream.of(session, "sandbox.refused")
    assert (hint["access"], hint["target"]) == ("connect", "refused.example")
    assert hint["rule"] == "WebFetch(domain:refused.example)"
    await seat.stop(session)


async def test_only_an_owner_can_start_a_session_and_choose_its_sandbox(seat: ApiSeat) -> None:
    token = seat.deck.access.make_token("oscar", Role.OPERATOR)
    spec = {"directory": str(seat.work), "sandbox": "off"}
    async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as http:
        refused = await http.post(
            f"{seat.deck.address}/api/sessions",
            headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
            content=json.dumps({"spec": spec}),
        )
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
