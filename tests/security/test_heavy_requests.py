"""Much work for a viewer has an end, and an owner waits for none of it (H1, H6, H7)."""

from __future__ import annotations

from collections import Counter

import anyio
import pytest

from quarterdeck.fronts.http import Role
from support.bounds import SECONDS
from support.exports import answer
from support.front import Front

pytestmark = pytest.mark.process

WILD = '[claude]\ndeny = ["Bash(*a*a*a*a*b)"]\n'
MATCHED = (
    f'[[rule]]\nname = "x"\nverdict = "deny"\nclaude = "Bash(*a*a*a*a*b)"\nmatch = "{"a" * 250}b"\n'
)
AT_ONCE = 45


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("explain", {"tool": "Bash", "argument": "a" * 150, "text": WILD}),
        ("explain", {"tool": "Bash", "argument": "a" * 16_000, "text": WILD}),
        ("check", {"text": MATCHED}),
        ("replay", {"text": WILD}),
    ],
    ids=["explain", "explain a long one", "check", "replay"],
)
async def test_h1_a_pattern_of_many_stars_is_compared_in_little_time(
    hub: Front, path: str, body: dict[str, str]
) -> None:
    async with hub.client(Role.VIEWER) as viewer:
        assert (await viewer.post(f"/api/policy/{path}", json=body)).status_code == 200


async def test_h6_hostile_markdown_is_exported_to_its_end(hub: Front) -> None:
    session = await hub.deck.have_session()
    texts = ["[![](" * 38_000, "![" * 50_000, "[" * 40_000 + "]" * 40_000, "| a " * 40_000]
    await hub.deck.journal.append(session, [answer(text) for text in texts])
    async with hub.client(Role.VIEWER) as viewer:
        found = await viewer.get(f"/api/sessions/{session}/export", params={"format": "html"})
    assert found.status_code == 200
    assert found.text.endswith("</html>\n")
    assert found.text.count("[![](") == 38_000


async def test_h7_an_owner_makes_and_revokes_access_while_a_viewer_asks_for_much(
    hub: Front,
) -> None:
    body = {"tool": "Bash", "argument": "a;" * 2_000, "policy": "trusted-repo"}
    answers: Counter[int] = Counter()
    async with (
        hub.client(Role.VIEWER) as viewer,
        hub.client() as owner,
        anyio.create_task_group() as tasks,
    ):
        viewer.timeout = SECONDS

        async def explain() -> None:
            answers[(await viewer.post("/api/policy/explain", json=body)).status_code] += 1

        for _ in range(AT_ONCE):
            tasks.start_soon(explain)
        made = await owner.post("/api/tokens", json={"name": "new", "role": "viewer"})
        assert made.status_code == 200
        login = await owner.post("/login", json={"code": hub.access.make_code()})
        assert login.status_code == 200
        grants = (await owner.get("/api/tokens")).json()["tokens"]
        for name in ("new", "the viewer"):
            (grant,) = [each["id"] for each in grants if each["name"] == name]
            assert (await owner.delete(f"/api/tokens/{grant}")).status_code == 200
        tasks.cancel_scope.cancel()
    assert answers.keys() <= {200, 401, 429, 503}
