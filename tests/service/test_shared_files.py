"""Files that several hubs share: changes of one come to the others, and none is lost."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.fronts.http import Access, Role
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.policy.grants import Grant
from quarterdeck.service import shared_files
from quarterdeck.service.shared_files import FILES, Shared, SharedFiles, merge

pytestmark = pytest.mark.anyio
LIST = Shared(name="x.json", entries="")
TABLE = Shared(name="x.json", entries="t")


async def test_tokens_grants_and_secrets_of_one_hub_hold_at_the_other(tmp_path: Path) -> None:
    journal = MemoryJournal()
    homes = [tmp_path / name for name in "ab"]
    accesses, policies, files = [], [], []
    for home in homes:
        accesses.append(Access(home))
        (home / "cli.secret").write_bytes(home.name.encode() * 32)
        policies.append(Policies(home))
        one = SharedFiles(journal if home is homes[0] else journal.beside(), home)
        one.locks["grants.json"] = policies[-1].write_lock
        one.taken = policies[-1].note_change
        files.append(one)

    async def carry() -> None:
        for one in (*files, *files):
            await one.carry()

    lost = accesses[1].make_token("lost", Role.OWNER)  # of a hub that was alone before
    token = accesses[0].make_token("box", Role.RUNNER)
    await carry()
    assert accesses[1].runner_named(token) == "box"
    assert accesses[1].runner_named(lost) is None
    assert (homes[1] / "access.json.alone").exists()
    assert (homes[1] / "cli.secret").read_bytes() == b"a" * 32
    # Both change it before either is told.
    more = [access.make_token(f"m{n}", Role.RUNNER) for n, access in enumerate(accesses)]
    ids = {grant.name: grant.id for grant in accesses[1].grants()}
    accesses[1].revoke(ids["box"])
    granted = [await held.grant(_grant(f"Bash(ls {n})")) for n, held in enumerate(policies)]
    await carry()
    for access, held in zip(accesses, policies, strict=True):
        assert [access.runner_named(each) for each in more] == ["m0", "m1"]
        assert access.runner_named(token) is None, "what was taken back stays so"
        assert {each.id for each in held.grants} == {each.id for each in granted}
    await policies[0].revoke(granted[1].id)
    await policies[1].grant(_grant("Bash(pwd)"))
    await carry()
    assert [len(held.grants) for held in policies] == [2, 2]
    # A hub that was away: what was changed in its folder meanwhile is not forgotten.
    again = SharedFiles(journal, homes[1])
    accesses[1].revoke(ids["m0"] if "m0" in ids else _id(accesses[1], "m0"))
    await again.carry()
    await files[0].carry()
    assert accesses[0].runner_named(more[0]) is None
    assert (await journal.shared_version("files")) > 0
    assert {file.name for file in FILES} >= set(await journal.shared_values("files"))


async def test_what_has_not_changed_is_read_neither_here_nor_from_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = MemoryJournal()
    read: list[str] = []

    def watch(owner: object, name: str, named: Callable[..., str]) -> None:
        real = getattr(owner, name)

        def call(*values: Any) -> Any:
            read.append(named(*values))
            return real(*values)

        monkeypatch.setattr(owner, name, call)

    one, other = (SharedFiles(journal, _folder(tmp_path / name)) for name in "ab")
    watch(shared_files, "_content", lambda path: str(path.relative_to(tmp_path)))
    watch(journal, "shared_values", lambda _: "all values")
    watch(journal, "shared_value", lambda _, key: f"value {key}")

    async def carry(expected: set[str] | None = None) -> None:
        """Carry what there is, until both have nothing left to do."""
        for files in (one, other, one):
            await files.carry()
            _make_old(tmp_path)
            await files.carry()
        assert expected in (None, {name for name in read if "/" not in name})
        read.clear()
        for files in (one, other):
            await files.carry()
        assert read == []

    (tmp_path / "a" / "push.key").write_bytes(b"key")
    await carry()
    assert (tmp_path / "b" / "push.key").read_bytes() == b"key"
    (tmp_path / "b" / "push.key").write_bytes(b"new key")
    await carry({"all values", "value push.key"})
    assert (tmp_path / "a" / "push.key").read_bytes() == b"new key"
    # Two changes of the same length, within one tick of the file system's clock.
    file = tmp_path / "a" / "push.key"
    at = time.time()
    for key in (b"yek", b"eky"):
        file.write_bytes(key)
        os.utime(file, (at, at))
        await one.carry()
    value = await journal.shared_value("files", "push.key")
    assert value is not None
    assert value.value == b"eky"


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path


def _make_old(folder: Path) -> None:
    """As if the files had been written some time ago: a minute before each was."""
    for path in folder.rglob("*.*"):
        at = path.stat().st_mtime - 60
        if path.is_file() and at > time.time() - 120:
            os.utime(path, (at, at))


def _id(access: Access, name: str) -> str:
    return next(grant.id for grant in access.grants() if grant.name == name)


def _grant(rule: str) -> Grant:
    return Grant(id="", rules=(rule,), by="ada", at=1)


def listed(*ids: str) -> bytes:
    return json.dumps([{"id": each[0], "v": each} for each in ids]).encode()


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "both"),
    [
        (("a",), ("a", "b"), ("a", "c"), {"a", "b", "c"}),
        (("a", "b"), ("b",), ("a", "b", "c"), {"b", "c"}),
        (("a", "b"), ("a", "b", "c"), ("b",), {"b", "c"}),
        (("a", "b"), ("a2", "b"), ("a", "b3"), {"a2", "b3"}),
        (("a",), ("a2",), (), set()),  # who takes something back is right
        (("a",), (), ("a2",), set()),
    ],
)
def test_two_changes_of_one_file_both_hold(
    base: tuple[str, ...], mine: tuple[str, ...], theirs: tuple[str, ...], both: set[str]
) -> None:
    found = json.loads(merge(LIST, listed(*base), listed(*mine), listed(*theirs)))
    assert {each["v"] for each in found} == both
    table = [
        json.dumps({"key": "k", "t": {each[0]: each for each in ids}}).encode()
        for ids in (base, mine, theirs)
    ]
    found = json.loads(merge(TABLE, *table))
    assert set(found["t"].values()) == both
    assert found["key"] == "k"


def test_without_a_common_past_the_others_are_right_and_so_they_are_about_damage() -> None:
    assert merge(LIST, None, b"[1]", b"[2]") == b"[2]"
    assert merge(LIST, None, b"[1]", None) == b"[1]"
    assert merge(LIST, b"[]", None, b"[2]") == b"[2]"
    assert merge(Shared(name="key"), b"0", b"1", b"2") == b"2"
    assert merge(LIST, b"[]", b"no json", listed("a")) == listed("a")
