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
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from msgspec.structs import asdict, replace

from quarterdeck.domain.errors import LaunchError
from quarterdeck.sandbox import bubblewrap, forwarder, landlock, launcher, seatbelt
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

PROXY_PORT = 3128
"""The port of the proxy where the sandbox has a loopback of its own."""
PROXY_FOLDER = "/tmp/.quarterdeck-proxy"  # noqa: S108 - in the sandbox it is a folder of its own
PROXY_SOCKET = "proxy.sock"

DROPPED = ("SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""Variables that lead to sockets which are not there."""
CAP_SYS_ADMIN = 21
LONGEST_ARGUMENT = 100 * 1024
"""The kernel takes 128 KiB for one argument."""
NOT_PROXIED = "localhost,127.0.0.1,::1"


class Sandbox:
    """A sandbox for one process. Start `command` with `env` in the same folder, then `close`."""

    def __init__(
        self,
        *,
        kind: Kind | None,
        command: Sequence[str],
        env: Mapping[str, str],
        spec: SandboxSpec,
        not_enforced: Sequence[str] = (),
        undo: ExitStack | None = None,
    ) -> None:
        self.kind = kind
        """None: the mode is `off`, and nothing is enforced."""
        self.command = tuple(command)
        self.env = dict(env)
        self.spec = spec
        """What is in force: without wildcards, and with the paths that exist."""
        self.not_enforced = tuple(not_enforced)
        """Paths or patterns that this kind cannot enforce here, each with the reason."""
        self._undo = undo or ExitStack()

    def close(self) -> None:
        """End the proxy and remove what was made for the sandbox. Call it when the process has
        ended. Safe to call twice.
        """
        self._undo.close()


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
            raise LaunchError(f"the sandbox could not be made: {error}") from error
        sandbox._undo = undo.pop_all()  # noqa: SLF001 - of the same module
    return sandbox


def open_now(
    spec: SandboxSpec, command: Sequence[str], env: Mapping[str, str], *, cwd: str, kind: Kind
) -> Sandbox:
    """The same without an event loop, for a network that is not limited. Blocks."""
    with ExitStack() as undo:
        sandbox = _Making(spec, kind, command, env, cwd, undo).finish()
        sandbox._undo = undo.pop_all()  # noqa: SLF001 - of the same module
    return sandbox


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
        self._cwd = posixpath.realpath(cwd)
        self._undo = undo
        self._ports: list[int] | None = None
        self._folder = ""

    async def limit_network(self, proxy: Proxy) -> None:
        """Start the proxy, and tell the CLI of it."""
        local = local_ports(self._spec.network.hosts)
        if self._kind is Kind.BUBBLEWRAP:
            await proxy.listen_at(self._private_folder(), PROXY_SOCKET)
            port, self._ports = PROXY_PORT, local
        else:
            port = await proxy.listen_on_loopback()
            self._ports = [port, *local]
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            self._env[name] = self._env[name.lower()] = f"http://127.0.0.1:{port}"
        self._env["NO_PROXY"] = self._env["no_proxy"] = NOT_PROXIED

    def finish(self) -> Sandbox:
        """Make the command line. Blocks for some milliseconds."""
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
        box = resolve(self._spec, self._needed(), bubblewrap.TEMPORARY)
        placeholders = Placeholders(box.missing)
        self._undo.callback(placeholders.close)
        left_out = set(box.missing) - set(placeholders.paths)
        copies = {path: self._copy(path) for path in box.copied}
        limited = self._ports is not None
        outer = bubblewrap.arguments(
            without(box, {*copies, *box.private}),
            program=program,
            cwd=self._cwd,
            temporary=self._spec.temporary,
            user=_user(),
            placeholders=placeholders.paths,
            copies=copies,
            mounts={PROXY_FOLDER: self._private_folder()} if limited else {},
            network=not limited,
        )
        order: dict[str, object] = {
            "locks": placeholders.locks,
            "landlock": {} if landlock.version() >= landlock.SCOPES_SINCE else None,
            "filter": {},
            "ignore": list(map(int, OUTER_SIGNALS)),
            "move_output": True,
        }
        gaps = [*box.not_enforced, *(f"{path}: it could not be made" for path in left_out)]
        return self._sandbox(box, [*self._launcher(order), *outer, *self._inside()], gaps)

    def _inside(self) -> list[str]:
        """What runs in bubblewrap: the command, with what must be done before it."""
        if self._ports is None:
            return [*TAKE_OUTPUT, *reset_signals(), *self._command]
        forward = {
            "ports": [PROXY_PORT, *self._ports],
            "command": [*_script(forwarder.__file__), f"{PROXY_FOLDER}/{PROXY_SOCKET}"],
        }
        order = {
            "default": list(map(int, OUTER_SIGNALS)),
            "forward": forward,
            "take_output": True,
        }
        return [*_script(launcher.__file__), launcher.encoded(order), *self._command]

    def _landlock(self) -> Sandbox:
        spec = landlock.without_yielding(self._spec)
        box = resolve(spec, self._needed())
        gaps = [*box.not_enforced, *landlock.gaps(self._spec)]
        order = landlock.order(box, spec, self._ports)
        return self._sandbox(box, [*self._launcher(order), *self._command], gaps)

    def _seatbelt(self) -> Sandbox:
        box = resolve(self._spec, self._needed())
        outer = seatbelt.command(seatbelt.profile(box, self._ports))
        command = [*self._launcher({}), *outer, *self._command]
        return self._sandbox(box, command, box.not_enforced)

    def _sandbox(self, box: Resolved, command: list[str], gaps: Sequence[str]) -> Sandbox:
        def listed(access: Access) -> tuple[str, ...]:
            return tuple(path for path, its in box.entries.items() if its is access)

        limits = self._spec.limits
        if limits.processes is not None and os.geteuid() == 0:
            gaps = [*gaps, "the number of processes: the kernel does not limit it for root"]
        return Sandbox(
            kind=self._kind,
            command=command,
            env=self._env,
            spec=replace(
                self._spec,
                writable=listed(Access.WRITABLE),
                read_only=(*listed(Access.READ_ONLY), *box.missing),
                hidden=listed(Access.HIDDEN),
            ),
            not_enforced=gaps,
        )

    def _launcher(self, order: Mapping[str, object]) -> list[str]:
        limits = {k: v for k, v in asdict(self._spec.limits).items() if v is not None}
        full = {name: value for name, value in order.items() if value is not None}
        text = launcher.encoded({**full, "limits": limits})
        if len(text) > LONGEST_ARGUMENT:
            file = Path(self._private_folder()) / "order"
            file.write_text(text, encoding="ascii")
            text = f"@{file}"
        return [*_script(launcher.__file__), text]

    def _needed(self) -> list[str]:
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
            self._folder = tempfile.mkdtemp(prefix="quarterdeck-sandbox-")
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
    return [*_script(launcher.__file__), launcher.encoded(order)]


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
    return (program, "-I", "-S", compiled if _is_current(compiled, file) else file)


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
