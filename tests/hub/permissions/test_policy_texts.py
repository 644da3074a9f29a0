"""The text of a policy file is replaced as a whole, if it is valid and nobody was faster."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.permissions.policy_texts import PolicyTexts
from quarterdeck.policy.toml import LIMIT

pytestmark = pytest.mark.anyio

DENY = '[[rule]]\nname = "no make"\nverdict = "deny"\ncommand = "make"\n'
ASK = DENY.replace("deny", "ask")


async def test_a_new_text_is_in_force_at_once(tmp_path: Path) -> None:
    policies = Policies(tmp_path)
    texts = PolicyTexts(policies)
    empty = await texts.read("policy.toml")
    assert (empty.text, empty.version) == ("", "")
    first = await texts.replace("policy.toml", DENY, empty.version)
    assert (tmp_path / "policy.toml").read_text() == DENY
    assert policies.states[0].rules == 1
    assert await texts.read("policy.toml") == first
    second = await texts.replace("policy.toml", ASK, first.version)
    assert second.version != first.version
    # A policy that sessions can name is in a folder of its own, which is made.
    await texts.replace("team", DENY, "")
    assert "team" in policies.names


async def test_a_stale_version_and_a_wrong_text_change_nothing(tmp_path: Path) -> None:
    texts = PolicyTexts(Policies(tmp_path))
    made = await texts.replace("policy.toml", DENY, "")
    for version in ("", "0" * 64):
        with pytest.raises(Conflict) as refused:
            await texts.replace("policy.toml", ASK, version)
        assert refused.value.code == "policy_changed"
    with pytest.raises(UsageError, match="line 1"):
        await texts.replace("policy.toml", "x = 1", made.version)
    assert (await texts.read("policy.toml")).text == DENY


async def test_only_policy_files_can_be_named(tmp_path: Path) -> None:
    texts = PolicyTexts(Policies(tmp_path))
    for name in ("../policy", "a/b", "", ".hidden", "careful", "x" * 65, "a\0b"):
        with pytest.raises(UsageError):
            await texts.replace(name, DENY, "")
    with pytest.raises(UsageError):
        await PolicyTexts(Policies()).read("policy.toml")
    assert not await anyio.Path(tmp_path / "policies").exists()


async def test_a_link_a_folder_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.toml"
    elsewhere.write_text(DENY)
    home = tmp_path / "home"
    home.mkdir()
    (home / "policy.toml").symlink_to(elsewhere)
    texts = PolicyTexts(Policies(home))
    read = await texts.read("policy.toml")
    with pytest.raises(UsageError, match="is a link"):
        await texts.replace("policy.toml", ASK, read.version)
    assert elsewhere.read_text() == DENY
    (home / "policies").mkdir()
    (home / "policies" / "team.toml").mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        await texts.read("team")
    (home / "policies" / "big.toml").write_text("#" * (4 * LIMIT + 1))
    with pytest.raises(UsageError, match="too large"):
        await texts.read("big")
    (home / "policies").chmod(0o700)
    blocked = PolicyTexts(Policies(home, file=elsewhere / "below.toml"))
    with pytest.raises(UsageError):
        await blocked.replace("policy.toml", DENY, "")
