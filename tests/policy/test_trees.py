"""A folder that is read as a whole meets a rule about a file if the file is there."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.trees import Tree, look_once

FACTS = Facts(mode="default", origin="main", branch="x", machine="local", project="")
FILES = {
    "/p": ["src", "src/a.ts", "docs", "docs/a.md", ".env", "secret", "secret/key"],
    "/p/src": ["a.ts"],
    "/p/docs": ["a.md"],
    "/r": ["lnk", "one.ts", "src", "src/a.ts"],
    "/r/src": ["a.ts"],
    "/q": ["src", "src/a.ts", "x.ts"],
    "/q/src": ["a.ts"],
}
LINKS = {"/r": [("lnk", "/outside"), ("one.ts", "/outside/hidden.ts")]}


def below(folder: str) -> tuple[list[str], list[tuple[str, str]]] | None:
    return None if folder == "/large" else (FILES.get(folder, []), LINKS.get(folder, []))


def policy(text: str) -> Policy:
    loaded = read_policy(text, "test")
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


HELD = policy("""
default = "ask"
[[rule]]
name = "all"
verdict = "allow"
tool = ["Bash", "Grep"]
[[rule]]
name = "secrets"
verdict = "deny"
path = ["**/.env", "**/.env.*", "//p/secret/**", "//outside/**"]
""")


def told(tool: str, cwd: str, *, look: bool = True, **members: object) -> str:
    context = Context(
        cwd=cwd,
        home="/home/me",
        resolve=lambda path: path,
        below=look_once(below) if look else None,
    )
    given = Raw(json.dumps(members).encode())
    call = Call(tool=tool, input=given, facts=FACTS, context=context)
    return decide(call, Rules(policies=(HELD,))).behavior.value


@pytest.mark.parametrize(
    ("command", "here", "there", "unseen"),
    [
        # In a folder with the file, in one without it, and where nobody can look.
        ("grep -rn x .", "ask", "allow", "ask"),
        ("grep -rn x", "ask", "allow", "ask"),
        ("grep -rn x src", "allow", "allow", "ask"),
        ("grep -rn x --include='*.ts' src", "allow", "allow", "allow"),
        ("rg x -t ts src", "allow", "allow", "allow"),
        ("cp -r . /tmp/copy", "ask", "allow", "ask"),
        ("cp -r . ../copy && grep -r x ../copy", "ask", "allow", "ask"),
        ("tar cf /tmp/a.tar .", "ask", "allow", "ask"),
        ("git ls-files | xargs cat", "ask", "allow", "ask"),
        ("find . -type f -exec cat {} +", "ask", "allow", "ask"),
        ("find src -name '*.ts' -exec cat {} +", "allow", "allow", "allow"),
        ("find . -type f", "allow", "allow", "allow"),
        ("ls -R", "allow", "allow", "allow"),
        ("rm -rf src", "allow", "allow", "allow"),
        ("rm -rf .", "deny", "allow", "ask"),
        ("cat .e*", "ask", "allow", "ask"),
        ("ls -d .e*", "allow", "allow", "allow"),
        ("rg -uu x", "ask", "allow", "ask"),
        ("cat src/*.ts", "allow", "allow", "allow"),
    ],
)
def test_a_folder_is_asked_about_if_a_forbidden_file_may_be_in_it(
    command: str, here: str, there: str, unseen: str
) -> None:
    assert told("Bash", "/p", command=command) == here
    assert told("Bash", "/q", command=command) == there
    assert told("Bash", "/q", look=False, command=command) == unseen


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat l*/a", "deny"),
        ("cat ln[k]/a", "deny"),
        ("cat *.ts", "deny"),
        ("cat src/*.ts", "allow"),
        ("cat s*/a.ts", "allow"),
        ("cat *x*", "allow"),
        ("find . -name '*.ts' -exec cat {} +", "deny"),
        ("find src -name '*.ts' -exec cat {} +", "allow"),
        ("grep -r x --include='*.md' .", "allow"),
    ],
)
def test_a_pattern_may_lead_through_a_link(command: str, expected: str) -> None:
    assert told("Bash", "/r", command=command) == expected


def test_a_search_by_the_tool_is_looked_up_too() -> None:
    for glob in ("*", "**/*"):
        assert told("Grep", "/p", pattern="x", output_mode="content", glob=glob) == "ask"
        assert told("Grep", "/q", pattern="x", output_mode="content", glob=glob) == "allow"
    assert told("Grep", "/p", pattern="x", output_mode="content") == "ask"
    assert told("Grep", "/q", pattern="x", output_mode="content") == "allow"
    assert told("Grep", "/q", pattern="x", path="/large", output_mode="content") == "ask"


def test_a_folder_is_looked_at_once() -> None:
    looked: list[str] = []

    def look(folder: str) -> tuple[list[str], list[tuple[str, str]]] | None:
        looked.append(folder)
        return None if folder == "/c" else (["x/.env", "x"], [])

    once = look_once(look)
    for folder in ("/a", "/b", "/a", "/c", "/c"):
        once(folder)
    assert looked == ["/a", "/b", "/c"]
    tree = once("/a")
    assert tree is not None
    assert list(tree.paths_called(".e*")) == ["x/.env"]
    assert tree.folders == {"", "x"}
    assert Tree() == Tree(names={})


def test_a_pattern_in_a_folder_that_is_a_link_is_not_in_the_project() -> None:
    held = policy(
        'default = "ask"\n[claude]\nallow = ["Bash(cat:*)"]\ndeny = ["Read(//away/**)"]\n'
    )
    context = Context(
        cwd="/q", resolve=lambda path: path.replace("/q/lnk", "/away"), below=look_once(below)
    )
    found = {}
    for command in ("cat lnk/*", "cat src/*", "cat */a.ts", "cat s*/../lnk/x"):
        given = Raw(json.dumps({"command": command}).encode())
        call = Call(tool="Bash", input=given, facts=FACTS, context=context)
        found[command] = decide(call, Rules(policies=(held,))).behavior.value
    assert found == {
        "cat lnk/*": "deny",
        "cat src/*": "allow",
        "cat */a.ts": "allow",
        "cat s*/../lnk/x": "deny",
    }


def test_a_search_that_leaves_out_hidden_files_does_not_meet_one() -> None:
    only_env = look_once(lambda _: ([".env", "a.ts", ".x/.env.local"], []))
    context = Context(cwd="/p", home="/home/me", resolve=lambda path: path, below=only_env)
    held = policy(
        '[claude]\nallow = ["Bash"]\n[[rule]]\nverdict = "deny"\npath = ["**/.env", "**/.env.*"]\n'
    )
    for command, verdict in (("rg x", "allow"), ("rg --hidden x", "ask"), ("grep -r x .", "ask")):
        given = Raw(json.dumps({"command": command}).encode())
        call = Call(tool="Bash", input=given, facts=FACTS, context=context)
        assert decide(call, Rules(policies=(held,))).behavior.value == verdict, command
