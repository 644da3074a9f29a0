"""A rule that stops a command stops it under its other names, and a rule that allows one does not
allow the others.
"""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context

HERE = Context(cwd="/project", home="/home/ada")


def verdict(policy: str, command: str) -> str:
    """What a policy says of a command; `cli` if nothing."""
    loaded = read_policy(policy, "p")
    assert loaded.policy is not None, loaded.flaws
    given = Raw(msgspec.json.encode({"command": command}))
    call = Call(tool="Bash", input=given, context=HERE)
    found = decide(call, Rules(policies=(loaded.policy,)))
    return found.behavior.value if found.ruled else "cli"


def own(verb: str, command: str) -> str:
    return f'[[rule]]\nname = "r"\nverdict = "{verb}"\ncommand = "{command}"\n'


def claude(verb: str, command: str) -> str:
    return f'[claude]\n{verb} = ["Bash({command}:*)"]\n'


PAIRS = [
    ("docker push", "docker image push x"),
    ("docker image push", "docker push x"),
    ("docker push", "docker --context a image push x"),
    ("docker rmi", "docker image rm x"),
    ("docker ps", "docker container ls"),
    ("docker build", "docker buildx build ."),
    ("docker compose up", "docker-compose up -d"),
    ("docker-compose up", "docker compose up -d"),
    ("podman push", "podman image push x"),
    ("pip install", "python3 -m pip install x"),
    ("pip install", "python3.11 -Im pip install x"),
    ("pip install", "/usr/bin/python3 -m pip install x"),
    ("pip install", "pip3 install x"),
    ("pip3 install", "pip install x"),
    ("python -m pip install", "pip3 install x"),
    ("twine", "python -m twine upload x"),
    ("pytest", "python3 -m pytest -q"),
    ("npm install", "npm i x"),
    ("npm i", "npm install x"),
    ("npm i", "npm add x"),
    ("npm i", "npm --prefix a isntall x"),
    ("npx", "npm exec x"),
    ("npm exec", "npx x"),
    ("pnpm i", "pnpm install"),
    ("cargo build", "cargo b"),
    ("git add", "git stage x"),
    ("git stage", "git -C . add x"),
    ("svn commit", "svn ci -m x"),
    ("brew uninstall", "brew rm x"),
    ("apt install", "sudo apt-get install x"),
    ("grep -E", "egrep x a"),
    ("egrep", "grep -nE x a"),
    ("grep", "egrep x a"),
    ("rm", "busybox rm x"),
    ("rm -rf", "busybox rm -rf x"),
    ("vim", "vi a"),
    ("vi", "nvim a"),
    ("python", "python3 a.py"),
    ("python3", "python a.py"),
    ("node", "nodejs a.js"),
    ("tar", "gtar xf a"),
    ("source", ". ./a.sh"),
]


@pytest.mark.parametrize(("rule", "command"), PAIRS)
def test_a_rule_that_stops_a_command_stops_its_other_names(rule: str, command: str) -> None:
    for make in (own, claude):
        assert verdict(make("deny", rule), command) == "deny"
        assert verdict(make("ask", rule), command) == "ask"


@pytest.mark.parametrize(("rule", "command"), PAIRS)
def test_it_does_so_within_a_longer_command(rule: str, command: str) -> None:
    assert verdict(own("deny", rule), f"cd src && {command} | head -5") == "deny"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("docker push", "docker image push x"),
        ("docker image push", "docker push x"),
        ("pip list", "python3 -m pip list"),
        ("pip list", "pip3 list"),
        ("egrep", "grep -E x a"),
        ("grep", "egrep x a"),
        ("cargo build", "cargo b"),
    ],
)
def test_a_rule_that_allows_a_command_allows_it_only_as_it_is_typed(
    rule: str, command: str
) -> None:
    for make in (own, claude):
        assert verdict(make("allow", rule), command) == "cli"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("docker push", "docker image ls"),
        ("docker push", "docker image pull x"),
        ("docker push", "echo docker image push"),
        ("pip install", "python3 -m pip list"),
        ("pip install", "python3 a.py -m pip install"),
        ("npm create", "npm init"),
        ("npm i", "npm info x"),
        ("egrep", "grep x a"),
        ("git stage", "git status"),
        ("uvx", "uv tool list"),
    ],
)
def test_other_commands_of_the_same_program_are_not_stopped(rule: str, command: str) -> None:
    for make in (own, claude):
        assert verdict(make("deny", rule), command) == "cli"


@pytest.mark.parametrize("command", ["docker image $x y", "docker image | xargs docker image"])
def test_an_unknown_subcommand_may_be_another_name_of_one_that_is_stopped(command: str) -> None:
    for make in (own, claude):
        assert verdict(make("deny", "docker push"), command) == "ask"
    assert verdict(own("deny", "git push"), "docker image $x") == "cli"


@pytest.mark.parametrize(
    "command",
    ["gsed '' a", "pip ''", "pip '' install x", "docker '' push", "python3 -m ''", "'' a", "vi ''"],
)
def test_an_empty_word_is_a_word(command: str) -> None:
    loaded = read_policy(f"{claude('deny', 'docker push')}{own('deny', 'rm -rf')}", "p")
    assert loaded.policy is not None
    call = Call(tool="Bash", input=Raw(msgspec.json.encode({"command": command})), context=HERE)
    reasons = decide(call, Rules(policies=(loaded.policy,))).reasons
    assert "could not decide" not in reasons[0]
