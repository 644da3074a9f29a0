"""Odd shell commands, made at random, held against the real bash.

A command that rules let pass is run by bash, where every command is a function and PATH leads
nowhere. The functions tell what really ran: they leave a mark if it was something that no rule
names, or if it reached the file that a rule denies.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Raw

from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.parity import ClaudeRule, RuleSet
from quarterdeck.policy.specifiers import Behavior, parse_rule
from support.bounds import SECONDS

BASH = shutil.which("bash") or "bash"
RULES = RuleSet(
    tuple(
        ClaudeRule(rule=parse_rule(text), behavior=behavior)
        for behavior, texts in (
            (
                Behavior.ALLOW,
                ("Bash(safe:*)", "Bash(cat:*)", "Bash(cd:*)", "Read(./**)", "Edit(./**)"),
            ),
            (Behavior.DENY, ("Bash(safe bad:*)", "Read(./secret)", "Edit(./secret)")),
        )
        for text in texts
    )
)

# Everything that it starts holds its output open: it has ended only when all of them have, also
# those that bash itself does not wait for, such as <(…).
RUNNER = r"""
exec 9>&1
unnamed() { echo "$number" >> "$marks"; }
safe() { if [ "$1" = bad ]; then echo "$number" >> "$marks"; fi; :; }
cat() {
  for each; do if [ "$each" -ef "$root/work/secret" ]; then echo "$number" >> "$marks"; fi; done
  if [ /dev/stdin -ef "$root/work/secret" ]; then echo "$number" >> "$marks"; fi; :
}
root=$PWD marks=$PWD/marks number=0
readonly root marks
shopt -s dotglob
while IFS= read -r -d '' text; do
  number=$((number+1))
  ( ulimit -t 5; cd work; HOME=$root; eval "$text" ) </dev/null >/dev/null 2>&1 &
  wait $!
  line=; IFS= read -r line < work/secret
  if [ "$line" != hidden ]; then echo "$number" >> "$marks"; echo hidden > work/secret; fi
done < commands
"""

WORDS = (
    *("safe ", "unnamed", "bad ", " ", "\t", "\n", "\\\n", "\\", "'", '"', "$", "$(", "(", ")"),
    *("((", "))", "`", "<<E", "<<-E", "<<'E'", "\nE\n", "E", "#", " #", ";", "&&", "||", "|", "&"),
    *("{ ", "; }", "{", "}", "[ ", " ]", "[[ ", " ]]", "=~", "==", "x=", "x=(", "${x:-", "$x"),
    *("<(", ">(", "$'", "\\x62", "\\x{62}", "\\0", "\\'", "2>&1", ">f", "<<<", "case x in "),
    *("esac", ";;", "x)", "if ", "then ", "fi", "for x in ", "do ", "done", "! ", "a", "-a1"),
    *("*", "~", "+=", "$((", "$[", "echo ", "test ", "[[ x =~ ", "time ", "f()", "eval ", '$"'),
    *("{a,b}", "&>", "{x}>f", "\\$", "\\`", "export ", "\\\\", "|&", ">|", "<>", ";&", "@("),
)
FILES = (
    *("secret", "sec", "ret", " secret", "cat ", "cat secret", "cat d/x ", "<secret", "< ", "> "),
    *(">secret", "s*", "secre?", "[s]ecret", "{secret,a}", "$PWD/", "$HOME/", "~/", "~+/", "./"),
    *("../", "d/", "d/../", "loop/", "lo*/", "$x", "${x}", "x=secret; ", "x=sec", "x+=ret ", "; "),
    *(
        "cd d; ",
        "cd ..; ",
        "cd d && ",
        "(cd d); ",
        "command cd d; ",
        "builtin cd ..; ",
        "pushd d; ",
    ),
    *("popd; ", "time cd d; ", "eval 'cd ..'; ", "cd work; ", "cd -; ", "cd loop; ", "unset x; "),
    *("for x in secret a; do ", "for x in s*; do ", "; done", "read x <<< secret; ", "&& ", "| "),
    *("f() { cat secret; }; ", "f", "`echo secret`", "$(echo secret)", "a=(secret); ", "${a[0]}"),
    *("'secret'", '"secret"', "s\\ecret", "sec''ret", "$'secret'", "$'\\x73ecret'", "secret\\\n"),
    *("if true; then cd ..; fi; ", "false && cd ..; ", "true || cd d; ", "CDPATH=.. ", "OLDPWD=. "),
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
    "x=a; cat $x",
    "cd d && cat x",
    "for f in a d/x; do cat $f; done",
    "cat a > f; cat < a",
    "cd d; cat ../a; cd ..; cat a",
    "f() { safe; }; f a",
    'x=d/x; cat "$x"; x=a; cat $x',
)
PAYLOADS = (
    *("unnamed", "; unnamed", "$(unnamed)", "`unnamed`", "\nunnamed\n", "| unnamed", "<(unnamed)"),
    *("bad", "safe bad", "\nsafe bad", "#; unnamed", "&unnamed", "\n\\\nunnamed", "$\\\n(unnamed)"),
    *("'b'\\ad", "$'\\x62ad'", "$'bad\\0'", "<<E bad\nE"),
)


def commands(seed: int) -> Iterator[str]:
    """Commands that people would hardly write, for ever; the same for the same seed."""
    random_ = random.Random(seed)
    while True:
        yield _made(random_)


def _made(random_: random.Random) -> str:
    chance = random_.random()
    if chance < 0.25:
        pieces = [random_.choice(WORDS) for _ in range(random_.randint(2, 7))]
        return "".join([random_.choice(("safe ", "echo ", "[[ ", "", "x=")), *pieces])
    if chance < 0.5:
        pieces = [random_.choice(FILES) for _ in range(random_.randint(2, 5))]
        return "".join([random_.choice(("cat ", "cd d; cat ", "x=a; ", "safe; ", "")), *pieces])
    text = random_.choice(STARTS)
    for _ in range(random_.randint(1, 4)):
        at = random_.randint(0, len(text))
        new = random_.choice(random_.choice((PAYLOADS, WORDS, FILES)))
        text = text[:at] + new + text[at + (random_.random() < 0.2) :]
    return text


def prepare(folder: Path) -> Callable[[str], bool]:
    """Make the folder that the commands run in; gives whether a command there would pass."""
    work = folder / "work"
    (work / "d").mkdir(parents=True)
    (work / "d" / "x").touch()
    (work / "a").touch()
    (work / "secret").write_text("hidden\n")
    (work / "loop").symlink_to(".")
    context = Context(cwd=str(work), home=str(folder), resolve=os.path.realpath)

    def passes(command: str) -> bool:
        given = Raw(json.dumps({"command": command}).encode())
        outcome = RULES.weigh(needs_of("Bash", given, context), context)
        return outcome.behavior is Behavior.ALLOW or (outcome.behavior is None and not outcome.open)

    return passes


def marked(texts: Iterable[str], folder: Path) -> list[str]:
    """Those that bash runs and that do what no rule allows."""
    listed = list(texts)
    (folder / "runner").write_text(RUNNER)
    (folder / "marks").write_text("")
    (folder / "commands").write_bytes(b"".join(each.encode() + b"\0" for each in listed))
    subprocess.run(
        [BASH, "--norc", "--noprofile", "runner"],
        cwd=folder,
        env={"PATH": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=SECONDS,
    )
    numbers = {int(line) for line in (folder / "marks").read_text().split()}
    return [listed[number - 1] for number in sorted(numbers)]
