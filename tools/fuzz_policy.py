"""Hold odd shell commands against the real bash: `python tools/fuzz_policy.py COUNT [SEED]`.

Those that the rules would let pass are run, where every command is a function that does nothing.
Prints each command that did what no rule allows, and ends with 1 if there was one. Two hundred
thousand commands take about ten minutes of processor time.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 10_000


def main(arguments: list[str]) -> int:
    """Try so many commands; gives the exit code."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.odd_commands import commands, marked, prepare

    count = int(arguments[0]) if arguments else 200_000
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    made = commands(seed)
    seen: set[int] = set()
    passed = bad = 0
    for start in range(0, count, AT_ONCE):
        with TemporaryDirectory() as folder:
            passes = prepare(Path(folder))
            new: list[str] = []
            while len(new) < min(AT_ONCE, count - start):
                for command in islice(made, 1000):
                    if hash(command) not in seen:
                        seen.add(hash(command))
                        new.append(command)
            allowed = [command for command in new if passes(command)]
            passed += len(allowed)
            for command in marked(allowed, Path(folder)):
                bad += 1
                print(f"passed, and should not have: {command!r}", flush=True)
    print(
        f"seed {seed}: {len(seen)} distinct commands, {passed} passed, {bad} did more than allowed"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
