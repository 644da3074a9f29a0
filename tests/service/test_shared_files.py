"""Files that several hubs share: changes of one come to the others, and none is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarterdeck.fronts.http import Access, Role
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.policy.grants import Grant
from quarterdeck.service.shared_files import FILES, Shared, SharedFiles, merged

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
        one.locks["grants.json"] = policies[-1].writing
        one.taken = policies[-1].taken
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
    found = json.loads(merged(LIST, listed(*base), listed(*mine), listed(*theirs)))
    assert {each["v"] for each in found} == both
    table = [
        json.dumps({"key": "k", "t": {each[0]: each for each in ids}}).encode()
        for ids in (base, mine, theirs)
    ]
    found = json.loads(merged(TABLE, *table))
    assert set(found["t"].values()) == both
    assert found["key"] == "k"


def test_without_a_common_past_the_others_are_right_and_so_they_are_about_damage() -> None:
    assert merged(LIST, None, b"[1]", b"[2]") == b"[2]"
    assert merged(LIST, None, b"[1]", None) == b"[1]"
    assert merged(LIST, b"[]", None, b"[2]") == b"[2]"
    assert merged(Shared(name="key"), b"0", b"1", b"2") == b"2"
    assert merged(LIST, b"[]", b"no json", listed("a")) == listed("a")
