"""How long a decision takes: over 500 rules, as a command grows, and for odd commands.

Unlike the other cases there is no peer: what is wanted is a time (under 1 ms at the median for a
typical command), and that it grows no faster than the command does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Raw

from quarterdeck.policy.decide import Behavior, Call, Rules, decide
from quarterdeck.policy.explain import explain
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.grants import narrowest
from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.presets import preset
from quarterdeck.policy.replay import PastCall
from quarterdeck.policy.shell.reader import read_again
from quarterdeck.policy.suggest import suggest

RULES = 500
GOAL_MS = 1.0
TYPICAL = (
    "git status",
    "npm test",
    "cd src && python -m pytest -q tests/unit",
    "grep -rn 'def main' src | head -20",
    "git add -A && git commit -m 'Fix the parser'",
    "cat package.json",
)
ODD = {
    "a megabyte": "x" * 1_000_000,
    "here-documents": "cat " + "<<E " * 4000,
    "brackets": "(" * 8000 + ")" * 8000,
    "patterns": "cat " + "a* " * 5000,
    "variables": "".join(f"x{at}=$x{at - 1}a;" for at in range(1, 900)) + "cat $x899",
    "links": "".join(f"ln -s a{at} a{at + 1};" for at in range(800)) + "cat a800/x",
    "control characters": "".join(map(chr, range(1, 32))) * 500,
    "substitutions": "echo " + "$(a)" * 3900,
}
"""Commands that take longest to read. People do not write them."""

MOST_MS = 50.0
"""Of processor time, for anything that is done with one call."""

PLACE = Context(cwd="/srv/project", home="/home/ada")
FACTS = Facts(now=1_794_814_200_000, branch="topic", user="ada", mode="default", cost_usd=1.0)


def policy_text() -> str:
    """Five hundred rules of the kinds that people write."""
    parts = ['default = "ask"\n']
    for number in range(RULES // 5):
        deny = f'[[rule]]\nname = "d{number}"\nverdict = "deny"\ncommand = "tool{number}"\n'
        parts += [
            f'[[rule]]\nname = "a{number}"\nverdict = "allow"\ncommand = "tool{number} run"\n',
            deny + 'flags = ["--force", "-f"]\nbranch = "main"\n',
            f'[[rule]]\nname = "p{number}"\nverdict = "deny"\npath = "./secret{number}/**"\n',
            f'[[rule]]\nname = "w{number}"\nverdict = "ask"\ndomain = "site{number}.example"\n',
        ]
    claude = ",".join(f'"Bash(make target{number}:*)"' for number in range(RULES // 5 - 6))
    known = '"Bash(git:*)","Bash(npm test:*)","Bash(python:*)","Bash(grep:*)","Bash(head:*)"'
    parts.append(f'[claude]\nallow = [{claude},{known},"Bash(cat:*)"]\n')
    return "".join(parts)


def run_policy(_: Path, rounds: int) -> None:
    """Measure and print."""
    loaded = read_policy(policy_text(), "bench")
    if loaded.policy is None or loaded.rules != RULES:
        raise RuntimeError(f"the policy of the bench is wrong: {loaded.flaws}, {loaded.rules}")
    rules = Rules(policies=(loaded.policy,))
    print(f"\na decision over {RULES} rules, {rounds} rounds of 200 for each command")
    medians = []
    for command in TYPICAL:
        seconds = _measure(command, rules, rounds * 200)
        medians.append(statistics.median(seconds))
        worst = sorted(seconds)[int(len(seconds) * 0.99)]
        print(f"  {medians[-1] * 1e3:7.3f} ms, 99 % within {worst * 1e3:7.3f} ms  {command}")
    median = statistics.median(medians) * 1e3
    print(f"  the median is {median:.3f} ms, wanted under {GOAL_MS:g} ms")
    _run_growing(rules, rounds)
    _run_odd(rounds)


def _run_odd(rounds: int) -> None:
    """The processor time for odd commands, of each function that takes a call."""
    held = preset("trusted-repo")
    if held is None:
        raise RuntimeError("a preset is missing")
    rules, worst = Rules(policies=(held,)), 0.0
    print("  odd commands: processor time for the costliest of needs_of, decide, explain,")
    print("  narrowest and suggest")
    for name, command in ODD.items():
        given = Raw(msgspec.json.encode({"command": command}))
        call = Call(tool="Bash", input=given, facts=FACTS, context=PLACE)
        past = PastCall(session="s", at=0, call=call, done="allow", by="ada", asked=True)
        most = max(
            _least(partial(needs_of, "Bash", given, PLACE), rounds),
            _least(partial(decide, call, rules), rounds),
            _least(partial(explain, call, rules), rounds),
            _least(partial(narrowest, "Bash", given, PLACE), rounds),
            _least(partial(suggest, [past], least=1), rounds),
        )
        worst = max(worst, most)
        print(f"  {most:7.1f} ms  {name}")
    print(f"  the worst is {worst:.1f} ms, wanted under {MOST_MS:g} ms")


def _least(work: Callable[[], object], rounds: int) -> float:
    found: list[float] = []
    for _ in range(max(rounds, 3)):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found) * 1e3


def _measure(command: str, rules: Rules, times: int) -> list[float]:
    given = Raw(msgspec.json.encode({"command": command}))
    call = Call(tool="Bash", input=given, facts=FACTS, context=PLACE)
    found: list[float] = []
    for _ in range(times):
        read_again.cache_clear()  # as if it had never been seen
        start = time.perf_counter()
        decide(call, rules)
        found.append(time.perf_counter() - start)
    if decide(call, rules).behavior is Behavior.DENY:
        raise RuntimeError(f"{command!r} is denied; what was measured means nothing")
    return found


def _run_growing(rules: Rules, rounds: int) -> None:
    """A command of 1, 2, 4 and 8 times the length, up to near the limit of what is read."""
    part, times = "git commit -m 'x y z' src/a.py\n", (1, 2, 4, 8)
    base = statistics.median(_measure(part * 50 + "true", rules, rounds * 5))
    print("  a command of 50, 100, 200 and 400 parts (linear is 2 ×, 4 ×, 8 ×)")
    for factor in times[1:]:
        seconds = statistics.median(_measure(part * 50 * factor + "true", rules, rounds * 5))
        print(f"  {factor} times the length takes {seconds / base:5.1f} × the time")
