"""Tokens end, and what an agent wrote does not control a terminal (L4, L9)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from quarterdeck.cli.hub.files import _readable
from quarterdeck.fronts.http import Access
from quarterdeck.fronts.http.tokens import Kind, TokenFile
from quarterdeck.protocol.roles import Role
from quarterdeck.runtime.files import replace_file
from quarterdeck.service.local_hub import CLI_TOKEN, own_token
from quarterdeck.service.loops import LONGEST_LOOP, own_loop_token
from support.front import Front

DAY = 86400.0


def test_l9_the_token_of_the_command_line_ends_and_is_renewed(tmp_path: Path) -> None:
    first = own_token(tmp_path)
    (grant,) = TokenFile(tmp_path).grants()
    assert grant.expires is not None
    assert time.time() + 20 * DAY < grant.expires <= time.time() + 31 * DAY
    assert own_token(tmp_path) == first


@pytest.mark.parametrize("seconds", [None, 2 * DAY])
def test_l9_a_token_without_an_end_or_near_it_is_replaced(
    tmp_path: Path, seconds: float | None
) -> None:
    old = TokenFile(tmp_path).make("ada", Role.OWNER, Kind.TOKEN, seconds=seconds)
    replace_file(tmp_path / CLI_TOKEN, old.encode())
    new = own_token(tmp_path)
    assert new != old
    assert TokenFile(tmp_path).who(new, kind=Kind.TOKEN) is not None
    still = TokenFile(tmp_path).who(old, kind=Kind.TOKEN)
    assert (still is None) == (seconds is None)


async def test_l9_a_token_of_the_api_ends(hub: Front) -> None:
    async with hub.client() as owner:
        await owner.post("/api/tokens", json={"name": "a", "role": "viewer"})
        await owner.post("/api/tokens", json={"name": "b", "role": "viewer", "days": 1})
        refused = await owner.post("/api/tokens", json={"name": "c", "role": "viewer", "days": 0})
        assert refused.status_code == 400
        listed = (await owner.get("/api/tokens")).json()["tokens"]
    days = {each["name"]: (each["expires"] or 0) - time.time() for each in listed}
    assert 89 * DAY < days["a"] <= 90 * DAY
    assert 0 < days["b"] <= DAY


def test_l9_the_token_of_loops_ends_after_every_loop_and_is_renewed(tmp_path: Path) -> None:
    access = Access(tmp_path)
    endless = access.make_token("loop", Role.OWNER)
    replace_file(tmp_path / "loops.token", endless.encode())
    token = own_loop_token(tmp_path, access)
    assert token != endless
    (grant,) = access.grants()
    assert grant.expires is not None
    assert grant.expires > time.time() + LONGEST_LOOP
    assert own_loop_token(tmp_path, access) == token


def test_l4_an_export_to_a_terminal_has_no_control_characters() -> None:
    hostile = "a\x1b]0;title\x07b\u202ec\x1b[2J\nplain ✓ ü\n".encode()
    for step in (1, 3, 1000):
        pieces = [hostile[at : at + step] for at in range(0, len(hostile), step)]
        shown = b"".join(_readable(pieces)).decode()
        assert "\x1b" not in shown
        assert "\x07" not in shown
        assert "\u202e" not in shown
        assert "plain ✓ ü\n" in shown
