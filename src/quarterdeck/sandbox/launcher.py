"""The launcher: a script that restricts itself for ever, and becomes the program it was given.

    python -I -S launcher.py ORDER PROGRAM [ARGUMENT ...]

`ORDER` is made by `encoded`. For Landlock the launcher sets up everything. For bubblewrap it sets
what bubblewrap has no option for (limits, signals, scopes), and then becomes bubblewrap; if the
network is limited, a second one in bubblewrap starts the forwarder.

Its start is part of the start of each CLI. So it imports only what takes no time: `_ctypes`,
`_signal` and `marshal` in the place of `ctypes`, `signal` and `json`, which take 15 ms together;
and what is not always needed is imported where it is.

Landlock knows no exceptions: a right on a folder holds for all that is in it. So where a folder has
an exception in it, the folder's entries get the rights one by one, and the folder itself gets only
the rights that its exceptions have too. Nothing new can be made in such a folder.

If a step fails, nothing is started: the launcher writes one line to stderr and exits with 78.
"""

from __future__ import annotations

import _ctypes
import _signal  # type: ignore[import-not-found]
import marshal
import os
import stat
import sys

TYPE_CHECKING = False  # the import would take longer than all others
if TYPE_CHECKING:
    from typing import Any, NoReturn

OUTPUT = 9
"""The number under which the output of the CLI passes bubblewrap. A shell takes one digit."""
FAILED = 78
"""The exit code if no sandbox could be made (EX_CONFIG): no CLI exits with it."""

# --- Landlock ------------------------------------------------------------------------------------

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
GET_VERSION = 1
RULE_PATH, RULE_PORT = 1, 2
PARENT_DEATH_SIGNAL, NO_NEW_PRIVS = 1, 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK = 1 << 6, 1 << 7, 1 << 8, 1 << 9
MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = 1 << 10, 1 << 11, 1 << 12
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1 << 0, 1 << 1

