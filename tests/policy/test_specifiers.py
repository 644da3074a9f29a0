"""The syntax of Claude Code's rules, and rules from settings files."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.policy.folders import Folders
from quarterdeck.policy.matcher import Sense, match
from quarterdeck.policy.needs import Context, NeedKind, needs_of
from quarterdeck.policy.paths import catches, covers, path_pattern
from quarterdeck.policy.settings import import_settings
from quarterdeck.policy.shell import Target
from quarterdeck.policy.specifiers import Behavior, RuleError, Source, parse_rule
from quarterdeck.policy.wildcards import fits


@pytest.mark.parametrize(
    ("text", "tool", "specifier"),
    [
        ("Bash", "Bash", None),
        ("Bash(*)", "Bash", None),
        ("Bash(git:*)", "Bash", "git:*"),
        ("Bash(echo (a))", "Bash", "echo (a)"),
        ("Read(./src/**)", "Read", "./src/**"),
        ("WebFetch(domain:a.test)", "WebFetch", "domain:a.test"),
        ("mcp__server__tool", "mcp__server__tool", None),
        ("mcp__server", "mcp__server", None),
        ("Task(Plan)", "Agent", "Plan"),
        ("  Edit  ", "Edit", None),
    ],
)
def test_a_rule_is_taken_apart(text: str, tool: str, specifier: str | None) -> None:
    rule = parse_rule(text)
    assert (rule.tool, rule.specifier) == (tool, specifier)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Bash(",
        "Bash)",
        "(x)",
        "Bash()",
        "Bash( )",
        "Bash(a:* b)",
        "Bash(:*)",
        "Ba sh",
        "WebFetch(example.test)",
        "WebFetch(domain:)",
        "WebFetch(domain:http://a.test/x)",
        "WebSearch(x)",
        "mcp__",
        "mcp__server__tool(x)",
        "*(x)",
        "Bas*",
    ],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(text)


@pytest.mark.parametrize(
    ("rule", "tool", "hits"),
    [
        ("mcp__a", "mcp__a__x", True),
        ("mcp__a", "mcp__ab__x", False),
        ("mcp__a__x", "mcp__a__x", True),
        ("mcp__a__x", "mcp__a__xy", False),
        ("mcp__a__get_*", "mcp__a__get_it", True),
        ("mcp__a__get_*", "mcp__a__set_it", False),
        ("mcp__a__*", "mcp__a__x", True),
        ("WebSearch", "WebSearch", True),
        ("Bash", "BashOutput", False),
    ],
)
def test_a_rule_for_a_tool_means_that_tool(rule: str, tool: str, hits: bool) -> None:
    request = needs_of(tool, Raw(b"{}"), Context())
    for sense in Sense:
        assert (match(parse_rule(rule), request, Context(), sense) is not None) is hits


@pytest.mark.parametrize(
    ("tool", "body"),
    [
        ("Bash", b"{}"),
        ("Bash", b'{"command": 3}'),
        ("Bash", b"not json"),
        ("Read", b'{"file_path": null}'),
        ("Write", b"[]"),
        ("WebFetch", b'{"url": "ftp://a.test"}'),
        ("WebFetch", b'{"url": "http://a.test\\\\@b.test/"}'),
        ("PowerShell", b'{"command": "dir"}'),
        ("Grep", b'{"path": 1}'),
    ],
)
def test_an_input_that_cannot_be_read_is_unknown(tool: str, body: bytes) -> None:
    (need,) = needs_of(tool, Raw(body), Context(cwd="/w")).needs
    assert need.kind is NeedKind.UNKNOWN
    assert need.why


FOLDERS = Folders(cwd="/w", home="/h", settings="/s")


@pytest.mark.parametrize(
    ("pattern", "path", "allows", "stops"),
    [
        ("./src/**", "/w/src/a/b", True, True),
        ("./src/**", "/w/src", False, True),
        ("./src/**", "/w/srcs/a", False, False),
        ("src", "/w/src/a", True, True),
        ("src", "/w/x/src/a", True, True),
        ("src/a", "/w/x/src/a", False, False),
        ("*.env", "/w/a/b.env", True, True),
        ("*.env", "/x/b.env", False, False),
        ("**/a/*.py", "/w/x/y/a/b.py", True, True),
        ("**/a/*.py", "/w/a/b.py", True, True),
        ("./a?c", "/w/abc", True, True),
        ("./a?c", "/w/a/c", False, False),
        ("./[ab]/x", "/w/a/x", True, True),
        ("./[!ab]/x", "/w/a/x", False, False),
        ("//etc/**", "/etc/passwd", True, True),
        ("~/x/**", "/h/x/y", True, True),
        ("~/x/**", "~/x/y", True, True),
        ("/conf/**", "/s/conf/a", True, True),
        ("/conf/**", "/w/conf/a", False, False),
        ("./a+b/**", "/w/a+b/c", True, True),
    ],
)
def test_a_path_pattern_means_what_gitignore_means(
    pattern: str, path: str, allows: bool, stops: bool
) -> None:
    target = Target(source=path, paths=(path,))
    assert covers(path_pattern(pattern), target, FOLDERS) is allows
    assert catches(path_pattern(pattern), target, FOLDERS) is stops


def test_all_paths_that_a_target_may_be_must_be_allowed_and_one_is_enough_to_stop() -> None:
    target = Target(source="x", paths=("/w/src/x", "/w/x"))
    pattern = path_pattern("./src/**")
    assert not covers(pattern, target, FOLDERS)
    assert catches(pattern, target, FOLDERS)
    unsure = Target(source="x", paths=("/w/src/x",), sure=False)
    assert not covers(pattern, unsure, FOLDERS)
    assert catches(pattern, unsure, FOLDERS)
    assert not covers(path_pattern("//**"), Target(source="$x"), FOLDERS)


def test_a_caller_may_tell_where_links_lead() -> None:
    links = {"/w/link": "/etc", "/w/src/a": "/w/src/a"}
    context = Context(cwd="/w", resolve=lambda path: links.get(path, path))
    rule = parse_rule("Edit(./**)")

    def allowed(path: str) -> bool:
        body = Raw(json.dumps({"file_path": path}).encode())
        return match(rule, needs_of("Write", body, context), context, Sense.ALLOW) is not None

    assert allowed("/w/src/a")
    assert not allowed("/w/link")


def test_a_host_fits_itself_and_a_star_what_is_below() -> None:
    assert fits("a.test", "a.test")
    assert not fits("a.test", "b.a.test")
    assert fits("*.a.test", "b.a.test")
    assert not fits("*.a.test", "a.test")
    assert not fits("*.a.test", "xa.test")
    assert fits("*", "anything.test")


def test_settings_files_are_read_and_wrong_entries_named() -> None:
    user = {"permissions": {"allow": ["Bash(ls:*)", "Bash(x:* y)", 7], "defaultMode": "plan"}}
    project = {"permissions": {"deny": ["Read(.env)"], "ask": "Bash", "defaultMode": "acceptEdits"}}
    local = {"permissions": {"additionalDirectories": ["../other"]}, "model": "x"}
    found = import_settings(
        {
            Source.LOCAL: json.dumps(local),
            Source.USER: json.dumps(user),
            Source.PROJECT: json.dumps(project),
            Source.FLAG: "{",
        }
    )
    assert [(each.rule.text, each.behavior, each.source) for each in found.rules] == [
        ("Bash(ls:*)", Behavior.ALLOW, Source.USER),
        ("Read(.env)", Behavior.DENY, Source.PROJECT),
    ]
    assert found.directories == ("../other",)
    assert found.mode == "acceptEdits"
    assert [(each.source, each.where) for each in found.wrong] == [
        (Source.USER, "permissions.allow[1]"),
        (Source.USER, "permissions.allow[2]"),
        (Source.PROJECT, "permissions.ask"),
        (Source.FLAG, ""),
    ]


@pytest.mark.parametrize(
    ("rule", "token", "program", "named"),
    [
        ("Bash(bash:*)", "bash", "bash", False),
        ("Bash(bash:*)", "bas", "bash", False),
        ("Bash(sh:*)", "sh", "sh", False),
        ("Bash(bash bash:*)", "bash", "bash", True),
        ("Bash(bash x.sh:*)", "x.sh", "bash", True),
        ("Bash(bash x.sh.old:*)", "x.sh", "bash", False),
        ("Bash(sort --output=x:*)", "--output", "sort", True),
        ("Bash(FOO=1 make:*)", "FOO=", "make", True),
        ("Bash(xargs grep:*)", "xargs", "grep", True),
        ("Bash(git config:*)", "config", "git", True),
        ("Bash(ls:*)", "", "ls", False),
    ],
)
def test_a_rule_names_what_it_writes_out_besides_the_program(
    rule: str, token: str, program: str, named: bool
) -> None:
    pattern = parse_rule(rule).command
    assert pattern is not None
    assert pattern.names(token, program) is named
