"""Measures the web app in a browser: row 17, or `python -m bench deck`.

A session of 10,000 events is in the journal of a hub that runs no agents, and Chromium opens it:
how long until it is painted (and how much of that its main thread computes, which depends less on
what else the machine does), how long frames take while one scrolls up through it, how much memory
it has then. After that text streams in, given to the hub at 200 deltas a second as a run would: the
tasks are measured that keep the page from answering, how much of the time its main thread is busy,
and whether anything moves that was in its place. It streams into a short text, and then into a
paragraph of 65 kB. At last a phone opens the session: a processor four times as slow, slow 4G, and
nothing in its cache; and questions are answered (`deck_asks`);
and changes are reviewed (`deck_changes`).

The bars are times and sizes, so that none of them fails the run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Raw
from playwright.async_api import CDPSession, Page, async_playwright

from bench import lines
from bench.deck_asks import MANY, Answered, measure_asks
from bench.deck_changes import Reviewed, measure_changes
from bench.deck_weight import packed_sizes
from bench.rounds import percentile
from bench.table import Bar, Kind, Measure, Sample
from quarterdeck.fronts.http import Listen, Role, built_web, login_link
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.protocol.events import (
    AnyEvent,
    PromptQueued,
    PromptSent,
    RunEnded,
    RunStarted,
    RunStarting,
    Said,
    SessionCreated,
    TurnEnded,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import Deltas
from quarterdeck.service.local_hub import RUNNER, end_runner
from quarterdeck.service.service import ServeOptions, Service, run_service

ROW = 17
EVENTS = 10_000
SESSION = "long"
DELTAS, SECONDS = 200, 10
FRAMES = 600
GOAL_LIST_KB = 150
GOAL_PAINT_MS = 500
GOAL_TASK_MS = 100
GOAL_DIFF_MS = 300
GOAL_ASK_MS = 50
GOAL_PHONE_MS = 4000
PARAGRAPH = 65_000
"""Letters of the paragraph that more text comes into."""
SLOW_4G = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
PROGRAMS = ("chromium", "chromium-browser")

TEXT = """## Step {number}

The parser keeps *two* kinds of state, and `fold` must see both:

- the lines that were read, of which there are {number}
- what they **mean**, which [the page](https://example.org) says

```python
def step(number: int) -> int:
    return number * {number}
```
"""

PAINTED = """
(() => {
  window.painted = new Promise((done) => {
    const look = () => {
      if (!document.querySelector('[role=log] [data-index]')) return requestAnimationFrame(look);
      requestAnimationFrame(() => done(performance.now()));
    };
    requestAnimationFrame(look);
  });
  window.tasks = [];
  window.shift = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) tasks.push(task.duration);
  }).observe({ type: 'longtask' });
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) shift += one.value;
  }).observe({ type: 'layout-shift' });
})();
"""
SCROLL = """
(frames) => new Promise((done) => {
  const box = document.querySelector('[role=log]');
  const times = [];
  let last = performance.now();
  const step = (now) => {
    times.push(now - last);
    last = now;
    box.scrollTop -= 240;
    if (times.length < frames) requestAnimationFrame(step);
    else done(times.slice(1));
  };
  requestAnimationFrame(step);
})
"""


class Streamed(msgspec.Struct, frozen=True):
    """What a stream of text did to the page."""

    tasks: list[float]
    """Those that took 50 ms and more, in ms."""
    busy: float
    script: float
    """Shares of the time."""
    shift: float


class Found(msgspec.Struct, frozen=True):
    """All that was measured, in ms where nothing else is said."""

    list_kb: float
    paints: list[float]
    busy: list[float]
    """The processor time of the main thread for each of them."""
    frames: list[float]
    memory_mb: float
    short: Streamed
    long: Streamed
    phones: list[float]
    asks: Answered
    reviewed: Reviewed


async def deck(folder: Path, rounds: int) -> list[Measure]:
    """Measure row 17."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    journal = await SqliteJournal.open(data / "journal.db")
    try:
        await journal.append(SESSION, list(_events()))
    finally:
        await journal.close()
    try:
        serving = ServeOptions(listen=Listen(port=0))
        async with run_service(data, serving) as service, _browser(folder, service) as page:
            return measures(await _measure(folder, service, page, rounds))
    finally:
        end_runner(data / RUNNER)