READ = EXECUTE | READ_FILE | READ_DIR
# No devices are made anywhere: root could open the disk by one.
WRITE = (
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM
    | REFER | TRUNCATE
)  # fmt: skip
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
ALL_RIGHTS = READ | WRITE | MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV
RIGHTS = {"writable": READ | WRITE, "read_only": READ, "hidden": 0}

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""Devices that can be written. Not `pts`: it has the terminals of other programs, too."""


class _Long(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001 - as `ctypes` has it
    _type_ = "l"


class _Char(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001 - as `ctypes` has it
    _type_ = "c"


class _Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Long


_functions: dict[str, Any] = {}


def call(name: str, *arguments: Any) -> int:
    """Call a function of the C library; -1 is an error."""
    if name not in _functions:
        program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
        _functions[name] = _Function(_ctypes.dlsym(program, name))
    found = _functions[name]
    return int(found(*[_Long(each) if isinstance(each, int) else each for each in arguments]))


def numbers(size: int, *values: int) -> bytes:
    """Numbers of so many bytes, as the kernel reads them."""
    return b"".join([value.to_bytes(size, sys.byteorder) for value in values])


def memory(size: int) -> Any:
    """Memory that a call can read or write; its attribute `raw` has the bytes."""
    return (_Char * size)()


def abi() -> int:
    """The version of Landlock in this kernel; 0 if there is none."""
    return max(0, call("syscall", CREATE_RULESET, None, 0, GET_VERSION))


def known_rights(version: int) -> int:
    """The rights on files that a version of Landlock knows."""
    known = ALL_RIGHTS
    for right, since in ((REFER, 2), (TRUNCATE, 3), (IOCTL_DEV, 5)):
        if version < since:
            known &= ~right
    return known


def path_rights(entries: dict[str, str], *, names: bool) -> list[tuple[str, int]]:
    """The rights to give, as pairs of a path and a set of rights.

    `entries` are the paths of the spec and `/`, each `writable`, `read_only` or `hidden`. `names`:
    all folders may be listed, so that a folder with something hidden in it stays usable.
    """
    found: list[tuple[str, int]] = [("/", READ_DIR)] if names else []
    _give("/", entries["/"], entries, found)
    return found


def _give(path: str, access: str, entries: dict[str, str], found: list[tuple[str, int]]) -> None:
    prefix = path.rstrip("/") + "/"
    below = {each for each in entries if each.startswith(prefix) and each != path}
    rights = RIGHTS[access]
    if not below:
        if rights:
            found.append((path, rights))
        return
    common = rights
    for each in below:
        common &= RIGHTS[entries[each]]
    if common:
        found.append((path, common))
    try:
        with os.scandir(path) as scan:
            children = [(entry.path, entry.is_symlink(), entry.is_dir()) for entry in scan]
    except OSError:
        # It cannot be listed, or is no folder. What the spec names in it may be there all the same.
        names = {prefix + each[len(prefix) :].partition("/")[0] for each in below}
        children = [(name, False, True) for name in names]
    for child, link, folder in children:
        its = entries.get(child, access)
        if folder and not link and any(each.startswith(child + "/") for each in below):
            _give(child, its, entries, found)
        elif not link and RIGHTS[its] & ~common:
            found.append((child, RIGHTS[its]))


def apply_landlock(order: dict[str, Any]) -> None:
    """Make the ruleset, and restrict this process with it."""
    version = abi()
    if version < 1:
        fail("the kernel has no Landlock")
    fs = known_rights(version) if "entries" in order else 0
    ports = order.get("ports")
    net = CONNECT_TCP if ports is not None else 0
    if net and version < 4:
        fail("Landlock of this kernel cannot limit the network")
    scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if version >= 6 else 0
    if not (fs or net or scopes):
        return
    attributes = numbers(8, fs, net, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = call("syscall", CREATE_RULESET, attributes, size, 0)
    if ruleset < 0:
        fail_errno("landlock_create_ruleset")
    if fs:
        rights = path_rights(order["entries"], names=order.get("names", True))
        rights += [(f"/dev/{name}", WRITE_FILE | IOCTL_DEV) for name in DEVICES]
        rights.append(("/dev/shm", READ | WRITE))  # noqa: S108 - for semaphores
        for path, wanted in rights:
            _add_path(ruleset, path, wanted & fs)
    for port in ports or ():
        rule = numbers(8, CONNECT_TCP, port)
        if call("syscall", ADD_RULE, ruleset, RULE_PORT, rule, 0) < 0:
            fail_errno("landlock_add_rule")
    if call("syscall", RESTRICT_SELF, ruleset, 0) < 0:
        fail_errno("landlock_restrict_self")
    os.close(ruleset)


def _add_path(ruleset: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # it is gone, and gets no right
    try:
        mode = os.fstat(file).st_mode
        if not stat.S_ISDIR(mode):
            rights &= OF_FILES
        if rights and not stat.S_ISLNK(mode):
            rule = numbers(8, rights) + numbers(4, file)
            if call("syscall", ADD_RULE, ruleset, RULE_PATH, rule, 0) < 0:
                fail_errno(f"landlock_add_rule {path}")
    finally:
        os.close(file)


# --- seccomp: what Landlock does not know --------------------------------------------------------

# Machine → its audit number; the calls socket, ioctl, sendto, sendmsg, sendmmsg, io_uring_setup.
ARCHITECTURES = {
    "x86_64": (0xC000003E, 41, 16, 44, 46, 307, 425),
    "aarch64": (0xC00000B7, 198, 29, 206, 211, 269, 425),
}
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
FAST_OPEN = 0x20000000
TCP = 6
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
EPERM, EACCES, ENOSYS = 1, 13, 38


def filter_program(machine: str, *, sockets: bool, network: bool) -> bytes | None:
    """The filter for system calls; None for a machine that is not known.

    It always refuses to type into a terminal. `sockets`: also to open Unix sockets, because
    Landlock does not control who connects to one that has a path. `network`: also everything that
    would send without a TCP connection, which Landlock would see.
    """
    if machine not in ARCHITECTURES:
        return None
    arch, socket, ioctl, sendto, sendmsg, sendmmsg, io_uring = ARCHITECTURES[machine]
    made = _Program()
    made.load(_ARCH)
    made.refuse_unless(_EQUAL, arch, EPERM)
    made.load(_NUMBER)
    made.refuse_if(_AT_LEAST, 0x40000000, EPERM)  # the x32 calls of x86_64
    with_terminal = made.call(ioctl)
    made.argument(1)
    made.refuse_if(_EQUAL, TIOCSTI, EPERM)
    made.refuse_if(_EQUAL, TIOCLINUX, EPERM)
    made.end(with_terminal)
    if sockets or network:
        made.load(_NUMBER)
        made.refuse_if(_EQUAL, io_uring, ENOSYS)  # it opens and connects sockets, too
        with_socket = made.call(socket)
        made.argument(0)
        if sockets:
            made.refuse_if(_EQUAL, AF_UNIX, EACCES)
        if network:
            made.only_internet_streams()
        made.end(with_socket)
    if network:
        for number, flags in ((sendto, 3), (sendmsg, 2), (sendmmsg, 3)):
            sending = made.call(number)
            made.argument(flags)
            made.refuse_if(_ANY_BIT, FAST_OPEN, EACCES)
            made.end(sending)
    made.add(_RETURN, _ALLOW)
    return made.code


class _Program:
    """Instructions of the filter. A jump over what follows is filled in later."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, int, int, int]] = []

    @property
    def code(self) -> bytes:
        return b"".join(
            numbers(2, code) + bytes((yes, no)) + numbers(4, value)
            for code, yes, no, value in self._lines
        )

    def add(self, code: int, value: int, yes: int = 0, no: int = 0) -> None:
        self._lines.append((code, yes, no, value))

    def load(self, place: int) -> None:
        self.add(_LOAD, place)

    def argument(self, number: int) -> None:
        self.load(_ARGUMENTS + 8 * number)

    def refuse_if(self, test: int, value: int, error: int) -> None:
        self.add(test, value, 0, 1)
        self.add(_RETURN, _ERRNO | error)

    def refuse_unless(self, test: int, value: int, error: int) -> None:
        self.add(test, value, 1, 0)
        self.add(_RETURN, _ERRNO | error)

    def call(self, number: int) -> int:
        """Begin what is for one system call only."""
        self.load(_NUMBER)
        self.add(_EQUAL, number)
        return len(self._lines)

    def end(self, begin: int) -> None:
        code, yes, _, value = self._lines[begin - 1]
        self._lines[begin - 1] = (code, yes, len(self._lines) - begin, value)

    def only_internet_streams(self) -> None:
        """Of sockets, only TCP. Netlink has the machine's addresses, and sends nothing out."""
        self.add(_EQUAL, AF_NETLINK, 11, 0)  # to the end
        self.add(_EQUAL, AF_INET, 2, 0)
        self.refuse_unless(_EQUAL, AF_INET6, EACCES)
        self.argument(1)
        self.add(_AND, 0xF)
        self.refuse_unless(_EQUAL, 1, EACCES)
        self.argument(2)
        self.add(_EQUAL, 0, 2, 0)
        self.refuse_unless(_EQUAL, TCP, EACCES)


