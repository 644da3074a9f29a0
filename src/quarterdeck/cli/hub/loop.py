"""`quarterdeck loop`: loops of a hub, and the list, the reports and the control of local ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, assert_never

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.target import Target, connect
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_json, print_line
from quarterdeck.cli.terminal.text import plain
from quarterdeck.client import calls
from quarterdeck.client.blocking_client import BlockingClient
from quarterdeck.domain.errors import Conflict, LinkRefused, NotFound
from quarterdeck.domain.ids import is_id, new_id
from quarterdeck.loop.report import LoopReport, as_markdown, pull_request_text, report_of
from quarterdeck.loop.shapes import (
    LoopAction,
    LoopList,
    LoopShape,
    LoopText,
    NewLoop,
    request_of,
    shape_of,
)
from quarterdeck.loop.spec import EXIT_CODES, GOALS, LoopSpec
from quarterdeck.loop.store import LoopStore
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.local_hub import person_here

if TYPE_CHECKING:
    from quarterdeck.cli.local.loop import AgentSettings

LOOK_SECONDS = 1.0
LOST_SECONDS = 60.0
"""How long a hub may be away before the command gives up to follow a loop."""


def run_in_hub(
    spec: LoopSpec,
    settings: AgentSettings,
    target: Target,
    *,
    detach: bool,
    json_output: bool,
    zero: bool,
) -> int:
    """Start a loop in the hub, and follow it to its end; returns the exit code."""
    client = connect(target)
    session = settings.session(spec.directory, here=target.is_here)
    new = NewLoop(spec=spec, session=session, loop=new_id())
    shape = client.call(calls.send("POST", "/api/loops", LoopShape, new))
    if detach:
        print_line(shape.loop)
        return Exit.SUCCESS
    out = consoles.stderr() if json_output else consoles.stdout()
    out.print(plain(f"Loop {shape.loop}: {shape.title}"), highlight=False, markup=False)
    try:
        shape = _follow(client, shape, out.print)
    except KeyboardInterrupt:
        print_line(f"The loop continues. Stop it with: quarterdeck loop stop {shape.loop}")
        return Exit.INTERRUPTED
    if json_output:
        print_json([client.call(calls.get(f"/api/loops/{shape.loop}", LoopReport))])
    assert shape.reason is not None
    return 0 if zero and shape.reason in GOALS else EXIT_CODES[shape.reason]


def _follow(client: BlockingClient, shape: LoopShape, out: object) -> LoopShape:
    """Print what changes until the loop has stopped."""
    assert callable(out)
    said, lost = "", 0.0
    while True:
        line = _line(shape)
        if line != said:
            out(plain(line), highlight=False, markup=False)
            said = line
        if shape.state == "stopped":
            return shape
        time.sleep(LOOK_SECONDS)
        try:
            shape = _read(client, shape.loop)
            lost = 0.0
        except LinkRefused:
            lost += LOOK_SECONDS
            if lost > LOST_SECONDS:
                raise


def _line(shape: LoopShape) -> str:
    match shape.state:
        case "stopped":
            return f"Stopped after {shape.turns} turns, ${shape.cost_usd:.4f}: {shape.text}"
        case "running":
            return f"{shape.turns} of at most {shape.most_turns} turns, ${shape.cost_usd:.4f}."
        case "paused":
            return "Paused."
        case "waiting":
            return "Waits for the account's limit."
        case "cut_off":
            return "No process runs it."
        case _:
            assert_never(shape.state)


def run_list(target: Target, *, local: bool, json_output: bool) -> int:
    """List loops."""
    shapes = _local_shapes() if local else _all(connect(target))
    if json_output:
        print_json(shapes)
        return Exit.SUCCESS
    for shape in shapes:
        state = shape.reason or shape.state
        print_line(
            plain(
                f"{shape.loop}  {state:<12} {shape.turns:>4} turns  ${shape.cost_usd:>8.4f}"
                f"  {shape.title}"
            )
        )
    return Exit.SUCCESS


def run_show(
    loop: str, target: Target, *, local: bool, pull_request: bool, json_output: bool
) -> int:
    """Print a report."""
    if local:
        store = LoopStore(data_home())
        state = store.load(store.find(loop))
        if json_output:
            print_json([report_of(state)])
        else:
            print_line(plain(pull_request_text(state) if pull_request else as_markdown(state)))
        return Exit.SUCCESS
    client = connect(target)
    id_ = _find(client, loop)
    if json_output:
        print_json([client.call(calls.get(f"/api/loops/{id_}", LoopReport))])
        return Exit.SUCCESS
    query = {"form": "pull_request" if pull_request else "report"}
    text = client.call(calls.get(f"/api/loops/{id_}/text", LoopText, query))
    print_line(plain(text.text))
    return Exit.SUCCESS


def run_control(loop: str, action: LoopAction, target: Target, *, local: bool) -> int:
    """Pause, resume or stop a loop."""
    if local:
        store = LoopStore(data_home())
        id_ = store.find(loop)
        if not store.runs(id_):
            raise Conflict("loop_stopped", f"no process runs the loop {id_}")
        store.want(id_, request_of(action, person_here()))
        return Exit.SUCCESS
    client = connect(target)
    client.call(calls.send("POST", f"/api/loops/{_find(client, loop)}/{action}", LoopShape))
    return Exit.SUCCESS


def _local_shapes() -> tuple[LoopShape, ...]:
    store = LoopStore(data_home())
    return tuple(shape_of(state, runs=store.runs(state.id)) for state in store.all())


def _all(client: BlockingClient) -> tuple[LoopShape, ...]:
    return client.call(calls.get("/api/loops", LoopList)).loops


def _read(client: BlockingClient, loop: str) -> LoopShape:
    found = [shape for shape in _all(client) if shape.loop == loop]
    if not found:
        raise NotFound("loop", loop)
    return found[0]


def _find(client: BlockingClient, given: str) -> str:
    if is_id(given):
        return given
    shapes = _all(client)
    found = [s.loop for s in shapes if given and s.loop.startswith(given.lower())]
    found = found or [s.loop for s in shapes if s.title == given]
    if len(found) > 1:
        raise Conflict("ambiguous", f"{given!r} may be {len(found)} different loops")
    if not found:
        raise NotFound("loop", given)
    return found[0]
