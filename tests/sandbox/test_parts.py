"""The parts of the sandbox that start nothing: rights, filters, hosts, profiles, command lines."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from quarterdeck.domain.errors import LaunchError
from quarterdeck.sandbox import (
    Kind,
    Limits,
    Network,
    NetworkKind,
    Probe,
    SandboxMode,
    SandboxSpec,
    choose,
    open_sandbox,
    probe,
)
from quarterdeck.sandbox import launcher as launching
from quarterdeck.sandbox.bubblewrap import User, arguments
from quarterdeck.sandbox.hosts import is_allowed, is_local_address, local_ports, split_host
from quarterdeck.sandbox.launcher import (
    READ,
    READ_DIR,
    REFER,
    TRUNCATE,
    WRITE,
    known_rights,
    path_rights,
)
from quarterdeck.sandbox.resolve import Access, Resolved
from quarterdeck.sandbox.seatbelt import profile
from quarterdeck.sandbox.seccomp import filter_program

W, R, H = Access.WRITABLE, Access.READ_ONLY, Access.HIDDEN
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux")


# --- Landlock -------------------------------------------------------------------------------------


def rights(folder: Path, **entries: Access) -> dict[str, int]:
    """The rights inside a folder."""
    names = {str(folder / name.replace("__", "/")): str(a) for name, a in entries.items()}
    given = path_rights({"/": "read_only", **names}, names=False)
    prefix = f"{folder}/"
    return {path.removeprefix(prefix): r for path, r in given if path.startswith(prefix)}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("project/git/hooks", "project/git/objects", "project/src"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("project/readme", "project/git/HEAD"):
        (tmp_path / name).write_text("text")
    return tmp_path.resolve()


@linux
def test_a_writable_folder_without_exceptions_gets_all_rights_at_once(tree: Path) -> None:
    assert rights(tree, project=W) == {"project": READ | WRITE}


@linux
def test_the_entries_around_an_exception_get_their_rights_one_by_one(tree: Path) -> None:
    assert rights(tree, project=W, project__git__hooks=R) == {
        "project": READ,
        "project/src": READ | WRITE,
        "project/readme": READ | WRITE,
        "project/git": READ,
        "project/git/objects": READ | WRITE,
        "project/git/HEAD": READ | WRITE,
    }


@linux
def test_a_folder_around_something_hidden_gets_no_right_itself(tree: Path) -> None:
    found = rights(tree, project__git=H)
    assert "project" not in found
    assert "project/git" not in found
    assert found["project/src"] == READ


@linux
def test_a_writable_folder_in_a_hidden_one_is_usable(tree: Path) -> None:
    assert rights(tree, project=H, project__src=W) == {"project/src": READ | WRITE}


@linux
def test_an_exception_that_does_not_exist_yet_counts(tree: Path) -> None:
    assert rights(tree, project=W, project__husky=R)["project"] == READ


@linux
def test_all_folders_can_be_listed_if_wanted() -> None:
    assert path_rights({"/": "read_only", "/none": "hidden"}, names=True)[0] == ("/", READ_DIR)


def test_old_kernels_are_asked_only_for_what_they_know() -> None:
    assert not known_rights(1) & REFER
    assert known_rights(2) & REFER
    assert not known_rights(2) & TRUNCATE
    assert known_rights(3) & TRUNCATE


# --- the filter for system calls ------------------------------------------------------------------

ALLOW, EPERM, EACCES, ENOSYS = 0x7FFF0000, 0x00050001, 0x0005000D, 0x00050026
UNIX, INET, INET6, NETLINK, VSOCK, STREAM, DGRAM = 1, 2, 10, 16, 40, 1, 2
X86 = 0xC000003E


def judged(program: bytes, number: int, *arguments: int, arch: int = X86) -> int:
    """What the filter says of a system call: the machine of the kernel, in small."""
    given = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number, arch, 0, *given)
    lines = [struct.unpack_from("HBBI", program, at) for at in range(0, len(program), 8)]
    at, value = 0, 0
    while True:
        code, yes, no, operand = lines[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                value &= operand
            case 0x06:
                return int(operand)
            case 0x15:
                at += yes if value == operand else no
            case 0x35:
                at += yes if value >= operand else no
            case 0x45:
                at += yes if value & operand else no
            case _:
                raise AssertionError(f"unknown instruction {code}")


@pytest.mark.parametrize(
    ("call", "plain", "sockets", "network"),
    [
        ((0,), ALLOW, ALLOW, ALLOW),
        ((16, 0, 0x5412), EPERM, EPERM, EPERM),
        ((16, 0, 0x541C), EPERM, EPERM, EPERM),
        ((16, 0, 0x5401), ALLOW, ALLOW, ALLOW),
        ((0x40000000 + 41, UNIX), EPERM, EPERM, EPERM),
        ((41, UNIX, STREAM), ALLOW, EACCES, EACCES),
        ((53, UNIX, STREAM), ALLOW, ALLOW, ALLOW),  # a pair has no name that others could dial
        ((41, INET, STREAM), ALLOW, ALLOW, ALLOW),
        ((41, INET, STREAM | 0o2000000, 6), ALLOW, ALLOW, ALLOW),
        ((41, INET6, STREAM), ALLOW, ALLOW, ALLOW),
        ((41, INET, STREAM, 262), ALLOW, ALLOW, EACCES),
        ((41, INET, DGRAM), ALLOW, ALLOW, EACCES),
        ((41, INET, 3), ALLOW, ALLOW, EACCES),
        ((41, NETLINK, 3), ALLOW, ALLOW, ALLOW),
        ((41, VSOCK, STREAM), ALLOW, ALLOW, EACCES),
        ((44, 3, 0, 0, 0x20000000), ALLOW, ALLOW, EACCES),
        ((44, 3, 0, 0, 0x4000), ALLOW, ALLOW, ALLOW),
        ((46, 3, 0, 0x20000000), ALLOW, ALLOW, EACCES),
        ((307, 3, 0, 1, 0x20000000), ALLOW, ALLOW, EACCES),
        ((425, 8), ALLOW, ENOSYS, ENOSYS),
    ],
)
def test_the_filter_refuses_what_landlock_does_not_see(
    call: tuple[int, ...], plain: int, sockets: int, network: int
) -> None:
    for expected, wanted in (
        (plain, {"sockets": False, "network": False}),
        (sockets, {"sockets": True, "network": False}),
        (network, {"sockets": True, "network": True}),
    ):
        program = filter_program("x86_64", **wanted)
        assert program is not None
        assert judged(program, *call) == expected, wanted


def test_the_filter_refuses_calls_of_another_architecture() -> None:
    program = filter_program("x86_64", sockets=True, network=True)
    assert program is not None
    assert judged(program, 102, arch=0x40000003) == EPERM


def test_there_is_no_filter_for_an_unknown_machine() -> None:
    assert filter_program("sparc", sockets=True, network=True) is None


# --- hosts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "port", "listed", "allowed"),
    [
        ("example.org", 443, ["example.org"], True),
        ("EXAMPLE.org.", 443, ["example.org"], True),
        ("example.org", 443, ["example.org:443"], True),
        ("example.org", 80, ["example.org:443"], False),
        ("a.example.org", 443, ["example.org"], False),
        ("a.example.org", 443, ["*.example.org"], True),
        ("a.b.example.org", 443, ["*.example.org"], True),
        ("example.org", 443, ["*.example.org"], False),
        ("badexample.org", 443, ["*.example.org"], False),
        ("example.org.evil.net", 443, ["example.org", "*.example.org"], False),
        ("127.0.0.1", 80, ["127.0.0.1"], True),
        ("::1", 80, ["[::1]:80"], True),
        ("0:0:0:0:0:0:0:1", 80, ["::1"], True),
        ("127.0.0.1", 80, [], False),
    ],
)
def test_a_list_of_hosts(host: str, port: int, listed: list[str], allowed: bool) -> None:
    assert is_allowed(host, port, listed) is allowed


@pytest.mark.parametrize("entry", ["", ":80", "a:x", "a:0", "a:70000", "[::1]:x"])
def test_what_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a host"):
        split_host(entry)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.5", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("169.254.169.254", True),
        ("fe80::1%eth0", True),
        ("0.0.0.0", True),
        ("93.184.216.34", False),
        ("10.0.0.1", False),
        ("name", False),
    ],
)
def test_addresses_of_this_machine_are_known(address: str, local: bool) -> None:
    assert is_local_address(address) is local


def test_ports_of_this_machine_are_found_in_a_list() -> None:
    listed = ["127.0.0.1:80", "localhost:81", "a.example:82", "127.0.0.1"]
    assert local_ports(listed) == {80: "127.0.0.1", 81: "localhost"}


# --- seatbelt -------------------------------------------------------------------------------------

BOX = Resolved(
    entries={"/p": W, "/s": H, "/p/.git/config": R, '/s/a "b"': R},
    missing=("/p/.husky",),
)


def test_a_profile_has_inner_paths_after_outer_ones() -> None:
    lines = profile(BOX).splitlines()
    order = [
        "(deny file-write*)",
        '(allow file-read* file-write* (subpath "/p"))',
        '(deny file-read* file-write* (subpath "/s"))',
        '(deny file-write* (subpath "/p/.git/config"))',
        '(allow file-read* (subpath "/s/a \\"b\\""))',
        '(deny file-write* (subpath "/p/.husky"))',
        '(deny file-write-unlink (literal "/p/.git"))',
    ]
    places = [lines.index(line) for line in order]
    assert places == sorted(places)
    assert "network" not in profile(BOX)


def test_a_profile_limits_the_network_to_ports_of_the_machine() -> None:
    text = profile(BOX, [3128])
    assert "(deny network*)" in text
    assert '(allow network-outbound (remote ip "localhost:3128"))' in text
    assert text.count("(") == text.count(")")


# --- bubblewrap -----------------------------------------------------------------------------------


def test_folders_on_the_way_to_a_protected_path_are_mount_points_under_the_writable_one() -> None:
    made = arguments(
        Resolved(entries={"/p": W, "/p/a/b/c": R}),
        program="bwrap",
        cwd="/p",
        temporary="",
        user=User.PERSON,
    )
    at = made.index("--bind")
    assert made[at : at + 15] == [
        *("--bind", "/p", "/p"),
        *("--bind", "/p/a", "/p/a"),
        *("--bind", "/p/a/b", "/p/a/b"),
        *("--bind", "/p", "/p"),
        *("--ro-bind", "/p/a/b/c", "/p/a/b/c"),
    ]
    assert "--cap-drop" not in made


def test_root_keeps_few_capabilities() -> None:
    made = arguments(Resolved(entries={}), program="b", cwd="/", temporary="", user=User.ROOT)
    kept = [made[at + 1] for at, word in enumerate(made) if word == "--cap-add"]
    assert made[made.index("--cap-drop") + 1] == "ALL"
    assert made.index("--cap-drop") < made.index("--cap-add")
    assert not {"CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_MKNOD", "CAP_SYS_MODULE"} & set(kept)


# --- opening --------------------------------------------------------------------------------------


async def test_off_changes_nothing() -> None:
    box = await open_sandbox(SandboxSpec(), ["claude", "-p"], {"A": "b"}, cwd="/")
    assert (box.kind, box.command, box.env) == (None, ("claude", "-p"), {"A": "b"})
    box.close()


async def test_a_program_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    spec = SandboxSpec(mode=SandboxMode.PROTECT, writable=(str(tmp_path),))
    with pytest.raises(LaunchError, match="no-such-program could not be started"):
        await open_sandbox(spec, ["no-such-program"], {"PATH": "/bin"}, cwd="/", kind=Kind.LANDLOCK)


async def test_landlock_refuses_what_it_cannot_enforce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "abi", lambda: 3)
    spec = SandboxSpec(mode=SandboxMode.PROTECT, network=Network(kind=NetworkKind.MODEL))
    with pytest.raises(LaunchError, match="cannot limit the network"):
        await open_sandbox(spec, ["true"], {"PATH": "/bin"}, cwd="/", kind=Kind.LANDLOCK)


# --- the probe ------------------------------------------------------------------------------------


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(sys.modules["quarterdeck.sandbox.probe"], "_found", [])
    return monkeypatch


@linux
@pytest.mark.process
def test_a_probe_tries_each_kind_once(module: pytest.MonkeyPatch) -> None:
    first = probe()
    assert [each.kind for each in first] == [Kind.BUBBLEWRAP, Kind.LANDLOCK]
    assert probe() is first
    assert probe(again=True) == first


@linux
@pytest.mark.process
def test_a_kind_that_lets_things_through_does_not_work(module: pytest.MonkeyPatch) -> None:
    """Landlock that gives every right: the probe sees that a protected file was written."""
    module.setattr(
        sys.modules["quarterdeck.sandbox.landlock"],
        "order",
        lambda *_: {"limits": {}},
    )
    found = {each.kind: each for each in probe()}
    assert not found[Kind.LANDLOCK].works
    assert found[Kind.LANDLOCK].why == "a protected file could be written"


def test_without_bubblewrap_the_next_kind_is_chosen(module: pytest.MonkeyPatch) -> None:
    found = (
        Probe(kind=Kind.BUBBLEWRAP, works=False, why="bubblewrap is not installed"),
        Probe(kind=Kind.LANDLOCK, works=True),
    )
    module.setattr(sys.modules["quarterdeck.sandbox.probe"], "_found", [found])
    module.setattr(launching, "abi", lambda: 3)
    assert choose(SandboxSpec(limits=Limits(memory=1))) is Kind.LANDLOCK
    assert choose(SandboxSpec(network=Network(kind=NetworkKind.MODEL))) is None


async def test_no_kind_is_an_error_with_the_reasons(module: pytest.MonkeyPatch) -> None:
    found = (Probe(kind=Kind.BUBBLEWRAP, works=False, why="it is not there"),)
    module.setattr(sys.modules["quarterdeck.sandbox.probe"], "_found", [found])
    with pytest.raises(LaunchError, match="bubblewrap: it is not there"):
        await open_sandbox(SandboxSpec(mode=SandboxMode.PROTECT), ["true"], {}, cwd="/")
