"""Rules hold over real CLIs, the oldest and the newest, also where a CLI would let a call pass."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from quarterdeck.domain.errors import Forbidden
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, DenyAnswer, Scope, SendPrompt
from quarterdeck.protocol.events import AskAnswered, Decided
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import Text, ToolUse, play
from support.hub_house import House, PolicedHouse

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

VERSIONS = ("2.1.37", "2.1.325")

POLICY = """
[[rule]]
name = "no denied files"
verdict = "deny"
command = "touch"
branch = "topic"
path = "./denied*"
message = "That file is not yours."

[[rule]]
name = "ask about echo"
verdict = "ask"
command = "echo"
flags = ["-n"]
answered_by = "role:owner"

[[rule]]
name = "quiet"
verdict = "rewrite"
command = "touch"
path = "./old"
rewrite = { add_flags = ["--no-create"] }

[[rule]]
name = "make files"
verdict = "allow"
command = "touch"
"""


def bash(command: str) -> ToolUse:
    return ToolUse("Bash", {"command": command})


@pytest.fixture
def spec(
    tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli]
) -> Callable[[str], SessionSpec]:
    """A session of a version, in a repository; the CLI's own settings allow every command."""
    (tmp_path / "home").mkdir()
    work = tmp_path / "work"
    (work / ".claude").mkdir(parents=True)
    settings = {"permissions": {"allow": ["Bash"]}}
    (work / ".claude" / "settings.json").write_text(json.dumps(settings))
    subprocess.run(["git", "init", "-q", "-b", "topic", str(work)], check=True)

    def make(version: str) -> SessionSpec:
        return SessionSpec(
            directory=str(work),
            claude=clis[version].command[-1],
            env=isolated_env(tmp_path / "home", model.url),
        )

    return make


def prompt(*said: ToolUse | str) -> bytes:
    return json.dumps(play(*said, Text("done"))).encode()


async def send(home: House, session: str, *said: ToolUse) -> None:
    head = (await home.hub.session(session)).head
    content = msgspec.Raw(prompt(*said))
    await home.hub.submit(SendPrompt(session=session, prompt=f"p{head}", content=content))


async def until_turns(home: House, session: str, turns: int) -> None:
    await home.until(session, lambda view: view.turns == turns)