async def _measure(folder: Path, deck: Service, page: Page, rounds: int) -> Found:
    web = built_web()
    if web is None:
        raise SystemExit("the web app is not built: `make deck` builds it")
    tools = await page.context.new_cdp_session(page)
    await tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    paints: list[float] = []
    busy: list[float] = []
    for _ in range(rounds + 1):  # the first one fills the browser's cache
        paints.append(await _opened(page, deck))
        busy.append(1000 * (await _counted(tools))["TaskDuration"])
    frames = await page.evaluate(SCROLL, FRAMES)
    memory = (await _metrics(tools))["JSHeapUsedSize"]
    words = [word + " " for word in TEXT.format(number=7).split(" ")] + ["\n"]
    sentence = "the parser keeps two kinds of state and the fold must see *both* of them, "
    long = (sentence * (PARAGRAPH // len(sentence) + 1))[:PARAGRAPH]
    plain = [word + " " for word in sentence.split()]
    return Found(
        list_kb=sum(packed_sizes(web).values()) / 1000,
        paints=paints[1:],
        busy=busy[1:],
        frames=frames,
        memory_mb=memory / 1e6,
        short=await _streamed(page, deck, tools, "short", words, ""),
        long=await _streamed(page, deck, tools, "long", plain, long),
        phones=[await _on_phone(page, deck) for _ in range(rounds)],
        asks=await measure_asks(folder, deck, page),
        reviewed=await measure_changes(folder, deck, page, rounds),
    )


def measures(found: Found) -> list[Measure]:
    """The lines of row 17, with the bars that were set before."""
    review, asks = found.reviewed, found.asks
    files = "review of 200 files with 10,000 changed lines"
    return [
        _measured("code of the list, compressed", [found.list_kb], GOAL_LIST_KB, unit="kB"),
        _measured(
            f"session of {EVENTS:,} events, opened and painted",
            found.paints,
            GOAL_PAINT_MS,
            note=f"{statistics.median(found.busy):.0f} ms of the main thread's processor time; "
            f"{found.memory_mb:.0f} MB of the page's own objects after scrolling",
        ),
        _measured("frame while scrolling it, 95th percentile", [percentile(found.frames, 0.95)]),
        _stream("a short text", found.short),
        _stream("a paragraph of 65 kB", found.long),
        _measured("story painted on a slow phone", found.phones, GOAL_PHONE_MS),
        _measured("question to card", asks.shown, GOAL_ASK_MS),
        _measured("click to settled, in the session", asks.settled, GOAL_ASK_MS),
        _measured(
            f"click to settled, in the inbox with {MANY} questions", asks.in_inbox, GOAL_ASK_MS
        ),
        _measured(f"{files}, opened by its link", review.opened, GOAL_DIFF_MS),
        _measured(f"{files}, opened by its address", review.by_address, GOAL_DIFF_MS),
        _measured(f"{files}, the next file", review.next_file, GOAL_DIFF_MS),
        _measured("one file of 10,000 changed lines", review.long_file, GOAL_DIFF_MS),
        _measured("frame while scrolling that, 95th percentile", [percentile(review.frames, 0.95)]),
    ]


def _measured(
    work: str, values: list[float], most: float | None = None, *, unit: str = "ms", note: str = ""
) -> Measure:
    bar = Bar() if most is None else Bar(Kind.AT_MOST, most)
    return Measure(row=ROW, work=work, unit=unit, ours=Sample(tuple(values)), bar=bar, note=note)


def _stream(into: str, streamed: Streamed) -> Measure:
    """The longest task. Those of less than 50 ms are not told apart by a browser."""
    return _measured(
        f"longest task with {DELTAS} deltas/s into {into}",
        [max(streamed.tasks, default=0.0)],
        GOAL_TASK_MS,
        note=f"{len(streamed.tasks)} tasks of 50 ms and more in {SECONDS} s; main thread busy "
        f"{100 * streamed.busy:.0f} %, with scripts {100 * streamed.script:.0f} %; "
        f"layout shift {streamed.shift:.3g}",
    )


async def _on_phone(page: Page, deck: Service) -> float:
    """Open the session on a slow phone with nothing in its cache; gives the milliseconds."""
    browser = page.context.browser
    assert browser is not None
    state = await page.context.storage_state()
    context = await browser.new_context(
        storage_state=state, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True
    )
    try:
        phone = await context.new_page()
        await phone.add_init_script(PAINTED)
        tools = await context.new_cdp_session(phone)
        await tools.send("Network.enable")
        await tools.send("Network.emulateNetworkConditions", SLOW_4G)
        await tools.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        return await _opened(phone, deck)
    finally:
        await context.close()


async def _opened(page: Page, deck: Service) -> float:
    """Open the session in a fresh page; gives the milliseconds until it was painted."""
    await page.goto("about:blank")
    await page.goto(f"{deck.address}/s/{SESSION}")
    return float(await page.evaluate("window.painted"))


async def _metrics(tools: CDPSession) -> dict[str, float]:
    """What the browser counts of the page, in bytes and in seconds of its main thread."""
    await tools.send("HeapProfiler.collectGarbage")
    return await _counted(tools)


async def _counted(tools: CDPSession) -> dict[str, float]:
    found = await tools.send("Performance.getMetrics")
    return {row["name"]: float(row["value"]) for row in found["metrics"]}


async def _streamed(
    page: Page, deck: Service, tools: CDPSession, message: str, words: list[str], begun: str
) -> Streamed:
    """Have text stream in, after what has begun."""
    live = deck.hub._live  # noqa: SLF001 (where a run puts what its CLI has said of a message)
    if begun:
        live.add(Deltas(session=SESSION, message=message, text=begun))
    await _opened(page, deck)
    await page.wait_for_timeout(1000)
    before = await _metrics(tools)
    await page.evaluate("tasks.length = shift = 0")
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number in range(DELTAS * SECONDS):
        live.add(Deltas(session=SESSION, message=message, text=words[number % len(words)]))
        await asyncio.sleep(max(0.0, start + (number + 1) / DELTAS - loop.time()))
    await page.wait_for_timeout(500)
    took = loop.time() - start
    tasks, shift = await page.evaluate("[tasks, shift]")
    after = await _metrics(tools)
    busy, script = [
        (after[name] - before[name]) / took for name in ("TaskDuration", "ScriptDuration")
    ]
    return Streamed(tasks=tasks, busy=busy, script=script, shift=shift)


@asynccontextmanager
async def _browser(folder: Path, deck: Service) -> AsyncIterator[Page]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise SystemExit("no Chromium: `make test` installs it")
    home = folder / "home"
    home.mkdir()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-dev-shm-usage"],
            env={"HOME": str(home), "PATH": os.defpath},
        )
        try:
            page = await browser.new_page(viewport={"width": 1280, "height": 800})
            code = deck.access.make_code("bench", Role.OWNER)
            await page.goto(login_link(deck.address, code))
            await page.get_by_role("link", name="Quarterdeck").wait_for()
            await page.add_init_script(PAINTED)
            yield page
        finally:
            await browser.close()


def _events() -> Iterator[AnyEvent]:
    """Turns of a prompt, an answer and two calls, until there are enough."""
    yield SessionCreated(spec=SessionSpec(directory="/work", name=SESSION), by="bench")
    yield RunStarting(run="r", machine="local")
    yield RunStarted(run="r", version="2.1.325", directory="/work")
    number = 0
    for turn in range((EVENTS - 4) // 8):
        prompt = f"p{turn}"
        yield PromptQueued(prompt=prompt, content=Raw(b'"go on"'), by="bench")
        yield PromptSent(prompt=prompt, run="r")
        said = [lines.text_line(TEXT.format(number=turn))]
        for call in range(2):
            use = f"toolu_{turn}_{call}"
            said += [
                line.replace("toolu_01", use)
                for line in (lines.tool_line(f"make step-{turn}"), lines.result_line("ok\n" * 5))
            ]
        for line in said:
            number += 1
            yield Said(run="r", number=number, line=Raw(line.encode()))
        yield TurnEnded(prompts=(prompt,), failed=False, outcome="success", cost_usd=0.01)
    yield RunEnded(run="r", reason="the bench made it", clean=True)
