"""Pull the plug: the page comes back with nothing missing, nothing doubled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from quarterdeck.testing import RealCli, ScriptedModel
from quarterdeck.testing.script import play
from support.browser import Screen, browsing
from support.clis import VERSIONS
from support.plug import Plug, plugged
from support.processes import Processes

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

TALL = {"width": 1000, "height": 3000}
"""So that the whole story is in sight."""


@pytest.fixture
async def plug(
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Plug]:
    """The service, behind a network that can be cut."""
    async with plugged(clis[VERSIONS[-1]], model, tmp_path, processes, monkeypatch) as made:
        yield made


@pytest.fixture
async def screen(browser: Browser, plug: Plug) -> AsyncIterator[Screen]:
    """A browser before it, whose clock can be put forward."""
    async with browsing(browser, plug.deck, TALL) as opened:
        await opened.page.clock.install()
        await opened.login()
        yield opened
        # The page looks for the branch of a folder, and its machine may be away.
        opened.complaints[:] = [
            one for one in opened.complaints if "409" not in one or "/files)" not in one
        ]


def banner(screen: Screen) -> Locator:
    """What the page says while the hub is away."""
    # A notice about a request that failed may say the same for a moment.
    return screen.page.locator("p.banners-banner", has_text="The hub cannot be reached.")


async def check(plug: Plug, screen: Screen, session: str, *said: str) -> None:
    """The page shows what the journal has, each once and in order; and it is this."""
    await plug.turns(session, len(said))
    await screen.hears(said[-1])
    shown = await screen.story.locator(".markdown-prose").all_inner_texts()
    assert [text.strip() for text in shown] == list(said)
    events = await plug.events(session)
    prompts = [one["content"] for one in events if one["kind"] == "prompt.queued"]
    assert len(prompts) == len(said)
    assert await screen.story.locator("article.entry-prompt p").all_inner_texts() == prompts
    await expect(banner(screen)).to_have_count(0)
    unsent = screen.page.get_by_label("Unsent prompts")
    await expect(unsent).to_have_count(0)


async def test_a_hub_that_was_restarted_is_found_again(plug: Plug, screen: Screen) -> None:
    session = await plug.create()
    await screen.open(session)
    await screen.say(play("before it"))
    await screen.hears("before it")

    await plug.stop()
    await expect(banner(screen)).to_be_visible()
    await screen.shot("offline")
    await screen.say(play("typed while it was away"))
    kept = screen.page.get_by_label("Unsent prompts")
    await expect(kept).to_contain_text("typed while it was away")

    await plug.start()
    await check(plug, screen, session, "before it", "typed while it was away")
    await plug.send(session, "after it")
    await check(plug, screen, session, "before it", "typed while it was away", "after it")


async def test_an_idle_agent_is_shown_as_idle_when_its_runner_is_back(
    plug: Plug, screen: Screen
) -> None:
    session = await plug.create()
    await screen.open(session)
    await screen.say(play("before it"))
    state = screen.page.locator(".session-header-bar [data-tone]")
    await screen.hears("before it")
    await expect(state).to_have_text("idle")

    await plug.stop()
    await expect(banner(screen)).to_be_visible()
    await plug.start()
    await expect(
        screen.story.locator("[data-code]", has_text="Connection restored.")
    ).to_be_visible()
    await expect(state).to_have_text("idle")
    await plug.send(session, "after it")
    await screen.hears("after it")
    await expect(state).to_have_text("idle")


async def test_a_prompt_outlives_the_page_that_it_was_typed_in(plug: Plug, screen: Screen) -> None:
    session = await plug.create()
    await screen.open(session)
    await plug.stop()
    await expect(banner(screen)).to_be_visible()
    await screen.say(play("kept"))
    await screen.say(play("thought better of"))
    kept = screen.page.get_by_label("Unsent prompts")
    dropped = kept.get_by_role("listitem").filter(has_text="thought better of")
    await dropped.get_by_role("button", name="Discard").click()
    await screen.composer.fill("half a thou")
    await plug.start()
    await screen.page.reload()
    await check(plug, screen, session, "kept")
    await expect(screen.composer).to_have_value("half a thou")


async def test_a_network_that_was_cut_and_a_laptop_that_slept(plug: Plug, screen: Screen) -> None:
    session = await plug.create()
    await screen.open(session)
    await plug.send(session, "one")
    await screen.hears("one")

    plug.relay.refusing = True
    plug.relay.cut()
    await expect(banner(screen)).to_be_visible()
    await screen.page.context.set_offline(True)
    await plug.send(session, "two, unheard")
    await plug.turns(session, 2)
    plug.relay.refusing = False
    await screen.page.context.set_offline(False)
    await check(plug, screen, session, "one", "two, unheard")

    plug.relay.stall()  # nothing tells a sleeping machine that its connections are dead
    await plug.send(session, "three, asleep")
    await plug.turns(session, 3)
    await screen.page.clock.fast_forward("08:00:00")
    await expect(banner(screen)).to_be_visible()
    plug.relay.cut()
    plug.relay.flow()
    await check(plug, screen, session, "one", "two, unheard", "three, asleep")
