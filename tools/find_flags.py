"""Find the versions of the CLI that have each flag: `python tools/find_flags.py`.

Writes `src/quarterdeck/claude/flag_versions.toml`, which `claude.flags` reads. Run it when an
option is added to `domain.launch_options`, or when newer versions are to be known.

A version is asked by starting it with the flags and one flag that no version has. Its parser names
the first flag that it does not know and ends, so flags that `--help` does not list are found, too.
No session begins. The versions come from npm, with npm's check of their hashes; no script of a
package is run. A native build is 80 MB to load and 250 MB on disk, so not all are loaded: where the
answers of two versions differ, those between them are bisected. A flag that vanished and came back
between two versions that were asked is not seen. Answers are kept in `.cache/find-flags`; a loaded
package is deleted when it has answered.
"""

from __future__ import annotations

import itertools
import json
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from quarterdeck.claude.flags import TABLE
from quarterdeck.domain.launch_options import OPTIONS, SWITCHED_BY_US, Kind
from quarterdeck.testing.clis import command_in, isolated_env, version_key

PROJECT = Path(__file__).parents[1]
CACHE = PROJECT / ".cache" / "find-flags"

OLDEST = "2.1.37"
PACKAGE = "@anthropic-ai/claude-code"
FIRST_NATIVE = "2.1.113"
ANCHORS = ("2.1.52", "2.1.62", "2.1.92", "2.1.120", "2.1.150", "2.1.200", "2.1.250", "2.1.300")
"""Asked in any case, so that a flag which came and went is seen more probably."""

NOBODY_HAS = "--no-such-flag"
LOAD_SECONDS = 900
ANSWER_SECONDS = 60

VALUES = {
    "--settings": "{}",
    "--mcp-config": '{"mcpServers":{}}',
    "--agents": "{}",
    "--json-schema": "{}",
    "--setting-sources": "user",
    "--session-id": "0b0e7b5c-92a1-4f0a-8a57-1d1f3a3b9c10",
    "--permission-mode": "plan",
    "--effort": "high",
    "--thinking": "adaptive",
    "--output-format": "stream-json",
    "--input-format": "stream-json",
    "--permission-prompt-tool": "stdio",
    "--sdk-url": "ws://127.0.0.1:9/",
}
"""Values that the parser takes, where it does not take any text."""

_UNKNOWN = re.compile(r"unknown option '(--[\w-]+)")
_INVALID = re.compile(r"option '(?:-\w, )?(--[\w-]+)[^']*' argument .* is invalid")

HEADER = """\
# Which versions of Claude Code have the flags that Quarterdeck can give. tools/find_flags.py makes
# this file by asking published versions; do not edit it. All versions that were asked have a flag
# that is in neither table. `since` has the first version with a flag, `until` the last one.
"""

Ask = Callable[[str], frozenset[str]]


def main() -> int:
    """Ask the published versions, and write the table."""
    CACHE.mkdir(parents=True, exist_ok=True)
    versions = published()
    answers: dict[str, frozenset[str]] = {}

    def ask(version: str) -> frozenset[str]:
        if version not in answers:
            answers[version] = _answer(version)
        return answers[version]

    since, until = find_bounds(versions, [v for v in ANCHORS if v in versions], flag_names(), ask)
    TABLE.write_text(table_text(answers, since, until), encoding="utf-8")
    print(f"asked {len(answers)} of {len(versions)} versions; wrote {TABLE.relative_to(PROJECT)}")
    return 0


def flag_names() -> list[str]:
    """All flags that Quarterdeck can give."""
    named = [option.flag for option in OPTIONS]
    files = [option.file_flag for option in OPTIONS if option.file_flag]
    return sorted({*named, *files, *SWITCHED_BY_US})


def find_bounds(
    versions: Sequence[str], anchors: Iterable[str], flags: Iterable[str], ask: Ask
) -> tuple[dict[str, str], dict[str, str]]:
    """The first version of each flag that the oldest lacks, and the last of each that vanished.

    Raises `SystemExit` if no version has a flag, or if one came back after it had vanished.
    """
    places = {version: index for index, version in enumerate(versions)}
    posts = sorted({0, len(versions) - 1, *(places[anchor] for anchor in anchors)})
    since: dict[str, str] = {}
    until: dict[str, str] = {}
    for flag in flags:
        has = flag in ask(versions[0])
        changes = 0 if has else -1
        for low, high in itertools.pairwise(posts):
            if (flag in ask(versions[low])) == (flag in ask(versions[high])):
                continue
            last, first = _edge(versions, low, high, flag, ask)
            changes += 1
            if flag in ask(versions[first]):
                since[flag] = versions[first]
            else:
                until[flag] = versions[last]
        if changes < 0:
            raise SystemExit(f"find_flags: no published version has {flag}")
        if changes > 1:
            raise SystemExit(f"find_flags: {flag} came back after it had vanished")
    return since, until


