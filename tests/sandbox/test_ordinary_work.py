"""Ordinary work goes on in a sandbox, and where it does not, that is known.

`docs/explanation/sandbox.md` says what each kind costs; this table is the proof.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.sandbox import Kind, Limits, SandboxMode
from quarterdeck.sandbox.placeholders import Placeholders, is_placeholder
from support.bounds import SECONDS
from support.boxes import EVIL, KINDS, SECRET, World, has, python
from support.repositories import git
from support.waiting import until

pytestmark = [
    pytest.mark.process,
    pytest.mark.no_cover,  # the same branches, with hundreds of scripts
    pytest.mark.skipif(sys.platform != "linux", reason="Linux"),
]

BOTH = KINDS
ONLY_BUBBLEWRAP = (Kind.BUBBLEWRAP,)


class Work(msgspec.Struct, frozen=True):
    """A script that ends with 0 if it could do its work, and the kinds where it can."""

    name: str
    script: str
    on: tuple[Kind, ...] = BOTH
    needs: str = "sh"


SERVER = python(
    "import http.server, threading, urllib.request as u;"
    ' s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler);'
    " threading.Thread(target=s.serve_forever, daemon=True).start();"
    ' print(u.urlopen(f"http://127.0.0.1:{s.server_port}/").status)'
)
POOL = python(
    'import multiprocessing as m; p = m.get_context("fork").Pool(2);'
    " print(p.map(abs, [-1, -2])); p.close(); p.join()"
)
UNIX_SERVER = python(
    "import os, socket, tempfile; os.chdir(tempfile.mkdtemp());"
    ' s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen();'
    ' c = socket.socket(socket.AF_UNIX); c.connect("s")'
)

WORK = (
    Work("read the project", "git status && git log && git diff && ls -la && cat readme"),
    Work("commit", "echo more >> src/main.py && git add --all && git commit -q -m x",
         ONLY_BUBBLEWRAP),
    Work("make a branch", "git checkout -q -b other", ONLY_BUBBLEWRAP),
    Work("stash", "echo more >> readme && git stash -q && git stash pop -q", ONLY_BUBBLEWRAP),
    Work("change a file", "echo more >> src/main.py && echo more >> readme"),
    Work("make a file", "echo new > src/new && mkdir -p src/a/b && echo new > src/a/b/c"),
    Work("make a file in the top folder", "echo new > new", ONLY_BUBBLEWRAP),
    Work("make a folder in the top folder", "mkdir new && echo x > new/x", ONLY_BUBBLEWRAP),
    Work("replace a file", "echo new > src/.x.tmp && mv src/.x.tmp src/main.py"),
    Work("replace a file in the top folder", "echo new > .x.tmp && mv .x.tmp readme",
         ONLY_BUBBLEWRAP),
    Work("move files between folders", "mv src/main.py inner/ && mv inner/file src/deep/"),
    Work("delete files", "rm -r src/deep && rm src/main.py"),
    Work("make links", "ln -s main.py src/link && ln src/main.py src/hard && cat src/link"),
    Work("run a program of the project",
         "printf '#!/bin/sh\\necho ran\\n' > src/run && chmod +x src/run && src/run"),
    Work("write caches",
         "mkdir -p ~/.cache/pip/a && echo x > ~/.cache/pip/a/b && echo x > ~/.npm/x"),
    Work("use a temporary file", "f=$(mktemp) && echo x > $f && cat $f"),
    Work("use /tmp by its name", "echo x > /tmp/quarterdeck-test-x && rm /tmp/quarterdeck-test-x",
         ONLY_BUBBLEWRAP),
    Work("make a virtual environment",
         "\"$PYTHON\" -m venv --without-pip src/venv && src/venv/bin/python -c 'print(1)'"),
    Work("make a virtual environment in the top folder", "\"$PYTHON\" -m venv --without-pip .venv",
         ONLY_BUBBLEWRAP),
    Work("run tests",
         "printf 'def test_x(tmp_path):\\n (tmp_path / \"a\").write_text(\"b\")\\n' > src/test_x.py"
         " && \"$PYTHON\" -m pytest -q -p no:cacheprovider src/test_x.py"),
    Work("run a server on loopback", SERVER),
    Work("run a pool of processes", POOL),
    Work("use Unix sockets", UNIX_SERVER, ONLY_BUBBLEWRAP),
    Work("open a terminal", python("import pty; pty.openpty()"), ONLY_BUBBLEWRAP),
    Work("run Node", "node -e 'require(\"fs\").writeFileSync(\"src/n\", \"x\");"
         " require(\"child_process\").execSync(\"cat src/n\")'", needs="node"),
    Work("write to devices", "echo x > /dev/null && head -c 3 /dev/urandom > /dev/null"),
    Work("end its own processes", "sleep 60 & kill $! && ! wait $!"),
    Work("use what a person's shell has", "cat ~/.bashrc ~/.config/app/file"),
)  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.name.replace(" ", "_"))
async def test_work_goes_on(work: Work, kind: Kind, world: World) -> None:
    if not has(work.needs):
        pytest.skip(f"{work.needs} is not installed")
    done = await world.run(kind, work.script)
    assert (done.code == 0) is (kind in work.on), done


@pytest.mark.parametrize("kind", KINDS)
async def test_a_work_tree_can_be_committed(kind: Kind, world: World) -> None:
    tree = world.worktree()
    script = "echo more >> src/main.py && echo new > src/new && git add --all && git commit -q -m x"
    done = await world.run(kind, script, cwd=tree)
    assert done.code == 0, done
    assert git(tree, "status", "--short") == ""
    assert git(world.project, "show", "one:src/new") == "new"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_work_tree_in_the_hubs_folder_shows_nothing_else_of_it(
    kind: Kind, world: World
) -> None:
    tree = world.worktree()
    done = await world.run(kind, "cat src/main.py; cat $DATA/cli.token", cwd=tree)
    assert "hello" in done.out
    assert SECRET not in done.all


@pytest.mark.parametrize("kind", KINDS)
async def test_a_rule_opens_what_is_protected(kind: Kind, world: World) -> None:
    (world.project / ".vscode").mkdir()
    spec = world.spec(allow_edit=["./.vscode/**", str(world.other)])
    script = "echo x > .vscode/settings.json && echo x > $OTHER/new"
    assert (await world.run(kind, script)).code != 0
    done = await world.run(kind, script, spec)
    assert done.code == 0, done


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_in_the_home_folder_changes_nothing_that_runs_by_itself(
    kind: Kind, world: World
) -> None:
    script = (
        f"echo {EVIL} >> .bashrc; cat .ssh/id_rsa; cat $DATA/cli.token; echo {EVIL} > .claude/x;"
        f" mv .config c; echo {EVIL} > .claude/settings.json; echo x > other/new && echo written"
    )
    done = await world.run(kind, script, cwd=world.home)
    assert "written" in done.out, done
    assert SECRET not in done.all
    for name in (".bashrc", ".claude/settings.json", ".claude/x"):
        path = world.home / name
        assert not path.exists() or EVIL not in path.read_text()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_home_folder_is_not_seen_in_strict_mode(kind: Kind, world: World) -> None:
    spec = world.spec(SandboxMode.STRICT)
    spec = msgspec.structs.replace(spec, network=world.spec().network)
    script = "cat ~/.config/app/file; echo x > ~/.cache/x; cat src/main.py"
    done = await world.run(kind, script, spec)
    assert done.out == "print('hello')\n", done
    assert not (world.home / ".cache" / "x").exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_long_list_of_paths_is_no_hindrance(kind: Kind, world: World) -> None:
    """The order of the launcher is then longer than an argument of a process may be."""
    long = world.project / "src" / ("long" * 30)
    for number in range(150):
        (long / f"{number}-{'x' * 200}").mkdir(parents=True)
    spec = world.spec()
    spec = msgspec.structs.replace(spec, hidden=(*spec.hidden, f"{long}/*"))
    done = await world.run(kind, "cat src/main.py", spec)
    assert done.out == "print('hello')\n", done.err


# --- nothing is left behind ----------------------------------------------------------------------


async def test_nothing_is_left_in_the_project(world: World) -> None:
    before = world.listing()
    await world.run(Kind.BUBBLEWRAP, "true")
    assert world.listing() == before


async def test_git_sees_nothing_new_while_a_sandbox_runs(world: World) -> None:
    before = git(world.project, "status", "--short", "--ignored")
    started = world.temporary / "started"
    box = await world.open(Kind.BUBBLEWRAP, ["sh", "-c", "touch $TMPDIR/started; read x"])
    process = await asyncio.create_subprocess_exec(
        *box.command, env=box.env, cwd=world.project, stdin=subprocess.PIPE
    )
    try:
        with anyio.fail_after(SECONDS):
            await until(started.exists)
        assert is_placeholder(str(world.project / ".husky"))
        assert git(world.project, "status", "--short", "--ignored") == before
        git(world.project, "commit", "-q", "--allow-empty", "-m", "outside")
        git(world.project, "worktree", "add", "-q", str(world.folder / "tree"))
        git(world.project, "gc", "-q")
    finally:
        await process.communicate(b"\n")
        box.close()
    assert not (world.project / ".husky").exists()
    assert git(world.project, "log", "-1", "--format=%s") == "outside"


def test_what_a_person_puts_into_a_placeholder_stays(tmp_path: Path) -> None:
    first = Placeholders([str(tmp_path / ".husky"), str(tmp_path / "commondir")])
    (tmp_path / ".husky" / "pre-commit").write_text("mine")
    (tmp_path / "commondir").write_text("../mine")
    first.close()
    assert (tmp_path / ".husky" / "pre-commit").read_text() == "mine"
    assert (tmp_path / "commondir").read_text() == "../mine"


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / ".husky").mkdir()
    Placeholders([str(tmp_path / ".husky")]).close()
    assert (tmp_path / ".husky").is_dir()


def test_placeholders_stay_for_as_long_as_one_sandbox_uses_them(tmp_path: Path) -> None:
    path = tmp_path / ".husky"
    first, second = Placeholders([str(path)]), Placeholders([str(path)])
    (lock,) = first.locks
    first.close()
    assert path.is_dir()
    second.close()
    assert not path.exists()
    assert not Path(lock).exists()


def test_sandboxes_that_come_and_go_at_once_leave_nothing(tmp_path: Path) -> None:
    """Nobody finds the placeholder gone while it is held."""
    path = str(tmp_path / ".husky")

    def come_and_go(_: int) -> bool:
        found = True
        for _ in range(50):
            held = Placeholders([path])
            found &= held.paths == [path] and is_placeholder(path)
            held.close()
        return found

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(come_and_go, range(8)))
    assert list(tmp_path.iterdir()) == []


def test_placeholders_of_a_runner_that_was_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / ".husky"
    code = (
        "import os, sys; from quarterdeck.sandbox.placeholders import Placeholders;"
        " made = Placeholders([sys.argv[1]]); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=SECONDS)
    assert is_placeholder(str(path))
    Placeholders([str(path)]).close()
    assert not path.exists()


# --- limits --------------------------------------------------------------------------------------

MIB = 1024 * 1024


@pytest.mark.parametrize("kind", KINDS)
async def test_memory_is_limited(kind: Kind, world: World) -> None:
    script = python("x = bytearray(600 * 2**20); print(len(x))")
    spec = world.spec(limits=Limits(memory=300 * MIB))
    assert "MemoryError" in (await world.run(kind, script, spec)).err
    assert (await world.run(kind, script)).code == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_the_size_of_a_file_is_limited(kind: Kind, world: World) -> None:
    script = "head -c 3000000 /dev/zero > src/big"
    done = await world.run(kind, script, world.spec(limits=Limits(file_size=MIB)))
    assert done.code != 0
    assert (world.project / "src" / "big").stat().st_size == MIB


@pytest.mark.parametrize("kind", KINDS)
async def test_a_sandbox_of_root_says_that_processes_are_not_limited(
    kind: Kind, world: World
) -> None:
    box = await world.open(kind, ["true"], world.spec(limits=Limits(processes=50)))
    box.close()
    assert any("processes" in gap for gap in box.not_enforced) is (os.geteuid() == 0)
