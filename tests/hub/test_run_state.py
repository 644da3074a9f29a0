"""One fold: at every point of its journal a restored run is what the live run was.

Random people, random CLIs, random faults. After each step the run is folded anew from the journal
and compared with the live one, down to the last field. The same worlds show that decisions are
pure: each is made on copies of its state as well, and on the live one under watch. And a follower
of their views sees only what the one fold of their journal gives.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.domain.structs import Mutable
from quarterdeck.fronts.http.shapes import session_shape
from quarterdeck.fronts.http.views import PendingViews, ViewCache
from quarterdeck.hub import hub as hub_module
from quarterdeck.hub.decisions.base import Decision, Facts, Known, State, collect
from quarterdeck.hub.decisions.inputs import (
    AskCli,
    FolderActed,
    GiveUp,
    Line,
    Note,
    OtherInput,
    RecordCall,
    StartFacts,
    TreeSettled,
    WentBack,
)
from quarterdeck.hub.decisions.table import TABLE, Transition
from quarterdeck.hub.facts import GATHER
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.run import Run
from quarterdeck.hub.run_state import LineReport
from quarterdeck.hub.session import Session
from quarterdeck.hub.shell import handle, record
from quarterdeck.hub.snapshots import restore_state as restore_snapshot
from quarterdeck.hub.snapshots import snapshot
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.views import fold
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.events import Decided, Event
from quarterdeck.protocol.machine_requests import FolderDone, Settled, TreeAction
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import Budget, SessionSpec
from quarterdeck.wire import commands as wire
from quarterdeck.wire.base import Message
from quarterdeck.wire.permissions import PermissionMode
from support import lines
from support.hub_machines import TestRun, hub_with

SESSION = "01m7m9fk52dzxm583dajwd7hv3"
TRANSIENT = {
    # No state of the CLI: what makes lines and ids, and what the budgets were held against.
    "Peer._reader",
    "Peer._new_id",
    "Peer._out",
    "Meter.version",
    "Meter.checked",
}
BY_PIECES = {
    # Pieces of text are in no journal: see `run_state`.
    "Watch._last",
    "Watch._answer",
    "Peer._seen",
    "Meter._responses",
    "Meter._streaming",
    "Meter._in_base",
    "Meter.due",
    "LostTurn.in_doubt",
    "LostTurn._over_at",
}


def plain(value: object, without: set[str]) -> Any:
    """Anything as values that can be compared and shown."""
    match value:
        case Mutable():
            kind = type(value).__name__
            return {
                name: plain(getattr(value, name), without)
                for name in value.__struct_fields__
                if f"{kind}.{name}" not in without
            }
        case msgspec.Struct() | str() | int() | float() | bytes() | None | Raw() | Enum():
            return value
        case dict():
            return [(plain(key, without), plain(each, without)) for key, each in value.items()]
        case set() | frozenset():
            return sorted(value)
        case list() | tuple():
            return [plain(each, without) for each in value]
        case _ if hasattr(value, "__dict__"):
            kind = type(value).__name__
            return {
                name: plain(each, without)
                for name, each in vars(value).items()
                if f"{kind}.{name}" not in without
            }
        case _:
            return repr(value)


class World:
    """A session, its CLI and its people."""

    def __init__(self, *, inbound: bool, version: str) -> None:
        self.time = 1_000_000.0
        self.inbound = inbound
        self.version = version
        self.journal = MemoryJournal(clock=lambda: self.time)
        policies = Policies()
        self.hub, self.machines = hub_with(
            self.journal,
            policies=policies,
            now=lambda: self.time,
            timeouts=Timeouts(after_tool=20, result=20, answer=10),
        )
        self.count = 0
        self.prompts = 0
        self.last = ""
        self.pieces = False
        self.taken: dict[int, bytes] = {}
        """Snapshots of the run, by the event after which they were taken."""

    @property
    def cli(self) -> TestRun:
        return self.machines.runs[-1]

    @property
    def run(self) -> Run | None:
        return self.hub._sessions[SESSION].run

    def name(self, kind: str) -> str:
        """A name that was not used before."""
        self.count += 1
        return f"{kind}-{self.count}"

    async def begin(self) -> None:
        if self.inbound:
            await self.hub._adopt(SESSION, False, None, True)
            return
        spec = SessionSpec(
            directory="/work",
            machine="far",
            plan_cooldown=30,
            budget=Budget(session_tokens=400),
            auto_approve=("Glob",),
        )
        create = cmd.CreateSession(spec=spec, session=SESSION, prompt=Raw(b'"hello"'), by="ada")
        await self.hub.submit(create)

    async def say(self, *said: bytes) -> None:
        if self.run is not None:
            await self.cli.say(*said)

    def sent(self, subtype: str = "") -> list[str]:
        """The open requests of ours."""
        run = self.run
        ours = run.state.peer._ours.open if run is not None else ()
        return [each.request_id for each in ours if subtype in each.subtype]

    async def check(self) -> None:
        live = self.run
        if live is None:
            return
        view = await self.hub.session(SESSION)
        stored = await self.journal.read(SESSION, after=view.run_began - 1, limit=5000)
        restored = Run(SESSION, live.run, view.spec, view.holds)
        for each in stored:
            restored.restore_event(each.event, each.at)
        restored.finish_restore(view.holds)
        without = TRANSIENT | (BY_PIECES if self.pieces else set())
        assert plain(restored.state, without) == plain(live.state, without)
        before = max(self.taken, default=0)
        self.taken[view.head] = snapshot(live.state, {}) or b""
        for seq in {before, view.head} & self.taken.keys():
            await self.check_snapshot(seq, live)
        assert (restored.idle, restored.busy, restored.greeted, restored.link_down) == (
            live.idle,
            live.busy,
            live.greeted,
            live.link_down,
        )
        assert view.spec == live.spec
        assert set(view.asks) == set(live.state.asks.open)

    async def check_snapshot(self, seq: int, live: Run) -> None:
        """A snapshot and the events after it make the same state as all events do.

        Checked for each two neighbours, this holds for all: the state is compared as a whole.
        """
        view = await self.hub.session(SESSION)
        if (found := restore_snapshot(self.taken[seq], SESSION, live.run)) is None:
            assert seq < view.run_began, "only a snapshot of another run is ignored"
            return
        again = Run(SESSION, live.run, view.spec, view.holds, state=found[0])
        for each in await self.journal.read(SESSION, after=seq, limit=5000):
            again.restore_event(each.event, each.at)
        again.finish_restore(view.holds)
        without = TRANSIENT | (BY_PIECES if self.pieces else set())
        assert plain(again.state, without) == plain(live.state, without)
        assert again.spec == live.spec


Step = Callable[[World, int], Awaitable[None]]
STEPS: dict[str, Step] = {}


def step(action: Step) -> Step:
    STEPS[action.__name__] = action
    return action


@step
async def starts(world: World, n: int) -> None:
    if world.run is not None:
        pid = None if world.inbound else 42 + n % 2
        version = None if world.inbound else world.version
        await world.cli.owner.run_started(world.cli.run, pid, version, "/work" if pid else None)


@step
async def answers_requests(world: World, n: int) -> None:
    for request in world.sent()[: 1 + n % 2]:
        body: dict[str, object] = {"content": "the plan"} if n % 3 else {}
        answer = lines.error_answer(request, "no") if n % 5 == 4 else None
        await world.say(answer or lines.success_answer(request, body))


@step
async def answers_initialize(world: World, n: int) -> None:
    for request in world.sent("initialize"):
        pending = [
            {
                "type": "control_request",
                "request_id": f"pending-{n}",
                "request": {"subtype": "can_use_tool", "tool_name": "Write", "input": {}},
            }
        ]
        more = {"pending_permission_requests": pending} if n % 2 else {}
        mode = {"current_permission_mode": "plan", "current_model": "opus"} if n % 3 else {}
        await world.say(lines.success_answer(request, {**mode, "commands": []}, **more))


@step
async def begins_turn(world: World, n: int) -> None:
    await world.say(lines.init(world.version, world.name("init")))
    run = world.run
    for uuid in run.state.peer.turns.queued[:1] if run is not None else ():
        await world.say(lines.echo(uuid))


def tokens(n: int) -> dict[str, int]:
    return {"input_tokens": 10 + n, "output_tokens": n}


@step
async def speaks(world: World, n: int) -> None:
    content: list[dict[str, object]] = [{"type": "text", "text": "words"}]
    if n % 2:
        tool = ("Bash", "Read", "ExitPlanMode", "Task")[n % 4]
        call: dict[str, object] = {
            "type": "tool_use",
            "id": f"toolu_{n % 5}",
            "name": tool,
            "input": {"plan": "do"},
        }
        content.append(call)
    message = {"id": f"m-{n % 3}", "model": "claude-opus", "content": content, "usage": tokens(n)}
    parent = "toolu_9" if n % 7 == 6 else None
    uuid = world.name("a")
    await world.say(
        lines.line(type="assistant", message=message, parent_tool_use_id=parent, uuid=uuid)
    )


@step
async def streams(world: World, n: int) -> None:
    world.pieces = True
    event: dict[str, object] = {
        "type": "message_start",
        "message": {"id": f"m-{n % 3}", "model": "claude-opus", "content": [], "usage": tokens(n)},
    }
    start = lines.line(type="stream_event", event=event, parent_tool_use_id=None, uuid=str(n))
    await world.say(start, lines.delta("piece", world.name("d")))


@step
async def tool_ends(world: World, n: int) -> None:
    content = [{"type": "tool_result", "tool_use_id": f"toolu_{n % 5}", "content": "text"}]
    uuid = world.name("u") if n % 4 else "u-same"
    await world.say(
        lines.line(type="user", message={"role": "user", "content": content}, uuid=uuid)
    )


@step
async def ends_turn(world: World, n: int) -> None:
    denied = [{"tool_name": "Bash", "tool_use_id": f"toolu_{n % 5}", "tool_input": {}}]
    more = {"permission_denials": denied} if n % 2 else {}
    await world.say(lines.result(world.name("r"), cost=0.1 * world.count, **more))


@step
async def says_odd_things(world: World, n: int) -> None:
    odd = [
        lines.line(type="keep_alive"),
        b"no JSON\n",
        b'{"type":"assistant","message":{"content":[{"type":"text","text":"\\ud800"}]}}\n',
        lines.line(type="system", subtype="status", permissionMode="acceptEdits", uuid=f"s-{n}"),
        lines.line(type="system", subtype="status", status="compacting", uuid=f"c-{n}"),
        lines.line(
            type="system",
            subtype="api_retry",
            attempt=1,
            max_retries=3,
            retry_delay_ms=500,
            error="overloaded",
            uuid=f"y-{n}",
        ),
        lines.line(
            type="rate_limit_event",
            rate_limit_info={
                "status": "rejected",
                "resetsAt": 1_000_050 + n,
                "rateLimitType": "five_hour",
            },
            uuid=f"l-{n}",
        ),
        lines.line(type="system", subtype="session_state_changed", state="idle", uuid=f"i-{n}"),
        lines.line(type="system", subtype="task_started", task_id=f"t-{n}", uuid=f"k-{n}"),
    ]
    await world.say(odd[n % len(odd)])


@step
async def shows_call(world: World, n: int) -> None:
    seen = {
        "hook_event_name": "PreToolUse",
        "tool_name": ("Bash", "Read", "Glob")[n % 3],
        "tool_input": {"command": "ls"},
        "tool_use_id": f"toolu_{n % 5}",
        "cwd": "/work",
        **({"permission_mode": "plan"} if n % 2 else {}),
        **({"agent_id": "a1", "agent_type": "Explore"} if n % 7 == 0 else {}),
    }
    watch = {"subtype": "hook_callback", "callback_id": "quarterdeck-watch", "input": seen}
    await world.say(lines.requests(world.name("h"), **watch))


@step
async def asks(world: World, n: int) -> None:
    tool = ("Bash", "ExitPlanMode", "Glob", "AskUserQuestion")[n % 4]
    given: dict[str, object] = {"plan": "a plan"} if n % 8 == 1 else {"command": "ls"}
    request = {"tool_name": tool, "input": given, "tool_use_id": f"toolu_{n % 5}"}
    world.last = world.last if n % 9 == 8 else world.name("q")
    await world.say(lines.requests(world.last, subtype="can_use_tool", **request))


@step
async def asks_something_else(world: World, n: int) -> None:
    kind = ("elicitation", "mcp_message", "no_such_thing")[n % 3]
    name = world.name("e")
    more = {"mcp_server_name": "s", "message": "who?", "server_name": "s"}
    await world.say(lines.requests(name, subtype=kind, **more))


@step
async def withdraws(world: World, n: int) -> None:
    run = world.run
    open_ = run.state.peer.unanswered if run is not None else ()
    if open_:
        await world.say(lines.cancels(open_[n % len(open_)].request_id))


@step
async def person_prompts(world: World, n: int) -> None:
    world.prompts += 1
    id_ = f"00000000-0000-4000-8000-{world.prompts:012}" if n % 2 else f"p{world.prompts}"
    await world.hub.submit(
        cmd.SendPrompt(session=SESSION, prompt=id_, content=Raw(b'"go on"'), by="ada")
    )


@step
async def person_answers(world: World, n: int) -> None:
    for card in (await world.hub.asks())[:1]:
        answers: list[cmd.Answer] = [
            cmd.AllowAnswer(),
            cmd.DenyAnswer(message="no"),
            cmd.AllowAnswer(scope=cmd.Scope.SESSION),
            cmd.AllowAnswer(input=Raw(b'{"command":"ls -l"}')),
            cmd.PlanAnswer(choice="revise", feedback="more"),
            cmd.PlanAnswer(choice="auto"),
            cmd.PlanAnswer(choice="manual"),
            cmd.ElicitationAnswer(action="decline"),
        ]
        for answer in (answers[n % len(answers)], cmd.SkipAnswer()):
            command = cmd.AnswerAsk(ask=card.opened.ask, answer=answer, by="ada")
            try:
                await world.hub.submit(command)
                return
            except QuarterdeckError:
                continue


@step
async def person_switches(world: World, n: int) -> None:
    run = world.run
    if run is None:
        return
    modes = (PermissionMode.PLAN, PermissionMode.ACCEPT_EDITS, PermissionMode.DEFAULT)
    commands: list[Any] = [
        wire.SetPermissionMode(mode=modes[n % 3]),
        wire.SetModel(model="haiku"),
        wire.Interrupt(),
    ]
    owner = world.cli.owner.session
    done = await handle(owner, AskCli(command=commands[n % len(commands)], by="ada"))
    owner.waiters.forget(done.request)
    if n % 5 == 4:
        await handle(owner, GiveUp(request_id=done.request))


@step
async def person_changes(world: World, n: int) -> None:
    budget = Budget(session_tokens=300 + n) if n % 2 else None
    await world.hub.submit(
        cmd.ChangeSession(session=SESSION, auto_approve=("Read",), budget=budget, by="ada")
    )


@step
async def others_act(world: World, n: int) -> None:
    note = Note(level="info", coded=CodedText(code=TextCode.TURN_END_LOST))
    entry = Decided(tool="mcp__quarterdeck__send", title="x", verdict="allow", by="ada")
    commit = CodedText(code=TextCode.COMMITTED, commit="c", detail="x")
    kept = CodedText(code=TextCode.BRANCH_KEPT, name="b")
    inputs: list[OtherInput] = [
        note,
        RecordCall(entry=entry),
        WentBack(by="ada", prompt="p1", files=True, conversation=False, changed=("/a",)),
        FolderActed(by="ada", action="commit", done=FolderDone(text="x", coded=commit)),
        TreeSettled(
            by="ada",
            branch="b",
            done=Settled(action=TreeAction.KEEP, branch="b", text="x", coded=kept),
        ),
    ]
    await record(world.hub._sessions[SESSION], inputs[n % len(inputs)])


@step
async def link_breaks(world: World, n: int) -> None:
    await world.cli.owner.run_lost(world.cli.run, CodedText(code=TextCode.MACHINE_LOST))


@step
async def link_comes_back(world: World, n: int) -> None:
    owner, run = world.cli.owner, world.cli.run
    if world.inbound:
        await owner.run_resumed(run, f"a-{n}" if n % 2 else None)
    else:
        await owner.run_found(run)


@step
async def time_passes(world: World, n: int) -> None:
    world.time += (1, 4, 12, 60)[n % 4]
    await world.cli.owner.tick()


@step
async def ends_and_resumes(world: World, n: int) -> None:
    if n % 3 or world.run is None or world.inbound:
        return
    await world.cli.end()
    await world.hub.submit(cmd.ResumeSession(session=SESSION))


steps = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 71)), max_size=40)
GREETED = [("starts", 0), ("answers_initialize", 0), ("begins_turn", 0)]


async def play(
    script: list[tuple[str, int]],
    *,
    inbound: bool,
    version: str,
    checks: Callable[[World], Callable[[], Awaitable[None]]] = lambda world: world.check,
) -> None:
    world = World(inbound=inbound, version=version)
    check = checks(world)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hub_module, "CLOCK_SECONDS", 3600.0)  # time passes when the script says so
        async with world.hub.run():
            await world.begin()
            for name, number in [*GREETED, *script]:
                world.time += 0.25
                with suppress(QuarterdeckError):  # it was refused, which must change nothing
                    await STEPS[name](world, number)
                await check()


@pytest.mark.parametrize("version", ["2.1.92", "2.1.325"])
@pytest.mark.parametrize("inbound", [False, True])
@given(script=steps)
@example(script=[("asks", 1), ("answers_requests", 1), ("person_answers", 4), ("asks", 1)])
@example(script=[("asks", 5), ("time_passes", 2), ("person_answers", 5)])
@example(script=[("shows_call", 0), ("tool_ends", 5), ("speaks", 1), ("ends_turn", 0)])
@example(script=[("link_breaks", 0), ("person_switches", 2), ("link_comes_back", 1)])
async def test_a_run_that_is_folded_from_its_journal_is_the_live_one(
    script: list[tuple[str, int]], inbound: bool, version: str
) -> None:
    await play(script, inbound=inbound, version=version)


# --- what a browser sees -------------------------------------------------------------------------

COUNTED = ("head", "news", "updated")
"""What every event changes: no view is sent for these alone."""


class Browser:
    """Follows the views of a session as a connection of the stream does, and folds its events."""

    def __init__(self, world: World) -> None:
        self._journal = world.journal
        self._views = PendingViews(ViewCache(world.hub))
        self._folded: SessionView | None = None
        self._shapes: dict[int, Any] = {}
        """The session at each event that no view was seen of yet, as the fold gives it."""
        self._seen: dict[str, Any] = {}
        self.count = 0

    async def check(self) -> None:
        """Every view that is sent is the fold at its last event, and no change is missing."""
        after = self._folded.head if self._folded is not None else 0
        events = await self._journal.read(SESSION, after=after, limit=5000)
        for stored in events:
            self._folded = fold(self._folded, stored)
            shape = msgspec.json.encode(session_shape(self._folded))
            self._shapes[stored.seq] = msgspec.json.decode(shape)
        self._views.note(events)
        while self._views.pending:
            frame = msgspec.json.decode(await self._views.take() or b'{"sessions":[]}')
            for view in frame["sessions"]:
                assert view == self._shapes[view["head"]], "the fold has never given this"
                self._seen = view
                self.count += 1
        if self._folded is not None:
            now = self._shapes[self._folded.head]
            self._shapes = {self._folded.head: now}
            assert {k: v for k, v in self._seen.items() if k not in COUNTED} == {
                k: v for k, v in now.items() if k not in COUNTED
            }, "the browser is behind"


@pytest.mark.parametrize("inbound", [False, True])
@settings(max_examples=max(5, settings().max_examples // 10))
@given(script=steps)
@example(script=[("asks", 0), ("person_answers", 0), ("ends_turn", 0), ("person_prompts", 1)])
@example(script=[("shows_call", 0), ("tool_ends", 5), ("speaks", 1), ("ends_turn", 0)])
@example(script=[("link_breaks", 0), ("person_switches", 2), ("link_comes_back", 1)])
@example(script=[("others_act", n) for n in range(5)] + [("ends_and_resumes", 0)])
async def test_a_browser_sees_no_state_that_the_fold_does_not_give(
    script: list[tuple[str, int]], inbound: bool
) -> None:
    browsers: list[Browser] = []

    def follow(world: World) -> Callable[[], Awaitable[None]]:
        browsers.append(Browser(world))
        return browsers[-1].check

    await play(script, inbound=inbound, version="2.1.325", checks=follow)
    assert browsers[0].count > 0


# --- decisions are pure --------------------------------------------------------------------------


def copy_of(state: State) -> State | None:
    """The same state with another run, which nobody else has; None where it cannot be stored."""
    if state.run is None:
        return state
    data = snapshot(state.run, {})
    found = restore_snapshot(data, state.session, state.run.run) if data is not None else None
    if found is None:
        return None
    found[0].holds = state.run.holds
    return state._replace(run=found[0])


def on_copy(row: Transition, state: State, input_: object, facts: Facts) -> Any:
    """What is decided on a copy: events, the reply or refusal, and the state after them."""
    if (copy := copy_of(state)) is None:
        return None
    events: list[Event] = []

    def fold(event: Event, known: Message | None, at: int) -> LineReport | None:
        events.append(event)
        return None if copy.run is None else copy.run.evolve(event, at, known)

    try:
        done = collect(row.decide(copy, input_, facts), fold, facts.now)
    except QuarterdeckError as refused:
        done = repr(refused)
    return events, done, plain(copy.run, TRANSIENT)


def watched(row: Transition, seen: dict[type[object], int]) -> Transition:
    """The same transition; a decision that is not pure fails."""

    def decide(state: State, input_: object, facts: Facts) -> Decision[Any]:
        first = on_copy(row, state, input_, facts)
        assert on_copy(row, state, input_, facts) == first
        decision = row.decide(state, input_, facts)
        events: list[Event] = []
        report: LineReport | None = None
        done: Any = None
        while True:
            before = plain(state.run, set())
            try:
                step = decision.send(report)
            except StopIteration as ended:
                done = ended.value
                break
            finally:
                assert plain(state.run, set()) == before, "a decision has changed the state"
            event = step.event if isinstance(step, Known) else step
            assert isinstance(event, row.events), f"{type(event)} is not in the row of the table"
            events.append(event)
            report = yield step
        if first is not None:
            assert (events, done) == first[:2]
            assert plain(state.run, TRANSIENT) == first[2]
        seen[type(input_)] = seen.get(type(input_), 0) + 1
        return done

    return row._replace(decide=decide)


LookUp = Callable[[Session, Any], Awaitable[Facts]]


def looked(look_up: LookUp) -> LookUp:
    """The same facts; what is looked up with a side effect fails."""

    def held(session: Session) -> Any:
        return plain(session.run_state, set()), session.policies.grants, vars(session.gap).copy()

    async def look(session: Session, input_: Any) -> Facts:
        before = held(session)
        found = await look_up(session, input_)
        again = await look_up(session, input_)
        assert held(session) == before, "facts have changed something"
        assert without_chance(again) == without_chance(found)
        return found

    return look


def without_chance(facts: Facts) -> Facts:
    """The id of a run that may begin is made by chance."""
    return replace(facts, run="") if isinstance(facts, StartFacts) else facts


@pytest.mark.parametrize("inbound", [False, True])
@settings(max_examples=max(5, settings().max_examples // 10))
@given(script=steps)
@example(script=[("asks", 0), ("person_answers", 0), ("ends_turn", 0), ("person_prompts", 1)])
@example(script=[("asks", 0), ("person_answers", 2), ("time_passes", 3), ("ends_and_resumes", 0)])
@example(script=[("link_breaks", 0), ("person_switches", 2), ("link_comes_back", 1)])
@example(script=[("asks", 0), ("time_passes", 3), ("person_changes", 1), ("speaks", 40)])
@example(script=[("others_act", n) for n in range(5)])
async def test_decisions_change_nothing_and_are_the_same_for_the_same_facts(
    script: list[tuple[str, int]], inbound: bool
) -> None:
    seen: dict[type[object], int] = {}
    with pytest.MonkeyPatch.context() as patched:
        for kind, row in TABLE.items():
            patched.setitem(TABLE, kind, watched(row, seen))
        for kind, look_up in GATHER.items():
            patched.setitem(GATHER, kind, looked(look_up))
        await play(script, inbound=inbound, version="2.1.325")
    assert Line in seen
