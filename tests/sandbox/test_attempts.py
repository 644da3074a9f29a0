"""What an agent may try, and what comes of it: without a sandbox, in bubblewrap, on Landlock.

Each attempt is made without a sandbox first and must do harm there; else it would show nothing.
"""

from __future__ import annotations

import asyncio
import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.domain.errors import LinkClosed
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.sandbox import Kind
from support.bounds import SECONDS
from support.boxes import EVIL, KINDS, SECRET, Done, Harm, World, made, python, said
from support.processes import Processes, kill_all, running
from support.waiting import until

pytestmark = [
    pytest.mark.process,
    pytest.mark.no_cover,  # the same branches, with hundreds of scripts
    pytest.mark.skipif(sys.platform != "linux", reason="Linux"),
]


class Attempt(msgspec.Struct, frozen=True):
    """A script, what it would do, and the kinds that do not prevent it."""

    name: str
    script: str
    harm: Harm
    open_on: tuple[Kind, ...] = ()
    """The documented gaps: `docs/explanation/sandbox.md` lists each."""
    certain: bool = True
    """False: some machines prevent it without a sandbox, too."""


P = "home/project/"
HOOK = f"echo {EVIL} > .git/hooks/pre-commit"

WRITES = (
    Attempt("write a hook", HOOK, made(P + ".git/hooks/pre-commit")),
    Attempt(
        "write a hook where there is no folder for hooks",
        f"test ! -e .git/hooks/x && mkdir -p .git/hooks; {HOOK}",
        made(P + ".git/hooks/pre-commit"),
    ),
    Attempt(
        "replace a hook by a file from elsewhere",
        f"echo {EVIL} > src/x; mv -f src/x .git/hooks/pre-commit.sample",
        made(P + ".git/hooks/pre-commit.sample"),
    ),
    Attempt("append to git's settings", f"echo {EVIL} >> .git/config", made(P + ".git/config")),
    Attempt(
        "let git change its settings",
        f"git config core.fsmonitor {EVIL}",
        made(P + ".git/config"),
    ),
    Attempt(
        "move another file over the settings of git",
        f"echo {EVIL} > src/x; mv -f src/x .git/config",
        made(P + ".git/config"),
    ),
    Attempt(
        "write the settings of git by a hard link",
        f"ln .git/config src/link; echo {EVIL} >> src/link",
        made(P + ".git/config"),
    ),
    Attempt(
        "write the settings of git by a link",
        f"ln -s ../.git/config src/link; echo {EVIL} >> src/link",
        made(P + ".git/config"),
    ),
    Attempt(
        "write the settings of git by a way through /proc",
        f"echo {EVIL} >> /proc/self/cwd/.git/config",
        made(P + ".git/config"),
    ),
    Attempt(
        "write the settings of git by a descriptor that was opened for reading",
        f"exec 5< .git/config; echo {EVIL} >> /proc/self/fd/5",
        made(P + ".git/config"),
    ),
    Attempt(
        "lead git to another folder",
        f"cp -r .git src/evil; echo {EVIL} >> src/evil/config; echo ../src/{EVIL} > .git/commondir",
        made(P + ".git/commondir"),
    ),
    Attempt(
        "move .git away and make another",
        f"mv .git src/old; mkdir -p .git/hooks; {HOOK}",
        made(P + ".git/hooks/pre-commit"),
    ),
    Attempt(
        "exchange .git in a namespace of its own",
        "unshare -Urm sh -c '"
        f"umount -l .git/hooks .git .; mv .git src/old; mkdir -p .git/hooks; {HOOK}'",
        made(P + ".git/hooks/pre-commit"),
    ),
    Attempt(
        "mount a folder over the hooks and write there",
        f"unshare -Urm sh -c 'mount --bind src .git/hooks; {HOOK}'; "
        f"cp src/pre-commit .git/hooks/",
        made(P + ".git/hooks/pre-commit"),
    ),
    # What a rule for the program allows, and no reading of the command would find.
    Attempt(
        "let a recipe of make write outside",
        f"printf 'all:\\n\\techo {EVIL} >> ~/.bashrc\\n' > src/Makefile; make -C src",
        made("home/.bashrc"),
    ),
    Attempt(
        "unpack a hook from an archive",
        f"mkdir -p src/t/.git/hooks; echo {EVIL} > src/t/.git/hooks/pre-commit;"
        " tar cf src/a.tar -C src/t .git; tar xf src/a.tar",
        made(P + ".git/hooks/pre-commit"),
    ),
    Attempt(
        "run a program that the agent has written",
        f"echo 'open(\"../other/file\", \"w\").write(\"{EVIL}\")' > src/x.py;"
        " python3 src/x.py",
        made("home/other/file"),
    ),
    Attempt(
        "write a file that a rule protects",
        f"echo {EVIL} > config/deep/prod.toml",
        made(P + "config/deep/prod.toml"),
    ),
    Attempt(
        "move the folder of a protected file away and make another",
        f"mv config src/old; mkdir -p config/deep; echo {EVIL} > config/deep/prod.toml",
        made(P + "config/deep/prod.toml"),
    ),
    Attempt(
        "exchange the folder around a protected file",
        f"mv config/deep src/old; mkdir config/deep; echo {EVIL} > config/deep/prod.toml",
        made(P + "config/deep/prod.toml"),
    ),
    Attempt(
        "change the project's settings of the CLI",
        f"echo {EVIL} > .claude/settings.json",
        made(P + ".claude/settings.json"),
    ),
    Attempt(
        "make local settings of the CLI",
        f"echo {EVIL} > .claude/settings.local.json",
        made(P + ".claude/settings.local.json"),
    ),
    Attempt("make .mcp.json", f"echo {EVIL} > .mcp.json", made(P + ".mcp.json")),
    Attempt("make .husky", f"mkdir .husky; echo {EVIL} > .husky/x", made(P + ".husky/x")),
    Attempt(
        "make .husky under another name first",
        f"mkdir src/h; echo {EVIL} > src/h/x; rmdir .husky; mv -T src/h .husky",
        made(P + ".husky/x"),
    ),
    Attempt("make .envrc", f"echo {EVIL} > .envrc", made(P + ".envrc")),
    Attempt("append to ~/.bashrc", f"echo {EVIL} >> ~/.bashrc", made("home/.bashrc")),
    Attempt(
        "replace ~/.bashrc",
        f"echo {EVIL} > src/b; mv -f src/b ~/.bashrc",
        made("home/.bashrc"),
    ),
    Attempt(
        "write ~/.bashrc by a hard link",
        f"ln ~/.bashrc src/b; echo {EVIL} >> src/b",
        made("home/.bashrc"),
    ),
    Attempt("append to ~/.profile", f"echo {EVIL} >> ~/.profile", made("home/.profile")),
    Attempt(
        "start a program at login",
        f"mkdir -p ~/.config/autostart; echo {EVIL} > ~/.config/autostart/x.desktop",
        made("home/.config/autostart/x.desktop"),
    ),
    Attempt(
        "change the person's settings of the CLI",
        f"echo {EVIL} > ~/.claude/settings.json",
        made("home/.claude/settings.json"),
    ),
    Attempt(
        "make a plugin of the CLI",
        f"mkdir -p ~/.claude/plugins; echo {EVIL} > ~/.claude/plugins/x",
        made("home/.claude/plugins/x"),
    ),
    Attempt(
        "change the CLI's state",
        f"echo {EVIL} > ~/.claude.json",
        made("home/.claude.json"),
        open_on=(Kind.LANDLOCK,),
    ),
    Attempt(
        "change what the shells of another CLI run",
        f"echo {EVIL} >> ~/.claude/shell-snapshots/snapshot-of-another.sh",
        made("home/.claude/shell-snapshots/snapshot-of-another.sh"),
        open_on=(Kind.LANDLOCK,),
    ),
    Attempt("write another project", f"echo {EVIL} > $OTHER/new", made("home/other/new")),
    Attempt("leave the project by ..", f"echo {EVIL} > ../x", made("home/x")),
    Attempt(
        "leave by /proc/self/root",
        f"echo {EVIL} > /proc/self/root/$OTHER/x",
        made("home/other/x"),
    ),
    Attempt("leave by a link", f"ln -s $OTHER src/o; echo {EVIL} > src/o/x", made("home/other/x")),
    Attempt(
        "show a key to other users",
        "chmod 777 ~/.ssh/id_rsa",
        lambda world, _: (world.home / ".ssh" / "id_rsa").stat().st_mode & 0o777 == 0o777,
        open_on=(Kind.LANDLOCK,),
    ),
    Attempt("change the hub's token", f"echo {EVIL} > $DATA/cli.token", made(
        "home/.local/share/quarterdeck/cli.token")),
)  # fmt: skip

