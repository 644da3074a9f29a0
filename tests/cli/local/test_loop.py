"""`quarterdeck loop --local`: exit codes, what is printed, a loop that is killed and continued."""

from __future__ import annotations

import json
import os
import signal

import anyio
import pytest

from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import Gate, ToolUse, reply
from support.bounds import SECONDS
from support.command_line import Quarterdeck
from support.served_deck import ServedDeck

pytestmark = pytest.mark.anyio


@pytest.mark.real_cli
async def test_a_loop_is_killed_and_goes_on_where_it_was(
    quarterdeck: Quarterdeck, model: ScriptedModel
) -> None:
    model.enqueue("one", reply("half ", Gate()), "two\n\nALL DONE")
    arguments = ("loop", "run", "--local", "--api-billing", "--until-phrase", "ALL DONE", "Do it.")
    process = await quarterdeck.start(*arguments)
    await model.wait_at_gate(timeout=SECONDS)
    os.kill(process.pid, signal.SIGKILL)
    with anyio.fail_after(SECONDS):
        await process.wait()
    await process.aclose()

    listed = await quarterdeck("loop", "list", "--local", "--json")
    (shape,) = map(json.loads, listed.out.splitlines())
    assert (shape["state"], shape["turns"]) == ("cut_off", 1)
    # Its agent has lost its input, and ends by itself.
    done = await quarterdeck("loop", "continue", shape["loop"][:12], "--json")
    assert done.code == 10, done.err
    report = json.loads(done.out)
    assert [turn["outcome"]["text"] for turn in report["history"]] == ["one", "two\n\nALL DONE"]
    assert "The agent wrote: ALL DONE" in done.err

    shown = await quarterdeck("loop", "show", "--local", shape["loop"])
    assert "- Stopped: phrase (exit code 10)." in shown.out


@pytest.mark.real_cli
async def test_ctrl_c_stops_a_local_loop(quarterdeck: Quarterdeck, model: ScriptedModel) -> None:
    model.enqueue(reply("half ", Gate()))
    process = await quarterdeck.start("loop", "run", "--local", "--api-billing", "Do it.")
    await model.wait_at_gate(timeout=SECONDS)
    os.kill(process.pid, signal.SIGINT)
    with anyio.fail_after(SECONDS):
        assert await process.wait() == 30
    await process.aclose()


RULES = """
[[rule]]
name = "no folders"
verdict = "deny"
command = "mkdir"

[[rule]]
name = "files"
verdict = "ask"
command = "touch"
"""


@pytest.mark.real_cli
async def test_rules_decide_a_person_at_the_terminal_is_asked_and_who_is_away_denies(
    quarterdeck: Quarterdeck, model: ScriptedModel
) -> None:
    """Also with permissions skipped: the rules of this machine hold all the same."""
    data = quarterdeck.home / "data"
    data.mkdir(mode=0o700)
    (data / "policy.toml").write_text(RULES)
    quarterdeck.env["QUARTERDECK_HOME"] = str(data)
    calls = [
        ToolUse("Bash", {"command": command, "description": "make it"})
        for command in ("mkdir never", "touch made", "touch late")
    ]
    model.enqueue(*calls, "so be it\n\nALL DONE")
    skipped = ("--api-billing", "--mode", "bypassPermissions")
    arguments = ("--until-phrase", "ALL DONE", "--ask-timeout", "5", "Do it.")
    here = quarterdeck.at_terminal("loop", "run", "--local", *skipped, *arguments)
    await here.expect("touch made")
    await here.expect("reason: files (")
    await here.expect("\n? ")
    here.press("y\n")
    await here.expect("touch late")
    await here.expect("Denied: Bash: mkdir never (no folders (")
    await here.expect("Denied: Bash: touch late (time limit)")
    assert await here.end() == 10
    assert (quarterdeck.work / "made").exists()
    assert not (quarterdeck.work / "late").exists()
    assert not (quarterdeck.work / "never").exists()
    (audit,) = data.glob("loops/*/audit.jsonl")
    entries = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(each["title"], each["verdict"], each["rule"]) for each in entries] == [
        ("mkdir never", "deny", "no folders"),
        ("touch made", "allow", "files"),
        ("touch late", "deny", "files"),
    ]


REFUSED = (
    (("run", "--local"), "give a TASK, or a file with --file"),
    (("run", "--local", "--file", "none", "x"), "give a TASK"),
    (("run", "--local", "--file", "not-there"), "cannot read"),
    (("run", "--local", "--minutes", "-1", "x"), "stops.seconds"),
    (("run", "--local", "--policy", "x", "x"), "there is no policy 'x'"),
    (("run", "--local", "--result-schema", "/dev/null", "x"), "--result-schema"),
    (("run", "--local", "--env", "x", "x"), "NAME=VALUE"),
    (("run", "--local", "--sandbox", "x", "x"), "--sandbox: 'x' is not one of"),
)


@pytest.mark.process
async def test_a_loop_that_cannot_work_is_refused(deck: ServedDeck) -> None:
    for arguments, says in REFUSED:
        done = await deck("loop", *arguments, code=2)
        assert says in done.err, arguments
