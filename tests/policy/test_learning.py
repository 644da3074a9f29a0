"""What the past says: replayed with another policy, and turned into rules."""

from __future__ import annotations

from quarterdeck.policy.calls import input_of
from quarterdeck.policy.decide import Call, Rules
from quarterdeck.policy.explain import explain
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.replay import PastCall, replay
from quarterdeck.policy.suggest import suggest

HERE = Context(cwd="/srv/shop", home="/home/ada")


def policy(text: str) -> Policy:
    loaded = read_policy(text, "p")
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


def past(
    argument: str,
    done: str = "allow",
    by: str = "ada",
    *,
    tool: str = "Bash",
    at: int = 1,
    branch: str | None = None,
) -> PastCall:
    asked = by not in {"policy", "cli"}
    facts = Facts(now=at, branch=branch)
    return PastCall(
        session="s1",
        at=at,
        call=Call(
            tool=tool, input=input_of(tool, argument), facts=facts, context=HERE, cli_asks=asked
        ),
        done=done,
        by=by,
        asked=asked,
    )


def test_a_replay_tells_what_would_have_been_otherwise_the_gravest_first() -> None:
    text = (
        '[[rule]]\nname = "npm"\nverdict = "allow"\ncommand = "npm"\n'
        '[[rule]]\nname = "push"\nverdict = "deny"\ncommand = "git push"\nbranch = "main"\n'
    )
    calls = [
        past("npm test"),
        past("npm publish", "deny"),
        past("git push", by="cli", branch="main"),
        past("git push", by="cli", branch="topic"),
        past("make"),
        past("make", ""),
    ]
    result = replay(policy(text), calls)
    assert (result.calls, result.same) == (6, 3)
    assert result.counts == {
        "allowed → allow": 1,
        "allowed → deny": 1,
        "asked, allowed → allow": 1,
        "asked, allowed → ask": 1,
        "asked, denied → allow": 1,
        "asked, left open → ask": 1,
    }
    assert [(change.call, change.then, change.now) for change in result.changes] == [
        ("npm publish", "asked, denied", "allow"),
        ("git push", "allowed", "deny"),
        ("npm test", "asked, allowed", "allow"),
    ]
    assert "npm" in result.changes[0].reasons[0]


def test_what_people_always_answered_alike_is_suggested_with_its_history() -> None:
    calls = [
        past("npm run build", at=5),
        past("npm run build --fast", by="bob", at=9),
        past("npm run build && ls", at=7),
        past("npm run build -v", by="cli", at=8),
        past("npm run deploy"),
        past("npm run deploy", "deny"),
        past("npm run deploy"),
        past("make"),
    ]
    (found,) = suggest(calls)
    assert found.verdict == "allow"
    assert (found.allowed, found.denied, found.people) == (3, 0, ("ada", "bob"))
    assert (found.first, found.last) == (5, 9)
    assert 'command = "npm run build"' in found.toml
    assert found.examples[0] == "npm run build"
    assert found.admits == ("npm run build -v (allowed)",)
    assert "any arguments" in found.means
    assert read_policy(found.toml, "suggestion").policy is not None


def test_denials_folders_domains_and_tools_are_suggested_too() -> None:
    calls = [
        *(past("git push origin x", "deny") for _ in range(3)),
        *(past(f"/srv/shop/src/{name}.py", tool="Edit") for name in "abc"),
        *(past("example.com", tool="WebFetch") for _ in range(3)),
        *(past('{"id":1}', tool="mcp__jira__read") for _ in range(3)),
        *(past("/etc/hosts", tool="Edit") for _ in range(3)),
        *(past("policy made it", by="policy") for _ in range(3)),
    ]
    rules = {found.toml.splitlines()[-1]: found.verdict for found in suggest(calls)}
    assert rules == {
        'match = ["git push origin x"]': "deny",
        'path = "./src/**"': "allow",
        'domain = "example.com"': "allow",
        'tool = "mcp__jira__read"': "allow",
    }
    for found in suggest(calls):
        assert read_policy(found.toml, "suggestion").policy is not None, found.toml


def test_fewer_answers_suggest_nothing_unless_that_is_wanted() -> None:
    calls = [past("make test"), past("make test")]
    assert suggest(calls) == ()
    assert len(suggest(calls, least=2)) == 1


def test_an_explanation_names_for_each_part_the_rules_that_hit_it() -> None:
    text = (
        '[claude]\nallow = ["Bash(npm:*)"]\n'
        '[[rule]]\nname = "push"\nverdict = "deny"\ncommand = "git push"\nbranch = "main"\n'
    )
    call = Call(tool="Bash", input=input_of("Bash", "npm test && git push"), context=HERE)
    told = explain(call, Rules(policies=(policy(text),)))
    assert (told.verdict, told.rule, told.source) == ("ask", "push", "p:3")
    npm, push = told.parts
    assert [(rule.rule, rule.verdict, rule.sure) for rule in npm.rules] == [
        ("Bash(npm:*)", "allow", True)
    ]
    # Which branch it is was not told: so it asks, and says that it may deny.
    assert [(rule.rule, rule.verdict, rule.sure) for rule in push.rules] == [
        ("push", "deny", False)
    ]