READS = (
    Attempt("read a key", "cat ~/.ssh/id_rsa", said(SECRET)),
    Attempt("read a key by a link", "ln -s ~/.ssh src/s; cat src/s/id_rsa", said(SECRET)),
    Attempt("read a key by a hard link", "ln ~/.ssh/id_rsa src/k; cat src/k", said(SECRET)),
    Attempt("read a key by /proc/self/root", "cat /proc/self/root/$HOME/.ssh/id_rsa", said(SECRET)),
    Attempt(
        "read a key by /proc/1/root",
        "cat /proc/1/root/$HOME/.ssh/id_rsa",
        said(SECRET),
        certain=False,
    ),
    Attempt("move a key", "mv ~/.ssh/id_rsa src/k; cat src/k", said(SECRET)),
    Attempt("move the folder of keys", "mv ~/.ssh src/k; cat src/k/id_rsa", said(SECRET)),
    Attempt(
        "take the cover off a key",
        "unshare -Urm sh -c 'umount -l ~/.ssh; cat ~/.ssh/id_rsa';"
        " umount ~/.ssh; cat ~/.ssh/id_rsa",
        said(SECRET),
    ),
    Attempt(
        "mount the disk elsewhere",
        "mkdir src/m; unshare -Urm sh -c 'mount --bind ~ src/m; cat src/m/.ssh/id_rsa'",
        said(SECRET),
    ),
    Attempt(
        "mount a hidden folder over another",
        "mount --bind keys src/deep; cat src/deep/a.pem; umount src/deep",
        said(SECRET),
        certain=False,
    ),
    Attempt("read the account of a cloud", "cat ~/.aws/credentials", said(SECRET)),
    Attempt("read the hub's token", "cat $DATA/cli.token", said(SECRET)),
    Attempt("read the runner's spool", "cat $DATA/spool/*/*", said(SECRET)),
    Attempt("find the hub's files", "ls $DATA", said("cli.token"), open_on=(Kind.LANDLOCK,)),
    Attempt("read a file that a rule hides", "cat .env", said(SECRET)),
    Attempt("read a file that a pattern hides", "cat keys/a.pem", said(SECRET)),
    Attempt("rename a hidden file", "mv .env src/e; cat src/e", said(SECRET)),
    Attempt("exchange the folder of a hidden file", "mv keys src/k; cat src/k/a.pem", said(SECRET)),
)  # fmt: skip