def apply_filter(order: dict[str, Any]) -> None:
    """Install the filter for this process and all that it starts."""
    program = filter_program(
        os.uname().machine, sockets=bool(order.get("sockets")), network=bool(order.get("network"))
    )
    if program is None:
        if order.get("network"):
            fail("no filter for system calls is known for this kind of processor")
        return
    buffer = memory(len(program))
    buffer.raw = program
    header = numbers(8, len(program) // 8, _ctypes.addressof(buffer))
    if call("prctl", 22, 2, header, 0, 0) != 0:
        fail_errno("seccomp")


# --- the rest ------------------------------------------------------------------------------------

KEPT = (0, 1, 3, 4, 5, 6, 7, 10)
"""Capabilities that root keeps: those about owners of files and users, and low ports. Others would
let it load a module into the kernel, or set the clock."""
_DROP_BOUNDING, _LAST = 24, 63


def drop_capabilities() -> None:
    """As root: keep only the capabilities of `KEPT`, for ever."""
    for number in range(_LAST + 1):
        if number not in KEPT and call("prctl", _DROP_BOUNDING, number, 0, 0, 0) != 0:
            break  # the kernel knows no more
    kept = sum(1 << number for number in KEPT)
    header = numbers(4, 0x20080522, 0)
    now = memory(24)
    if call("capget", header, now) != 0:
        fail_errno("capget")
    effective = int.from_bytes(now.raw[0:4], sys.byteorder)
    permitted = int.from_bytes(now.raw[4:8], sys.byteorder)
    data = numbers(4, effective & kept, permitted & kept, 0, 0, 0, 0)
    if call("capset", header, data) != 0:
        fail_errno("capset")


def apply_limits(limits: dict[str, int]) -> None:
    """Set the resource limits; one that is lower already stays."""
    if not limits:
        return
    import resource

    names = {
        "memory": resource.RLIMIT_DATA,
        "processes": resource.RLIMIT_NPROC,
        "file_size": resource.RLIMIT_FSIZE,
    }
    for name, value in limits.items():
        _, hard = resource.getrlimit(names[name])
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)  # noqa: PLW2901 - the same limit, as far as it is free
        resource.setrlimit(names[name], (value, value))


