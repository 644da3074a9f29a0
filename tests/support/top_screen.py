"""`quarterdeck top` under a test: its keys, and what a person sees of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from rich.cells import cell_len
from textual.pilot import Pilot

from quarterdeck.cli.top.app import Top
from quarterdeck.cli.top.ask_card import AskCard
from quarterdeck.cli.top.hands import SETTLE_SECONDS
from quarterdeck.client.calls import HubAddress
from quarterdeck.domain.errors import LinkRefused
from quarterdeck.service.local_hub import live_hub, own_token
from quarterdeck.testing import fake
from quarterdeck.testing.fake import fake_cli_command
from support.bounds import SECONDS
from support.served_deck import ServedDeck

GLANCE = 0.02


class _Clock:
    """How fast a person types, whatever the machine does meanwhile."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class TopScreen:
    """A person at the screen."""

    def __init__(self, app: Top, pilot: Pilot[int], settle: float, clock: _Clock) -> None:
        self._settle = settle
        self._clock = clock
        self.app = app
        self.pilot = pilot

    @property
    def rows(self) -> str:
        """What a person sees."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    def fits(self, size: tuple[int, int]) -> bool:
        """Whether the screen has this size, and nothing is wider."""
        rows = self.rows.split("\n")
        return len(rows) == size[1] and all(cell_len(row) <= size[0] for row in rows)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something has become true."""
        with anyio.move_on_after(SECONDS):
            while not condition():
                await self.pilot.pause(GLANCE)
            return
        raise AssertionError(f"it did not happen:\n{self.rows}")

    async def see(self, text: str) -> str:
        """Wait for a text; gives all that is on the screen."""
        await self.until(lambda: text in self.rows)
        return self.rows

    async def press(self, *keys: str) -> None:
        """Press keys, one right after the other."""
        await self.pilot.press(*keys)

    async def type(self, text: str, gap: float) -> None:
        """Type as people do, with so many seconds between the keys by the clock of the screen."""
        for character in text:
            await self.pilot.press({" ": "space", "\n": "enter"}.get(character, character))
            self._clock.now += gap

    @property
    def card(self) -> AskCard:
        """The question that has the focus."""
        focused = self.app.focused
        assert isinstance(focused, AskCard), focused
        return focused

    async def rest(self) -> None:
        """Wait until the focused question takes keys."""

        def ready() -> bool:
            self._clock.now += self._settle / 4
            return self.card.ready

        await self.until(ready)

    async def quiet(self) -> None:
        """Wait as long as an answer would take to be sent, and the hub to take it."""
        await anyio.sleep(1.5 * self._settle)
        await self.pilot.pause()


@asynccontextmanager
async def top_screen(
    deck: ServedDeck, size: tuple[int, int], *, settle: float = SETTLE_SECONDS
) -> AsyncIterator[TopScreen]:
    """Run `top` on a screen of so many columns and rows, against the hub of the deck.

    Time passes for its keys only when the test types or rests. An answer that is held is sent after
    `settle` real seconds: it is longer where a test presses another key before that.
    """

    async def where() -> HubAddress:
        state = live_hub(deck.data)
        if state is None:
            raise LinkRefused("no hub runs")
        return HubAddress(address=state.address, token=own_token(deck.data))

    clock = _Clock()
    app = Top(where, settle=settle, clock=clock)
    async with app.run_test(size=size) as pilot:
        yield TopScreen(app, pilot, settle, clock)


async def play_session(deck: ServedDeck, name: str, *steps: fake.Step) -> str:
    """Start a session with a scripted CLI of its own; gives its id."""
    folder = deck.command.home / f"cli-{len(list(deck.command.home.iterdir()))}"
    folder.mkdir()
    command = fake_cli_command((fake.Initialize(), *steps), folder=folder)
    script = folder / "claude"
    quoted = " ".join(f"'{part}'" for part in command)
    script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    script.chmod(0o755)
    work = str(deck.command.work)
    done = await deck("new", "--claude", str(script), "--name", name, work, "hello")
    return done.out.strip()


def asking(tool: str, *, answers: int = 1, **given: object) -> tuple[fake.Step, ...]:
    """A CLI that asks for a permission, so many times, and then echoes."""
    expect = fake.Expect("control_response", timeout=SECONDS, polite=True)
    steps: list[fake.Step] = [fake.Expect("user", timeout=SECONDS, polite=True)]
    for number in range(answers):
        steps += [fake.say(fake.can_use_tool(tool, given, f"ask-{number}")), expect]
    over = fake.say(fake.assistant("That was **all**."), fake.result("x"))
    return (*steps, over, fake.Serve())
