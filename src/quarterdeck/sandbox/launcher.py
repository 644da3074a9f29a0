"""The launcher: a script that restricts itself for ever, and becomes the program it was given.

    python -I -S launcher.py ORDER PROGRAM [ARGUMENT ...]
    python -I -S launcher.py -

`ORDER` is made by `encoded`. With `-` the first line of the input has the order, the program, its
environment and its folder, and is made by `order_line`: so the launcher can be started before these
are known, and is ready by then. What follows in the input is the program's.

For Landlock the launcher sets up everything. For bubblewrap it sets what bubblewrap has no option
for (limits, signals, scopes), and then becomes bubblewrap; if the network is limited, it hands
sockets in there to the proxy.

Its start is part of the start of each CLI. So it imports only what takes no time: `_ctypes`,
`_signal`, `marshal` and `posix` in the place of `ctypes`, `signal`, `json` and `os`, which take
16 ms together; and what is not always needed is imported where it is.

Landlock knows no exceptions: a right on a folder holds for all that is in it. So where a folder has
an exception in it, the folder's entries get the rights one by one, and the folder itself gets only
the rights that its exceptions have too. Nothing new can be made in such a folder.

If a step fails, nothing is started: the launcher writes one line to stderr and exits with 78.
"""

from __future__ import annotations

import _ctypes
import _signal  # type: ignore[import-not-found]
import marshal
import posix as os
import stat
import sys

TYPE_CHECKING = False  # the import would take longer than all others
if TYPE_CHECKING:
    from typing import Any, NoReturn

LOCK_SHARED = 1
OUTPUT = 9
"""The number under which the output of the CLI passes bubblewrap. A shell takes one digit."""
FAILED = 78
"""The exit code if no sandbox could be made (EX_CONFIG): no CLI exits with it."""
NOT_MADE = "quarterdeck: the sandbox could not be made"

# --- Landlock ------------------------------------------------------------------------------------

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
GET_VERSION = 1
RULE_PATH, RULE_PORT = 1, 2
NO_NEW_PRIVS = 38

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


# --- the rest ------------------------------------------------------------------------------------


