"""A chat is paired with a person: a code is exchanged for a token of theirs, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.domain.errors import NotFound
from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.throttle import FAILURES
from quarterdeck.fronts.http.tokens import (
    PAIRED_KEPT,
    PAIRED_SECONDS,
    PAIRING_SECONDS,
    PAIRINGS_KEPT,
    Kind,
    TokenFile,
)
from support.front import Front

LABEL = "telegram:4711"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_code_gives_a_token_of_the_person_who_made_it_once(hub: Front) -> None:
    async with hub.client(Role.OPERATOR) as person, hub.client(Role.VIEWER) as bot:
        made = (await person.post("/api/pairing/code")).json()
        assert (made["name"], made["role"]) == ("the operator", "operator")
        body = {"code": made["code"], "label": LABEL}
        paired = (await bot.post("/api/pairing", json=body)).json()
        assert (paired["name"], paired["role"]) == ("the operator", "operator")
        again = await bot.post("/api/pairing", json=body)
        assert (again.status_code, again.json()["code"]) == (401, "bad_code")
    async with hub.client(None, authorization=f"Bearer {paired['token']}") as chat:
        assert (await chat.get("/api/whoami")).json()["name"] == "the operator"
    async with hub.client() as owner:
        grants = (await owner.get("/api/tokens")).json()["tokens"]
        (grant,) = [each for each in grants if each["label"] == LABEL]
        assert (await owner.delete(f"/api/tokens/{grant['id']}")).status_code == 200
    async with hub.client(None, authorization=f"Bearer {paired['token']}") as chat:
        assert (await chat.get("/api/whoami")).status_code == 401


def test_the_empty_id_is_nobodys(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    tokens.make("me", Role.OWNER, Kind.TOKEN)
    with pytest.raises(NotFound):
        tokens.revoke("")
    assert len(tokens.grants()) == 1


async def test_a_code_that_others_have_read_is_cancelled(hub: Front) -> None:
    async with hub.client() as person, hub.client(Role.VIEWER) as bot:
        read, other = [(await person.post("/api/pairing/code")).json()["code"] for _ in range(2)]
        for code in (read.lower(), read, "0000-0000-0000"):  # the answer says nothing of the code
            answer = await bot.post("/api/pairing/cancel", json={"code": code})
            assert (answer.status_code, answer.json()) == (200, {"ok": True})
        refused = await bot.post("/api/pairing", json={"code": read, "label": LABEL})
        assert (refused.status_code, refused.json()["code"]) == (401, "bad_code")
        paired = await bot.post("/api/pairing", json={"code": other, "label": LABEL})
        assert paired.status_code == 200
    async with hub.client(None) as nobody:
        assert (await nobody.post("/api/pairing/cancel", json={"code": "X"})).status_code == 401


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.OWNER])
async def test_everybody_ends_their_own_access_and_that_of_their_chats_only(
    hub: Front, role: Role
) -> None:
    bystander = hub.access.make_token("bystander", role)
    async with hub.client(role) as person:
        code = (await person.post("/api/pairing/code")).json()["code"]
        body = {"code": code, "label": LABEL}
        token = (await person.post("/api/pairing", json=body)).json()["token"]
        assert (await person.delete("/api/token")).json()["role"] == role.value
        assert (await person.get("/api/whoami")).status_code == 401
        assert (await person.delete("/api/token")).status_code == 401
    for each, status in ((token, 401), (bystander, 200)):
        async with hub.client(None, authorization=f"Bearer {each}") as other:
            assert (await other.get("/api/whoami")).status_code == status


async def test_after_a_few_wrong_codes_a_user_waits_and_others_do_not(hub: Front) -> None:
    async with hub.client() as person, hub.client(Role.VIEWER) as bot:
        code = (await person.post("/api/pairing/code")).json()["code"]
        for _ in range(FAILURES):
            wrong = await bot.post("/api/pairing", json={"code": "X", "label": LABEL})
            assert wrong.status_code == 401
        right = await bot.post("/api/pairing", json={"code": code, "label": LABEL})
        assert (right.status_code, right.json()["code"]) == (429, "too_many_failures")
        other = await bot.post("/api/pairing", json={"code": code, "label": "telegram:1"})
        assert other.status_code == 200


async def test_nobody_pairs_without_a_token(hub: Front) -> None:
    async with hub.client(None) as nobody:
        assert (await nobody.post("/api/pairing/code")).status_code == 401
        body = {"code": hub.access.make_pairing("me", Role.OWNER), "label": LABEL}
        assert (await nobody.post("/api/pairing", json=body)).status_code == 401


async def test_a_chat_ends_with_the_access_of_who_paired_it(hub: Front) -> None:
    async with hub.client(Role.VIEWER) as person, hub.client() as owner:
        codes = [(await person.post("/api/pairing/code")).json()["code"] for _ in range(2)]
        body = {"code": codes[0], "label": LABEL}
        token = (await person.post("/api/pairing", json=body)).json()["token"]
        grants = (await owner.get("/api/tokens")).json()["tokens"]
        (first, *_) = [each["id"] for each in grants if each["name"] == "the viewer"]
        assert (await owner.delete(f"/api/tokens/{first}")).status_code == 200
        assert not [each for each in hub.access.grants() if each.name == "the viewer"]
        late = await owner.post("/api/pairing", json={"code": codes[1], "label": LABEL})
        assert late.status_code == 401
    async with hub.client(None, authorization=f"Bearer {token}") as chat:
        assert (await chat.get("/api/whoami")).status_code == 401


async def test_a_chat_pairs_no_other_chat(hub: Front) -> None:
    """It would go on when the chat, or who paired it, is revoked; and each could pair more."""
    async with hub.client(Role.OPERATOR) as person:
        code = (await person.post("/api/pairing/code")).json()["code"]
        body = {"code": code, "label": LABEL}
        token = (await person.post("/api/pairing", json=body)).json()["token"]
    async with hub.client(None, authorization=f"Bearer {token}") as chat:
        refused = await chat.post("/api/pairing/code")
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert not [each for each in hub.access.grants() if each.kind is Kind.PAIRING]


def test_nobody_fills_the_file_with_chats_or_drives_out_codes_of_others(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    other = tokens.make_pairing("other", Role.OWNER, parent="b")
    for number in range(max(PAIRINGS_KEPT, PAIRED_KEPT) + 3):
        code = tokens.make_pairing("me", Role.VIEWER, parent="a")
        assert tokens.redeem_pairing(code, f"telegram:{number}") is not None
        tokens.make_pairing("me", Role.VIEWER, parent="a")
    assert len(tokens.grants()) == PAIRINGS_KEPT + PAIRED_KEPT + 1
    assert tokens.redeem_pairing(other, LABEL) is not None


@pytest.mark.parametrize("typed", ["{0}", "{1}", "{2}", " {1} "])
def test_a_code_may_be_typed_in_any_way(tmp_path: Path, typed: str) -> None:
    tokens = TokenFile(tmp_path)
    code = tokens.make_pairing("me", Role.OWNER)
    plain = code.replace("-", "")
    found = tokens.redeem_pairing(typed.format(code, plain.lower(), plain.replace("0", "O")), LABEL)
    assert found is not None
    assert found.person.name == "me"


def test_an_old_code_is_not_taken(tmp_path: Path) -> None:
    clock = Clock()
    tokens = TokenFile(tmp_path, clock=clock)
    code = tokens.make_pairing("me", Role.OWNER)
    clock.now += PAIRING_SECONDS
    assert tokens.redeem_pairing(code, LABEL) is None


@pytest.mark.parametrize(("until", "expires"), [(None, 1000.0 + PAIRED_SECONDS), (5000.0, 5000.0)])
def test_a_chat_has_access_no_longer_than_who_paired_it(
    tmp_path: Path, until: float | None, expires: float
) -> None:
    tokens = TokenFile(tmp_path, clock=Clock())
    found = tokens.redeem_pairing(tokens.make_pairing("me", Role.OWNER, until=until), LABEL)
    assert found is not None
    assert found.person.expires == expires


def test_a_chat_that_is_paired_again_has_one_token(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    for name in ("me", "me", "other"):
        assert tokens.redeem_pairing(tokens.make_pairing(name, Role.OWNER), LABEL) is not None
    assert [grant.name for grant in tokens.grants()] == ["me", "other"]


def test_a_code_is_no_token_and_no_login_and_few_are_kept(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path)
    codes = [tokens.make_pairing("me", Role.OWNER) for _ in range(PAIRINGS_KEPT + 3)]
    assert tokens.who(codes[-1], kind=Kind.TOKEN) is None
    assert tokens.redeem(codes[-1], secure=True) is None
    assert len(tokens.grants()) == PAIRINGS_KEPT
    assert tokens.redeem_pairing(codes[0], LABEL) is None
    assert tokens.redeem_pairing(codes[-1], LABEL) is not None
