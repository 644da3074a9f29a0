"""Opening a sandbox: from a spec and a command to the command that runs inside.

The runner is above. The kinds, `resolve`, `placeholders` and the `proxy` are below. It starts no
process: it returns the command line and the environment, and removes afterwards what it made.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import posixpath
import shutil
import signal
import stat
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import cache, cached_property
from pathlib import Path

from msgspec.structs import asdict, replace

from quarterdeck.domain.errors import LaunchError, UsageError
from quarterdeck.sandbox import bubblewrap, landlock, launcher, seatbelt, seccomp
from quarterdeck.sandbox.hosts import local_ports
from quarterdeck.sandbox.placeholders import Placeholders
from quarterdeck.sandbox.proxy import Connection, Proxy
from quarterdeck.sandbox.resolve import Access, Resolved, resolve
from quarterdeck.sandbox.spec import Kind, NetworkKind, SandboxMode, SandboxSpec

OUTER_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""bubblewrap would end at once by these, and the CLI with it. So bubblewrap ignores them; they are
sent to its group, and the CLI is in it."""

TAKE_OUTPUT = (
    "/bin/sh",
    "-c",
    f'exec "$@" >&{launcher.OUTPUT} {launcher.OUTPUT}>&-',
    "sh",
)
"""What to put before a command so that it writes to the output that the launcher moved."""

PROXY_PORTS = (3128, 3129)
"""The port of the proxy where the sandbox has a loopback of its own; the second one if a model of
this machine has the first."""
PORTS_SOCKET = "ports"
"""The socket in the private folder over which the launcher hands over those ports."""

