"""Odd inputs: nothing raises, nothing passes because of them, and the work for them is bounded."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.explain import explain
from quarterdeck.policy.facts import Private
from quarterdeck.policy.grants import narrowest
from quarterdeck.policy.needs import MOST_NEEDS, MOST_PROBLEMS, Context, Request, needs_of
from quarterdeck.policy.presets import preset
from quarterdeck.policy.replay import PastCall
from quarterdeck.policy.shell import LIMIT, read
from quarterdeck.policy.shell.tokens import MOST_TOKENS
from quarterdeck.policy.suggest import suggest
from quarterdeck.policy.trees import Tree
from support.examples import examples

CONTEXT = Context(cwd="/project", home="/home/someone", below=lambda _: Tree())
ODD = [
    "cat " + "<<<" * 5000,
    "cat " + "<<E " * 4000,
    "cat " + "a* " * 5000,
    "find . " + "-exec ls {} \\; " * 1000,
    "(" * 8000 + ")" * 8000,
    "echo " + "$(" * 2700 + ")" * 2700,
    "echo " + "${x:-" * 2700 + "}" * 2700,
    "a|" * 8000 + "a",
    "eval " * 3000 + "ls",
    "ssh h " * 2700 + "ls",
    "tar " + "c" * 16000,
    "".join(f"ln -s a{at} a{at + 1};" for at in range(800)) + "cat a800/x",
    "ln -s a b;" * 400 + "cat b/c;" * 400,
    "f(){ " * 300 + "ls;" + "};" * 300,
    "for ((i=0;i<1;i++)); do " * 200 + "ls;" + "done;" * 200,
    "for i in a b; do " * 300 + "ls;" + " done;" * 300,
    "".join(f"x{at}=$x{at - 1}a;" for at in range(1, 900)) + "cat $x899",
    "cat " + "?" * 8000,
    "cat a\0b",
    "cat $'a\\0b'",
    "".join(map(chr, range(1, 32))) * 500,
    "x" * 1_000_000,
]


def answered(call: Call) -> PastCall:
    """A call that a person allowed."""
    return PastCall(session="s", call=call, at=0, by="ada", asked=True, done="allow")


@pytest.mark.parametrize("command", ODD, ids=range(len(ODD)))
@pytest.mark.no_cover
def test_odd_commands_are_asked_about_after_a_bounded_number_of_steps(command: str) -> None:
    script = read(command, cwd="/project")
    assert script.steps <= 20 * MOST_TOKENS
    given_ = Raw(json.dumps({"command": command}).encode())
    assert len(needs_of("Bash", given_, CONTEXT).needs) <= 2 * MOST_NEEDS + MOST_PROBLEMS + 2
    held = preset("trusted-repo")
    assert held is not None
    call = Call(tool="Bash", input=given_, context=CONTEXT)
    rules = Rules(policies=(held,))
    assert decide(call, rules).behavior.value in {"ask", "deny"}
    explain(call, rules)
    narrowest("Bash", given_, CONTEXT)
    suggest([answered(call)], least=1)


@pytest.mark.no_cover
def test_a_history_with_odd_calls_gives_suggestions() -> None:
    past = [
        answered(Call(tool="Bash", input=Raw(json.dumps({"command": each}).encode())))
        for each in (*ODD, "npm test", "npm test", "npm test")
    ]
    assert [each.toml for each in suggest(past) if "npm test" in each.toml]


def counted(monkeypatch: pytest.MonkeyPatch, module: str) -> list[bytes]:
    """The inputs that a module takes apart from now on."""
    taken: list[bytes] = []

    def count(tool: str, given_: Raw, context: Context) -> Request:
        taken.append(bytes(given_))
        return needs_of(tool, given_, context)

    monkeypatch.setattr(f"quarterdeck.policy.{module}.needs_of", count)
    return taken


def test_a_history_takes_each_call_apart_once_and_none_that_is_very_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = counted(monkeypatch, "suggest")
    short, long = (
        Raw(json.dumps({"command": each}).encode()) for each in ("npm test", "a " * 9000)
    )
    history = [answered(Call(tool="Bash", input=each)) for each in (short, long) * 50]
    assert [each.allowed for each in suggest(history)] == [50]
    assert taken == [bytes(short)]


def test_an_explanation_takes_a_call_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    in_explain, in_decide = counted(monkeypatch, "explain"), counted(monkeypatch, "decide")
    held = preset("trusted-repo")
    assert held is not None
    call = Call(tool="Bash", input=Raw(b'{"command": "git push"}'), context=CONTEXT)
    told = explain(call, Rules(policies=(held,), private=Private(folders=("/hub",))))
    assert told.verdict == "ask"
    assert (len(in_explain), len(in_decide)) == (1, 0)


TOOLS = (
    "Bash",
    "Monitor",
    "Read",
    "Write",
    "Grep",
    "Glob",
    "WebFetch",
    "Agent",
    "mcp__a__b",
    "New",
)
MEMBERS = ("command", "file_path", "path", "pattern", "glob", "url", "notebook_path", "x")


@settings(max_examples=examples(300))
@given(
    st.sampled_from(TOOLS),
    st.one_of(
        st.binary(max_size=200),
        st.dictionaries(
            st.sampled_from(MEMBERS),
            st.one_of(st.text(max_size=200), st.integers(), st.none(), st.lists(st.text())),
        ).map(lambda members: json.dumps(members).encode()),
    ),
)
def test_nothing_raises_whatever_a_tool_is_given(tool: str, given_: bytes) -> None:
    held = preset("careful")
    assert held is not None
    call = Call(tool=tool, input=Raw(given_), context=CONTEXT)
    rules = Rules(policies=(held,))
    needs_of(tool, call.input, CONTEXT)
    assert "could not decide" not in decide(call, rules).reasons[0]
    explain(call, rules)
    narrowest(tool, call.input, CONTEXT)
    suggest([answered(call)], least=1)


@pytest.mark.parametrize("tool", ["Read", "Write", "Grep", "Glob", "WebFetch", "New", "mcp__a__b"])
@pytest.mark.parametrize("text", ["x", "/", "*", "../", "{a,", "@"])
def test_very_long_texts_are_not_looked_through(tool: str, text: str) -> None:
    members = dict.fromkeys(MEMBERS, text * (1_000_000 // len(text)))
    given_ = Raw(json.dumps(members).encode())
    for need in needs_of(tool, given_, CONTEXT).needs:
        assert len(need.what) <= LIMIT
        assert all(len(path) <= LIMIT for path in (need.target.paths if need.target else ()))
    held = preset("read-only")
    assert held is not None
    call = Call(tool=tool, input=given_, context=CONTEXT)
    rules = Rules(policies=(held,))
    assert "could not decide" not in decide(call, rules).reasons[0]
    assert len(explain(call, rules).parts) <= MOST_NEEDS
    narrowest(tool, given_, CONTEXT)
    assert not suggest([answered(call)], least=1)