def _name(attempt: Attempt) -> str:
    return attempt.name.replace(" ", "_")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("attempt", [*WRITES, *READS], ids=_name)
async def test_an_attempt_does_harm_without_a_sandbox(attempt: Attempt, world: World) -> None:
    done = await world.run(None, attempt.script)
    assert attempt.harm(world, done) or not attempt.certain, done


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attempt", [*WRITES, *READS], ids=_name)
async def test_an_attempt_does_no_harm_in_a_sandbox(
    attempt: Attempt, kind: Kind, world: World
) -> None:
    done = await world.run(kind, attempt.script)
    assert attempt.harm(world, done) is (kind in attempt.open_on), done


@pytest.mark.parametrize("kind", KINDS)
async def test_a_missing_folder_for_hooks_cannot_be_made(kind: Kind, world: World) -> None:
    for sample in (world.project / ".git" / "hooks").iterdir():
        sample.unlink()
    (world.project / ".git" / "hooks").rmdir()
    await world.run(kind, f"mkdir -p .git/hooks; {HOOK}")
    assert not (world.project / ".git" / "hooks").exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_git_is_not_led_elsewhere_by_a_work_tree(kind: Kind, world: World) -> None:
    tree = world.worktree()
    script = f"rm .git; mkdir -p .git/hooks; {HOOK}; echo {EVIL} > .git"
    await world.run(kind, script, cwd=tree)
    assert (tree / ".git").is_file()
    assert EVIL not in (tree / ".git").read_text()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_hooks_of_a_work_tree_are_those_of_its_repository(
    kind: Kind, world: World
) -> None:
    tree = world.worktree()
    hooks = world.project / ".git" / "hooks"
    await world.run(kind, f"echo {EVIL} > {hooks}/pre-commit", cwd=tree)
    assert not (hooks / "pre-commit").exists()