def _edge(versions: Sequence[str], low: int, high: int, flag: str, ask: Ask) -> tuple[int, int]:
    """Two neighbours between `low` and `high` of which only one has the flag."""
    before = flag in ask(versions[low])
    while high - low > 1:
        middle = (low + high) // 2
        if (flag in ask(versions[middle])) == before:
            low = middle
        else:
            high = middle
    return low, high


def table_text(asked: Iterable[str], since: dict[str, str], until: dict[str, str]) -> str:
    """The file."""
    versions = sorted(asked, key=version_key)
    quoted = [json.dumps(version) for version in versions]
    rows = [", ".join(quoted[start : start + 8]) for start in range(0, len(quoted), 8)]
    lines = ["asked = [", *(f"  {row}," for row in rows), "]"]
    for name, bounds in (("since", since), ("until", until)):
        lines += ["", f"[{name}]"]
        lines += [f'"{flag}" = "{bounds[flag]}"' for flag in sorted(bounds)]
    return HEADER + "\n" + "\n".join(lines) + "\n"


# --- published versions ------------------------------------------------------------------------


def published() -> list[str]:
    """The versions that can be asked on this machine, the oldest first."""
    scripts = [v for v in _listed(PACKAGE) if version_key(v) < version_key(FIRST_NATIVE)]
    native = [v for v in _listed(_native()) if version_key(v) >= version_key(FIRST_NATIVE)]
    found = {v for v in (*scripts, *native) if re.fullmatch(r"2\.1\.\d+", v)}
    return sorted((v for v in found if version_key(v) >= version_key(OLDEST)), key=version_key)


def _listed(package: str) -> list[str]:
    found = json.loads(_npm("view", package, "versions", "--json"))
    return [found] if isinstance(found, str) else list(map(str, found))


def _native() -> str:
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{PACKAGE}-{sys.platform}-{machine}"


def _npm(*arguments: str, cwd: Path | None = None) -> str:
    npm = shutil.which("npm", path=str(Path(sys.executable).parent)) or shutil.which("npm")
    if npm is None:
        raise SystemExit("find_flags: there is no npm beside this Python; run `make setup` first")
    try:
        done = subprocess.run(
            [npm, *arguments, "--loglevel=error"],
            cwd=cwd, check=True, timeout=LOAD_SECONDS, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise SystemExit(f"find_flags: {error}") from None
    return done.stdout


# --- asking one version ------------------------------------------------------------------------


def _answer(version: str) -> frozenset[str]:
    """The flags that a version has; kept, unless there are flags that it was not asked for."""
    kept = CACHE / f"{version}.json"
    flags = flag_names()
    if kept.is_file():
        old: dict[str, bool] = json.loads(kept.read_text())
        if old.keys() >= set(flags):
            return frozenset(flag for flag, has in old.items() if has)
    print(f"asking {version}", flush=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        package = _load(version, Path(folder))
        command = command_in(package)
        if command is None:
            raise SystemExit(f"find_flags: no program in the package of {version}")
        lacks = lacking(flags, lambda argv: _complaint(command, argv, Path(folder)))
    kept.write_text(json.dumps({flag: flag not in lacks for flag in flags}))
    return frozenset(flags) - lacks


def _load(version: str, folder: Path) -> Path:
    native = version_key(version) >= version_key(FIRST_NATIVE)
    name = f"{_native() if native else PACKAGE}@{version}"
    # A cache of its own, so that nothing of it stays.
    _npm("pack", name, "--ignore-scripts", "--cache", str(folder / "npm"), cwd=folder)
    (packed,) = folder.glob("*.tgz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def lacking(flags: Iterable[str], complain: Callable[[list[str]], str]) -> frozenset[str]:
    """Which of the flags a parser does not know; `complain` gives what it says about arguments.

    Raises `SystemExit` if it says something else than what it does not know or take.
    """
    rest = list(flags)
    lacks: set[str] = set()
    while True:
        said = complain([*map(argument, rest), NOBODY_HAS])
        if (unknown := _UNKNOWN.search(said)) and unknown[1] == NOBODY_HAS:
            return frozenset(lacks)
        if unknown and unknown[1] in rest:
            lacks.add(unknown[1])
            rest.remove(unknown[1])
        elif (invalid := _INVALID.search(said)) and invalid[1] in rest:
            rest.remove(invalid[1])  # it knows the flag, and not the value
        else:
            raise SystemExit(f"find_flags: not understood: {said.strip()[:500]!r}")


def argument(flag: str) -> str:
    """The flag as an argument, with a value where it takes one."""
    switches = {each.flag for each in OPTIONS if each.kind in {Kind.SWITCH, Kind.SWITCH_OFF}}
    if flag in switches or flag in {"--verbose", "--print"}:
        return flag
    numbers = {each.flag for each in OPTIONS if each.kind is Kind.NUMBER}
    return f"{flag}={VALUES.get(flag, '1' if flag in numbers else 'x')}"


def _complaint(command: tuple[str, ...], argv: list[str], home: Path) -> str:
    done = subprocess.run(
        [*command, *argv],
        env=isolated_env(home, "http://127.0.0.1:9"),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ANSWER_SECONDS,
        check=False,
    )
    return done.stderr


if __name__ == "__main__":
    sys.exit(main())
