"""Conditions on the place of a file: `outside`, `protected` and `except` of a rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.policy.calls import short_call
from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy

HERE = Context(cwd="/home/ada/shop", home="/home/ada", directories=("/srv/data",))


def policy(conditions: str, verdict: str = "deny") -> Policy:
    text = (
        '[[rule]]\nname = "all"\nverdict = "allow"\ntool = ["Bash", "Read", "Edit", "Write"]\n'
        f'[[rule]]\nname = "it"\nverdict = "{verdict}"\n{conditions}\n'
    )
    loaded = read_policy(text, "p")
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


def verdict(held: Policy, call: str, context: Context = HERE) -> str:
    tool, given = short_call(call)
    found = decide(Call(tool=tool, input=given, context=context), Rules(policies=(held,)))
    return found.behavior.value


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("echo x > out.txt", "allow"),
        ("echo x > /home/ada/shop/src/out.txt", "allow"),
        ("rm -rf /srv/data/old", "allow"),
        ("Write(/srv/data/x)", "allow"),
        ("echo x > /tmp/out.txt", "allow"),
        ("rm -rf /var/tmp/build", "allow"),
        ("make 2> /dev/null > /dev/stderr", "allow"),
        ("cat /etc/hosts", "allow"),
        ("echo x > ../other/out.txt", "deny"),
        ("rm -rf ~/Documents", "deny"),
        ("rm -rf /srv/database", "deny"),
        ("rm -rf /tmp", "deny"),
        ("rm -rf /tmp/*", "deny"),
        ("cp x ~/bin/ls", "deny"),
        ("mv ~/a .", "deny"),
        ("find ~ -name thesis.txt -delete", "deny"),
        ("Write(/home/ada/notes.txt)", "deny"),
        ("cd .. && rm -rf other", "deny"),
        ("rm -rf $X", "ask"),
    ],
)
def test_outside_is_neither_in_the_folders_of_the_session_nor_temporary(
    call: str, found: str
) -> None:
    assert verdict(policy('tool = "Edit"\noutside = true'), call) == found


def test_what_is_beside_a_project_in_the_temporary_folder_is_outside() -> None:
    held = policy('tool = "Edit"\noutside = true')
    context = Context(cwd="/tmp/work/shop", home="/tmp/work/home")
    assert verdict(held, "echo x > out.txt", context) == "allow"
    assert verdict(held, "echo x > ../other/out.txt", context) == "deny"
    assert verdict(held, "echo x > /tmp/out.txt", context) == "allow"


def test_a_link_out_of_the_temporary_folder_is_outside(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project" / "link").symlink_to(tmp_path / "elsewhere")
    context = Context(cwd=str(tmp_path / "project"), resolve=lambda path: str(Path(path).resolve()))
    held = policy('tool = "Edit"\noutside = true')
    assert verdict(held, "echo x > link/a", context) == "deny"
    assert verdict(held, "echo x > a", context) == "allow"


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("echo x > .git/config", "ask"),
        ("cp evil .github/workflows/ci.yml", "ask"),
        ("tee .mcp.json < x", "ask"),
        ("mv x .github", "ask"),
        ("rm -rf .gi*/hooks", "ask"),
        ("Write(/home/ada/shop/.gitlab-ci.yml)", "ask"),
        ("cat .git/config", "allow"),
        ("echo x > src/app.py", "allow"),
        ("rm -f build/*", "allow"),
        ("cp *.py old", "allow"),
    ],
)
def test_protected_files_can_be_named_as_such(call: str, found: str) -> None:
    assert verdict(policy('tool = "Edit"\nprotected = true', "ask"), call) == found


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("cat .env.local", "deny"),
        ("cat /elsewhere/.env.local", "deny"),
        ("cat .env.example", "allow"),
        ("cat /elsewhere/.env.example", "allow"),
        ("cat .env.example .env.local", "deny"),
        ("cat .env.*", "ask"),
        ("cat $X", "ask"),
        ("Read(/home/ada/shop/.env.example)", "allow"),
        ("Read(/home/ada/shop/.env.example/.env.local)", "deny"),
        ("Read(/home/ada/shop/.env.example/../.env.local)", "deny"),
    ],
)
def test_an_exception_takes_files_out_of_a_rule(call: str, found: str) -> None:
    held = policy('path = ["**/.env.*"]\nexcept = ["**/.env.example"]')
    assert verdict(held, call) == found


def test_an_exception_of_an_allow_rule_is_not_allowed() -> None:
    text = (
        'default = "ask"\n[[rule]]\nverdict = "allow"\n'
        'path = "./**"\nexcept = "./locked/**"\ntool = "Edit"\n'
    )
    held = read_policy(text, "p").policy
    assert held is not None
    assert verdict(held, "Edit(/home/ada/shop/a)") == "allow"
    assert verdict(held, "Edit(/home/ada/shop/locked/a)") == "ask"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('verdict = "allow"\ntool = "Edit"\noutside = true', "deny or ask"),
        ('verdict = "ask"\nprotected = "yes"', "expected true"),
        ('verdict = "ask"\noutside = false', "expected true"),
        ('verdict = "deny"\nexcept = "./x"', "needs commands or files"),
        ('verdict = "deny"\ncommand = "a"\npath = "b"\nexcept = "./x"', "not both"),
        ('verdict = "ask"\nlooks = true', "for an allow"),
        ('verdict = "allow"\nlooks = true\ncommand = "ls"', "for an allow"),
    ],
)
def test_conditions_that_make_no_sense_are_flaws(text: str, said: str) -> None:
    loaded = read_policy(f"[[rule]]\n{text}\n", "p")
    assert loaded.policy is None
    assert any(said in flaw.text for flaw in loaded.flaws)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("gh pr create", "deny"),
        ("gh pr view 3", "allow"),
        ("timeout 5 gh pr view", "allow"),
        ("gh pr", "deny"),
        ("gh --repo x pr view", "deny"),
        ("gh pr $X", "deny"),
        ("gh pr view; gh pr create", "deny"),
        ("ls", "allow"),
    ],
)
def test_an_exception_takes_commands_out_of_a_rule(call: str, found: str) -> None:
    assert verdict(policy('command = "gh"\nexcept = "gh pr view"'), call) == found


def test_a_rule_can_allow_all_commands_that_only_look() -> None:
    held = read_policy('default = "ask"\n[[rule]]\nverdict = "allow"\nlooks = true\n', "p").policy
    assert held is not None
    assert verdict(held, "cat src/app.py | sort") == "allow"
    assert verdict(held, "cat src/app.py > copy") == "ask"
    assert verdict(held, "cat src/app.py; rm src/app.py") == "ask"
    assert verdict(held, "sort -o x src/app.py") == "ask"


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("curl http://localhost:3000/x", "allow"),
        ("curl -s 127.0.0.1:3000 http://[::1]/", "allow"),
        ("curl http://0x7f.1/", "allow"),
        ("curl https://example.com", "deny"),
        ("curl http://localhost@example.com/", "deny"),
        ("curl http://localhost https://example.com", "deny"),
        ("curl -K settings http://localhost", "deny"),
        ("curl $URL", "deny"),
        ("echo https://example.com | xargs curl", "deny"),
        ("wget https://example.com", "allow"),
    ],
)
def test_a_rule_can_be_about_calls_to_other_machines(call: str, found: str) -> None:
    assert verdict(policy('command = "curl"\nremote = true'), call) == found


def test_all_hosts_elsewhere_can_be_meant_at_once() -> None:
    held = policy("remote = true", "ask")
    assert verdict(held, "wget https://example.com") == "ask"
    assert verdict(held, "wget http://localhost/x") == "allow"
    assert verdict(held, "echo https://example.com") == "allow"


def test_a_rule_that_is_only_for_what_is_certain_does_not_ask_about_the_unknown() -> None:
    always, certain = (
        policy('command = "rm x"', "ask"),
        policy('command = "rm x"\ncertain = true', "ask"),
    )
    for held in (always, certain):
        assert verdict(held, "rm x") == "ask"
        assert verdict(held, "rm y") == "allow"
    assert verdict(always, "rm $X") == "ask"
    assert verdict(certain, "rm $X") == "allow"


def test_all_edits_but_some_can_be_denied() -> None:
    held = policy('tool = "Edit"\nexcept = "./notes/*.md"')
    assert verdict(held, "Write(/home/ada/shop/notes/a.md)") == "allow"
    assert verdict(held, "Write(/home/ada/shop/notes/x/a.md)") == "deny"
    assert verdict(held, "Write(/home/ada/shop/a.md)") == "deny"
    assert verdict(held, "echo x > $F") == "deny"
    assert verdict(held, "cat a.md") == "allow"
