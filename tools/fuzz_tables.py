"""Hold option tables against programs: `python tools/fuzz_tables.py COUNT NAME… [--seed N]`.

Runs each program with random options, values and operands in a folder of its own, under strace, and
compares the files that it opens with those that its table tells. Prints each command that read or
wrote a file which was not told. Values and operands are names in that folder; still, name only
programs that do no harm with them. Started by root, it runs them as nobody.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory

from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.programs import look_up
from quarterdeck.policy.shell.script import EffectKind, Target
from quarterdeck.policy.shell.tables import Option, Table, table_of
from quarterdeck.policy.shell.word_reader import read_word
from quarterdeck.policy.shell.working_dir import WorkingDir

NOBODY = 65534
SECONDS = 5
FILES = {
    "a": "one\ntwo\n",
    "b": "two\none\n",
    "secret": "TOP=1\n",
    ".hidden": "h\n",
    "names": "secret\n",
    "names0": "secret\0",
    "folder/a": "z\n",
    "folder/secret": "q\n",
    "folder/inner/x": "r\n",
}
NAMES = [*FILES, "folder", "folder/", "folder/inner", ".", "new"]
VALUES = [*NAMES, *("1", "2", "5", "x") * 4]
CALLS = (
    "open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,"
    "mkdir,mkdirat,rmdir,truncate"
)
_CALL = re.compile(r"\d+\s+(\w+)\((.*)\)\s*=\s*\d")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PLACE = re.compile(r"(?:AT_FDCWD|\d+)<([^>]*)>")
_MADE = re.compile(r"~\d*~?$|/(?:Cu|st|zi|d2utmp)\w{6}$|/0+$|/-$")
"""Names that programs make up for a while, backups, and a file that is called `-`."""


def words(table: Table, chance: random.Random) -> list[str]:
    """Random words for a program."""
    plan = ["option"] * chance.choice([0, 1, 1, 2]) + ["word"] * chance.choice([1, 1, 2, 2, 3])
    chance.shuffle(plan)
    found: list[str] = []
    for step in plan:
        if step == "option" and table.options:
            name = chance.choice(list(table.options))
            found += _option(name, table.options[name], table, chance)
        else:
            found.append(chance.choice([*NAMES, "-", "--"]))
    return found


def _option(name: str, option: Option, table: Table, chance: random.Random) -> list[str]:
    value = chance.choice(VALUES)
    if name.endswith("="):
        return [name + value]
    if name.startswith("--"):
        shown = name[: chance.randint(4, len(name))] if chance.random() < 0.3 else name
        attached = f"{shown}={value}"
    else:
        short = [each[1] for each in table.options if re.fullmatch(r"-[^-]", each)]
        bundle = len(name) == 2 and chance.random() < 0.3
        shown = f"-{chance.choice(short)}{name[1:]}" if bundle and short else name
        attached = shown + value
    if not option.values:
        return [shown]
    if option.optional or chance.random() < 0.5:
        return [attached]
    return [shown, *(chance.choice(VALUES) for _ in option.values)]


def fill(box: Path) -> None:
    """The files that programs find."""
    for name, text in FILES.items():
        path = box / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if os.geteuid() == 0:
        for each in (box, *box.rglob("*")):
            os.chown(each, NOBODY, NOBODY)


def touched(argv: list[str], box: Path, trace: Path) -> tuple[set[str], set[str]]:
    """Run a program; the files in its folder that it read, and those that it wrote."""
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    command = ["strace", "-f", "-qq", "-y", "-s", "300", "-e", f"trace={CALLS}", "-o", str(trace)]
    command += [*(as_nobody if os.geteuid() == 0 else []), *argv]
    try:
        subprocess.run(
            ["timeout", "-k", "1", str(SECONDS), *command],
            cwd=box,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(box)},
            check=False,
        )
        lines = trace.read_text(errors="replace").splitlines()
    except OSError:
        return set(), set()
    read: set[str] = set()
    written: set[str] = set()
    for line in lines:
        call = _CALL.match(line)
        if call is None:
            continue
        opens = call[1] in {"open", "openat"}
        reads = opens and "O_WRONLY" not in call[2] and "O_RDWR" not in call[2]
        if opens and ("O_DIRECTORY" in call[2] or "O_PATH" in call[2]):
            continue
        (read if reads else written).update(_paths(call[1], call[2], box))
    return read, written


def _paths(name: str, arguments: str, box: Path) -> Iterator[str]:
    texts, places = _TEXT.findall(arguments), _PLACE.findall(arguments)
    for number, text in enumerate(texts):
        if "link" in name and "unlink" not in name and number == 0:
            continue  # a link is written where its last name is
        place = places[min(number, len(places) - 1)] if places else str(box)
        path = os.path.normpath(os.path.join(place, text))  # noqa: PTH118 - by text, as rules do
        if path.startswith(f"{box}/") and not _MADE.search(path):
            yield path


def told(path: str, targets: list[Target]) -> bool:
    """Whether one of the targets is, or may be, this file."""
    for target in targets:
        if not target.paths:
            return True
        for each in target.paths:
            below = target.deep and path.startswith(f"{each.rstrip('/')}/")
            if path == each or below or (target.glob and fnmatch(path, each)):
                return True
    return False


def hole(known: ProgramEffects, read: set[str], written: set[str], box: Path) -> str:
    """What a program did that was not told; empty if all was."""
    of = {
        kind: [each.target for each in known.effects if each.kind is kind and each.target]
        for kind in (EffectKind.READS, EffectKind.WRITES)
    }
    there = {str(box / name) for name in FILES}
    found = [f"read {each}" for each in read & there if not told(each, of[EffectKind.READS])]
    writes = [] if known.looks else of[EffectKind.WRITES]
    found += [f"wrote {each}" for each in written if not told(each, writes)]
    return ", ".join(sorted(found)).replace(f"{box}/", "")


def main(arguments: list[str]) -> int:
    """Try the programs; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    holes = 0
    for name in given.names:
        table = table_of(name)
        if table is None or shutil.which(name) is None:
            print(f"{name}: no table, or not installed")
            continue
        chance = random.Random(f"{name} {given.seed}")
        for _ in range(given.count):
            argv = [name, *words(table, chance)]
            with TemporaryDirectory() as folder:
                box = Path(folder).resolve() / "box"
                box.parent.chmod(0o755)
                box.mkdir()
                fill(box)
                line = tuple(read_word(shlex.quote(each)) for each in argv)
                known = look_up(line, WorkingDir.start(str(box)), None)
                bad = hole(known, *touched(argv, box, box.parent / "trace"), box)
            if bad:
                holes += 1
                print(f"{shlex.join(argv)}: {bad}", flush=True)
        print(f"{name}: {given.count} commands", flush=True)
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
