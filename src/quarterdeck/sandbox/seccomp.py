"""Filters for system calls: what Landlock and bubblewrap do not know. Pure.

`landlock` and `open` put a filter into the order of the launcher, which installs it.
"""

from __future__ import annotations

from quarterdeck.sandbox.launcher import numbers

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
