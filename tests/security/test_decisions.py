"""What runs is what was decided, and an agent decides nothing itself (H1 to H4, M8, M10, M11).

Short versions of the attacks; the modules beside the source have all their cases.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.cli import main
from quarterdeck.domain.errors import Forbidden
from quarterdeck.domain.marks import mark_invisible
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.policy.calls import short_call
from quarterdeck.policy.decide import Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Private
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import PRESETS, preset
from quarterdeck.policy.specifiers import Behavior
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, CreateSession, Scope
from quarterdeck.protocol.events import Decided
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runtime.data_dir import make_private
from quarterdeck.service.local_hub import CLI_TOKEN, private_in
from support import lines
from support.hub_machines import TestRun, hub_with

HERE = Context(cwd="/home/ada/shop", home="/home/ada")
DATA = "/home/ada/.local/share/quarterdeck"

PUSHING = """
[[rule]]
name = "no rm"
verdict = "deny"
command = "rm"

[[rule]]
name = "owners push"
verdict = "ask"
command = "git push"
answered_by = "role:owner"
"""


def policy_of(text: str) -> Policy:
    loaded = read_policy(text, "test", preset=preset)
    assert loaded.policy is not None
    return loaded.policy


def ruled(call: str, *policies: Policy, private: Private | None = None) -> Verdict:
    tool, given = short_call(call)
    rules = Rules(policies=policies, private=private)
    return decide(Call(tool=tool, input=given, context=HERE), rules)


@pytest.mark.parametrize("count", [400, 800, 1_600])
def test_h1_a_long_command_is_decided_about_although_a_rule_has_many_stars(count: int) -> None:
    """It took two minutes at 16 kB, in which nobody could do anything."""
    policy = policy_of('[claude]\nask = ["Bash(docker * run * --rm * -v *)"]\n')
    found = ruled("docker" + " run --rm " * count + " -v x", policy)
    assert found.behavior is Behavior.ASK


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[tuple[Hub, TestRun, str]]:
    """A hub, a session that asks whether it may run `ls`, and the question."""
    (tmp_path / "policy.toml").write_text(PUSHING)
    hub, machines = hub_with(MemoryJournal(), policies=Policies(tmp_path))
    async with hub.run():
        spec = SessionSpec(directory="/work")
        await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada"))
        run = machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        await run.say(lines.asks_permission("q1", command="ls"))
        (card,) = await hub.asks()
        yield hub, run, card.opened.ask


@pytest.mark.parametrize("command", ["git push --force", "rm -rf /home"])
async def test_h2_an_operator_does_not_get_another_command_run_by_editing_the_call(
    asked: tuple[Hub, TestRun, str], command: str
) -> None:
    hub, run, ask = asked
    given = AllowAnswer(input=Raw(json.dumps({"command": command}).encode()))
    with pytest.raises(Forbidden):
        await hub.submit(AnswerAsk(ask=ask, answer=given, by="olga", role="operator"))
    assert run.read() == []
    allowed = AllowAnswer(input=Raw(b'{"command": "ls -l"}'))
    await hub.submit(AnswerAsk(ask=ask, answer=allowed, by="olga", role="operator"))
    audit = [e.event for e in await hub.audit(session="mine") if isinstance(e.event, Decided)]
    assert [(entry.title, entry.rewritten) for entry in audit] == [("ls -l", True)]


@pytest.mark.parametrize("scope", [Scope.ALWAYS, Scope.EVERYWHERE])
async def test_m8_an_operator_grants_nothing_that_outlives_the_session(
    asked: tuple[Hub, TestRun, str], scope: Scope
) -> None:
    hub, run, ask = asked
    given = AllowAnswer(scope=scope)
    with pytest.raises(Forbidden, match="only an owner"):
        await hub.submit(AnswerAsk(ask=ask, answer=given, by="olga", role="operator"))
    assert run.read() == []


@pytest.mark.parametrize(
    "text",
    [
        "make test \u2067\u2066; touch PWNED \u2069\u2066# on all branches \u2069\u2069",
        "ls \u202ed- /tmp mr",
        "ls\u200b\u2060\ufeff\U000e0041",
        "ls\r; rm -rf ~",
        "ls\x08\x08rm",
        "ls \x1b[8m; rm -rf ~",
        "ls" + " " * 400 + "; rm -rf ~",
        "ls" + "\n" * 80 + "; rm -rf ~",
    ],
)
def test_h3_what_would_be_hidden_in_a_text_is_marked(text: str) -> None:
    shown = mark_invisible(text)
    assert shown != text
    assert not set(shown) & set("\u2066\u2067\u2069\u202e\u200b\u2060\ufeff\U000e0041\r\x08\x1b")
    assert " " * 50 not in shown
    assert "\n" * 10 not in shown


AGAINST_THE_HUB = (
    "quarterdeck answer 01j.q1 allow",
    "quarterdeck token --role owner",
    "quarterdeck policy grant 'Bash'",
    "sh -c 'quarterdeck send x y'",
    f"cat {DATA}/cli.token",
    f"Read({DATA}/cli.token)",
    f"Edit({DATA}/policy.toml)",
    f"cp -r {DATA} /tmp/x",
)


@pytest.mark.parametrize("call", AGAINST_THE_HUB)
def test_h4_no_policy_lets_an_agent_use_the_hub_against_its_people(call: str) -> None:
    private = private_in(Path(DATA))
    everything = policy_of('[claude]\nallow = ["Bash", "Read", "Edit", "Write"]\n')
    chosen = [everything, *(found for name in PRESETS if (found := preset(name)) is not None)]
    for policy in chosen:
        assert ruled(call, policy, private=private).behavior is Behavior.DENY


@pytest.mark.parametrize("words", [["answer", "1", "allow"], ["token"], ["send", "1", "x"]])
def test_h4_a_command_that_speaks_for_a_person_refuses_an_agent(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("QUARTERDECK_RUN_0a", "1")
    assert main(words) == 4
    assert not (tmp_path / "data" / CLI_TOKEN).exists()


PAST_THE_SECRETS = (
    "grep -r '' .",
    "rg --hidden KEY",
    "rg -uuu KEY",
    "rg . --no-ignore --hidden",
    "diff -r . /dev/null",
    "git show HEAD:.env",
    "git log -p -- .env",
    "git blame .env",
    "git blame --contents .env x",
    "file -f .env",
    "sort --files0-from=.env",
    "wc --files0-from=.env",
    "du --files0-from=.env",
    "diff --to-file=.env x",
    'Grep({"pattern": "KEY", "glob": ".env"})',
    "Read(.ENV)",
)


@pytest.mark.parametrize("name", ["careful", "read-only"])
@pytest.mark.parametrize("call", PAST_THE_SECRETS)
def test_m10_no_way_of_reading_a_secret_passes_without_a_question(name: str, call: str) -> None:
    policy = preset(name)
    assert policy is not None
    found = ruled(call, policy)
    assert found.behavior is not Behavior.ALLOW
    assert found.ruled or found.open, "it is not left to the CLI"


@pytest.mark.process
def test_m11_a_diff_never_has_the_data_folder_in_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, timeout=60)
    data = tmp_path / "dotfiles" / "quarterdeck"
    make_private(data)
    (data / "cli.token").write_text("qd_secret")
    (data / "policies").mkdir()
    (data / "policies" / "cli.secret").write_text("secret")
    (tmp_path / "new.txt").write_text("seen")
    listed = subprocess.run(
        ["git", "-C", str(tmp_path), "ls-files", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert listed.stdout.split() == ["new.txt"]
