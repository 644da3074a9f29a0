from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.fronts.http.tokens import BROWSERS_KEPT, Kind, TokenFile
from quarterdeck.protocol.roles import Role


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_file_and_its_folder_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    tokens = TokenFile(folder)
    tokens.make("me", Role.OWNER, Kind.TOKEN)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_folder_that_stood_open_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    TokenFile(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.process
def test_no_token_is_kept_as_it_is(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    token = tokens.make("me", Role.OWNER, Kind.TOKEN)
    secret = token.split("_", 2)[2]  # it may have underscores of its own
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()
    person = tokens.who(token, kind=Kind.TOKEN)
    assert person is not None
    assert (person.name, person.role) == ("me", Role.OWNER)


@pytest.mark.parametrize("change", ["", "x", "{0}x", "x{0}", "qd_{1}_", "qd_{1}_x", "qd__"])
def test_a_token_that_differs_in_anything_is_nobodys(tmp_path: Path, change: str) -> None:
    tokens = TokenFile(tmp_path)
    token = tokens.make("me", Role.OWNER, Kind.TOKEN)
    assert tokens.who(change.format(token, token.split("_")[1]), kind=Kind.TOKEN) is None


def test_a_token_runs_out(tmp_path: Path) -> None:
    clock = Clock()
    tokens = TokenFile(tmp_path, clock=clock)
    token = tokens.make("me", Role.VIEWER, Kind.TOKEN, seconds=60)
    person = tokens.who(token, kind=Kind.TOKEN)
    assert person is not None
    assert tokens.is_valid(person.grant)
    clock.now += 60
    assert tokens.who(token, kind=Kind.TOKEN) is None
    assert not tokens.is_valid(person.grant)


def test_an_old_code_is_not_taken(tmp_path: Path) -> None:
    clock = Clock()
    tokens = TokenFile(tmp_path, clock=clock)
    code = tokens.make("me", Role.OWNER, Kind.CODE, seconds=600)
    clock.now += 601
    assert tokens.redeem(code, secure=False) is None


def test_of_many_who_use_a_code_at_once_one_gets_in(tmp_path: Path) -> None:
    code = TokenFile(tmp_path).make("me", Role.OWNER, Kind.CODE, seconds=600)
    gate, found = threading.Barrier(8), []

    def redeem() -> None:
        tokens = TokenFile(tmp_path)
        gate.wait(10)
        found.append(tokens.redeem(code, secure=False))

    threads = [threading.Thread(target=redeem) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len([each for each in found if each is not None]) == 1
    assert len(found) == 8


def test_what_is_taken_back_elsewhere_is_noticed(tmp_path: Path) -> None:
    here, there = TokenFile(tmp_path), TokenFile(tmp_path)
    token = there.make("me", Role.OWNER, Kind.TOKEN)
    person = here.who(token, kind=Kind.TOKEN)
    assert person is not None
    there.revoke(person.grant)
    assert here.who(token, kind=Kind.TOKEN) is None
    with pytest.raises(NotFound):
        here.revoke(person.grant)


def test_the_oldest_logins_go_when_there_are_too_many(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    kept = tokens.make("program", Role.OWNER, Kind.TOKEN)
    first = tokens.make("me", Role.OWNER, Kind.BROWSER)
    for _ in range(BROWSERS_KEPT):
        tokens.make("me", Role.OWNER, Kind.BROWSER)
    assert tokens.who(first, kind=Kind.BROWSER) is None
    assert tokens.who(kept, kind=Kind.TOKEN) is not None
    assert len(tokens.grants()) == BROWSERS_KEPT + 1


def test_a_damaged_file_lets_nobody_in_and_is_left_as_it_is(tmp_path: Path) -> None:
    TokenFile(tmp_path).make("me", Role.OWNER, Kind.TOKEN)
    file = tmp_path / "access.json"
    file.write_bytes(b"{}")
    with pytest.raises(UsageError, match=r"access\.json"):
        TokenFile(tmp_path)
    assert file.read_bytes() == b"{}"


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 65])
def test_a_name_that_would_spoil_a_log_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        TokenFile(tmp_path).make(name, Role.OWNER, Kind.TOKEN)


def test_a_link_in_the_place_of_the_scratch_file_is_not_followed(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "access.new").symlink_to(victim)
    tokens.make("me", Role.OWNER, Kind.TOKEN)
    assert victim.read_text() == "mine"
