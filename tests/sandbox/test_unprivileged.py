"""The sandbox for a user who is not root: most people are not, and the tests often are.

The world is made, the sandbox opened and the script run by a process of the user `nobody`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.sandbox import Kind
from support.bounds import SECONDS
from support.boxes import EVIL, KINDS, PATH, SECRET

NOBODY = 65534
PARTS = [str(Path(__file__).parents[2] / "src"), str(Path(__file__).parents[1])]

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux"),
]

CODE = """
import json, os, subprocess, sys
from pathlib import Path
folder, kind, parts, processes, script = json.loads(sys.argv[1])
sys.path[:0] = parts
from support.boxes import World
from quarterdeck.sandbox import Kind, Limits, probe
from quarterdeck.sandbox.open import open_now
found = {str(each.kind): each for each in probe()}[kind]
if not found.works:
    print(json.dumps({"skip": found.why}))
    sys.exit()
world = World(Path(folder))
spec = world.spec(limits=Limits(processes=processes))
box = open_now(spec, ["sh", "-c", script], world.env, cwd=str(world.project), kind=Kind(kind))
done = subprocess.run(box.command, env=box.env, cwd=world.project, capture_output=True, text=True)
box.close()
print(json.dumps({
    "uid": os.getuid(), "out": done.stdout, "err": done.stderr, "gaps": box.not_enforced,
    "hook": (world.project / ".git" / "hooks" / "pre-commit").exists(),
    "other": (world.other / "new").exists(), "names": os.listdir(world.project),
}))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the user, where the user can get to."""
    made = Path(tempfile.mkdtemp(prefix="quarterdeck-test-", dir="/var/tmp"))
    os.chown(made, NOBODY, NOBODY)
    try:
        yield made
    finally:
        shutil.rmtree(made)


def as_nobody(
    folder: Path, kind: Kind, script: str, processes: int | None = None
) -> dict[str, Any]:
    parts = [*PARTS, *(path for path in sys.path if path.endswith("site-packages"))]
    given = json.dumps([str(folder), kind, parts, processes, script])
    done = subprocess.run(
        [_python(), "-c", CODE, given],
        check=False,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env={"PATH": PATH, "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    if "skip" in found:
        pytest.skip(found["skip"])
    return found


def _python() -> str:
    """A Python of our version that the user can start, and that can import what we have."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for program in (os.path.realpath(sys.executable), f"/usr/bin/python{version}"):
        code = f"import sys; sys.path[:0] = {sys.path!r}; import msgspec, anyio, pytest"
        try:
            done = subprocess.run(
                [program, "-c", code], user=NOBODY, check=False, capture_output=True, cwd="/"
            )
        except OSError:
            continue
        if done.returncode == 0:
            return program
    pytest.skip("no Python that the user `nobody` can start")


@pytest.mark.parametrize("kind", KINDS)
def test_a_user_who_is_not_root_is_protected_too(kind: Kind, folder: Path) -> None:
    found = as_nobody(
        folder,
        kind,
        f"echo {EVIL} > .git/hooks/pre-commit; cat ~/.ssh/id_rsa $DATA/cli.token;"
        f" mv .git src/old; echo {EVIL} > $OTHER/new;"
        ' unshare -Urm sh -c "umount -l ~/.ssh; cat ~/.ssh/id_rsa";'
        " cat src/main.py; echo more >> src/main.py && echo written",
    )
    assert found["uid"] == NOBODY
    assert SECRET not in found["out"]
    assert not found["hook"]
    assert not found["other"]
    assert "hello" in found["out"]
    assert "written" in found["out"]
    assert ".husky" not in found["names"]


def test_a_user_who_is_not_root_can_commit_in_bubblewrap(folder: Path) -> None:
    script = "echo more >> src/main.py; git add --all; git commit -q -m x; git log --format=%s -1"
    assert as_nobody(folder, Kind.BUBBLEWRAP, script)["out"] == "x\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_processes_is_limited(kind: Kind, folder: Path) -> None:
    script = "for i in $(seq 60); do sleep 0.1 & done; wait; echo all"
    found = as_nobody(folder, kind, script, processes=30)
    assert "Resource temporarily unavailable" in found["err"] or "Cannot fork" in found["err"]
    assert not any("processes" in gap for gap in found["gaps"])


@pytest.mark.parametrize("kind", KINDS)
def test_root_without_the_right_to_mount_is_protected_too(kind: Kind, tmp_path: Path) -> None:
    """As in a container: bubblewrap needs a user namespace there."""
    script = (
        f"echo {EVIL} > .git/hooks/pre-commit; cat ~/.ssh/id_rsa; mv .git src/old;"
        " v=$(cat /proc/sys/kernel/domainname) && echo $v > /proc/sys/kernel/domainname"
        " && echo changed; cat src/main.py; echo more >> src/main.py && echo written"
    )
    parts = [*PARTS, *(path for path in sys.path if path.endswith("site-packages"))]
    given = json.dumps([str(tmp_path), kind, parts, None, script])
    done = subprocess.run(
        ["setpriv", "--bounding-set", "-sys_admin", sys.executable, "-c", CODE, given],
        check=False,
        env={"PATH": PATH, "HOME": str(tmp_path), "LANG": "C.UTF-8"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if "skip" in found:
        pytest.skip(found["skip"])
    assert found["uid"] == 0
    assert SECRET not in found["out"]
    assert not found["hook"]
    assert "changed" not in found["out"]
    assert "hello" in found["out"]
    assert "written" in found["out"]