DROPPED = ("SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""Variables that lead to sockets which are not there."""
CAP_SYS_ADMIN = 21
FOLDER = "quarterdeck-sandbox-"
LONGEST_ARGUMENT = 100 * 1024
"""An order that is longer is put into a file: the kernel takes `MOST_BYTES`."""
MOST_BYTES = 128 * 1024
"""For one argument or variable, with the byte at its end."""
NOT_PROXIED = "localhost,127.0.0.1,::1"


class Sandbox:
    """A sandbox for one process.

    Either start `command` with `env` in the same folder. Or start `waiting_launcher`, before the
    sandbox is opened, and send `order_line` as the first line of its input. Then `close`.
    """

    def __init__(
        self,
        *,
        kind: Kind | None,
        command: Sequence[str],
        env: Mapping[str, str],
        spec: SandboxSpec,
        order: Mapping[str, object] | None = None,
        cwd: str = "",
        not_enforced: Sequence[str] = (),
        placeholders: Sequence[str] = (),
        undo: ExitStack | None = None,
    ) -> None:
        self.kind = kind
        """None: the mode is `off`, and nothing is enforced."""
        self._program = list(command)
        self._order = order
        self._cwd = cwd
        self.env = dict(env)
        self.spec = spec
        """What is in force: without wildcards, and with the paths that exist."""
        self.not_enforced = tuple(not_enforced)
        """Paths or patterns that this kind cannot enforce here, each with the reason."""
        self.placeholders = tuple(placeholders)
        """What was made in the project, or is there of another sandbox, so that it is protected."""
        self._undo = undo or ExitStack()

    @cached_property
    def command(self) -> tuple[str, ...]:
        """The command line. May write a file: its parts can be too long for an argument."""
        if self._order is None:
            return tuple(self._program)
        text = launcher.encode_order(dict(self._order))
        if len(text) > LONGEST_ARGUMENT:
            folder = tempfile.mkdtemp(prefix=FOLDER)
            self._undo.callback(shutil.rmtree, folder, ignore_errors=True)
            file = Path(folder) / "order"
            file.write_text(text, encoding="ascii")
            text = f"@{file}"
        return (*_script(launcher.__file__), text, *self._program)

    def order_line(self) -> bytes:
        """The first line for a launcher that waits. Raises `LaunchError` if the command is longer
        than the system takes.
        """
        if self._order is None:
            raise UsageError("a sandbox in the mode `off` has no launcher")
        _check_start(self._program, self.env)
        return launcher.order_line(dict(self._order), self._program, self.env, self._cwd)

    def close(self) -> None:
        """End the proxy and remove what was made for the sandbox. Call it when the process has
        ended. Safe to call twice.
        """
        self._undo.close()


def waiting_launcher() -> tuple[tuple[str, ...], dict[str, str]]:
    """The command line and the environment of a launcher that waits for `Sandbox.order_line`.

    The start of Python takes longer than all that the launcher does, so start it early. If its
    input ends, it ends.
    """
    # The same language as ours: paths must be the same bytes for both.
    names = [name for name in os.environ if name == "LANG" or name.startswith("LC_")]
    env = {name: os.environ[name] for name in names}
    return (*_script(launcher.__file__), launcher.FROM_INPUT), env


async def open_sandbox(
    spec: SandboxSpec,
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: str,
    kind: Kind | None = None,
    on_connection: Callable[[Connection], None] | None = None,
) -> Sandbox:
    """Prepare a sandbox for `command`. With `kind` None it is the best kind that works.

    `on_connection` is told of each connection if the network is limited, from the event loop.
    Raises `LaunchError` if no kind works here, or the kind cannot enforce the spec.
    """
    if spec.mode is SandboxMode.OFF:
        return Sandbox(kind=None, command=command, env=env, spec=spec)
    if kind is None:
        kind = await asyncio.to_thread(_best, spec)
    with ExitStack() as undo:
        making = _Making(spec, kind, command, env, cwd, undo)
        if spec.network.kind is not NetworkKind.ALL:
            proxy = Proxy(spec.network.hosts, on_connection, _upstream(env))
            undo.callback(proxy.close)
            await making.limit_network(proxy)
        try:
            sandbox = await asyncio.to_thread(making.finish)
        except OSError as error:
            raise _not_made(error) from error
        sandbox._undo = undo.pop_all()  # noqa: SLF001 - of the same module
    return sandbox


def open_now(
    spec: SandboxSpec, command: Sequence[str], env: Mapping[str, str], *, cwd: str, kind: Kind
) -> Sandbox:
    """The same without an event loop, for a network that is not limited. Blocks."""
    with ExitStack() as undo:
        making = _Making(spec, kind, command, env, cwd, undo)
        try:
            sandbox = making.finish()
        except OSError as error:
            raise _not_made(error) from error
        sandbox._undo = undo.pop_all()  # noqa: SLF001 - of the same module
    return sandbox


def _not_made(error: OSError) -> LaunchError:
    return LaunchError(f"the sandbox could not be made: {error}")


def _best(spec: SandboxSpec) -> Kind:
    from quarterdeck.sandbox.probe import choose, probe  # here, because it opens sandboxes itself

    if (kind := choose(spec)) is not None:
        return kind
    reasons = "; ".join(f"{each.kind}: {each.why}" for each in probe())
    raise LaunchError(f"no sandbox works on this machine ({reasons or 'unknown platform'})")


class _Making:
    """One sandbox in the making."""

    def __init__(
        self,
        spec: SandboxSpec,
        kind: Kind,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        undo: ExitStack,
    ) -> None:
        if why := "" if kind is not Kind.LANDLOCK else landlock.why_not(spec):
            raise LaunchError(f"the sandbox could not be made: {why}")
        self._spec = spec
        self._kind = kind
        self._command = [_program(command[0], env), *command[1:]]
        self._env = {name: value for name, value in env.items() if name not in DROPPED}
        if spec.temporary:
            self._env["TMPDIR"] = spec.temporary
        self._given_cwd = cwd
        self._cwd = posixpath.realpath(cwd)
        self._undo = undo
        self._ports: list[int] | None = None
        self._folder = ""

    async def limit_network(self, proxy: Proxy) -> None:
        """Start the proxy, and tell the CLI of it."""
        local = local_ports(self._spec.network.hosts)
        if self._kind is Kind.BUBBLEWRAP:
            port = next(each for each in PROXY_PORTS if each not in local)
            self._ports = [port, *local]
            proxy.take_ports(self._private_folder(), PORTS_SOCKET)
        else:
            port = await proxy.listen_on_loopback()
            self._ports = [port, *local]
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            self._env[name] = self._env[name.lower()] = f"http://127.0.0.1:{port}"
        self._env["NO_PROXY"] = self._env["no_proxy"] = NOT_PROXIED

    def finish(self) -> Sandbox:
        """Make the command line. Blocks for some milliseconds."""
        if not posixpath.isdir(self._cwd):
            raise LaunchError(f"the working directory {self._given_cwd!r} does not exist")
        if self._spec.temporary:
            Path(self._spec.temporary).mkdir(mode=0o700, parents=True, exist_ok=True)
        match self._kind:
            case Kind.BUBBLEWRAP:
                return self._bubblewrap()
            case Kind.LANDLOCK:
                return self._landlock()
            case Kind.SEATBELT:
                return self._seatbelt()

    def _bubblewrap(self) -> Sandbox:
        program = shutil.which(bubblewrap.PROGRAM)
        if program is None:
            raise LaunchError("the sandbox could not be made: bubblewrap is not installed")
        if (
            self._ports is not None
            and os.geteuid() != 0
            and Path(program).stat().st_mode & stat.S_ISUID
        ):
            raise LaunchError(
                "the sandbox could not be made: the network can be limited only if bubblewrap is"
                " installed without the right to become root (setuid)"
            )
        spec = self._spec
        if self._ports is not None:  # what is in there is for the launcher
            spec = replace(spec, hidden=(*spec.hidden, self._private_folder()))
        box = resolve(spec, self._needed_paths(), bubblewrap.TEMPORARY)
        placeholders = Placeholders(box.missing)
        self._undo.callback(placeholders.close)
        left_out = set(box.missing) - set(placeholders.paths)
        copies = {path: self._copy(path) for path in box.copied}
        outer = bubblewrap.arguments(
            without(box, {*copies, *box.private}),
            program=program,
            cwd=self._cwd,
            temporary=self._spec.temporary,
            user=_user(),
            placeholders=placeholders.paths,
            copies=copies,
            network=self._ports is None,
        )
        order: dict[str, object] = {
            "locks": placeholders.locks,
            "landlock": {} if landlock.version() >= landlock.SCOPES_SINCE else None,
            "filter": seccomp.filter_program(os.uname().machine, sockets=False, network=False),
            "ignore": list(map(int, OUTER_SIGNALS)),
            "move_output": True,
            "ports": self._handed_over(),
        }
        gaps = [*box.not_enforced, *(f"{path}: it could not be made" for path in left_out)]
        inside = [*TAKE_OUTPUT, *reset_signals(), *self._command]
        return self._sandbox(box, [*outer, *inside], order, gaps, placeholders.paths)

    def _handed_over(self) -> dict[str, object] | None:
        """Which ports of the sandbox's own network the proxy gets, and where."""
        if self._ports is None:
            return None
        return {"ports": self._ports, "folder": self._private_folder(), "name": PORTS_SOCKET}

    def _landlock(self) -> Sandbox:
        spec = landlock.without_yielding(self._spec)
        box = resolve(spec, self._needed_paths())
        gaps = [*box.not_enforced, *landlock.gaps(self._spec)]
        order = landlock.order(box, spec, self._ports)
        return self._sandbox(box, self._command, order, gaps)

    def _seatbelt(self) -> Sandbox:
        box = resolve(self._spec, self._needed_paths())
        outer = seatbelt.command(seatbelt.profile(box, self._ports))
        return self._sandbox(box, [*outer, *self._command], {}, box.not_enforced)

    def _sandbox(
        self,
        box: Resolved,
        command: Sequence[str],
        order: Mapping[str, object],
        gaps: Sequence[str],
        placeholders: Sequence[str] = (),
    ) -> Sandbox:
        def list_paths(access: Access) -> tuple[str, ...]:
            return tuple(path for path, its in box.entries.items() if its is access)

        limits = {k: v for k, v in asdict(self._spec.limits).items() if v is not None}
        if "processes" in limits and os.geteuid() == 0:
            gaps = [*gaps, "the number of processes: the kernel does not limit it for root"]
        full = {name: value for name, value in order.items() if value is not None}
        return Sandbox(
            kind=self._kind,
            command=command,
            order={**full, "limits": limits},
            env=self._env,
            cwd=self._given_cwd,
            spec=replace(
                self._spec,
                writable=list_paths(Access.WRITABLE),
                read_only=(*list_paths(Access.READ_ONLY), *box.missing),
                hidden=list_paths(Access.HIDDEN),
            ),
            not_enforced=gaps,
            placeholders=placeholders,
        )

    def _needed_paths(self) -> list[str]:
        """What must be readable: the program, files for it, and what we start ourselves."""
        found = [self._cwd, *_parts_of(self._command, self._env.get("HOME", ""))]
        # The folder for temporary files of this process may be another than of most.
        folders = (tempfile.gettempdir(), *bubblewrap.TEMPORARY)
        temporary = tuple(f"{posixpath.realpath(path)}/" for path in folders)
        for word in self._command[1:]:
            path = word.partition("=")[2] if word.startswith("-") else word
            if path.startswith(temporary) and posixpath.exists(path):
                found.append(path)
        home = self._env.get("HOME", "")
        if home.startswith(temporary) and posixpath.isdir(home):
            found.append(home)
        # Programs that are installed in a folder for temporary files: a checkout, a build server.
        found += [
            folder.removesuffix("/bin")
            for folder in self._env.get("PATH", "").split(":")
            if folder.startswith(temporary) and posixpath.isdir(folder)
        ]
        ours = posixpath.realpath(__file__).removesuffix("/sandbox/open.py")
        for parent in temporary:
            if ours.startswith(parent):  # a checkout: tests and tools beside us are used, too
                found.append(parent + ours[len(parent) :].partition("/")[0])
        return [*found, sys.prefix, sys.base_prefix, ours]

    def _copy(self, path: str) -> str:
        """A copy of a file for this CLI alone, beside its temporary files."""
        descriptor, copy = tempfile.mkstemp(
            prefix=posixpath.basename(path), dir=self._spec.temporary or self._private_folder()
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(Path(path).read_bytes())
        return copy

    def _private_folder(self) -> str:
        """A folder for what the sandbox needs, outside of it."""
        if not self._folder:
            self._folder = tempfile.mkdtemp(prefix=FOLDER)
            self._undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder


def without(box: Resolved, paths: Set[str]) -> Resolved:
    """The same without some entries: other mounts take their places."""
    left = {path: access for path, access in box.entries.items() if path not in paths}
    return replace(box, entries=left)


def reset_signals() -> list[str]:
    """What to put before a command so that the signals that bubblewrap ignores work in it."""
    if (program := shutil.which("env")) is not None and _env_resets(program):
        names = ",".join(signal.Signals(n).name.removeprefix("SIG") for n in OUTER_SIGNALS)
        return [program, f"--default-signal={names}"]
    order = {"default": list(map(int, OUTER_SIGNALS))}
    return [*_script(launcher.__file__), launcher.encode_order(order)]


@cache
def _env_resets(program: str) -> bool:
    """Whether this `env` is that of the GNU project: it can reset signals."""
    try:
        return b"--default-signal" in Path(program).read_bytes()
    except OSError:
        return False


@cache
def _script(file: str) -> tuple[str, ...]:
    """The command that runs a script of ours: compiled already, if that is as new as the script."""
    compiled = importlib.util.cache_from_source(file)
    program = posixpath.realpath(sys.executable)
    # The language that it is started in must not change how it reads paths.
    utf8 = ("-X", "utf8") if sys.getfilesystemencoding() == "utf-8" else ()
    return (program, "-I", "-S", *utf8, compiled if _is_current(compiled, file) else file)


def _is_current(compiled: str, source: str) -> bool:
    try:
        with Path(compiled).open("rb") as file:
            magic, flags, *stamp = struct.unpack("<4s3I", file.read(16))
        found = Path(source).stat()
    except (OSError, struct.error):
        return False
    expected = [int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF]
    return magic == importlib.util.MAGIC_NUMBER and flags == 0 and stamp == expected


def _program(name: str, env: Mapping[str, str]) -> str:
    found = shutil.which(name, path=env.get("PATH"))
    if found is None:
        raise LaunchError(f"{name} could not be started: it does not exist")
    return posixpath.abspath(found)


def _check_start(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Raise `LaunchError` if the kernel would not start this: the launcher could only exit then."""
    words = [*command, *(f"{name}={value}" for name, value in env.items())]
    sizes = [len(os.fsencode(word)) + 1 for word in words]
    why = ""
    if any("\0" in word for word in words):
        why = "a null byte is in its arguments or environment"
    elif any("=" in name or not name for name in env):
        why = "a variable of its environment has no valid name"
    # Each word takes a pointer, too; some room is for what the kernel and the launcher add.
    elif max(sizes) > MOST_BYTES or sum(sizes) + 8 * len(sizes) > os.sysconf("SC_ARG_MAX") - 8192:
        why = "its arguments and environment are too long"
    if why:
        raise LaunchError(f"{command[0]} could not be started: {why}")


def _parts_of(command: Sequence[str], home: str) -> list[str]:
    """The folders of a program and its script; only the file where the folder has more in it."""
    found: list[str] = []
    for path in command[:2]:
        if path.startswith("/") and posixpath.isfile(path):
            true = posixpath.realpath(path)
            folder = posixpath.dirname(true)
            wide = f"{home.rstrip('/')}/".startswith(folder.rstrip("/") + "/")
            found += [path, true if wide else folder]
    return found


def _user() -> bubblewrap.User:
    """What we are to the kernel. Root in a container often may not mount anything."""
    if os.geteuid() != 0:
        return bubblewrap.User.PERSON
    status = Path("/proc/self/status").read_text()
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    may_mount = bool(effective >> CAP_SYS_ADMIN & 1)
    return bubblewrap.User.ROOT if may_mount else bubblewrap.User.WEAK_ROOT


def _upstream(env: Mapping[str, str]) -> str | None:
    """The proxy of the network that the CLI would have used."""
    names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
    found = next((env[name] for name in names if env.get(name)), None)
    return found if found is None or "://" in found else f"http://{found}"
