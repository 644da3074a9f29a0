"""Run the official SDK's own tests with our transport as its default.

Loads the source of the installed `claude-agent-sdk` (`install_sdk_source.py`), runs its tests with
`install()` called first, and compares the failures with `sdk_tests_not_applicable.toml`. Ends with
1 if a test fails that is not in the list, or passes though it is. It takes about a minute:
`make long` runs it (`tests/tools/test_run_sdk_tests.py`), and `make test` does not.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path

import msgspec

PROJECT = Path(__file__).resolve().parent.parent
CACHE = PROJECT / ".cache" / "sdk-tests"
PACKAGE = "claude-agent-sdk"
LIST = PROJECT / "tools" / "sdk_tests_not_applicable.toml"
PLUGIN = "from quarterdeck.sdk_transport import install\n\ninstall()\n"
_OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR) tests/(\S+::.+?)(?: - .*)?$")


class Group(msgspec.Struct, frozen=True):
    """Tests that do not apply, for one reason."""

    reason: str
    tests: tuple[str, ...]

    def has(self, test: str) -> bool:
        """Whether this test is one of them."""
        whole = test.split("[", 1)[0]
        return any(fnmatchcase(whole, each) for each in self.tests)


class Report(msgspec.Struct, frozen=True):
    """What a run showed."""

    passed: int
    by_reason: dict[str, int]
    unexpected: tuple[str, ...]
    passing: tuple[str, ...]
    """Patterns of the list whose tests did not fail."""


def read_groups(text: str) -> tuple[Group, ...]:
    """The list of tests that do not apply."""
    return tuple(msgspec.convert(tomllib.loads(text)["group"], list[Group]))


def compare(output: str, groups: tuple[Group, ...]) -> Report:
    """What pytest's lines mean (`-rA`: one for each test)."""
    passed: list[str] = []
    failed: list[str] = []
    for line in output.splitlines():
        if (found := _OUTCOME.match(line)) is not None:
            (passed if found[1] == "PASSED" else failed).append(found[2])
    reasons: Counter[str] = Counter()
    unexpected: list[str] = []
    for test in failed:
        reason = next((group.reason for group in groups if group.has(test)), None)
        if reason is None:
            unexpected.append(test)
        else:
            reasons[reason] += 1
    names = {test.split("[", 1)[0] for test in failed}
    passing = [
        pattern
        for group in groups
        for pattern in group.tests
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    return Report(len(passed), dict(reasons), tuple(unexpected), tuple(passing))


def main() -> int:
    """Load what is missing, run the tests, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("-n", type=int, default=2, help="workers (default: 2)")
    report = run(parser.parse_args().n)
    print(f"{PACKAGE} {version(PACKAGE)}: {report.passed} tests pass with our transport")
    for reason, count in report.by_reason.items():
        print(f"{count} do not apply: {reason}")
    for test in report.unexpected:
        print(f"FAILS: {test}")
    for pattern in report.passing:
        print(f"listed, but does not fail: {pattern}")
    if not report.passed:
        print(f"no test ran: see {CACHE / 'output.txt'}")
    return 1 if report.unexpected or report.passing or not report.passed else 0


def run(workers: int) -> Report:
    """Run the tests, and compare what they show with the list."""
    output = _run(_source(), str(workers))
    (CACHE / "output.txt").write_text(output)
    return compare(output, read_groups(LIST.read_text()))


def _source() -> Path:
    """The folder of the source, and our plugin beside it."""
    load = [sys.executable, str(PROJECT / "tools" / "install_sdk_source.py")]
    folder = Path(subprocess.run(load, check=True, stdout=-1, text=True).stdout.strip())
    (CACHE / "plugin").mkdir(exist_ok=True)
    (CACHE / "plugin" / "with_quarterdeck.py").write_text(PLUGIN)
    return folder


def _run(source: Path, workers: str) -> str:
    paths = os.pathsep.join((str(CACHE / "plugin"), str(CACHE / "packages")))
    options = ["-q", "-rA", "--tb=line", "-n", workers, "-p", "with_quarterdeck"]
    off = ["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    # A test of ours may run this: its own pytest is no business of this one.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *off, "tests"],
        cwd=source,
        env={**env, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
