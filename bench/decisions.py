"""Row 13: the processor time of one policy decision, as the hub makes it.

Two commands, under each preset and under thirty rules in Claude Code's syntax; the costliest of
these counts. A command that was decided about before is not analysed again (`reader.read_again`),
so it is measured both ways: as new, and as known. Beside it stands work of the standard library
that knows nothing of us: `shlex.split` of the same text, which tells how fast the machine is.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from bench.rounds import interleaved
from bench.table import Bar, Kind, Measure, Peer, Sample, paired
from quarterdeck.hub.permissions.disk import looking_here
from quarterdeck.policy.decide import Behavior, Call, Rules, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset
from quarterdeck.policy.shell.reader import read_again

SIMPLE, PIPE = "git status", "cat a.txt | grep -n foo | head -5"
MOST = {SIMPLE: 100.0, PIPE: 400.0}
"""Microseconds that are wanted."""

SHARE = 3.0
"""All of a decision, over reading the command alone. Alone it is measured again and again, and the
processor has all of it at hand: within a decision, reading takes a third longer."""

PRESETS = ("read-only", "careful", "edit-freely", "trusted-repo")
RUNS, TIMES = 25, 40
_ALLOWED = (
    "npm run test;npm run build;npm run lint;npm run dev;git status;git diff;git log;git show;ls"
    ";cat;grep;rg;head;tail;wc;make;pytest;ruff;mypy;docker ps;kubectl get;cargo test;go test"
)


def claude_rules() -> str:
    """Thirty rules of the kind that people write."""
    allowed = ",".join(f'"Bash({each}:*)"' for each in _ALLOWED.split(";"))
    return (
        f'[claude]\nallow = [{allowed}, "Edit(src/**)", "Read(docs/**)"]\n'
        'deny = ["Bash(rm -rf:*)", "Bash(sudo:*)", "Read(**/.env)", "Edit(**/.env*)"]\n'
        'ask = ["Bash(git push:*)"]\n'
    )


def policies() -> list[Policy]:
    """What is compared: each preset, and the thirty rules."""
    texts = [*(f'extends = ["{name}"]\n' for name in PRESETS), claude_rules()]
    loaded = [read_policy(text, "bench", preset=preset).policy for text in texts]
    return [policy for policy in loaded if policy is not None]


def decisions(folder: Path, rounds: int) -> list[Measure]:
    """Row 13."""
    (folder / "a.txt").write_text("foo\n")
    found: list[Measure] = []
    for command, most in MOST.items():
        found += _decisions(command, most, str(folder), rounds)
    return found


def _decisions(command: str, most: float, folder: str, rounds: int) -> list[Measure]:
    call = Call(
        tool="Bash",
        input=msgspec.Raw(msgspec.json.encode({"command": command})),
        facts=Facts(mode="default", origin="main", branch="topic", directory=folder),
        context=looking_here(Context(cwd=folder, home=f"{folder}/home", settings=folder)),
    )
    every = [Rules(policies=(policy,)) for policy in policies()]
    if any(decide(call, rules).behavior is Behavior.DENY for rules in every):
        raise RuntimeError(f"{command!r} is denied; what was measured means nothing")

    def costliest(known: bool) -> float:
        return max(_cost(partial(decide, call, rules), known) for rules in every)

    taken = interleaved(
        {
            "new": lambda: costliest(False),
            "known": lambda: costliest(True),
            "read": lambda: _cost(lambda: needs_of("Bash", call.input, call.context), False),
            "shlex": lambda: _cost(lambda: shlex.split(command), True),
        },
        rounds,
    )
    samples = {name: Sample(tuple(values)) for name, values in taken.items()}
    limit = Peer("shlex.split", samples["shlex"])
    work = f"a decision about `{command.replace('|', '¦')}`"
    return [
        Measure(
            row=13,
            work=f"{work}, new",
            unit="µs",
            ours=samples["new"],
            limit=limit,
            ratio=paired(taken["new"], taken["shlex"]),
            bar=Bar(Kind.AT_MOST, most),
            note="the costliest of four presets and thirty rules",
        ),
        Measure(
            row=13,
            work=f"{work}, known",
            unit="µs",
            ours=samples["known"],
            limit=limit,
            ratio=paired(taken["known"], taken["shlex"]),
            bar=Bar(Kind.AT_MOST, most),
        ),
        Measure(
            row=13,
            work=f"{work}, beside reading it alone",
            unit="µs",
            ours=samples["new"],
            peer=Peer("reading", samples["read"]),
            ratio=paired(taken["new"], taken["read"]),
            bar=Bar(Kind.RATIO_AT_MOST, SHARE),
            note="what the rules add must not grow beyond the reading",
        ),
    ]


def _cost(work: Callable[[], object], known: bool) -> float:
    """Microseconds of processor time for one run: the least of several, others use the machine."""
    work()
    least = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        for _ in range(TIMES):
            if not known:
                read_again.cache_clear()
            work()
        least = min(least, (time.process_time() - start) / TIMES)
    return least * 1e6
