"""What policy costs is bounded: long commands, large files, many answers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.policy import flags
from quarterdeck.policy import rules as rules_module
from quarterdeck.policy.decide import Behavior, Call, Rules, decide
from quarterdeck.policy.explain import explain
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import MOST_NEEDS, MOST_PROBLEMS, Context, NeedKind, Request, needs_of
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset
from quarterdeck.policy.replay import PastCall
from quarterdeck.policy.rules import Hit
from quarterdeck.policy.shell import Part
from quarterdeck.policy.suggest import MOST_SUGGESTIONS, suggest
from quarterdeck.policy.toml import DEPTH, LIMIT, Document, Flaw, read_toml
from quarterdeck.policy.toml_values import MOST_FLAWS

HERE = Context(cwd="/project", home="/home/ada")
ALLOW_BASH = '[[rule]]\nname = "all"\nverdict = "allow"\ntool = "Bash"\n'


def policy(text: str) -> Policy:
    loaded = read_policy(text, "p", preset=preset)
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


def bash(command: str) -> Call:
    return Call(tool="Bash", input=Raw(msgspec.json.encode({"command": command})), context=HERE)


# --- commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "a;" * 8000,
        "a|" * 7000 + "a",
        "rm " + "a " * 7900,
        "cat " + "a " * 7900,
        "ls" + " >a" * 4000,
        "echo " + "$(a)" * 3900,
        "find . " + "-exec ls \\; " * 1200,
        "find . " + "-exec rm a \\; " * 1000,
    ],
)
@pytest.mark.no_cover
def test_a_command_of_very_many_parts_is_asked_about(command: str) -> None:
    request = needs_of("Bash", bash(command[:16_384]).input, HERE)
    assert len(request.needs) <= MOST_NEEDS + MOST_PROBLEMS + 1
    unknown = [need.why for need in request.needs if need.kind is NeedKind.UNKNOWN]
    assert any("more than" in why for why in unknown)
    verdict = decide(bash(command[:16_384]), Rules(policies=(policy(ALLOW_BASH),)))
    assert verdict.behavior is Behavior.ASK


def test_a_command_of_many_parts_is_still_decided_by_rules() -> None:
    command = "rm " + " ".join(f"build/{number}" for number in range(MOST_NEEDS - 1))
    assert decide(bash(command), Rules(policies=(policy(ALLOW_BASH),))).behavior is Behavior.ALLOW
    last = f"{command[: command.rindex(' ')]} .env"
    deny = policy('[[rule]]\nname = "secrets"\nverdict = "deny"\npath = ".env"\n')
    assert decide(bash(last), Rules(policies=(deny,))).behavior is Behavior.DENY


def test_the_flags_of_a_command_are_looked_for_once_and_not_for_each_of_its_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    real = flags.has_flag

    def counted(part: Part, flag: str) -> bool | None:
        looked.append(flag)
        return real(part, flag)

    monkeypatch.setattr(rules_module, "has_flag", counted)
    forced = policy('[[rule]]\nname = "force"\nverdict = "deny"\nflags = "--force"\n')
    verdict = decide(bash("rm " + "a " * 100), Rules(policies=(forced,)))
    assert not verdict.ruled
    assert looked == ["--force"]


def test_an_explanation_holds_each_policy_against_a_call_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    real = Policy.hits

    def counted(self: Policy, request: Request, context: Context, facts: Facts) -> Iterator[Hit]:
        asked.append(self.name)
        return real(self, request, context, facts)

    monkeypatch.setattr(Policy, "hits", counted)
    told = explain(bash("a;" * 110), Rules(policies=(policy(ALLOW_BASH), policy(ALLOW_BASH))))
    assert len(told.parts) == 110
    assert all(part.rules[0].parts == ("a",) for part in told.parts)
    # Once for the verdict, once for the explanation.
    assert asked == ["p", "p", "p", "p"]


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\na" + ".a" * 100_000 + " = 1", 2),
        ("\n\n[" + "a." * 100_000 + "a]", 3),
        ('"a"' + '."a"' * 50_000 + " = 1", 1),
        ("a" + " . a" * 50_000 + " = 1", 1),
        ('x = """\n.\n"""\na' + ".a" * DEPTH + " = 1", 4),
        ("a = " + "[" * 200_000, 1),
        ("# [[[\na = " + "{a = " * 40_000, 2),
    ],
)
def test_a_file_that_nests_too_deep_says_where(text: str, line: int) -> None:
    found = read_toml(text)
    assert isinstance(found, Flaw)
    assert found.line == line
    assert f"more than {DEPTH} levels" in found.text


def test_dots_and_brackets_in_texts_and_comments_are_no_nesting() -> None:
    dots, brackets = "a." * 100, "[{" * 100
    text = f"""
        # {dots} {brackets}
        a = "{dots} {brackets} \\" {dots}"
        b = '{dots} {brackets}'
        c = \"\"\"{dots}
        " {brackets} "" \\\"\"\" {dots}\"\"\"
        d = '''{dots} ' '' {brackets}'''
        e.f.g = [[1.5], [{{x = 1979-05-27T07:32:00.5Z}}]]
    """
    assert isinstance(read_toml(text), Document)


@pytest.mark.parametrize(
    "text", ['"""\\' * 50_000, "'" * 200_000, '"' * 200_001, 'a = """' + '\\"' * 100_000]
)
def test_texts_that_do_not_end_take_no_time(text: str) -> None:
    assert isinstance(read_toml(text), Flaw)


def test_a_number_without_end_is_a_flaw() -> None:
    found = read_toml("a = " + "1" * 10_000)
    assert isinstance(found, Flaw)
    assert "this is not TOML" in found.text


def test_a_file_has_a_largest_size() -> None:
    assert isinstance(read_toml("#" * LIMIT), Document)
    found = read_toml("#" * (LIMIT + 1))
    assert isinstance(found, Flaw)
    assert "250,000 characters" in found.text


def test_a_file_with_very_many_flaws_tells_the_first_of_them() -> None:
    unknown = read_policy("".join(f"key{number} = 1\n" for number in range(5000)), "p")
    assert len(unknown.flaws) == MOST_FLAWS
    same = '[[rule]]\nname = "x"\nverdict = "deny"\ncommand = "a"\n'
    assert len(read_policy(same * 500, "p").flaws) == MOST_FLAWS


# --- suggestions --------------------------------------------------------------------------------


def test_only_the_best_supported_suggestions_are_made() -> None:
    calls = [
        PastCall(session="s", at=1, call=bash(f"tool{number}"), done="allow", by="ada", asked=True)
        for number in range(MOST_SUGGESTIONS + 20)
        for _ in range(3 + (number == MOST_SUGGESTIONS + 10))
    ]
    found = suggest(calls)
    assert len(found) == MOST_SUGGESTIONS
    assert found[0].allowed == 4
