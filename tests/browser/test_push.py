"""The worker that shows what is pushed, in a real browser.

The push itself is handed to the worker by the browser's own tools: to subscribe, a browser must
reach the push service of its maker, and the tests reach nothing but this machine. Nor can a test
click on what the system shows: it calls what the click calls. What the hub sends, and that a
browser's keys open it, is tested in `tests/fronts/push`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from playwright.async_api import Browser, CDPSession, expect

from support.apart import apart
from support.api_client import ApiSeat, Json
from support.bounds import SECONDS
from support.browser import WHOLE, Screen, chromium
from support.processes import offspring

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

ACTIVATED = """async () => {
  const { active } = await navigator.serviceWorker.ready;
  while (active.state !== "activated")
    await new Promise((done) => active.addEventListener("statechange", done, { once: true }));
}"""
"""The worker can be sent messages. `ready` alone is early: the worker may still be activating."""

SHOWN = """async (body) => {
  const worker = await navigator.serviceWorker.ready;
  for (let looks = 0; looks < 100; looks++) {
    const shown = await worker.getNotifications();
    if (shown.some((note) => note.body === body))
      return shown.map(({title, tag, data, actions}) => ({
        title, tag, url: data.url, actions: actions.map((one) => one.action)
      }));
    await new Promise((done) => setTimeout(done, 50));
  }
  return null;
}"""
"""What is shown, as soon as a notification with this body is; null if none is for 100 looks."""


@pytest.fixture(scope="module")
async def browser(shared: set[int]) -> AsyncIterator[Browser]:
    """A browser that knows of push."""
    before = offspring()
    async with apart(chromium(names=WHOLE)) as opened:
        shared |= {process.pid for process in offspring() - before}
        yield opened


async def registration(tools: CDPSession) -> str:
    """The id of the worker's registration, as the browser's tools have it."""
    found: list[str] = []
    known = anyio.Event()

    def updated(told: Json) -> None:
        found.extend(each["registrationId"] for each in told["registrations"])
        if found:
            known.set()

    tools.on("ServiceWorker.workerRegistrationUpdated", updated)
    await tools.send("ServiceWorker.enable")
    with anyio.fail_after(SECONDS):
        await known.wait()
    return found[0]


async def test_a_push_is_shown_and_another_with_its_tag_takes_its_place(
    seat: ApiSeat, lone_screen: Screen
) -> None:
    screen = lone_screen
    page = screen.page
    await page.context.grant_permissions(["notifications"], origin=seat.deck.address)
    await page.goto(seat.deck.address + "/settings")
    switch = page.get_by_label("Notify me on this device even when Quarterdeck is closed")
    # Not `check`: without a push service the box does not stay checked, and the page says why.
    await switch.click()
    await expect(
        page.get_by_text("The push service of this browser cannot be reached")
    ).to_be_visible()
    await expect(switch).not_to_be_checked()
    await screen.check_access()
    await screen.shot("settings-push")
    # The browser says why, too: it has no push service in a window like this one.
    assert [said for said in screen.complaints if "Push API" not in said] == []
    screen.complaints.clear()
    served = await page.request.get(seat.deck.address + "/sw.js")
    assert served.headers["cache-control"] == "no-cache"
    assert served.headers["content-type"].startswith("text/javascript")

    tools = await page.context.new_cdp_session(page)
    worker = await registration(tools)
    await page.evaluate(ACTIVATED)
    answers = {
        "Bash: make": ("", []),
        "Write: a file": (',"answer":"x.y"', ["deny"]),
        "Bash: make test": (',"answer":"x.y","allow":true', ["allow", "deny"]),
    }
    for body, (more, actions) in answers.items():
        note = (
            f'{{"code":"question","name":"one","body":"{body}","url":"/usage","tag":"ask"{more}}}'
        )
        shown = None
        with anyio.fail_after(SECONDS):
            while shown is None:
                # The browser's tools do not say when they could not start the worker, which
                # happens on a busy machine; a push service sends again, too.
                await tools.send(
                    "ServiceWorker.deliverPushMessage",
                    {"origin": seat.deck.address, "registrationId": worker, "data": note},
                )
                shown = await page.evaluate(SHOWN, body)
        told = {"title": "one waits for you", "tag": "ask", "url": "/usage", "actions": actions}
        assert shown == [told]
    [process] = page.context.service_workers
    # The hub takes the worker's request for one of our pages, and the token for a wrong one.
    await process.evaluate("answerWith('x.y', 'allow', '/usage')")
    refusal = "answer in Quarterdeck: this notification cannot answer any more"
    shown = await page.evaluate(SHOWN, refusal)
    assert shown is not None
    assert {each["title"] for each in shown} == {"one waits for you", "Not answered"}
    screen.complaints.clear()  # the browser tells of the refusal, which was wanted
    await process.evaluate("show('/usage')")
    await page.wait_for_url(seat.deck.address + "/usage")
    await expect(page.get_by_role("heading", name="Usage").first).to_be_visible()
    assert len(page.context.pages) == 1
