"""A login is bound to the page that made it: what other servers on the host get opens nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from playwright.async_api import expect
from websockets import InvalidStatus

from support.bounds import SECONDS
from support.browser import PAGE_KEY as KEY
from support.browser import Screen
from support.web_sockets import connect


@pytest.fixture
def screen(lone_screen: Screen) -> Screen:
    """A login that no other test has."""
    return lone_screen


@contextmanager
def other_server() -> Iterator[tuple[str, list[str]]]:
    """A server on another port of the hub's host, as an agent may have started it."""
    cookies: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>app</title><link rel=icon href=data:,>")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", cookies
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()


async def test_another_server_on_the_host_gets_the_cookie_and_nothing_by_it(
    screen: Screen,
) -> None:
    page, address = screen.page, screen.deck.address
    with other_server() as (other, cookies):
        await page.goto(f"{other}/app")
        assert await page.evaluate(f"localStorage.getItem('{KEY}')") is None
    (cookie,) = (each for each in cookies if "quarterdeck_" in each)  # browsers know no ports here
    headers = {"cookie": cookie, "origin": address}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=SECONDS) as client:
        for method, path in (("GET", "/api/whoami"), ("GET", "/api/sessions")):
            answer = await client.request(method, path)
            assert (answer.status_code, answer.json()["code"]) == (401, "page_key_missing")
        made = await client.post("/api/tokens", json={"name": "x", "role": "owner"})
        assert made.status_code == 401
    url = f"ws{address.removeprefix('http')}/api/stream"
    with pytest.raises(InvalidStatus) as refused:
        await connect(url, additional_headers=headers, proxy=None)
    assert refused.value.response.status_code == 401

    # The person's own page goes on.
    await page.goto(address)
    await expect(page.get_by_role("link", name="Quarterdeck")).to_be_visible()
    await expect(page.locator(".banners-banner")).to_have_count(0)


async def test_a_page_without_its_key_says_that_nobody_is_logged_in(screen: Screen) -> None:
    page = screen.page
    await page.evaluate(f"localStorage.removeItem('{KEY}')")
    await page.goto(screen.deck.address)
    await expect(page.get_by_role("heading", name="You are not logged in")).to_be_visible()
    await expect(page.get_by_role("link", name="Enter a login code")).to_be_visible()
    screen.complaints.clear()  # the browser tells of the 401
    await screen.login()


async def test_a_logout_forgets_both_halves(screen: Screen) -> None:
    page = screen.page
    # A request that is still on its way would be refused, and the browser would log that.
    await page.goto(f"{screen.deck.address}/settings", wait_until="networkidle")
    await page.get_by_role("button", name="Log out").click()
    await page.wait_for_url("**/login")
    assert await page.evaluate(f"localStorage.getItem('{KEY}')") is None
    assert not [each for each in await page.context.cookies() if each.get("value")]