@pytest.mark.parametrize(("kind", "led"), [(Kind.BUBBLEWRAP, False), (Kind.LANDLOCK, True)])
async def test_where_a_work_tree_leads_git_is_a_documented_gap_of_landlock(
    kind: Kind, led: bool, world: World
) -> None:
    tree = world.worktree()
    file = world.project / ".git" / "worktrees" / "one" / "commondir"
    box = await world.open(kind, ["true"], cwd=tree)
    box.close()
    assert any(str(file) in gap for gap in box.not_enforced) is led
    await world.run(kind, f"echo {EVIL} > {file}", cwd=tree)
    assert (EVIL in file.read_text()) is led


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write settings of the kernel")
@pytest.mark.parametrize("kind", [None, *KINDS])
async def test_settings_of_the_kernel_cannot_be_changed(kind: Kind | None, world: World) -> None:
    """They are written with the value that they have: one of them names a program to be run."""
    script = "".join(
        f'v=$(cat {name}) && echo "$v" > {name} && echo changed {name}; '
        for name in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/domainname")
    )
    done = await world.run(kind, script)
    assert ("changed" in done.out) is (kind is None), done


@pytest.mark.parametrize("kind", KINDS)
async def test_no_device_can_be_made(kind: Kind, world: World) -> None:
    await world.run(kind, "mknod src/disk b 254 0; mknod src/null c 1 3")
    assert not (world.project / "src" / "disk").exists()
    assert not (world.project / "src" / "null").exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_system_cannot_be_changed(kind: Kind, world: World) -> None:
    name = f"quarterdeck-test-{os.getpid()}"
    places = ["/etc", "/usr/bin", "/var/lib", "/opt", "/root", "/boot", "/srv"]
    try:
        done = await world.run(kind, "".join(f"echo x > {place}/{name}; " for place in places))
        assert _there(places, name) == [], done
    finally:
        for path in _there(places, name):
            path.unlink()


def _there(places: list[str], name: str) -> list[Path]:
    return [path for place in places if (path := Path(place, name)).exists()]


# --- other processes -----------------------------------------------------------------------------


@pytest.fixture
def stranger(processes: Processes) -> Iterator[subprocess.Popen[bytes]]:
    """A process outside of every sandbox, with a secret in its environment."""
    with subprocess.Popen(["sleep", "600"], env={"TOKEN": SECRET}) as process:
        processes.started(process.pid)
        yield process
        process.kill()


PTRACE = python(
    'import ctypes, os; l = ctypes.CDLL(None); p = int(os.environ["STRANGER"]);'
    ' print("attached" if l.ptrace(16, p, 0, 0) == 0 else "refused"); l.ptrace(17, p, 0, 0)'
)

STRANGERS = (
    Attempt("read the environment of a process", "cat /proc/$STRANGER/environ", said(SECRET)),
    Attempt(
        "reach files through the root of a process",
        "cat /proc/$STRANGER/root/$HOME/.ssh/id_rsa",
        said(SECRET),
    ),
    Attempt("trace a process", PTRACE, said("attached")),
    Attempt("read the memory of a process", "head -c 1 /proc/$STRANGER/mem > /dev/null;"
        " test -r /proc/$STRANGER/mem && exec 3< /proc/$STRANGER/mem && echo opened",
        said("opened")),
)  # fmt: skip


@pytest.mark.parametrize("kind", [None, *KINDS])
@pytest.mark.parametrize("attempt", STRANGERS, ids=_name)
async def test_another_process_cannot_be_looked_into(
    attempt: Attempt, kind: Kind | None, world: World, stranger: subprocess.Popen[bytes]
) -> None:
    done = await world.run(kind, attempt.script, STRANGER=str(stranger.pid))
    assert attempt.harm(world, done) is (kind is None), done
    assert stranger.poll() is None


@pytest.mark.parametrize("kind", [None, *KINDS])
async def test_another_process_cannot_be_killed(
    kind: Kind | None, world: World, stranger: subprocess.Popen[bytes]
) -> None:
    done = await world.run(kind, "kill -TERM $STRANGER", STRANGER=str(stranger.pid))
    if kind is None:
        with anyio.fail_after(SECONDS):
            await until(lambda: stranger.poll() is not None)
    else:
        assert done.code != 0
        assert stranger.poll() is None


