"""What is not known meets every rule that would stop it; what is known is not asked about."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.explain import explain
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.grants import narrowest
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset
from quarterdeck.policy.specifiers import Behavior

CONTEXT = Context(cwd="/project", home="/home/someone", settings="/project")
FACTS = Facts(
    mode="default", origin="main", branch="x", machine="local", project="", directory="/project"
)

WORDS_OF_CLAUDE = """
default = "ask"
[claude]
allow = ["Bash", "Read", "Edit", "Write", "Grep", "Glob", "NotebookEdit"]
deny = [
  "Read(./.env)", "Read(./secret/**)", "Read(~/.ssh/**)", "Edit(~/**)", "Edit(./.git/**)",
  "Bash(git push:*)", "Bash(docker run * --privileged)",
]
"""
WORDS_OF_OURS = """
default = "ask"
[[rule]]
verdict = "allow"
name = "all"
tool = ["Bash", "Read", "Edit", "Write", "Grep", "Glob", "NotebookEdit"]
[[rule]]
verdict = "deny"
name = "secrets"
path = ["**/.env", "./secret/**", "~/.ssh/**"]
[[rule]]
verdict = "ask"
name = "files of git and of the user"
tool = "Edit"
path = ["./.git/**", "~/**"]
[[rule]]
verdict = "deny"
name = "push"
command = ["git push", "docker run * --privileged"]
"""


def policy(text: str) -> Policy:
    loaded = read_policy(text, "test", preset=preset)
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


POLICIES = [policy(WORDS_OF_CLAUDE), policy(WORDS_OF_OURS)]


def told(held: Policy, tool: str, **members: object) -> Behavior:
    given = Raw(json.dumps(members).encode())
    call = Call(tool=tool, input=given, facts=FACTS, context=CONTEXT)
    return decide(call, Rules(policies=(held,))).behavior


@pytest.mark.parametrize("held", POLICIES, ids=["claude", "ours"])
@pytest.mark.parametrize(
    "command",
    [
        "cat $HOME/.ssh/id_rsa",
        'cat "$PWD/.env"',
        "name=.env; cat $name",
        "cat ${name:-.env}",
        "cat `echo .env`",
        "cat < $(echo .env)",
        "cat ~+/.env",
        "cat ~other/.ssh/id_rsa",
        "cat .{env,other}",
        "cat ~/.ss{h,x}/id_rsa",
        "cat .e*",
        "cat .[a-z]nv",
        "cat */key",
        "head s?cret/key",
        "cat /project/../project/.en?",
        "cat /home/*/.ssh/id_rsa",
        "echo .env | xargs cat",
        "find . -name .env -exec cat {} +",
        "find . -execdir cat {} \\;",
        "for name in .env; do cat $name; done",
        "while read -r name; do cat $name; done",
        "cd $HOME && cat .ssh/id_rsa",
        "cd - && cat key",
        "pushd secret; cat key",
        "command cd secret; cat key",
        "eval 'cd secret'; cat key",
        "trap 'cd secret' DEBUG; cat key",
        "env -C secret cat key",
        "cat /proc/self/cwd/.env",
        "cat /proc/thread-self/root/project/.env",
        "shopt -s dotglob; cat *",
        "bash -O dotglob -c 'cat *'",
        "echo x > $HOME/.bashrc",
        "there=.git; echo x > $there/config",
        "tee .git/hooks/{pre-commit,pre-push}",
        "cp a $target",
        "sub=push; git $sub",
        'git "$sub" origin',
        "git -C . $sub",
        "echo push | xargs git",
        "docker run $options image",
        "cat $'.env\\0x'",
        "cat $'\\x{2e}env'",
    ],
)
def test_what_may_be_forbidden_is_not_let_through(held: Policy, command: str) -> None:
    assert told(held, "Bash", command=command) is not Behavior.ALLOW


@pytest.mark.parametrize("held", POLICIES, ids=["claude", "ours"])
@pytest.mark.parametrize(
    "command",
    [
        "ls *.py",
        "cat *.md src/*.txt",
        "wc -l src/**/*.ts",
        "rm -f build/*.o",
        "mkdir -p src/{one,two}/{a,b}",
        "touch part{1..3}.txt",
        "diff <(sort a) <(sort b)",
        "git commit -m \"$(cat <<'EOF'\nIt is done.\nEOF\n)\"",
        'git commit -m "$message"',
        "docker build -t app:$tag .",
        "set -euo pipefail; cat *.md",
        "npm test && echo ok > result.txt",
        "echo $name; kill $(cat <<< 1)",
        "cd src && cat a.txt",
        "for x in 1 2; do echo $x; done",
        "python3 - <<'E'\nprint(1)\nE",
    ],
)
def test_what_cannot_be_forbidden_passes(held: Policy, command: str) -> None:
    assert told(held, "Bash", command=command) is Behavior.ALLOW


@pytest.mark.parametrize("held", POLICIES, ids=["claude", "ours"])
def test_a_word_of_a_few_known_texts_is_denied_and_not_asked_about(held: Policy) -> None:
    for command in ("cat {a,.env}", "cat secret/*", "cat {secret,src}/key", "cat ~/.ssh/*"):
        assert told(held, "Bash", command=command) is Behavior.DENY


def test_the_reason_says_that_nobody_can_tell() -> None:
    given = Raw(json.dumps({"command": "cat $name"}).encode())
    call = Call(tool="Bash", input=given, facts=FACTS, context=CONTEXT)
    for held in POLICIES:
        found = explain(call, Rules(policies=(held,)))
        assert found.verdict == "ask"
        assert "may deny $name" in found.reasons[0]
        assert any(not rule.sure for part in found.parts for rule in part.rules)


@pytest.mark.parametrize("held", POLICIES, ids=["claude", "ours"])
@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\r", "\u00a0", "\u2003", "\u3000", "\ufeff"])
def test_blanks_around_a_path_of_a_tool_do_not_count(held: Policy, blank: str) -> None:
    for path in (f"{blank}/project/.env", f".env{blank}", f"{blank}~/.ssh/id_rsa{blank}"):
        assert told(held, "Read", file_path=path) is Behavior.DENY
        assert told(held, "Grep", pattern="x", path=path) is Behavior.DENY
    for path in (f"{blank}/project/.git/config", f"{blank}~/.bashrc"):
        assert told(held, "Write", file_path=path, content="") is not Behavior.ALLOW
        assert told(held, "NotebookEdit", notebook_path=path) is not Behavior.ALLOW


def test_a_path_with_blanks_is_allowed_only_where_both_ways_to_read_it_are() -> None:
    held = policy('default = "ask"\n[claude]\nallow = ["Edit(./**)"]')
    assert told(held, "Write", file_path=" /outside/x", content="") is Behavior.ASK
    assert told(held, "Write", file_path=" /project/x", content="") is Behavior.ALLOW
    assert told(held, "Write", file_path="a file.txt ", content="") is Behavior.ALLOW


def test_composed_and_decomposed_names_are_one() -> None:
    held = policy('[claude]\nallow = ["Read"]\ndeny = ["Read(./caf\u00e9/**)"]')
    assert told(held, "Read", file_path="/project/cafe\u0301/a") is Behavior.DENY


def test_a_path_with_a_nul_is_not_known() -> None:
    for held in POLICIES:
        assert told(held, "Read", file_path="/project/a\0") is Behavior.ASK


@pytest.mark.parametrize(
    ("members", "verdict"),
    [
        ({"glob": ".env", "output_mode": "content"}, Behavior.DENY),
        ({"glob": ".env"}, Behavior.DENY),
        ({"glob": "\\.env"}, Behavior.DENY),
        ({"glob": "**/{.env,a}"}, Behavior.DENY),
        ({"glob": "*.ts .env"}, Behavior.DENY),
        ({"glob": ".e*"}, Behavior.ASK),
        ({"glob": "*"}, Behavior.ASK),
        ({"glob": "!*.ts"}, Behavior.ASK),
        ({"glob": "*.env"}, Behavior.ASK),
        ({"glob": ["*.ts"]}, Behavior.ASK),
        ({"path": "~", "glob": ".ssh/*"}, Behavior.ASK),
        ({"path": "/", "glob": "id_rsa"}, Behavior.ASK),
        ({"output_mode": "content"}, Behavior.ASK),
        ({"output_mode": "content", "path": "src"}, Behavior.ASK),
        ({"output_mode": "content", "glob": "*.ts"}, Behavior.ALLOW),
        ({"output_mode": "content", "type": "py"}, Behavior.ALLOW),
        ({"output_mode": "content", "glob": "src/**/*.{ts,tsx}"}, Behavior.ALLOW),
        ({"output_mode": "files_with_matches"}, Behavior.ALLOW),
        ({}, Behavior.ALLOW),
    ],
)
def test_what_a_search_reaches_is_held_against_rules_that_stop(
    members: dict[str, object], verdict: Behavior
) -> None:
    held = policy(
        'default = "ask"\n[claude]\nallow = ["Grep", "Read"]\n'
        'deny = ["Read(**/.env)", "Read(~/.ssh/**)"]'
    )
    assert told(held, "Grep", pattern="x", **members) is verdict


def test_a_pattern_for_any_folder_holds_in_any_folder() -> None:
    held = policy('extends = ["trusted-repo"]')
    assert told(held, "Read", file_path="/elsewhere/deep/.env") is Behavior.DENY
    assert told(held, "Bash", command="cat ../other/.env") is Behavior.DENY
    assert told(held, "Read", file_path="/elsewhere/environment") is Behavior.ALLOW


def test_a_search_can_still_be_granted() -> None:
    given = Raw(json.dumps({"pattern": "x", "path": "/other", "output_mode": "content"}).encode())
    assert narrowest("Grep", given, CONTEXT) == ("Read(//other)",)
