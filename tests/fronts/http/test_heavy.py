"""What a viewer tries and exports may take long: nobody else waits for it, and it has an end."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import httpx
import msgspec
import pytest
from msgspec import Raw

from quarterdeck.fronts.http import Role
from quarterdeck.history.export import render
from quarterdeck.hub.permissions import service as desk
from quarterdeck.protocol.events import Said
from support.bounds import SECONDS
from support.exports import answer
from support.front import Front
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]

WILD = '[claude]\ndeny = ["Bash(*a*a*a*a*b)"]\n'
LETTERS = "a" * 250
MATCHED = (
    f'[[rule]]\nname = "x"\nverdict = "deny"\nclaude = "Bash(*a*a*a*a*b)"\nmatch = "{LETTERS}"\n'
)
MANY = '"' + ";".join("a" * 499) + '"'
SLOW = (
    '[[rule]]\nname = "x"\nverdict = "deny"\ncommand = "zz"\nflags = "--force"\n'
    f"not_match = [{','.join([MANY] * 220)}]\n"
)
"""A policy whose examples take longer to check than anybody may have."""

PAYLOADS = [
    ("explain", {"tool": "Bash", "argument": "a" * 250, "text": WILD}, 200),
    ("explain", {"tool": "Bash", "argument": "a" * 16_000, "text": WILD}, 200),
    ("explain", {"tool": "Bash", "argument": "a;" * 1000, "policy": "trusted-repo"}, 200),
    ("explain", {"tool": "Bash", "argument": "a " * 7900, "policy": "trusted-repo"}, 200),
    ("check", {"text": MATCHED}, 200),
    ("check", {"text": "a" + ".a" * 400_000 + "=1"}, 200),
    ("replay", {"text": WILD}, 200),
    ("replay", {"text": "a" + ".a" * 400_000 + "=1"}, 400),
]


async def soon(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(SECONDS):
        await until(holds)


async def with_calls(hub: Front, *commands: str) -> str:
    """A session that has asked for these commands."""
    session = await hub.deck.have_session()
    said = []
    for number, command in enumerate(commands, 1):
        request = {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "input": {"command": command},
            "tool_use_id": f"t{number}",
        }
        line = {"type": "control_request", "request_id": f"r{number}", "request": request}
        said.append(Said(run="run", number=number, line=Raw(msgspec.json.encode(line))))
    await hub.deck.journal.append(session, said)
    return session


async def test_what_was_endless_is_answered(hub: Front) -> None:
    await with_calls(hub, "a" * 16_000, "a;" * 1000, "docker" + " run --rm " * 1600)
    async with hub.client(Role.VIEWER) as client:
        client.timeout = SECONDS
        for path, body, status in PAYLOADS:
            told = await client.post(f"/api/policy/{path}", json=body)
            assert told.status_code == status, (path, told.text[:200])
        assert (await client.get("/api/policy/suggestions")).status_code == 200
        replayed = await client.post("/api/policy/replay", json={"text": WILD, "since": 0})
        assert replayed.json()["calls"] == 3


async def test_a_viewer_is_told_that_it_took_too_long(
    hub: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "TRY_SECONDS", 0.5)
    async with hub.client(Role.VIEWER) as viewer:
        viewer.timeout = SECONDS
        told = await viewer.post("/api/policy/check", json={"text": SLOW})
    assert told.status_code == 503
    assert told.json()["code"] == "took_too_long"
    assert "longer than the 0.5 s" in told.json()["detail"]


async def test_over_the_limit_a_viewer_is_refused_and_an_owner_waits_for_nothing(
    hub: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "TRY_SECONDS", SECONDS)
    ask = await hub.deck.ask(await hub.deck.have_session())
    answers: list[httpx.Response] = []
    async with (
        hub.client(Role.VIEWER) as viewer,
        hub.client() as owner,
        hub.client(None, origin=hub.url) as nobody,
        anyio.create_task_group() as tasks,
    ):
        viewer.timeout = SECONDS

        async def slow() -> None:
            answers.append(await viewer.post("/api/policy/check", json={"text": SLOW}))

        tasks.start_soon(slow)
        await soon(lambda: hub.deck.workers.busy == 1)
        # Forty-five at once: one is under way, a few wait, and all others are refused at once.
        for _ in range(44):
            tasks.start_soon(slow)
        await soon(lambda: len(answers) == 40)
        assert {told.json()["code"] for told in answers} == {"busy"}
        assert {told.status_code for told in answers} == {503}

        assert (await nobody.get("/healthz")).status_code == 200
        made = await owner.post("/api/tokens", json={"name": "phone", "role": "operator"})
        assert made.status_code < 300, made.text
        listed = (await owner.get("/api/tokens")).json()
        grant = next(each["id"] for each in listed["tokens"] if each["name"] == "phone")
        assert (await owner.delete(f"/api/tokens/{grant}")).status_code < 300
        code = hub.access.make_code()
        assert (await nobody.post("/login", json={"code": code})).status_code == 200
        given = {"answer": {"answer": "allow"}}
        answered = await owner.post(f"/api/asks/{ask}/answer", json=given)
        assert answered.status_code == 200, answered.text
        tried = await owner.post("/api/policy/explain", json={"tool": "Bash", "argument": "ls"})
        assert tried.status_code == 200
        # All of that was done while the first of the viewer's calls had not ended.
        assert len(answers) == 40
        tasks.cancel_scope.cancel()


async def test_hostile_markdown_is_exported_while_others_are_served(hub: Front) -> None:
    session = await hub.deck.have_session()
    texts = ["[![](" * 38_000, "![" * 10_000, "[" * 9000 + "]" * 9000, "**all** good"]
    await hub.deck.journal.append(session, [answer(text) for text in texts])
    page: list[str] = []
    async with (
        hub.client(Role.VIEWER) as viewer,
        hub.client() as owner,
        anyio.create_task_group() as tasks,
    ):
        viewer.timeout = SECONDS

        async def export() -> None:
            found = await viewer.get(f"/api/sessions/{session}/export", params={"format": "html"})
            assert found.status_code == 200
            page.append(found.text)

        tasks.start_soon(export)
        await soon(lambda: hub.deck.workers.busy == 1)
        assert (await owner.get("/healthz")).status_code == 200
        assert (await owner.get("/api/sessions")).status_code == 200
        assert not page
    assert page[0].count("[![](") == 38_000
    assert "<strong>all</strong> good" in page[0]
    assert page[0].endswith("</html>\n")


async def test_an_export_that_takes_too_long_goes_on_as_plain_text(
    hub: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "BATCH_SECONDS", 0.05)
    session = await hub.deck.have_session()
    await hub.deck.journal.append(session, [answer("**x** " + "[![](" * 3900)])
    async with hub.client(Role.VIEWER) as viewer:
        found = await viewer.get(f"/api/sessions/{session}/export", params={"format": "html"})
    assert "<div class=text>**x** [![](" in found.text
    assert found.text.endswith("</html>\n")


async def test_an_export_ends_with_its_client(hub: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    real = render.Renderer._render

    async def counted(self: render.Renderer, batch: list[str]) -> list[str]:
        begun.append(len(batch))
        return await real(self, batch)

    monkeypatch.setattr(render.Renderer, "_render", counted)
    session = await hub.deck.have_session()
    await hub.deck.journal.append(session, [answer("[![](" * 3900) for _ in range(60)])
    async with hub.client(Role.VIEWER) as viewer, hub.client() as owner:
        place = f"/api/sessions/{session}/export"
        async with viewer.stream("GET", place, params={"format": "html"}) as stream:
            await soon(lambda: len(begun) > 0)
            await stream.aclose()
        await soon(lambda: hub.deck.workers.busy == 0)
        assert (await owner.get("/healthz")).status_code == 200
        assert len(begun) < 60
        assert hub.deck.workers.busy == 0
