"""A frontend of the relay in a browser: a page that knows the reference and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import anyio
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from quarterdeck.config import Settings
from quarterdeck.config.settings import RelaySettings
from quarterdeck.fronts.http import Role
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.testing import Text, play
from support.api_client import ApiSeat
from support.bounds import SECONDS
from support.browser import ROOT
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

PAGE = ROOT / "tests" / "fixtures" / "relay_frontend.html"


@contextlib.asynccontextmanager
async def serving_the_page() -> AsyncIterator[str]:
    """Serve the page from an origin of its own on loopback; gives the origin."""
    body = PAGE.read_bytes()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n"

    async def answer(client: anyio.abc.SocketStream) -> None:
        with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            async with client:
                await client.receive()
                await client.send(head + b"content-length: %d\r\n\r\n" % len(body) + body)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, background_tasks() as tasks:
        tasks.start_soon(listener.serve, answer)
        yield f"http://127.0.0.1:{port}"


@contextlib.asynccontextmanager
async def frontend_page(
    browser: Browser, seat: ApiSeat, origin: str, token: str = ""
) -> AsyncIterator[Page]:
    """The frontend in a browser. The relay is on the second port that it tries."""
    port = int(seat.deck.address.rpartition(":")[2])
    context = await browser.new_context()
    page = await context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    raised: list[str] = []
    page.on("pageerror", lambda error: raised.append(str(error)))
    await page.goto(f"{origin}/#{port - 1}-{port}{',' + token if token else ''}")
    await expect(page.locator("#link")).to_contain_text(f"connected to {port}")
    yield page
    await context.close()
    assert raised == []


def switch(seat: ApiSeat, origin: str, *, enabled: bool = True, role: str = "operator") -> None:
    """Turn the relay on or off for pages of this origin."""
    relay = RelaySettings(
        enabled=enabled,
        allow_origins=(origin,),
        role="operator" if role == "operator" else "viewer",
    )
    seat.deck.take(Settings(relay=relay))


async def prompt(page: Page, text: str) -> None:
    await page.get_by_label("Prompt").fill(text)
    await page.get_by_role("button", name="Send").click()


def shown(page: Page, kind: str) -> Locator:
    """The rows of a kind in the tab that is shown."""
    return page.locator(f"main section:not([hidden]) p.{kind}")


async def test_a_frontend_that_knows_only_the_reference_works(
    browser: Browser, seat: ApiSeat
) -> None:
    async with serving_the_page() as origin:
        switch(seat, origin)
        async with frontend_page(browser, seat, origin) as page:
            session = await seat.create()
            await expect(page.locator("#link")).to_contain_text("claude code connected")
            await seat.state(session, "idle")
            await two_turns(seat, session, page)
            await permissions(seat, session, page)
            await tabs(seat, session, page)
            await expect(page.locator("#errors")).to_be_empty()


async def two_turns(seat: ApiSeat, session: str, page: Page) -> None:
    """Text while it is written, and the whole of another answer."""
    await prompt(page, play(Text("word ", times=10_000, delay=0.02)))
    await expect(shown(page, "live")).to_contain_text("word word")
    await seat.ada.post(f"sessions/{session}/interrupt")
    await expect(shown(page, "result")).to_have_count(1)
    await prompt(page, play("the end"))
    await expect(shown(page, "assistant").last).to_have_text("the end")
    await expect(shown(page, "live")).to_have_count(0)
    await expect(shown(page, "result")).to_have_count(2)
    await expect(page.locator("#tabs button")).to_have_count(1)


async def permissions(seat: ApiSeat, session: str, page: Page) -> None:
    """The page allows and denies; and what the web app answers first is withdrawn here."""
    for number, choice in enumerate(("allow", "deny")):
        await prompt(page, play(bash(f"touch {choice}"), "done"))
        await expect(shown(page, "ask")).to_contain_text(f"touch {choice}")
        await seat.ask(session)
        await shown(page, "ask").get_by_role("button", name=choice).click()
        await expect(shown(page, "result")).to_have_count(3 + number)
        assert (seat.work / choice).exists() is (choice == "allow")
    await prompt(page, play(bash("touch elsewhere"), "done"))
    await expect(shown(page, "ask")).to_have_count(1)
    await seat.answer(await seat.ask(session), "allow")
    await expect(shown(page, "ask")).to_have_count(0)
    await expect(shown(page, "result")).to_have_count(5)
    verdicts = [by for by, _ in await seat.verdicts(session, "Bash")]
    assert verdicts[0].startswith("relay http://127.0.0.1:")
    assert verdicts[2] == "ada"


async def tabs(seat: ApiSeat, session: str, page: Page) -> None:
    """Another conversation, another CLI and another connection each get a tab of their own."""
    buttons = page.locator("#tabs button")
    await prompt(page, "/clear")
    await prompt(page, play("all new"))
    await expect(shown(page, "assistant")).to_have_text(["all new"])
    await expect(page.locator("#link")).to_contain_text("claude code session changed")
    await expect(buttons).to_have_text(["tab 1: connected", "tab 2: connected"])

    await seat.stop(session)
    await expect(buttons.last).to_have_text("tab 2: disconnected")
    await seat.ada.post(f"sessions/{session}/resume")
    await seat.state(session, "idle")
    await seat.send(session, "and again")
    await expect(shown(page, "assistant")).to_have_text(["and again"])
    await expect(buttons).to_have_count(3)

    # The relay goes away and comes back: the page continues where it was.
    origin = page.url.partition("/#")[0]
    switch(seat, origin, enabled=False)
    await expect(buttons.last).to_have_text("tab 3: reconnecting")
    await seat.turn(session, "while it was away")
    switch(seat, origin)
    await expect(shown(page, "assistant")).to_have_text(["while it was away"])
    await expect(buttons).to_have_count(4)


async def test_a_page_that_may_only_read_and_one_with_a_token(
    browser: Browser, seat: ApiSeat
) -> None:
    session = await seat.create("said before")
    await seat.turn_ended(session)
    async with serving_the_page() as origin:
        switch(seat, origin, role="viewer")
        async with frontend_page(browser, seat, origin) as page:
            await expect(shown(page, "assistant")).to_have_text(["said before"])
            await prompt(page, "may I?")
            await expect(page.locator("#errors")).to_contain_text("forbidden at line 1 of 1")
        token = seat.deck.access.make_token("a page", Role.OPERATOR)
        async with frontend_page(browser, seat, origin, token) as page:
            await expect(shown(page, "assistant")).to_have_text(["said before"])
            await prompt(page, play("I may"))
            await expect(shown(page, "assistant").last).to_have_text("I may")
    await seat.stop(session)