@pytest.mark.parametrize(
    ("kind", "stays"), [(None, True), (Kind.BUBBLEWRAP, False), (Kind.LANDLOCK, True)]
)
async def test_what_was_started_under_another_name_ends_with_bubblewrap(
    kind: Kind | None, stays: bool, world: World, processes: Processes
) -> None:
    """A process that gave up its environment is not found by its mark; its namespace has it."""
    seconds = str(600 + os.getpid() / 10**7)
    script = f"env -i setsid sleep {seconds} < /dev/null > /dev/null 2>&1 & read x"
    command: tuple[str, ...] = ("sh", "-c", script)
    env = world.env
    box = await world.open(kind, command) if kind else None
    if box is not None:
        command, env = box.command, box.env
    link = await SubprocessLink.start(command, cwd=world.project, env=env)
    try:
        with anyio.fail_after(SECONDS):
            await until(lambda: bool(_sleeping(seconds)))
    finally:
        left = _sleeping(seconds)
        # Until its parent has ended it is found by descent; only what was cut off stays.
        await link.send(b"x\n")
        with anyio.move_on_after(SECONDS):
            while True:
                try:
                    await link.receive()
                except LinkClosed:
                    break
        await link.close()
        stayed = [pid for pid in left if running(pid)]
        kill_all(stayed)
        if box is not None:
            box.close()
    assert bool(stayed) is stays


def _sleeping(seconds: str) -> list[int]:
    """The processes that sleep for just that long."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(path.parent.name))
    return found


# --- sockets and terminals -----------------------------------------------------------------------


@contextmanager
def answering(server: socket.socket) -> Iterator[None]:
    """Answers each connection with the secret."""

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                client.sendall(SECRET.encode())

    server.listen()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(SECONDS)


DIAL = python(
    "import os, socket; s = socket.socket(socket.AF_UNIX);"
    ' s.connect(os.environ["PLACE"].replace("@", chr(0))); print(s.recv(100).decode())'
)


@pytest.mark.parametrize("kind", [None, *KINDS])
async def test_the_hubs_socket_cannot_be_dialled(kind: Kind | None, world: World) -> None:
    server = socket.socket(socket.AF_UNIX)
    os.chdir(world.data)  # the path of a socket is short
    server.bind("s")
    try:
        with answering(server):
            done = await world.run(kind, f"cd $DATA; {DIAL}", PLACE="s")
            other = await world.run(kind, DIAL, PLACE=str(world.data / "s")[:107])
    finally:
        os.chdir("/")
    assert (SECRET in done.all) is (kind is None), done
    assert kind is None or SECRET not in other.all, other


@pytest.fixture
def claude_socket() -> Iterator[Path]:
    """A place for a socket in the folder of the CLI's own ones."""
    folder = Path(f"/tmp/cc-socks-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"quarterdeck-test-{os.getpid()}.sock"
    yield path
    path.unlink(missing_ok=True)
    with suppress(OSError):  # others may have sockets there
        folder.rmdir()


@pytest.mark.parametrize("kind", [None, *KINDS])
async def test_the_socket_of_another_claude_session_cannot_be_reached(
    kind: Kind | None, world: World, claude_socket: Path
) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(claude_socket))
    with answering(server):
        done = await world.run(kind, DIAL, PLACE=str(claude_socket))
    assert (SECRET in done.all) is (kind is None), done


@pytest.mark.parametrize("kind", [None, *KINDS])
async def test_an_abstract_socket_cannot_be_dialled(kind: Kind | None, world: World) -> None:
    name = f"quarterdeck-test-{os.getpid()}-{kind}"
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"\0{name}")
    with answering(server):
        done = await world.run(kind, DIAL, PLACE=f"@{name}")
    assert (SECRET in done.all) is (kind is None), done


TYPE = python('import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b"x"); print("typed")')


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_can_be_typed_into_a_terminal(kind: Kind, world: World) -> None:
    ours, theirs = pty.openpty()
    try:
        done = await world.run(kind, TYPE, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert "typed" not in done.out
    assert "Operation not permitted" in done.err, done


async def test_attempts_run_beside_each_other_without_harm(world: World) -> None:
    """Two sandboxes in one project: the end of one does not open what the other protects."""
    first = await world.open(Kind.BUBBLEWRAP, ["true"])
    second = await world.open(Kind.BUBBLEWRAP, ["sh", "-c", f"read x; echo {EVIL} > .husky/x"])
    process = await asyncio.create_subprocess_exec(
        *second.command, env=second.env, cwd=world.project, stdin=subprocess.PIPE
    )
    try:
        first.close()
        await process.communicate(b"\n")
    finally:
        second.close()
    assert process.returncode != 0
    assert not (world.project / ".husky").exists()


def test_a_done_is_all_that_it_wrote() -> None:
    assert Done(0, "a", "b").all == "ab"
