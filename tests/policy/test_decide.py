"""What becomes of a call: the strictest rule wins, and what nobody knows never allows."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Behavior, Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset

HERE = Context(cwd="/project", home="/home/ada")


def policy(text: str, name: str = "p") -> Policy:
    loaded = read_policy(text, name, preset=preset)
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


def bash(command: str, facts: Facts | None = None, *, cli_asks: bool = False) -> Call:
    given = Raw(msgspec.json.encode({"command": command}))
    known = facts or Facts()
    return Call(tool="Bash", input=given, facts=known, context=HERE, cli_asks=cli_asks)


def call(tool: str, cli_asks: bool = False, **given: object) -> Call:
    return Call(tool=tool, input=Raw(msgspec.json.encode(given)), context=HERE, cli_asks=cli_asks)


def judged(
    asked: Call, *texts: str, auto_approve: tuple[str, ...] = (), skip_permissions: bool = False
) -> Verdict:
    policies = tuple(policy(text, f"p{number}") for number, text in enumerate(texts))
    rules = Rules(policies=policies, auto_approve=auto_approve, skip_permissions=skip_permissions)
    return decide(asked, rules)


def word(verdict: Verdict) -> str:
    return verdict.behavior.value if verdict.ruled else "cli"


ALLOW_GIT = '[[rule]]\nname = "git"\nverdict = "allow"\ncommand = "git"\n'
DENY_PUSH = '[[rule]]\nname = "push"\nverdict = "deny"\ncommand = "git push"\nmessage = "No."\n'
ASK_PUSH = '[[rule]]\nname = "ask push"\nverdict = "ask"\ncommand = "git push"\n'


def test_the_strictest_rule_wins_whatever_the_order_and_the_file() -> None:
    assert word(judged(bash("git push"), ALLOW_GIT)) == "allow"
    assert word(judged(bash("git push"), ALLOW_GIT + ASK_PUSH)) == "ask"
    assert word(judged(bash("git push"), ASK_PUSH, ALLOW_GIT)) == "ask"
    assert word(judged(bash("git push"), DENY_PUSH + ASK_PUSH + ALLOW_GIT)) == "deny"
    assert word(judged(bash("git push"), ALLOW_GIT, DENY_PUSH)) == "deny"


def test_an_allow_needs_every_part_and_a_deny_needs_one() -> None:
    assert word(judged(bash("git status && git log"), ALLOW_GIT)) == "allow"
    assert word(judged(bash("git status && make"), ALLOW_GIT)) == "cli"
    assert word(judged(bash("git status && git push"), ALLOW_GIT + DENY_PUSH)) == "deny"
    assert word(judged(bash("make; (git push)"), DENY_PUSH)) == "deny"


def test_parts_may_be_allowed_by_different_rules_of_different_policies() -> None:
    make = '[claude]\nallow = ["Bash(make:*)"]\n'
    assert word(judged(bash("git status && make"), ALLOW_GIT, make)) == "allow"
    claude = '[claude]\nallow = ["Bash(git status:*)"]\n'
    assert word(judged(bash("git status && make"), claude, make)) == "allow"


def test_a_denial_says_which_rule_and_tells_the_agent_in_its_own_words() -> None:
    verdict = judged(bash("ls && git push origin"), DENY_PUSH)
    assert (verdict.rule, verdict.source) == ("push", "p0:1")
    assert verdict.message == "No."
    assert "git push origin" in verdict.reasons[0]
    assert "ls" not in verdict.matched[0].parts


@pytest.mark.parametrize(
    "command",
    [
        "git push --force",
        "git push -f",
        "git push origin main --force",
        "git -C elsewhere push --force",
        "git --no-pager push -f",
        "git push -qf",
        "git push --force=yes",
        "timeout 5 git push --force",
        "bash -c 'git push --force'",
        "true | xargs git push --force",
    ],
)
def test_flags_are_found_wherever_they_stand(command: str) -> None:
    text = DENY_PUSH.replace("git push", "git push") + 'flags = ["--force", "-f"]\n'
    assert word(judged(bash(command), text, '[claude]\nallow = ["Bash"]\n')) in {"deny", "ask"}


@pytest.mark.parametrize("command", ["git push", "git push origin main", "git commit -m --force"])
def test_without_the_flags_the_rule_is_not_meant(command: str) -> None:
    assert word(judged(bash(command), DENY_PUSH + 'flags = ["--force", "-f"]\n')) == "cli"


def test_a_flag_that_nobody_can_read_is_asked_about() -> None:
    text = DENY_PUSH + 'flags = ["--force"]\n[claude]\nallow = ["Bash(git push:*)"]\n'
    assert word(judged(bash("git push $how"), text)) == "ask"
    assert word(judged(bash("git push --forc"), text)) == "ask"


def test_an_allow_without_flags_is_for_calls_without_them() -> None:
    text = '[[rule]]\nverdict = "allow"\ncommand = "git push"\nwithout = ["--force", "-f"]\n'
    assert word(judged(bash("git push origin x"), text)) == "allow"
    for command in ("git push --force", "git push -qf", "git push --forc", "git push $x"):
        assert word(judged(bash(command), text)) == "cli", command


def test_a_redirection_is_an_edit() -> None:
    text = '[[rule]]\nverdict = "deny"\ntool = "Edit"\npath = "./secret/**"\n'
    assert word(judged(bash("echo x > secret/key"), text)) == "deny"
    assert word(judged(bash("echo x | tee secret/key"), text)) == "deny"
    assert word(judged(call("Write", file_path="/project/secret/key"), text)) == "deny"
    assert word(judged(bash("echo x > other"), text)) == "cli"
    echo = '[[rule]]\nverdict = "allow"\ncommand = "printf"\n'
    assert word(judged(bash("printf x > /etc/passwd"), echo)) == "cli"


def test_command_and_path_together_are_about_what_the_command_does_there() -> None:
    text = '[[rule]]\nverdict = "allow"\ncommand = "rm"\npath = "./build/**"\n'
    assert word(judged(bash("rm -r build/x"), text)) == "allow"
    assert word(judged(bash("rm -r src/x"), text)) == "cli"
    stop = '[[rule]]\nverdict = "deny"\ncommand = "rm"\npath = "./src/**"\n'
    assert word(judged(bash("rm src/x"), stop)) == "deny"
    assert word(judged(bash("rm build/x"), stop)) == "cli"


def test_domains_and_servers_are_conditions() -> None:
    text = (
        '[[rule]]\nverdict = "allow"\ndomain = "example.com"\n'
        '[[rule]]\nverdict = "deny"\nserver = "jira"\n'
    )
    assert word(judged(call("WebFetch", url="https://example.com/x"), text)) == "allow"
    assert word(judged(call("WebFetch", url="https://example.org/x"), text)) == "cli"
    assert word(judged(call("mcp__jira__close", id=1), text)) == "deny"
    assert word(judged(call("mcp__wiki__read", id=1), text)) == "cli"


# --- facts ---------------------------------------------------------------------------------------

CONDITIONS = [
    ("branch", 'branch = "release/*"', Facts(branch="release/1"), Facts(branch="main")),
    ("branch not", 'branch = "!main"', Facts(branch="topic"), Facts(branch="main")),
    ("project", 'project = ["shop", "site"]', Facts(project="shop"), Facts(project="")),
    ("machine", 'machine = "prod-*"', Facts(machine="prod-1"), Facts(machine="local")),
    ("directory", 'directory = "/srv/*"', Facts(directory="/srv/x"), Facts(directory="/home")),
    ("user", 'user = "ada"', Facts(user="ada"), Facts(user="bob")),
    ("mode", 'mode = "plan"', Facts(mode="plan"), Facts(mode="default")),
    ("origin", 'origin = "subagent"', Facts(origin="subagent"), Facts(origin="main")),
    (
        "origin by name",
        'origin = "subagent:Explore"',
        Facts(origin="subagent", agent="Explore"),
        Facts(origin="subagent", agent="Plan"),
    ),
    ("cost over", "cost_over = 5", Facts(cost_usd=5.5), Facts(cost_usd=5.0)),
    ("cost under", "cost_under = 5", Facts(cost_usd=4.5), Facts(cost_usd=5.0)),
    # 2026-11-16 is a Monday; 08:30 in Berlin is 07:30 in UTC.
    (
        "time",
        'days = "mon-fri"\nhours = "08:00-18:00"\nzone = "Europe/Berlin"',
        Facts(now=1794814200_000),
        Facts(now=1794814200_000 - 3600_000),
    ),
    ("night", 'hours = "22:00-06:00"', Facts(now=1794870000_000), Facts(now=1794830000_000)),
    ("until", "until = 2026-11-16T08:00:00Z", Facts(now=1794814200_000), Facts(now=1794816000_000)),
]


@pytest.mark.parametrize(("name", "condition", "fits", "not_fits"), CONDITIONS)
def test_a_condition_holds_or_not_and_when_unknown_never_allows(
    name: str, condition: str, fits: Facts, not_fits: Facts
) -> None:
    for verb in ("allow", "ask", "deny"):
        rule = f'[[rule]]\nverdict = "{verb}"\ncommand = "make"\n{condition}\n'
        assert word(judged(bash("make", fits), rule)) == verb
        assert word(judged(bash("make", not_fits), rule)) == "cli"
        unknown = word(judged(bash("make"), rule))
        assert unknown == ("cli" if verb == "allow" else "ask"), name


# --- what no rule decides ------------------------------------------------------------------------


def test_without_a_policy_all_is_as_the_cli_has_it() -> None:
    assert decide(bash("make", cli_asks=True), Rules()).behavior is Behavior.ASK
    assert decide(bash("make"), Rules()).behavior is Behavior.ALLOW
    assert not decide(bash("make"), Rules()).ruled
    approved = decide(bash("make"), Rules(auto_approve=("Bash",)))
    assert (approved.behavior, approved.ruled) == (Behavior.ALLOW, True)


@pytest.mark.parametrize(("default", "wanted"), [("cli", "cli"), ("ask", "ask"), ("deny", "deny")])
def test_the_default_is_for_what_no_rule_decides(default: str, wanted: str) -> None:
    text = f'default = "{default}"\n{ALLOW_GIT}'
    assert word(judged(bash("make"), text)) == wanted
    assert word(judged(bash("git status"), text)) == "allow"
    assert word(judged(bash("make"), text, auto_approve=("Bash",))) == "allow"


def test_the_strictest_default_holds() -> None:
    assert word(judged(bash("make"), 'default = "ask"', 'default = "deny"', "")) == "deny"


def test_rules_hold_where_permissions_are_skipped() -> None:
    assert word(judged(bash("git push"), DENY_PUSH, skip_permissions=True)) == "deny"
    assert word(judged(bash("git push"), ASK_PUSH, skip_permissions=True)) == "ask"
    verdict = judged(bash("make", cli_asks=True), ASK_PUSH, skip_permissions=True)
    assert verdict.behavior is Behavior.ALLOW


def test_no_rule_answers_in_a_persons_place_but_one_may_deny() -> None:
    everything = '[[rule]]\nverdict = "allow"\ntool = "*"\n'
    question = call("AskUserQuestion", cli_asks=True, questions=[])
    assert judged(question, everything).behavior is Behavior.ASK
    assert judged(question, 'default = "deny"').behavior is Behavior.ASK
    silent = '[[rule]]\nverdict = "deny"\ntool = "AskUserQuestion"\n'
    assert judged(question, silent).behavior is Behavior.DENY


@pytest.mark.parametrize("command", ["if", "echo 'x", "x" * 20_000, "$(", "a &&"])
def test_what_cannot_be_read_is_not_allowed_by_a_rule_about_commands(command: str) -> None:
    text = '[[rule]]\nverdict = "allow"\ncommand = ["echo", "a", "x*", "if"]\n'
    assert word(judged(bash(command), text)) == "cli"
    assert judged(bash(command, cli_asks=True), text).behavior is Behavior.ASK


def test_what_cannot_be_read_is_asked_about_where_a_rule_would_stop_a_command() -> None:
    everything = '[[rule]]\nverdict = "allow"\ntool = "Bash"\n'
    long = "echo " + "x" * 20_000
    assert word(judged(bash(long), everything)) == "ask"
    assert word(judged(bash(long), everything + DENY_PUSH)) == "ask"
    assert word(judged(bash(long), everything, '[claude]\ndeny = ["Bash(rm:*)"]\n')) == "ask"


@pytest.mark.parametrize("given", [b"", b"[]", b"null", b'{"command":5}', b"{", b"\xff"])
def test_an_input_of_any_kind_gets_a_verdict(given: bytes) -> None:
    asked = Call(tool="Bash", input=Raw(given), context=HERE)
    verdict = decide(asked, Rules(policies=(policy(ALLOW_GIT + DENY_PUSH),)))
    assert verdict.behavior is not Behavior.ALLOW or not verdict.ruled
    assert "could not decide" not in " ".join(verdict.reasons)


# --- asking --------------------------------------------------------------------------------------


def test_when_several_rules_ask_the_strictest_of_each_holds() -> None:
    one = ASK_PUSH + 'answered_by = ["role:owner", "ada"]\nwait = "1h"\nthen = "allow"\n'
    two = (
        '[[rule]]\nname = "two"\nverdict = "ask"\ntool = "Bash"\nanswered_by = "bob"\nwait = "2h"\n'
    )
    asking = judged(bash("git push"), one).ask_settings
    assert (asking.wait, asking.then) == (3600, "allow")
    asking = judged(bash("git push"), one, two).ask_settings
    assert asking.answered_by == (("role:owner", "ada"), ("bob",))
    assert (asking.wait, asking.then) == (3600, "deny")


def test_what_holds_for_every_question_never_allows() -> None:
    general = '[ask]\nwait = "5m"\nanswered_by = "role:owner"\n'
    asking = judged(bash("make", cli_asks=True), general).ask_settings
    assert (asking.wait, asking.then, asking.answered_by) == (300, "deny", (("role:owner",),))


@pytest.mark.parametrize("rule", ['deny = ["Bash(rm:*)"]', 'ask = ["Read(./secret)"]'])
def test_code_that_cannot_be_read_may_hide_what_a_rule_of_the_cli_stops(rule: str) -> None:
    assert word(judged(bash('eval "$x"'), f"[claude]\n{rule}")) == "ask"
    assert word(judged(bash('eval "$x"'), '[claude]\ndeny = ["WebFetch"]')) == "cli"


@pytest.mark.parametrize("path", [" ~other/secret", "\t~root/secret"])
def test_a_path_of_which_one_reading_is_unknown_is_allowed_by_no_rule(path: str) -> None:
    rules = '[claude]\nallow = ["Read(./**)", "Edit(./**)"]'
    assert word(judged(call("Read", file_path=" ./a"), rules)) == "allow"
    assert word(judged(call("Read", file_path=path), rules)) == "cli"
    edit = call("Edit", file_path=path, old_string="a", new_string="b")
    assert word(judged(edit, rules)) == "cli"


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("git", "git init /other"),
        ("git", "git clone https://host/x /other/y"),
        ("curl", "curl -o .git/hooks/pre-commit https://host/"),
        ("curl", "curl -o /etc/x https://host/"),
        ("cp", "cp a .git/hooks/pre-commit"),
    ],
)
def test_a_rule_for_a_program_allows_no_file_outside_and_no_protected_one(
    program: str, command: str
) -> None:
    rule = f'[[rule]]\nverdict = "allow"\ncommand = "{program}"\n'
    assert word(judged(bash("git commit -m x"), rule.replace(program, "git"))) == "allow"
    assert word(judged(bash(command), rule)) == "cli"


# --- rewriting -----------------------------------------------------------------------------------

LEASE = """
[[rule]]
name = "lease"
verdict = "rewrite"
command = "git push"
flags = ["--force", "-f"]
rewrite = { replace_flags = { "--force" = "--force-with-lease", "-f" = "--force-with-lease" } }
"""


def command_of(verdict: Verdict) -> str:
    return str(msgspec.json.decode(verdict.input)["command"]) if verdict.input else ""


def test_a_rewritten_call_is_decided_anew() -> None:
    verdict = judged(bash("make && git push -f x"), LEASE, '[claude]\nallow = ["Bash"]')
    assert word(verdict) == "allow"
    assert command_of(verdict) == "make && git push --force-with-lease x"
    denied = '[[rule]]\nverdict = "deny"\ncommand = "git"\nflags = ["--force-with-lease"]\n'
    assert word(judged(bash("git push -f"), LEASE, denied)) == "deny"


def test_a_rewritten_call_that_no_rule_decides_is_left_to_the_cli_with_its_new_input() -> None:
    verdict = judged(bash("git push --force"), LEASE)
    assert not verdict.ruled
    assert command_of(verdict) == "git push --force-with-lease"


def test_who_asks_about_the_old_call_asks_about_the_new_one() -> None:
    verdict = judged(bash("git push --force"), LEASE + ASK_PUSH)
    assert word(verdict) == "ask"
    assert command_of(verdict) == "git push --force-with-lease"


def test_who_asks_about_the_old_call_only_asks_about_the_new_one_unless_that_is_denied() -> None:
    ask_force = '[[rule]]\nverdict = "ask"\ncommand = "git push"\nflags = ["--force"]\n'
    verdict = judged(bash("git push --force"), LEASE + ask_force, '[claude]\nallow = ["Bash"]')
    assert word(verdict) == "ask"
    assert command_of(verdict) == "git push --force-with-lease"
    denied = '[[rule]]\nverdict = "deny"\ncommand = "git"\nflags = ["--force-with-lease"]\n'
    assert word(judged(bash("git push --force"), LEASE + ask_force, denied)) == "deny"


def test_what_is_denied_is_not_rewritten() -> None:
    verdict = judged(bash("git push --force"), LEASE + DENY_PUSH)
    assert (word(verdict), bytes(verdict.input)) == ("deny", b"")


def test_a_change_that_is_there_already_is_no_change() -> None:
    text = '[[rule]]\nverdict = "rewrite"\ncommand = "pytest"\nrewrite = { add_flags = ["-x"] }\n'
    verdict = judged(bash("pytest tests"), text)
    assert command_of(verdict) == "pytest -x tests"
    assert not judged(bash(command_of(verdict)), text).input


def test_members_are_set_and_removed() -> None:
    text = '[[rule]]\nverdict = "rewrite"\ntool = "Bash"\n'
    text += 'rewrite = { set = { timeout = 60000 }, remove = ["run_in_background"] }\n'
    verdict = judged(call("Bash", command="make", run_in_background=True), text)
    assert msgspec.json.decode(verdict.input) == {"command": "make", "timeout": 60000}


def test_a_rewriting_that_goes_in_circles_ends() -> None:
    swap = '[[rule]]\nname = "{0}"\nverdict = "rewrite"\ncommand = "make"\nflags = ["{0}"]\n'
    swap += 'rewrite = {{ replace_flags = {{ "{0}" = "{1}" }} }}\n'
    text = swap.format("--here", "--there") + swap.format("--there", "--here")
    assert command_of(judged(bash("make --here"), text)) == "make --here"


def test_a_command_inside_quotes_that_cannot_be_rewritten_is_asked_about() -> None:
    everything = '[claude]\nallow = ["Bash"]'
    verdict = judged(bash("bash -c 'git push \"--force\"'"), LEASE, everything)
    assert word(verdict) == "ask" or "--force-with-lease" in command_of(verdict)


@pytest.mark.parametrize(
    "command", ["echo 'open", "$cmd --all", 'eval "$x"', "ls \u00a0-la", "echo " + "x" * 20_000]
)
def test_what_cannot_be_read_is_asked_about_even_where_all_of_the_tool_is_allowed(
    command: str,
) -> None:
    ours = '[[rule]]\nname = "all"\nverdict = "allow"\ntool = "Bash"\n'
    theirs = '[claude]\nallow = ["Bash"]\n'
    for text in (ours, theirs):
        assert word(judged(bash("make all"), text)) == "allow"
        verdict = judged(bash(command), text)
        assert word(verdict) == "ask"
        assert "its effect is not known" in verdict.reasons[0]


def test_a_rule_that_names_a_command_letter_by_letter_may_allow_what_nobody_can_read() -> None:
    assert word(judged(bash("$cmd --all"), '[claude]\nallow = ["Bash($cmd --all)"]\n')) == "allow"
