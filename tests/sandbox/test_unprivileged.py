"""The sandbox for a user who is not root: most people are not, and the tests often are.

The world is made, the sandbox opened and the script run by a process of the user `nobody`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
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
    pytest.mark.no_cover,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux"),
]

CODE = """
import asyncio, json, os, sys
from pathlib import Path
folder, kind, parts, processes, script, limited = json.loads(sys.argv[1])
sys.path[:0] = parts
from support.boxes import World
from quarterdeck.sandbox import Kind, Limits, Network, NetworkKind, open_sandbox, probe
found = {str(each.kind): each for each in probe()}[kind]
if not found.works:
    print(json.dumps({"skip": found.why}))
    sys.exit()
world = World(Path(folder))

async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nmodel")
    writer.close()

async def run():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    model = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    spec = world.spec(
        limits=Limits(processes=processes), model_url=model,
        network=Network(kind=NetworkKind.MODEL) if limited else None,
    )
    other = await asyncio.start_server(answer, "127.0.0.1", 0)
    elsewhere = str(other.sockets[0].getsockname()[1])
    env = {**world.env, "MODEL": model, "ELSEWHERE": elsewhere}
    cwd = str(world.project)
    box = await open_sandbox(spec, ["sh", "-c", script], env, cwd=cwd, kind=Kind(kind))
    pipes = dict(stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    process = await asyncio.create_subprocess_exec(*box.command, env=box.env, cwd=cwd, **pipes)
    out, err = await process.communicate()
    box.close()
    server.close()
    other.close()
    return box, out.decode(), err.decode()

box, out, err = asyncio.run(run())
print(json.dumps({
    "uid": os.getuid(), "out": out, "err": err, "gaps": box.not_enforced,
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
    folder: Path, kind: Kind, script: str, processes: int | None = None, *, limited: bool = False
) -> dict[str, Any]:
    parts = [*PARTS, *(path for path in sys.path if path.endswith("site-packages"))]
    given = json.dumps([str(folder), kind, parts, processes, script, limited])
    found: dict[str, Any] = json.loads(_as_nobody([_python(), "-c", CODE, given], folder))
    if "skip" in found:
        pytest.skip(found["skip"])
    return found


def _as_nobody(command: list[str], folder: Path) -> str:
    """Run a command as the user; returns its output."""
    done = subprocess.run(
        command,
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
    return done.stdout


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


MOUNTED = """
import json, sys
hidden, writable, parts = json.loads(sys.argv[1])
sys.path[:0] = parts
from quarterdeck.sandbox.bubblewrap import User, arguments
from quarterdeck.sandbox.resolve import Access, Resolved
entries = {**dict.fromkeys(writable, Access.WRITABLE), **dict.fromkeys(hidden, Access.HIDDEN)}
box = Resolved(entries=entries)
made = arguments(box, program="bwrap", cwd="/", temporary="", user=User.PERSON)
print(json.dumps([path for path in hidden if path in made]))
"""


def test_a_hidden_path_has_no_mount_only_if_the_user_has_no_right_on_it(folder: Path) -> None:
    files = {"closed": 0o600, "readable": 0o644, "executable": 0o711, "own": 0o000, "work/in": 0}
    folders = {"closed folder": 0o700, "folder with names": 0o711, "folder of names": 0o744}
    (folder / "work").mkdir()
    for name, mode in files.items():
        (folder / name).touch()
        (folder / name).chmod(mode)
    os.chown(folder / "own", NOBODY, NOBODY)
    for name, mode in folders.items():
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    sockets = {"closed socket": 0o600, "open socket": 0o602}
    for name, mode in sockets.items():
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(folder / name))
        (folder / name).chmod(mode)
    hidden = [str(folder / name) for name in (*files, *folders, *sockets)]
    parts = [*PARTS, *(path for path in sys.path if path.endswith("site-packages"))]
    given = json.dumps([hidden, [str(folder / "work")], parts])
    out = _as_nobody([_python(), "-c", MOUNTED, given], folder)
    bare = {"closed", "closed folder", "closed socket"}
    assert {Path(path).relative_to(folder).as_posix() for path in json.loads(out)} == {
        name for name in (*files, *folders, *sockets) if name not in bare
    }


def test_what_has_no_mount_cannot_be_read_in_the_sandbox(folder: Path) -> None:
    if not Path("/etc/shadow").exists():
        pytest.skip("this system has no such file")
    shadow = Path("/etc/shadow").read_text()
    found = as_nobody(folder, Kind.BUBBLEWRAP, "cat /etc/shadow; cat src/main.py")
    assert "hello" in found["out"]
    assert not any(line in found["out"] for line in shadow.splitlines() if line)
    assert "/etc/shadow: Permission denied" in found["err"]


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
    found = _weak_root(tmp_path, json.dumps([str(tmp_path), kind, parts, None, script, False]))
    assert found["uid"] == 0
    assert SECRET not in found["out"]
    assert not found["hook"]
    assert "changed" not in found["out"]
    assert "hello" in found["out"]
    assert "written" in found["out"]


def _weak_root(folder: Path, given: str) -> dict[str, Any]:
    done = subprocess.run(
        ["setpriv", "--bounding-set", "-sys_admin", sys.executable, "-c", CODE, given],
        check=False,
        env={"PATH": PATH, "HOME": str(folder), "LANG": "C.UTF-8"},
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


FETCH = (
    '"$PYTHON" -I -c "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read())"'
    ' "$MODEL"; "$PYTHON" -I -c "import socket, sys;'
    " socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5); print('elsewhere')\""
    ' "$ELSEWHERE"'
)
"""The model, and a server that is not listed."""


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_of_a_user_who_is_not_root_is_limited_too(kind: Kind, folder: Path) -> None:
    found = as_nobody(folder, kind, FETCH.replace('"$PYTHON"', _python()), limited=True)
    assert "model" in found["out"], found
    assert "elsewhere" not in found["out"]
    assert "refused" in found["err"] or "Permission denied" in found["err"], found


def test_the_network_of_root_without_the_right_to_mount_is_limited_too(tmp_path: Path) -> None:
    parts = [*PARTS, *(path for path in sys.path if path.endswith("site-packages"))]
    given = json.dumps([str(tmp_path), Kind.BUBBLEWRAP, parts, None, FETCH, True])
    found = _weak_root(tmp_path, given)
    assert "model" in found["out"], found
    assert "elsewhere" not in found["out"]
    assert "refused" in found["err"], found
