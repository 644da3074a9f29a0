"""What must hold for all calls and all rules, tried with many that chance makes."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from quarterdeck.policy.asking import Asking
from quarterdeck.policy.behavior import Behavior
from quarterdeck.policy.decide import Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Facts, Where, Words
from quarterdeck.policy.needs import Context
from quarterdeck.policy.parity import Placed
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.rewrite import Rewrite
from quarterdeck.policy.rules import Pattern, Rule, Verb, What
from quarterdeck.policy.specifiers import parse_rule

HERE = Context(cwd="/project", home="/home/ada")
LEVEL = {Behavior.DENY: 0, Behavior.ASK: 1, Behavior.ALLOW: 2}

WORDS = ("git", "push", "status", "rm", "-rf", "--force", "x", "src/a", "../b", "$y", "'a b'", "*")
JOINTS = (" && ", " ; ", " | ", " || ", "\n", " & ")
NAMES = ("git", "git push", "git status", "rm", "make", "*")
CLAUDE = ("Bash", "Bash(git:*)", "Bash(git push:*)", "Bash(rm *)", "Edit(./src/**)", "Read", "Edit")

simple = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
commands = st.one_of(
    st.lists(simple, min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from(JOINTS).map(lambda joint: joint.join(parts))
    ),
    simple.map(lambda text: f"bash -c {msgspec.json.encode(text).decode()}"),
    simple.map(lambda text: f"{text} > out"),
    st.text(max_size=40),
)
facts = st.builds(
    Facts,
    branch=st.sampled_from([None, "main", "topic"]),
    user=st.sampled_from([None, "ada", "bob"]),
    cost_usd=st.sampled_from([None, 1.0, 10.0]),
    now=st.sampled_from([None, 0, 10**12]),
)


def pattern(text: str) -> Pattern:
    return Pattern(words=tuple(text.split()), rule=parse_rule(f"Bash({text}:*)"))


whats = st.one_of(
    st.builds(
        What,
        commands=st.lists(st.sampled_from(NAMES).map(pattern), min_size=1, max_size=2).map(tuple),
        flags=st.sampled_from([(), ("--force",), ("-f", "-rf")]),
        without=st.sampled_from([(), ("--force",)]),
    ),
    st.builds(What, claude=st.sampled_from(CLAUDE).map(lambda text: (parse_rule(text),))),
    st.just(What()),
)
wheres = st.builds(
    Where,
    branch=st.sampled_from([None, Words.of(["main"]), Words.of(["!main"])]),
    user=st.sampled_from([None, Words.of(["ada"])]),
    cost_over=st.sampled_from([None, 5.0]),
    until=st.sampled_from([None, 10**9]),
)


@st.composite
def rules(draw: st.DrawFn, verbs: tuple[Verb, ...] = tuple(Verb)) -> Rule:
    verb = draw(st.sampled_from(verbs))
    tools = draw(st.sampled_from([None, Words.of(["Bash"]), Words.of(["Edit"])]))
    rewrite = Rewrite(add_flags=("--dry-run",)) if verb is Verb.REWRITE else None
    what = draw(whats)
    return Rule(
        name=f"r{draw(st.integers(0, 9**9))}",
        verb=verb,
        source="p",
        tools=tools or (Words.of(["*"]) if verb is Verb.ALLOW else None),
        what=what,
        where=draw(wheres),
        asking=Asking(wait=draw(st.sampled_from([None, 5.0]))),
        rewrite=rewrite,
    )


placed = st.builds(
    Placed,
    rule=st.sampled_from(CLAUDE).map(parse_rule),
    behavior=st.sampled_from(list(Behavior)),
)
policies = st.builds(
    lambda own, claude, default: Policy("p", rules=own, claude=claude, default=default),
    st.lists(rules(), max_size=5),
    st.lists(placed, max_size=3),
    st.sampled_from(["cli", "ask", "deny"]),
)


def asked(command: str, known: Facts, *, cli_asks: bool = True) -> Call:
    given = Raw(msgspec.json.encode({"command": command}))
    return Call(tool="Bash", input=given, facts=known, context=HERE, cli_asks=cli_asks)


def with_rules(policy: Policy, own: list[Rule]) -> Policy:
    return Policy("p", rules=own, claude=policy.claude, default=policy.default)


def level(verdict: Verdict) -> int:
    return LEVEL[verdict.behavior]


@given(policies, commands, facts, st.data())
@settings(max_examples=80, deadline=None)
def test_removing_an_allow_rule_never_allows_more(
    policy: Policy, command: str, known: Facts, data: st.DataObject
) -> None:
    extra = data.draw(rules(verbs=(Verb.ALLOW,)))
    call = asked(command, known)
    without = decide(call, Rules(policies=(policy,)))
    with_it = decide(call, Rules(policies=(with_rules(policy, [*policy.rules, extra]),)))
    assert level(without) <= level(with_it)


@given(policies, commands, facts, st.data())
@settings(max_examples=80, deadline=None)
def test_adding_a_rule_that_stops_never_allows_more(
    policy: Policy, command: str, known: Facts, data: st.DataObject
) -> None:
    extra = data.draw(rules(verbs=(Verb.DENY, Verb.ASK)))
    place = data.draw(st.integers(0, len(policy.rules)))
    own = [*policy.rules[:place], extra, *policy.rules[place:]]
    call = asked(command, known)
    before = decide(call, Rules(policies=(policy,)))
    after = decide(call, Rules(policies=(with_rules(policy, own),)))
    if not any(rule.verb is Verb.REWRITE for rule in policy.rules):
        assert level(after) <= level(before)
    assert not (after.behavior is Behavior.ALLOW and before.behavior is Behavior.DENY)


@given(policies, policies, commands, facts)
@settings(max_examples=50, deadline=None)
def test_another_policy_on_top_changes_no_denial(
    one: Policy, two: Policy, command: str, known: Facts
) -> None:
    call = asked(command, known)
    alone = decide(call, Rules(policies=(one,)))
    both = decide(call, Rules(policies=(one, two)))
    if alone.behavior is Behavior.DENY and alone.rule != "default":
        assert both.behavior is not Behavior.ALLOW


@given(
    policies,
    st.text(max_size=20),
    st.one_of(
        st.binary(max_size=60),
        st.dictionaries(st.text(max_size=10), st.text(max_size=30)).map(msgspec.json.encode),
    ),
    facts,
)
@settings(max_examples=80, deadline=None)
def test_decide_is_total(policy: Policy, tool: str, given_: bytes, known: Facts) -> None:
    for name in (tool, "Bash", "Edit", "WebFetch"):
        call = Call(tool=name, input=Raw(given_), facts=known, context=HERE)
        verdict = decide(call, Rules(policies=(policy,)))
        assert verdict.reasons
        assert not any("could not decide" in reason for reason in verdict.reasons)


@given(policies, commands, facts, commands)
@settings(max_examples=50, deadline=None)
def test_adding_a_command_never_makes_a_call_more_allowed(
    policy: Policy, command: str, known: Facts, other: str
) -> None:
    plain = [rule for rule in policy.rules if rule.verb is not Verb.REWRITE]
    fixed = Rules(policies=(with_rules(policy, plain),))
    alone = decide(asked(command, known), fixed)
    joined = decide(asked(f"{command}\n{other}", known), fixed)
    if alone.behavior is Behavior.DENY and alone.rule != "default" and alone.matched[0].sure:
        assert joined.behavior is not Behavior.ALLOW
