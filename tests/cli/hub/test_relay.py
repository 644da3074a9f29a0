"""`quarterdeck relay`: the hub with the relay as a process, and killed in the middle of a turn."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import anyio
import httpx
import pytest
from websockets.exceptions import InvalidStatus

from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.testing import Gate, RealCli, ScriptedModel, isolated_env, play, reply
from support.bounds import SECONDS
from support.frontends import Frontend, frontend
from support.pages import page
from support.scenes import bash
from support.served_deck import ServedDeck, free_port, until_true

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

ORIGIN = "http://localhost:5173"
PAGE = page("docs/how-to/use-the-relay.md")


async def serve_relay(deck: ServedDeck, *arguments: str) -> str:
    """Start the hub with the relay; gives what it said until it was there."""
    deck.command.env["QUARTERDECK_SERVER_PORT"] = str(deck.port)
    deck.hub = await deck.command.start("relay", *arguments)
    deck.said = ""
    await deck.hear("Ctrl-C stops the hub")
    deck.adopt()
    return deck.said


def messages_of(front: Frontend) -> list[str]:
    """The lines of the CLI that are journalled."""
    kinds = ("system", "assistant", "user", "result")
    return [
        message
        for message, line in zip(front.messages, front.lines, strict=True)
        if line["type"] in kinds
    ]


@pytest.mark.parametrize("dials", [False, True], ids=["runner-2.1.325", "dialled-2.1.120"])
async def test_a_hub_that_is_killed_in_mid_turn_loses_no_line(
    deck: ServedDeck, clis: dict[str, RealCli], model: ScriptedModel, dials: bool
) -> None:
    port = free_port()
    said = await serve_relay(deck, "--port", str(port), "--allow-origin", ORIGIN)
    url = f"ws://127.0.0.1:{port}/ws"
    assert f"The relay is at {url} for frontends" in said
    token = (await deck("token", "--role", "owner", "--name", "ada")).out.strip()
    await until_true(lambda: bool(deck.client.machines()))
    async with (
        dialling(deck, clis["2.1.120"], model, port) if dials else nullcontext(),
        frontend(f"{url}?positions=1", token=token) as before,
    ):
        if not dials:
            await deck.new()
        session = (await before.has("status"))["session"]
        await deck.until_state(session, "idle")
        await before.prompt(play(bash("echo begun"), reply("half ", Gate("middle"), "a word")))
        await model.wait_at_gate("middle")
        await before.has("user")
        assert deck.hub is not None
        deck.hub.kill()
        await deck.ends()
        await before.socket.wait_closed()
        position = before.of("position")[-1]["position"]
        model.release("middle")  # the agent goes on: nobody hears it now

        await serve_relay(deck, "--port", str(port))
        async with frontend(f"{url}?positions=1&after={position}", token=token) as after:
            result = await after.has("result")
            assert result["result"] == "a word"
            async with frontend(f"{url}?session={session}", token=token) as whole:

                def told() -> list[str]:
                    """What came after the last position came twice, and is known by its bytes."""
                    return list(dict.fromkeys(messages_of(before) + messages_of(after)))

                await until_true(lambda: bool(whole.of("result")) and told() == messages_of(whole))
                assert "claude code disconnected" not in whole.statuses
        await deck("stop", session)


async def test_a_cli_up_to_2_1_62_that_dialled_loses_only_what_it_says_while_the_hub_is_away(
    deck: ServedDeck, clis: dict[str, RealCli], model: ScriptedModel
) -> None:
    """Such a CLI repeats nothing: the hub is killed twice, and misses no line but those."""
    port = free_port()
    await serve_relay(deck, "--port", str(port), "--no-runner")
    url = f"ws://127.0.0.1:{port}/ws"
    token = (await deck("token", "--role", "owner", "--name", "ada")).out.strip()
    async with dialling(deck, clis["2.1.62"], model, port):
        async with frontend(url, token=token) as before:
            session = (await before.has("status"))["session"]
            await deck.until_state(session, "idle")
            await before.prompt(play(bash("echo begun"), reply("half ", Gate("one"), "a word")))
            await model.wait_at_gate("one")
            await before.has("user")
            await killed(deck, before)
        # The CLI is there again before it says more: nothing is lost.
        await serve_relay(deck, "--port", str(port), "--no-runner")
        async with frontend(f"{url}?session={session}", token=token) as again:
            await linked(deck, again, session)
            model.release("one")
            assert (await again.has("result"))["result"] == "a word"
            assert messages_of(again)[: len(messages_of(before))] == messages_of(before)
            await deck.until_state(session, "idle")
            await again.prompt(play(reply("more ", Gate("two"), "unheard")))
            await model.wait_at_gate("two")
            await killed(deck, again)
        # It says the rest of its turn to nobody: that is gone, and told.
        model.release("two")
        await until_true(lambda: '"text":"unheard"' in transcripts_of(deck))
        await serve_relay(deck, "--port", str(port), "--no-runner")
        async with frontend(f"{url}?session={session}", token=token) as last:
            await linked(deck, last, session)
            await last.prompt(play("here again"))
            await last.request("stop", "interrupt")  # the hub cannot know that the turn is over
            assert (await last.has("result", 2))["result"] == "here again"
            assert messages_of(last)[: len(messages_of(again))] == messages_of(again)
            assert not [line for line in last.of("assistant") if "unheard" in str(line)]
        log = (await deck("log", session)).out
        assert "some output was lost" in log.partition("unheard")[2], log
        assert "the end of the turn was lost while the CLI was away" in log, log


async def killed(deck: ServedDeck, front: Frontend) -> None:
    """Kill the hub, and wait until its frontend knows."""
    assert deck.hub is not None
    deck.hub.kill()
    await deck.ends()
    await front.socket.wait_closed()


async def linked(deck: ServedDeck, front: Frontend, session: str) -> None:
    """Wait until the CLI has dialled again, and has answered: before, it loses what it says."""
    await deck.until(session, lambda shape: shape.state != "disconnected")
    answer = await front.request("back", "mcp_status")
    assert answer["subtype"] == "success"


def transcripts_of(deck: ServedDeck) -> str:
    """What the CLI has written to its transcripts."""
    files = deck.command.home.glob(".claude/projects/*/*.jsonl")
    return "".join(file.read_text() for file in files)


async def test_the_port_of_the_relay_has_nothing_but_the_relay(deck: ServedDeck) -> None:
    port = free_port()
    said = await serve_relay(
        deck, "--port", str(port), "--allow-origin", ORIGIN, "--no-runner", "--no-login-link"
    )
    assert "login#" not in said
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS) as http:
        for path in ("/", "/api/sessions", "/healthz", "/metrics", "/login", "/ws"):
            assert (await http.get(path)).status_code == 404, path
    for path, status in (("/ws", 401), ("/", 401), ("/api/stream", 404), ("/runner", 404)):
        with pytest.raises(InvalidStatus) as refused:
            async with frontend(f"ws://127.0.0.1:{port}{path}"):
                pass
        assert refused.value.response.status_code == status, path
    for base in (f"ws://127.0.0.1:{port}", f"ws://127.0.0.1:{deck.port}"):
        async with frontend(f"{base}/ws", origin=ORIGIN) as guest:
            await guest.prompt("may I?")
            assert (await guest.error())["code"] == "forbidden"
    # A page in a browser cannot dial as a CLI, and a probe makes no session.
    with pytest.raises(InvalidStatus) as refused:
        async with frontend(f"ws://127.0.0.1:{port}/", origin=ORIGIN):
            pass
    assert refused.value.response.status_code == 403
    assert (await deck("ps", "--json")).out.strip() in {"[]", ""}

    again = await deck("relay", code=1)
    assert "set `enabled = true`" in again.err


async def answer_of(url: str, **options: Any) -> int:
    """The status with which a frontend is let in (101) or refused."""
    try:
        async with frontend(url, **options):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


async def test_what_the_how_to_says_is_so(deck: ServedDeck) -> None:
    """A running hub gets a relay by its configuration; the page's commands do the rest."""
    commands = [block.code.strip() for block in PAGE.blocks("sh")]
    enabled, allowed = (block.code for block in PAGE.blocks("toml"))
    assert [each.split()[1] for each in commands] == ["relay", "token", "new", "token"]
    deck.command.env["QUARTERDECK_SERVER_PORT"] = str(deck.port)
    await deck.serve()
    url = f"ws://127.0.0.1:{deck.port}/ws"
    assert await answer_of(url) == 404
    file = deck.data / "quarterdeck.toml"
    file.write_text(enabled)
    with anyio.fail_after(SECONDS):
        while await answer_of(url) == 404:  # noqa: ASYNC110 - another process reads the file
            await anyio.sleep(0.05)
    assert await answer_of(url) == 401
    token = (await deck(*shlex.split(commands[1])[1:])).out.strip()
    assert token.startswith("qd_")
    assert await answer_of(url, token=token) == 101
    assert await answer_of(url, origin=ORIGIN, offered_token=token) == 403
    file.write_text(allowed)
    with anyio.fail_after(SECONDS):
        while await answer_of(url, origin=ORIGIN) == 403:  # noqa: ASYNC110 - as above
            await anyio.sleep(0.05)
    assert await answer_of(url, origin=ORIGIN, offered_token=token) == 101
    assert await answer_of(url, origin=ORIGIN) == 101
    await until_true(lambda: bool(deck.client.machines()))
    async with frontend(url, token=token) as front:
        made = await deck(*shlex.split(commands[2])[1:], "--api-billing")
        began = await front.status("claude code connected")
        assert began["session"] == made.out.strip()
        await front.has("result")
    dialling = (await deck(*shlex.split(commands[3])[1:])).out
    assert f"--sdk-url=ws://127.0.0.1:{deck.port}/" in dialling
    doctor = await deck("doctor")
    assert "warning  relay" in doctor.out


@asynccontextmanager
async def dialling(
    deck: ServedDeck, cli: RealCli, model: ScriptedModel, port: int
) -> AsyncIterator[None]:
    """A CLI that dials the port of the relay, by the command line that the hub prints."""
    words = shlex.split((await deck("token", "--cli")).out)
    name, _, secret = words[1].partition("=")
    assert (words[0], name) == ("env", "CLAUDE_CODE_SESSION_ACCESS_TOKEN")
    own = f"--sdk-url=ws://127.0.0.1:{port}/"
    arguments = [own if word.startswith("--sdk-url=") else word for word in words[3:]]
    env = isolated_env(deck.command.home, model.url, **{name: secret})
    link = await SubprocessLink.start(cli.command, arguments, cwd=deck.command.work, env=env)
    async with link:
        yield