def hold(path: str) -> None:
    """Hold a shared lock for as long as this process or one that it starts lives."""
    import fcntl

    file = os.open(path, os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_SH)
    os.set_inheritable(file, True)


def fail(why: str) -> NoReturn:
    """Start nothing."""
    sys.stderr.write(f"quarterdeck: the sandbox could not be made: {why}\n")
    sys.exit(FAILED)


def fail_errno(what: str) -> NoReturn:
    """Start nothing, because of an error of the system."""
    fail(f"{what}: {os.strerror(_ctypes.get_errno())}")


def start_forwarder(order: dict[str, Any]) -> None:
    """Listen on ports of loopback, and start a process that forwards what arrives there."""
    import _socket

    servers = []
    for port in order["ports"]:
        server = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        server.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen(128)
        servers.append(server)
    parent = os.getpid()
    if os.fork() != 0:
        return
    # It gets no signals of the program's group, and is killed when the program ends: else it would
    # hold the sandbox and its output open.
    os.setsid()
    call("prctl", PARENT_DEATH_SIGNAL, _signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    for server in servers:
        os.set_inheritable(server.fileno(), True)
    command = [*order["command"], *(str(server.fileno()) for server in servers)]
    os.execv(command[0], command)  # noqa: S606 - without a shell, as wanted


def encoded(order: dict[str, Any]) -> str:
    """An order as an argument of a process. If it is too long for one, it is put into a file, and
    the argument is `@` and the file's path.
    """
    return marshal.dumps(order).hex()


def move_output() -> None:
    """Give the output another number, which bubblewrap passes on and does not keep open itself.

    Else nobody outside would see that the CLI has closed its output.
    """
    os.dup2(1, OUTPUT, inheritable=True)
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def main(arguments: list[str]) -> NoReturn:
    """Do what the order says, and become the program."""
    text = arguments[0]
    if text.startswith("@"):
        with open(text[1:], encoding="ascii") as file:  # noqa: PTH123 - `pathlib` takes time
            text = file.read()
    # It comes from ourselves, on the command line.
    order: dict[str, Any] = marshal.loads(bytes.fromhex(text))  # noqa: S302
    command = arguments[1:]
    try:
        if order.get("move_output"):  # first, so that nothing else gets its number
            move_output()
        for lock in order.get("locks", ()):
            hold(lock)
        apply_limits(order.get("limits", {}))
        if sys.platform == "linux" and call("prctl", NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            fail_errno("no_new_privs")
        if (landlock := order.get("landlock")) is not None:
            apply_landlock(landlock)
        if (filtered := order.get("filter")) is not None:
            apply_filter(filtered)
        if order.get("drop") and os.geteuid() == 0:
            drop_capabilities()
        if (forward := order.get("forward")) is not None:
            start_forwarder(forward)
        # Python ignores SIGPIPE and SIGXFSZ, and that would be inherited.
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ, *order.get("default", ())):
            _signal.signal(number, _signal.SIG_DFL)
        for number in order.get("ignore", ()):
            _signal.signal(number, _signal.SIG_IGN)
        if order.get("take_output"):
            os.dup2(OUTPUT, 1)
            os.close(OUTPUT)
        os.execv(command[0], command)  # noqa: S606 - this is what it is for
    except (OSError, ValueError) as error:
        fail(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