async def decisions(home: House, session: str) -> list[Decided]:
    stored = await home.hub.audit(session=session)
    return [each.event for each in stored if isinstance(each.event, Decided)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_rules_hold_where_the_settings_of_the_cli_allow_everything(
    version: str,
    spec: Callable[[str], SessionSpec],
    model: ScriptedModel,
    policed: PolicedHouse,
) -> None:
    await policed.rule(POLICY)
    home = policed.home
    session_spec = spec(version)
    work = Path(session_spec.directory)
    script = play(
        bash("touch made"),
        bash("true && touch denied"),
        bash("touch old"),
        bash("echo -n x"),
        bash("ls"),
        Text("done"),
    )
    session = await home.new(session_spec, json.dumps(script).encode())

    # The settings would let it pass, and every version but for the hook asks nobody.
    card = await home.ask(session)
    assert (card.opened.tool, card.opened.rule) == ("Bash", "ask about echo")
    assert card.opened.coded
    with pytest.raises(Forbidden, match="role:owner"):
        await home.answer(card, AllowAnswer(), by="bob")
    ask, answer = card.opened.ask, AllowAnswer()
    owner = AnswerAsk(ask=ask, answer=answer, by="ada", role="owner")
    await home.hub.submit(owner)

    await home.until(session, lambda view: view.turns == 1)
    assert (work / "made").exists()
    assert not (work / "denied").exists()
    assert not (work / "old").exists()
    told = " ".join(turn.body.decode() for turn in model.turns)
    assert "That file is not yours." in told

    found = await decisions(home, session)
    by_rule = {one.rule: one for one in found if one.rule is not None}
    assert by_rule["no denied files"].verdict == "deny"
    assert by_rule["no denied files"].branch == "topic"
    assert by_rule["no denied files"].source == "policy.toml:2"
    assert (by_rule["ask about echo"].by, by_rule["ask about echo"].verdict) == ("ada", "allow")
    assert any(one.rewritten for one in found)
    # Every call has its entry, also the one that the CLI decided by itself.
    assert len({one.tool_use_id for one in found}) == 5
    assert [one.by for one in found].count("cli") == 1

    replayed = await home.hub.policy.replay('default = "deny"', 0, session)
    assert replayed.calls == 5
    assert replayed.counts["denied → deny"] == 1
    assert (await home.hub.policy.verify()).good


async def test_a_policy_that_the_session_names_is_on_top(
    spec: Callable[[str], SessionSpec], home: House
) -> None:
    named = msgspec.structs.replace(spec("2.1.325"), policy="read-only")
    script = play(bash("touch made"), ToolUse("Bash", {"command": "git status"}), Text("done"))
    session = await home.new(named, json.dumps(script).encode())
    await home.until(session, lambda view: view.turns == 1)
    first, second = await decisions(home, session)
    assert (first.verdict, first.rule) == ("deny", "no edits")
    assert (second.verdict, second.rule) == ("allow", "commands that only look")
    assert not (Path(named.directory) / "made").exists()


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_answer_for_longer_than_one_call_is_a_grant_that_can_be_revoked(
    version: str,
    spec: Callable[[str], SessionSpec],
    home: House,
) -> None:
    session_spec = spec(version)
    work = Path(session_spec.directory)
    (work / ".claude" / "settings.json").unlink()
    session = await home.new(session_spec, prompt("hello"))
    await home.until(session, lambda view: view.turns == 1)
    for turns, scope in ((2, Scope.ALWAYS), (4, Scope.SESSION)):
        command = f"touch {scope} && chmod 600 {scope}"
        await send(home, session, bash(command), bash(command))
        card = await home.ask(session)
        await home.answer(card, AllowAnswer(scope=scope, seconds=3600), by="ada", role="owner")
        await until_turns(home, session, turns)

        (grant,) = Policies(home.folder).grants  # it is on the disk
        assert (grant.by, grant.ask, grant.rules) == ("ada", card.opened.ask, (f"Bash({command})",))
        where = (None, session) if scope is Scope.SESSION else (str(work), None)
        assert (grant.directory, grant.session) == where
        assert grant.until == grant.at + 3_600_000
        assert not (work / ".claude" / "settings.local.json").exists()
        first, second = (await decisions(home, session))[-2:]
        assert (first.by, second.by) == ("ada", "policy")
        assert second.rule == f"grant {grant.id} of ada"

        await home.hub.policy.revoke(grant.id)
        await send(home, session, bash(command))
        card = await home.ask(session)
        await home.answer(card, DenyAnswer())
        await until_turns(home, session, turns + 1)


async def test_a_question_waits_as_long_as_its_rule_says_and_then_what_the_rule_says_happens(
    spec: Callable[[str], SessionSpec], policed: PolicedHouse
) -> None:
    home = policed.home
    await policed.rule(
        '[[rule]]\nname = "soon"\nverdict = "ask"\ncommand = "touch"\nwait = "1s"\nthen = "allow"\n'
        '[[rule]]\nname = "never"\nverdict = "ask"\ncommand = "mkdir"\nwait = "1s"\n'
    )
    session_spec = spec("2.1.325")
    script = play(bash("touch made"), bash("mkdir folder"), Text("done"))
    session = await home.new(session_spec, json.dumps(script).encode())
    await home.until(session, lambda view: view.turns == 1)
    assert (Path(session_spec.directory) / "made").exists()
    assert not (Path(session_spec.directory) / "folder").exists()
    stored = await home.hub.audit(session=session)
    answered = [each.event for each in stored if isinstance(each.event, AskAnswered)]
    assert [one.by for one in answered] == ["policy: soon", "time limit"]
