"""Measures questions in the browser: from the ask to its card, and from the click to its answer.

A runner starts the fake CLI, which asks for permission again and again. The time of the ask is that
of its event in the journal, and the page notes with the machine's clock when it has drawn the card
and when it has drawn the answer. Then another one asks for many permissions at once, and some of
them are answered in the inbox: an answer is settled there when its card is gone.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from msgspec import Raw
from playwright.async_api import Page

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.commands import CreateSession, StopSession
from quarterdeck.protocol.events import AskOpened
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.service.service import Service
from quarterdeck.testing import fake

ASKS = 30
SESSION = "asking"
WATCH = """() => {
  localStorage.setItem('quarterdeck.undo', '0');
  window.cards = {};
  const look = () => {
    for (const card of document.querySelectorAll('[role=log] [data-ask]')) {
      const known = (cards[card.dataset.ask] ??= {});
      const state = card.dataset.state === 'settled' ? 'settled' : 'open';
      if (known[state]) continue;
      known[state] = 1;
      requestAnimationFrame(() => { known[state] = Date.now(); });
    }
  };
  new MutationObserver(look).observe(document.body, {
    subtree: true, childList: true, attributes: true, attributeFilter: ['data-state'],
  });
  document.addEventListener('click', (event) => {
    const card = event.target.closest('[data-ask]');
    if (card) (cards[card.dataset.ask] ??= {}).clicked = Date.now();
  }, true);
}"""
MANY = 60
"""Questions that are open at the same time."""
MANY_SESSION = "asking-many"
WATCH_INBOX = """() => {
  window.answers = {};
  const look = () => {
    for (const [ask, one] of Object.entries(answers)) {
      const card = document.querySelector(`[data-ask="${CSS.escape(ask)}"]`);
      if (one.settled || (card && card.dataset.state !== 'settled')) continue;
      one.settled = 1;
      requestAnimationFrame(() => { one.settled = performance.now(); });
    }
  };
  new MutationObserver(look).observe(document.body, {
    subtree: true, childList: true, attributes: true, attributeFilter: ['data-state'],
  });
  document.addEventListener('click', (event) => {
    const card = event.target.closest('[data-ask]');
    if (card) answers[card.dataset.ask] = { clicked: performance.now() };
  }, true);
}"""
GONE = "count => Object.values(answers).filter((one) => one.settled > 1).length >= count"
ANSWERED = "count => Object.values(cards).filter((one) => one.settled > 1).length >= count"


def _script() -> list[fake.Step]:
    steps: list[fake.Step] = [fake.Initialize(), fake.Expect("user", timeout=120.0)]
    for number in range(ASKS):
        call = f"toolu_{number}"
        given: fake.Line = {"command": f"make step-{number}"}
        asks = fake.can_use_tool("Bash", given, f"ask-{number}")
        request = asks["request"]
        assert isinstance(request, dict)
        request["tool_use_id"] = call
        steps += [
            fake.say(fake.assistant(fake.tool_use("Bash", given, call)), asks),
            fake.Expect("control_response", timeout=120.0),
            fake.say(fake.tool_result("ok", call)),
        ]
    return [*steps, fake.say(fake.result()), fake.Serve()]


def fake_program(folder: Path, script: list[fake.Step]) -> str:
    """A program that plays this script as a CLI."""
    folder.mkdir()
    command = fake.fake_cli_command(script, folder=folder, lifetime=600.0)
    program = folder / "claude.sh"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    program.chmod(0o755)
    manifest = {"name": "@anthropic-ai/claude-code", "version": fake.NEWEST}
    (folder / "package.json").write_text(json.dumps(manifest))
    return str(program)


class Answered(Value):
    """Milliseconds, each of one question."""

    shown: list[float]
    """From the ask to its card."""
    settled: list[float]
    """From the click to the settled card, in the session."""
    in_inbox: list[float]
    """From the click until the card is gone, in the inbox with many others."""


def _many() -> list[fake.Step]:
    steps: list[fake.Step] = [fake.Initialize(), fake.Expect("user", timeout=120.0)]
    for number in range(MANY):
        call = f"toolu_{number}"
        given: fake.Line = {"command": f"make part-{number}"}
        asks = fake.can_use_tool("Bash", given, f"ask-{number}")
        request = asks["request"]
        assert isinstance(request, dict)
        request["tool_use_id"] = call
        steps.append(fake.say(fake.assistant(fake.tool_use("Bash", given, call)), asks))
    return [*steps, fake.Serve()]


async def measure_asks(folder: Path, deck: Service, page: Page) -> Answered:
    """Measure all of it; the sessions are ended."""
    shown, settled = await _in_session(folder, deck, page)
    return Answered(shown=shown, settled=settled, in_inbox=await _in_inbox(folder, deck, page))


async def _in_inbox(folder: Path, deck: Service, page: Page) -> list[float]:
    spec = SessionSpec(
        directory=str(folder / "work"),
        claude=fake_program(folder / "many-cli", _many()),
        env={"HOME": str(folder / "home")},
    )
    command = CreateSession(spec=spec, session=MANY_SESSION, prompt=Raw(b'"go"'), by="bench")
    await deck.hub.submit(command)
    await page.goto(f"{deck.address}/")
    cards = page.locator("main [data-ask][data-state=open]")
    await cards.nth(MANY - 1).wait_for(state="attached")
    await page.evaluate(WATCH_INBOX)
    for number in range(ASKS):
        await cards.first.get_by_role("button", name="Allow once").click()
        await page.wait_for_function(GONE, arg=number + 1)
    answers = await page.evaluate("answers")
    await deck.hub.submit(StopSession(session=MANY_SESSION))
    return [one["settled"] - one["clicked"] for one in answers.values()]


async def _in_session(folder: Path, deck: Service, page: Page) -> tuple[list[float], list[float]]:
    work = folder / "work"
    work.mkdir()
    spec = SessionSpec(
        directory=str(work),
        claude=fake_program(folder / "cli", _script()),
        env={"HOME": str(folder / "home")},
    )
    await page.goto(f"{deck.address}/")
    await page.evaluate("localStorage.setItem('quarterdeck.undo', '0')")
    await deck.hub.submit(
        CreateSession(spec=spec, session=SESSION, prompt=Raw(b'"go"'), by="bench")
    )
    await page.goto(f"{deck.address}/s/{SESSION}")
    await page.locator("[role=log]").wait_for()
    await page.evaluate(WATCH)
    allow = page.locator("[role=log] [data-state=open]").get_by_role("button", name="Allow once")
    for number in range(ASKS):
        await allow.click()
        await page.wait_for_function(ANSWERED, arg=number + 1)
    cards = await page.evaluate("cards")
    asked = {
        stored.event.ask: stored.at
        for stored in await deck.hub.events(SESSION, after=0, limit=1000)
        if isinstance(stored.event, AskOpened)
    }
    # The first one may have been there before the page looked.
    shown = [one["open"] - asked[ask] for ask, one in cards.items() if one.get("open", 0) > 1][1:]
    settled = [one["settled"] - one["clicked"] for one in cards.values() if "clicked" in one]
    await deck.hub.submit(StopSession(session=SESSION))
    return shown, settled