def apply_filter(program: bytes) -> None:
    """Install a filter for system calls, for this process and all that it starts."""
    buffer = memory(len(program))
    buffer.raw = program
    header = numbers(8, len(program) // 8, _ctypes.addressof(buffer))
    if call("prctl", 22, 2, header, 0, 0) != 0:
        fail_errno("seccomp")


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
    file = os.open(path, os.O_RDONLY)
    if call("flock", file, LOCK_SHARED) != 0:  # `fcntl` would have to be loaded
        fail_errno(path)
    os.set_inheritable(file, True)


def fail(why: str) -> NoReturn:
    """Start nothing."""
    sys.stderr.write(f"{NOT_MADE}: {why}\n")
    sys.exit(FAILED)


def fail_errno(what: str) -> NoReturn:
    """Start nothing, because of an error of the system."""
    fail(f"{what}: {os.strerror(_ctypes.get_errno())}")


# --- the ports of a network of its own -----------------------------------------------------------

NEW_USER, NEW_NET = 0x10000000, 0x40000000
USER_NAMESPACE_OF = 0xB701
"""The request (ioctl) for the user namespace that another namespace belongs to."""
FREE_BIND = 15
"""An option of sockets: to listen on an address before the network has it."""
HAND_OVER_SECONDS = 10.0


def hand_over_ports(order: dict[str, Any]) -> list[str]:
    """Have the proxy listen on ports inside of the sandbox; returns options for bubblewrap.

    A copy of this process waits for the sandbox, enters its network, listens there, and hands the
    sockets to the runner. It works while bubblewrap mounts, and bubblewrap waits for it before it
    starts the program: so the proxy is there from the beginning, and no process stays.
    """
    reported, tell = os.pipe()
    wait, go_on = os.pipe()
    if os.fork() != 0:
        os.close(reported)
        os.close(go_on)
        os.set_inheritable(tell, True)
        os.set_inheritable(wait, True)
        return ["--info-fd", str(tell), "--block-fd", str(wait)]
    inside = 0
    try:
        os.close(tell)
        os.close(wait)
        inside = _number_after(b'"child-pid":', reported)
        if inside:  # else bubblewrap has ended, and says why
            runner = _runners_socket(order["folder"], order["name"])
            _enter_network(inside)
            _send_ports(runner, order["ports"])
            os.write(go_on, b"x")
        os._exit(0)  # noqa: SLF001 - as `os` has it
    except (OSError, ValueError) as error:
        # Without this bubblewrap would start the program now, with no network at all.
        if inside:
            os.kill(inside, _signal.SIGKILL)
        sys.stderr.write(f"{NOT_MADE}: its network: {error}\n")
        sys.stderr.flush()
    os._exit(FAILED)  # noqa: SLF001 - as `os` has it


def _runners_socket(folder: str, name: str) -> Any:
    import _socket

    os.chdir(folder)  # the path of a socket must be short
    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    made.settimeout(HAND_OVER_SECONDS)
    made.connect(name)
    return made


def _number_after(key: bytes, file: int) -> int:
    """The number after a key in a text of JSON, which a file has to its end; 0 without it."""
    text = b""
    while data := os.read(file, 4096):
        text += data
    rest = text.partition(key)[2].replace(b",", b" ").replace(b"}", b" ").split()
    return int(rest[0]) if rest else 0


def _enter_network(process: int) -> None:
    """Enter the network of a process; first the user namespace that it belongs to, if need be."""
    network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    owner = call("ioctl", network, USER_NAMESPACE_OF, 0)
    if owner < 0:
        raise OSError(_ctypes.get_errno(), "the namespace of its users")
    own = os.stat("/proc/self/ns/user")
    if os.fstat(owner).st_ino != own.st_ino and call("setns", owner, NEW_USER) != 0:
        raise OSError(_ctypes.get_errno(), "the namespace of its users cannot be entered")
    if call("setns", network, NEW_NET) != 0:
        raise OSError(_ctypes.get_errno(), "it cannot be entered")


def _send_ports(runner: Any, ports: list[int]) -> None:
    """Listen on ports of loopback, and send the sockets to the runner."""
    import _socket

    servers = []
    for port in ports:
        server = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        server.setsockopt(_socket.IPPROTO_IP, FREE_BIND, 1)
        server.bind(("127.0.0.1", port))
        server.listen(128)
        servers.append(server)
    files = numbers(4, *[server.fileno() for server in servers])
    runner.sendmsg([b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    if not runner.recv(1):
        raise OSError("the runner has ended")


def encode_order(order: dict[str, Any]) -> str:
    """An order as an argument of a process. If it is too long for one, it is put into a file, and
    the argument is `@` and the file's path.
    """
    return marshal.dumps(order).hex()


HEAD = 16
"""Digits at the beginning of an order in the input: the length of what follows, in base 16."""
LONGEST = 64 * 1024 * 1024
FROM_INPUT = "-"
OWN = b"QUARTERDECK_"
"""How those variables of the launcher begin that the program gets as well."""


def order_line(order: dict[str, Any], command: list[str], env: dict[str, str], cwd: str) -> bytes:
    """The line for the input of a launcher that was started with `-`. It is safe to send it to a
    process that has ended meanwhile, and nothing of it is left in the input.
    """
    given = {"order": order, "command": command, "env": env, "cwd": cwd}
    rest = marshal.dumps(given).hex() + "\n"
    return f"{len(rest):0{HEAD}x}{rest}".encode("ascii")


def read_order(file: int) -> dict[str, Any]:
    """Wait for an order, and read exactly that."""
    length = int(_read(file, HEAD), 16)
    if not 0 < length <= LONGEST:
        raise ValueError("the order has no valid length")
    # It comes from the runner, which has the other end of this pipe.
    given: dict[str, Any] = marshal.loads(bytes.fromhex(_read(file, length).decode("ascii")))  # noqa: S302
    return given


def _read(file: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        data = os.read(file, size - len(found))
        if not data:
            raise OSError("there was no order")
        found += data
    return found


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
    if text == FROM_INPUT:
        try:
            given = read_order(0)
            os.chdir(given["cwd"])
        except (OSError, ValueError) as error:
            fail(str(error))
        # The runner finds its processes by a variable that they were started with.
        env = {name: value for name, value in os.environ.items() if name.startswith(OWN)}
        env.update({_bytes(name): _bytes(value) for name, value in given["env"].items()})
        launch(given["order"], given["command"], env)
    if text.startswith("@"):
        with open(text[1:], encoding="ascii") as file:  # noqa: PTH123 - `pathlib` takes time
            text = file.read()
    # It comes from ourselves, on the command line.
    order: dict[str, Any] = marshal.loads(bytes.fromhex(text))  # noqa: S302
    launch(order, arguments[1:], os.environ)


def _bytes(text: str) -> bytes:
    """As `os.fsencode` does it."""
    return text.encode(sys.getfilesystemencoding(), "surrogateescape")


def launch(order: dict[str, Any], command: list[str], env: dict[bytes, bytes]) -> NoReturn:
    """Restrict this process as the order says, and become the program."""
    try:
        if order.get("move_output"):  # first, so that nothing else gets its number
            move_output()
        if (ports := order.get("ports")) is not None:  # before it may do less than it needs
            command[1:1] = hand_over_ports(ports)
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
        # Python ignores SIGPIPE and SIGXFSZ, and that would be inherited.
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ, *order.get("default", ())):
            _signal.signal(number, _signal.SIG_DFL)
        for number in order.get("ignore", ()):
            _signal.signal(number, _signal.SIG_IGN)
        os.execve(command[0], command, env)
    except (OSError, ValueError) as error:
        fail(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
