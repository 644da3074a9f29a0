"""Patterns mean what they have always meant, and take linear time against any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quarterdeck.policy.facts import NamePatterns
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.paths import path_pattern
from quarterdeck.policy.specifiers import RuleError, parse_rule
from quarterdeck.policy.wildcards import LONGEST, MOST_WILDCARDS, Glob, fits
from support.examples import examples

texts = st.text("ab \n", max_size=12)
globs = st.text("ab *\n", max_size=8)


def backtracking(pattern: str, star: str = ".*") -> re.Pattern[str]:
    """The meaning of a `*`, said in the plainest way."""
    return re.compile(star.join(re.escape(piece) for piece in pattern.split("*")), re.DOTALL)


@given(pattern=globs, text=texts)
@example(pattern="ab*ba", text="aba")
@example(pattern="*", text="")
@example(pattern="a*b*a", text="aba")
def test_a_star_stands_for_any_characters(pattern: str, text: str) -> None:
    assert Glob.of(pattern).matches(text) == (backtracking(pattern).fullmatch(text) is not None)


@given(pattern=st.text("ab *", min_size=1, max_size=8), text=texts)
@example(pattern="a *", text="a")
@example(pattern="a *", text="ab")
@example(pattern="a *", text="a\nb")
def test_a_rule_for_commands_means_what_it_says(pattern: str, text: str) -> None:
    try:
        rule = parse_rule(f"Bash({pattern})").command
    except RuleError:
        return
    if rule is None:  # `Bash(*)`: every call
        return
    wanted = backtracking(pattern)
    if pattern.count("*") == 1 and pattern.endswith(" *"):
        wanted = re.compile(re.escape(pattern[:-2]) + r"(?:[ \t\n].*)?", re.DOTALL)
    assert rule.matches(text) == (wanted.fullmatch(text) is not None)


@given(pattern=st.text("a.*", min_size=1, max_size=8), host=st.text("ab.", min_size=1, max_size=9))
def test_a_star_in_a_domain_stays_within_its_label(pattern: str, host: str) -> None:
    pattern, host = pattern.rstrip("."), host.strip(".")
    if pattern == "*" or pattern.startswith("*.") or not pattern or "*" not in pattern:
        return
    assert fits(pattern, host) == (backtracking(pattern, "[^.]*").fullmatch(host) is not None)


# --- paths --------------------------------------------------------------------------------------

names = st.lists(st.sampled_from(["**", "*", "a", "b", "*a", "a*b*", "?", "[ab]", "[!a]*", "*a*a"]))
paths = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=6).map("/".join)


def plain_path(text: str, *, rooted: bool, self_too: bool) -> re.Pattern[str]:
    """The meaning of a pattern for paths, with a regular expression that backtracks."""
    below = r"(?:/.*)?"
    if text.endswith("/**"):
        text, below = text[:-3], below if self_too else r"/.+"
    elif text in {"**", ""}:
        return re.compile(r".*" if self_too or text == "" else r".+", re.DOTALL)
    parts = []
    for name in text.split("/"):
        within = name.replace("?", "[^/]").replace("[!", "[^").replace("**", "*")
        within = within.replace("*", "[^/]*")
        parts.append(r"(?:[^/]+/)*" if name == "**" else within + "/")
    start = "" if rooted else r"(?:.*/)?"
    return re.compile(start + "".join(parts).removesuffix("/") + below, re.DOTALL)


@given(names=names, path=paths, anchored=st.booleans())
@settings(max_examples=examples(500))
@example(names=["**", "a", "**", "b"], path="a/a/b", anchored=True)
@example(names=["a*b*"], path="b/aabb/a", anchored=False)
def test_a_pattern_for_paths_means_what_it_says(
    names: list[str], path: str, anchored: bool
) -> None:
    text = "/".join(names)
    if "**/**" in text or not text:
        return
    pattern = path_pattern(f"./{text}" if anchored else text)
    rooted = anchored or "/" in text
    wide = not anchored and "/" not in text.removesuffix("/**")
    sure = plain_path(text, rooted=rooted, self_too=False)
    possible = plain_path(text, rooted=rooted and not wide, self_too=True)
    assert bool(pattern.sure.fullmatch(path)) == bool(sure.fullmatch(path))
    assert bool(pattern.possible.fullmatch(path)) == bool(possible.fullmatch(path))


@pytest.mark.parametrize("text", ["**/**", "**/**/**", "./**/**", "a/**/**"])
def test_two_double_stars_mean_what_one_means(text: str) -> None:
    pattern = path_pattern(text)
    assert pattern.sure.fullmatch("a/b/c")
    assert pattern.possible.fullmatch("a/b/c")


@pytest.mark.parametrize("text", ["Read(./[z-a])", "Edit(x[!])", "Read([b-a]/**)"])
def test_a_range_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(RuleError, match="cannot be parsed"):
        parse_rule(text)


# --- linear time --------------------------------------------------------------------------------
# Each of these would take from minutes to longer than anybody lives if it backtracked.


@pytest.mark.parametrize("stars", [4, 8, 16, MOST_WILDCARDS - 1])
def test_many_stars_against_a_long_command_take_no_time(stars: int) -> None:
    rule = parse_rule(f"Bash(*{'a*' * stars}b)").command
    assert rule is not None
    assert not rule.matches("a" * 16_000)
    assert rule.matches("a" * 16_000 + "b")


def test_the_command_of_an_agent_takes_no_time_against_a_natural_rule() -> None:
    rule = parse_rule("Bash(docker * run * --rm * -v * -x)").command
    assert rule is not None
    assert not rule.matches("docker" + " run --rm -v " * 1200)


def test_names_of_tools_agents_and_hosts_take_no_time() -> None:
    many = "*" + "a*" * 20 + "b"
    tools = parse_rule(f"mcp__s__{many}").tools
    name = parse_rule(f"Agent({many})").name
    assert tools is not None
    assert name is not None
    assert not tools.matches("mcp__s__" + "a" * 100_000)
    assert not name.matches("a" * 100_000)
    assert not fits(many, "a" * 100_000)
    assert NamePatterns.of([many]).fit("a" * 100_000) is False


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("./" + "**/a/" * 15 + "b", "a/" * 4000 + "c"),
        ("./" + "**/*a*/" * 8 + "b", "a/" * 4000 + "c"),
        ("./*" + "a*" * 20 + "b", "a" * 16_000),
        ("*" + "a*" * 20 + "b", "a/" * 200 + "a" * 10_000),
        ("**/*" + "a*" * 20 + "b/**", "a" * 16_000 + "/x"),
    ],
)
def test_patterns_for_long_paths_take_no_time(text: str, path: str) -> None:
    pattern = path_pattern(text)
    assert not pattern.sure.fullmatch(path)
    assert not pattern.possible.fullmatch(path)


# --- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"Bash({'a*' * 33})",
        f"Read(./{'*/' * 33})",
        f"Read({'[' * 33})",
        f"mcp__s__{'a*' * 33}",
        f"Agent({'a*' * 33})",
        f"WebFetch(domain:{'a*' * 33})",
    ],
)
def test_a_pattern_with_too_many_wildcards_is_no_rule(text: str) -> None:
    with pytest.raises(RuleError, match=f"33 wildcards; a pattern may have {MOST_WILDCARDS}"):
        parse_rule(text)


def test_a_pattern_with_wildcards_has_a_longest() -> None:
    with pytest.raises(RuleError, match=f"may have {LONGEST}"):
        parse_rule(f"Bash({'a' * LONGEST}*)")
    assert parse_rule(f"Bash({'a' * 3 * LONGEST})").command is not None


@pytest.mark.parametrize(
    "line",
    [
        f'command = "{"a*" * 33}"',
        f'path = "{"*/" * 33}a"',
        f'domain = "{"a*" * 33}"',
        f'machine = "{"[" * 33}"',
        f'tool = "{"a?" * 33}"',
    ],
)
def test_a_policy_file_says_on_which_line_a_pattern_is_too_wild(line: str) -> None:
    loaded = read_policy(f'[[rule]]\nname = "x"\nverdict = "deny"\n{line}\n', "p")
    assert loaded.policy is None
    assert {flaw.line for flaw in loaded.flaws} == {4}
    assert "33 wildcards; a pattern may have 32" in str(loaded.flaws[0])
