"""Held against the real bash: what rules allow must run nothing that they do not name.

A seeded generator makes some thousand odd commands. Those that pass are run by bash, where every
command is a function: `unnamed` and `safe bad` leave a mark, everything else does nothing. Nothing
else can run: there is no PATH, and the environment is empty.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.parity import ClaudeRule, RuleSet
from quarterdeck.policy.specifiers import Behavior, parse_rule

pytestmark = pytest.mark.process

BASH = shutil.which("bash") or "bash"
CONTEXT = Context(cwd="/project", home="/home/someone")
RULES = RuleSet(
    (
        ClaudeRule(rule=parse_rule("Bash(safe:*)"), behavior=Behavior.ALLOW),
        ClaudeRule(rule=parse_rule("Bash(cat:*)"), behavior=Behavior.ALLOW),
        ClaudeRule(rule=parse_rule("Edit(./**)"), behavior=Behavior.ALLOW),
        ClaudeRule(rule=parse_rule("Bash(safe bad:*)"), behavior=Behavior.DENY),
    )
)

# Everything that it starts holds its output open: it has ended only when all of them have, also
# those that bash itself does not wait for, such as <(…).
RUNNER = """
exec 9>&1
unnamed() { echo "$number" >> "$marks"; }
safe() { if [ "$1" = bad ]; then echo "$number" >> "$marks"; fi; :; }
cat() { :; }
marks=$1 number=0
while IFS= read -r -d '' text; do
  number=$((number+1))
  ( ulimit -t 5; cd work; eval "$text" ) </dev/null >/dev/null 2>&1 &
  wait $!
done < "$2"
"""

PIECES = (
    *("safe ", "unnamed", "bad ", " ", "\t", "\n", "\\\n", "\\", "'", '"', "$", "$(", "(", ")"),
    *("((", "))", "`", "<<E", "<<-E", "<<'E'", "\nE\n", "E", "#", " #", ";", "&&", "||", "|", "&"),
    *("{ ", "; }", "{", "}", "[ ", " ]", "[[ ", " ]]", "=~", "==", "x=", "x=(", "${x:-", "$x"),
    *("<(", ">(", "$'", "\\x62", "\\x{62}", "\\0", "\\'", "2>&1", ">f", "<<<", "case x in "),
    *("esac", ";;", "x)", "if ", "then ", "fi", "for x in ", "do ", "done", "! ", "a", "-a1"),
    *("*", "~", "+=", "$((", "$[", "echo ", "test ", "[[ x =~ ", "time ", "f()", "eval ", '$"'),
    *("{a,b}", "&>", "{x}>f", "\\$", "\\`", "export ", "\\\\", "|&", ">|", "<>", ";&", "@("),
)
STARTS = (
    "safe a; safe b",
    'safe "a $(safe b)"',
    "cat <<E\nhi\nE\nsafe",
    "cat <<'E' | safe\n$(unnamed)\nE\n",
    "if safe; then safe a; fi",
    "for x in a b; do safe c; done",
    "case x in a|b) safe;; *) safe b;; esac",
    "[[ a == b ]] && safe",
    "[ -f x ] && safe c",
    "x=(a b); safe",
    "echo ${x:-a} `safe`",
    "safe 'b' \"c\" 2>&1",
    "{ safe; safe a; } > f",
    "(safe a; safe b) | safe",
    "safe \\\n a \\\n b # c\nsafe",
    'safe <<< "a $x"',
    "[[ a =~ ^(a|b)$ ]]; safe",
    "safe \"$(cat <<'E'\na\nE\n)\"",
    "echo bad unnamed '$(unnamed)' \"\\$(unnamed)\"",
    "safe # unnamed\n# unnamed\nsafe '#' unnamed",
)
PAYLOADS = (
    *("unnamed", "; unnamed", "$(unnamed)", "`unnamed`", "\nunnamed\n", "| unnamed", "<(unnamed)"),
    *("bad", "safe bad", "\nsafe bad", "#; unnamed", "&unnamed", "\n\\\nunnamed", "$\\\n(unnamed)"),
    *("'b'\\ad", "$'\\x62ad'", "$'bad\\0'", "<<E bad\nE"),
)


def made(random_: random.Random) -> str:
    """A command that people would hardly write."""
    if random_.random() < 0.4:
        pieces = [random_.choice(PIECES) for _ in range(random_.randint(2, 7))]
        return "".join([random_.choice(("safe ", "echo ", "[[ ", "", "x=")), *pieces])
    text = random_.choice(STARTS)
    for _ in range(random_.randint(1, 4)):
        at = random_.randint(0, len(text))
        new = random_.choice(PAYLOADS if random_.random() < 0.4 else PIECES)
        text = text[:at] + new + text[at + (random_.random() < 0.2) :]
    return text


def passes(command: str) -> bool:
    """Would it run without a question?"""
    given = Raw(json.dumps({"command": command}).encode())
    outcome = RULES.weigh(needs_of("Bash", given, CONTEXT), CONTEXT)
    return outcome.behavior is Behavior.ALLOW or (outcome.behavior is None and not outcome.open)


def marking(commands: list[str], folder: Path) -> list[str]:
    """Those that run what no rule names, as bash has it."""
    (folder / "work").mkdir(parents=True)
    (folder / "runner").write_text(RUNNER)
    (folder / "marks").touch()
    (folder / "commands").write_bytes(b"".join(each.encode() + b"\0" for each in commands))
    subprocess.run(
        [BASH, "--norc", "--noprofile", "runner", str(folder / "marks"), "commands"],
        cwd=folder,
        env={"PATH": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=120,
    )
    numbers = {int(line) for line in (folder / "marks").read_text().split()}
    return [commands[number - 1] for number in sorted(numbers)]


def test_nothing_unnamed_runs_in_what_rules_allow(tmp_path: Path) -> None:
    random_ = random.Random(20_260_101)
    every = dict.fromkeys(made(random_) for _ in range(6_000))
    allowed = [command for command in every if passes(command)]
    assert len(allowed) > 200
    assert marking(allowed, tmp_path / "allowed") == []


def test_the_runner_notices_what_is_not_named(tmp_path: Path) -> None:
    hostile = [
        "safe\n\\\nunnamed",
        "safe b''\\ad",
        'echo "$\\\n(unnamed)"',
        "safe $'\\x62ad'",
        "echo ${x:-<(unnamed)}",
    ]
    assert marking(["safe", *hostile, "cat unnamed bad"], tmp_path) == hostile
    assert [command for command in hostile if passes(command)] == []
