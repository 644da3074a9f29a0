"""Commands about what works by itself: loops and schedules. The hub decides who may do what."""

from __future__ import annotations

from typing import get_args
from urllib.parse import quote

from quarterdeck.client import HubClient
from quarterdeck.client.calls import get, pause_schedule, send
from quarterdeck.client.calls import schedules as list_schedules
from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.fronts.telegram.asks import Press, Rows
from quarterdeck.fronts.telegram.commands.base import run_button
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job
from quarterdeck.fronts.telegram.progress import money
from quarterdeck.fronts.telegram.text import Part, bold, code, join
from quarterdeck.loop.shapes import Condition, LoopAction, LoopList, LoopShape
from quarterdeck.protocol.schedules import ScheduleShape

LISTED = 10
TITLE = 60
LABEL = 25

_CONDITIONS: dict[Condition, str] = {
    "running": "🔵 running",
    "paused": "⏸ paused",
    "waiting": "🟠 waits for the account's limit",
    "stopped": "⚪ stopped",
    "cut_off": "🔴 no process runs it",
}
_DONE: dict[LoopAction, str] = {
    "pause": "⏸ {} pauses: the turn that runs ends, and no other begins.",
    "resume": "▶️ {} continues.",
    "stop": "🛑 {} stops: the turn that runs is interrupted.",
}
CONFIRM = "confirm"
"""The word of the button that asks before a loop is stopped."""


# --- loops ---------------------------------------------------------------------------------------


async def loops(job: Job, rest: str) -> None:
    """List the loops, or pause, resume or stop one."""
    hub = await job.hub()
    word, _, given = rest.partition(" ")
    given = given.strip()
    if not rest or rest == "all":
        _list_loops(job, await _loops(hub), most=3 * LISTED if rest else LISTED)
        return
    action: LoopAction | None = next((each for each in get_args(LoopAction) if each == word), None)
    if not given or (action is None and word != CONFIRM):
        raise UsageError("/loops, or /loops pause|resume|stop NAME")
    loop = _find_loop(await _loops(hub), given)
    title = bold(safe_line(loop.title, TITLE))
    if action is None:
        rows: Rows = ((_loop_button("🛑 Stop it", "stop", loop), run_button("Keep it", "/loops")),)
        job.say(join(["Stop ", title, "? The turn that runs is interrupted."]), rows)
        return
    path = f"/api/loops/{quote(loop.loop, safe='')}/{action}"
    await hub.call(send("POST", path, LoopShape))
    before, after = _DONE[action].split("{}")
    more = {"pause": ("resume", CONFIRM), "resume": ("pause", CONFIRM), "stop": ()}[action]
    job.say(join([before, title, after]), _loop_rows(loop, more))


async def _loops(hub: HubClient) -> tuple[LoopShape, ...]:
    return (await hub.call(get("/api/loops", LoopList))).loops


def _find_loop(found: tuple[LoopShape, ...], given: str) -> LoopShape:
    """The loop whose id begins so, or with exactly this title. Of several, the one that runs."""
    same = [one for one in found if one.loop.startswith(given.lower())]
    same = same or [one for one in found if one.title == given]
    if len(same) > 1:
        same = [one for one in same if one.state != "stopped"] or same
    if not same:
        raise NotFound("loop", given)
    if len(same) > 1:
        raise UsageError(f"{given!r} may be {len(same)} different loops: use the id")
    return same[0]


def _list_loops(job: Job, found: tuple[LoopShape, ...], *, most: int) -> None:
    if not found:
        job.say("There are no loops. «quarterdeck loop run» or the web app starts one.")
        return
    # Those that can be changed first; each part newest first.
    found = tuple(sorted(found, key=lambda loop: loop.state == "stopped"))
    pieces: list[Part | str] = ["Loops, newest first:"]
    rows: list[tuple[Press, ...]] = []
    for loop in found[:most]:
        pieces += ["\n", code(loop.loop[:8]), f" {_loop_line(job, loop)}"]
        if loop.state == "paused":
            rows += _loop_rows(loop, ("resume", CONFIRM))
        elif loop.state in {"running", "waiting"}:
            rows += _loop_rows(loop, ("pause", CONFIRM))
    if len(found) > most:
        pieces.append("\n…")
    job.say(join(pieces), tuple(rows))


def _loop_line(job: Job, loop: LoopShape) -> str:
    line = f"{_CONDITIONS[loop.state]} · {safe_line(loop.title, TITLE)}"
    line += f" · turn {loop.turns} of {loop.most_turns}"
    if loop.cost_usd:
        line += f" · {money(loop.cost_usd)}"
    if loop.state == "waiting" and loop.waiting_until is not None:
        line += f" · until {job.messenger.options.local(loop.waiting_until):%H:%M}"
    if loop.state == "stopped":
        line += f" · {'✅ ' if loop.done else ''}{safe_line(loop.text, 100)}"
    return line


_LABELS = {"pause": "⏸ Pause", "resume": "▶️ Resume", CONFIRM: "🛑 Stop"}


def _loop_rows(loop: LoopShape, words: tuple[str, ...]) -> Rows:
    if not words:
        return ()
    title = safe_line(loop.title, LABEL)
    return (tuple(_loop_button(f"{_LABELS[word]} {title}", word, loop) for word in words),)


def _loop_button(text: str, word: str, loop: LoopShape) -> Press:
    return run_button(text, f"/loops {word} {loop.loop}")


# --- schedules -----------------------------------------------------------------------------------


async def schedules(job: Job, rest: str) -> None:
    """List the schedules, or pause or resume one."""
    hub = await job.hub()
    word, _, name = rest.partition(" ")
    name = name.strip()
    if not rest:
        _list_schedules(job, (await hub.call(list_schedules())).schedules)
        return
    if word not in {"pause", "resume"} or not name:
        raise UsageError("/schedules, or /schedules pause|resume NAME")
    shape = await hub.call(pause_schedule(name, paused=word == "pause"))
    how = "is paused" if shape.paused else "continues"
    mark = "⏸" if shape.paused else "▶️"
    pieces: list[Part | str] = [f"{mark} ", bold(safe_line(shape.name, TITLE)), f" {how}."]
    job.say(join(pieces), (_schedule_row(shape),))


def _list_schedules(job: Job, found: tuple[ScheduleShape, ...]) -> None:
    if not found:
        job.say("There are no schedules. «quarterdeck schedule add» or the web app makes one.")
        return
    pieces: list[Part | str] = ["Schedules:"]
    for shape in found[: 2 * LISTED]:
        pieces += ["\n", bold(safe_line(shape.name, TITLE)), f" · {_schedule_line(job, shape)}"]
    if len(found) > 2 * LISTED:
        pieces.append("\n…")
    job.say(join(pieces), tuple(_schedule_row(shape) for shape in found[: 2 * LISTED]))


def _schedule_line(job: Job, shape: ScheduleShape) -> str:
    line = f"{shape.kind} {safe_line(shape.when, TITLE)}"
    if shape.paused:
        by = f" by {safe_line(shape.paused_by, 40)}" if shape.paused_by else ""
        return f"{line} · ⏸ paused{by}"
    if shape.next is not None:
        line += f" · next {job.messenger.options.local(shape.next / 1000):%Y-%m-%d %H:%M}"
    if shape.running:
        line += f" · 🔵 {shape.running} running"
    return line


def _schedule_row(shape: ScheduleShape) -> tuple[Press, ...]:
    word = "resume" if shape.paused else "pause"
    text = f"{_LABELS[word]} {safe_line(shape.name, LABEL)}"
    return (run_button(text, f"/schedules {word} {shape.name}"),)
