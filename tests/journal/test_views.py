"""What the events of a session come to."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import UsageError
from quarterdeck.journal import MemoryJournal, fold, fold_all
from quarterdeck.journal.event_codec import decode, encode
from quarterdeck.journal.views import PROMPTS_KEPT, RUNS_KEPT, SETTLED_KEPT, significant
from quarterdeck.protocol.events import (
    Alarmed,
    AlarmEnded,
    AnyEvent,
    AskAnswered,
    AskKind,
    AskOpened,
    AskWithdrawn,
    BudgetFreed,
    BudgetReached,
    CliSession,
    ContextChanged,
    Decided,
    Event,
    FolderChanged,
    LeftToCli,
    LinkFound,
    LinkLost,
    McpChanged,
    Metered,
    ModelTokens,
    Noted,
    OffersChanged,
    PeerPrompted,
    ProgramActed,
    PromptCancelled,
    PromptChanged,
    PromptQueued,
    PromptSent,
    PromptTaken,
    RateLimited,
    Recalled,
    RunEnded,
    RunStarted,
    RunStarting,
    RunStopping,
    Said,
    SaidBroken,
    SandboxConnection,
    SandboxRefused,
    SandboxStarted,
    Sent,
    SessionArchived,
    SessionCreated,
    SessionDeleted,
    SessionRenamed,
    SessionRewound,
    SpecChanged,
    StartAfresh,
    StateChanged,
    Switched,
    TaskChanged,
    TaskEnded,
    TodosChanged,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    WorktreeSettled,
)
from quarterdeck.protocol.holds import (
    ContextUse,
    Holds,
    McpServer,
    OfferedCommand,
    Offers,
    RunningTool,
    Task,
    Todo,
)
from quarterdeck.protocol.sandbox import SandboxState
from quarterdeck.protocol.session_view import PromptStage, SessionView, only_counts
from quarterdeck.protocol.sessions import Origin, SessionSpec, SessionState
from quarterdeck.protocol.stored_events import Stored
from support.examples import examples

runs = st.sampled_from(["r1", "r2"])
asks = st.sampled_from(["q1", "q2", "q3"])
prompts = st.sampled_from(["p1", "p2", "p3"])
people = st.sampled_from(["ann", "bob"])
words = st.text(alphabet="abc ä", max_size=4)
money = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.integers(0, 2**40)
raw = st.sampled_from([Raw(b'"do it"'), Raw(b'{"type":"x"}'), Raw(b"[1, 2]")])
specs = st.builds(SessionSpec, directory=st.just("/work"), name=st.none() | words)
costs = st.floats(0, 1e308, allow_nan=False)
tokens = st.integers(0, 2**40)
models = st.lists(
    st.builds(
        ModelTokens,
        model=st.sampled_from(["opus", "haiku"]),
        cost_usd=costs,
        input=tokens,
        output=tokens,
    ),
    max_size=2,
).map(tuple)

RUN_OF = {"q1": "r1", "q2": "r2", "q3": "r1"}
"""A question is asked by one run."""

OF_ASKS: dict[type[Event], st.SearchStrategy[AnyEvent]] = {
    AskOpened: st.builds(
        lambda ask, kind, text, request: AskOpened(
            ask=ask,
            run=RUN_OF[ask],
            request_id=text,
            ask_kind=kind,
            tool=text,
            title=text,
            request=request,
        ),
        asks,
        st.sampled_from(AskKind),
        words,
        raw,
    ),
    AskAnswered: st.builds(AskAnswered, ask=asks, by=people, answer=raw, allowed=st.booleans()),
    AskWithdrawn: st.builds(AskWithdrawn, ask=asks, reason=words),
    RunEnded: st.builds(RunEnded, run=runs, reason=words),
    RunStarting: st.builds(RunStarting, run=runs, machine=words),
}
ALL: dict[type[Event], st.SearchStrategy[AnyEvent]] = {
    **OF_ASKS,
    SessionCreated: st.builds(SessionCreated, spec=specs, by=people),
    SessionRenamed: st.builds(SessionRenamed, name=words, by=people),
    SessionArchived: st.builds(SessionArchived, archived=st.booleans(), by=people),
    SpecChanged: st.builds(SpecChanged, spec=specs, by=people),
    SessionDeleted: st.builds(SessionDeleted, by=people),
    RunStarted: st.builds(RunStarted, run=runs, pid=st.none() | st.integers(1, 99), version=words),
    SandboxStarted: st.builds(
        SandboxStarted, run=runs, state=st.builds(SandboxState, kind=words, reason=words)
    ),
    SandboxConnection: st.builds(
        SandboxConnection, run=runs, number=numbers, host=words, port=numbers, allowed=st.booleans()
    ),
    SandboxRefused: st.builds(SandboxRefused, call=words, tool=words, access=words, target=words),
    LinkLost: st.builds(LinkLost, run=runs, reason=words),
    LinkFound: st.builds(LinkFound, run=runs),
    StateChanged: st.builds(StateChanged, state=st.sampled_from(SessionState), detail=words),
    Switched: st.builds(
        Switched,
        mode=st.none() | words,
        model=st.none() | words,
        effort=st.none() | words,
        thinking=st.none() | words,
        by=people,
    ),
    OffersChanged: st.builds(
        OffersChanged, commands=st.none() | st.just((OfferedCommand(name="c"),))
    ),
    TodosChanged: st.builds(
        TodosChanged, todos=st.sampled_from([(), (Todo(todo="1", text="t"),)]), cut=st.just(1)
    ),
    TaskChanged: st.builds(
        TaskChanged,
        task=st.builds(Task, task=words, call=st.none() | words, background=st.booleans()),
    ),
    TaskEnded: st.builds(TaskEnded, task=words),
    ToolStarted: st.builds(ToolStarted, call=words, tool=words, agent=st.none() | words),
    ToolEnded: st.builds(ToolEnded, call=words),
    McpChanged: st.builds(McpChanged, servers=st.sampled_from([(), (McpServer(name="m"),)])),
    ContextChanged: st.builds(
        ContextChanged, tokens=st.none() | numbers, window=st.none() | numbers
    ),
    CliSession: st.builds(CliSession, cli_session=words),
    Said: st.builds(Said, run=runs, number=numbers, line=raw),
    SaidBroken: st.builds(SaidBroken, run=runs, number=numbers, text=words, error=words),
    Sent: st.builds(Sent, run=runs, number=numbers, line=raw),
    PromptQueued: st.builds(PromptQueued, prompt=prompts, content=raw, by=people),
    PromptChanged: st.builds(PromptChanged, prompt=prompts, content=raw, by=people),
    PromptCancelled: st.builds(PromptCancelled, prompt=prompts, by=people),
    PromptSent: st.builds(PromptSent, prompt=prompts, run=runs),
    PromptTaken: st.builds(PromptTaken, prompt=prompts),
    PeerPrompted: st.builds(PeerPrompted, run=runs, message=words, refused=st.booleans()),
    TurnEnded: st.builds(
        TurnEnded,
        prompts=st.lists(prompts, max_size=2).map(tuple),
        failed=st.booleans(),
        outcome=words,
        cost_usd=costs,
        models=models,
    ),
    StartAfresh: st.builds(StartAfresh, run=runs, by=people),
    Recalled: st.builds(Recalled, run=runs, uuid=words, line=raw),
    RateLimited: st.builds(RateLimited, status=words),
    BudgetReached: st.builds(BudgetReached, scope=words, unit=words, limit=money, spent=money),
    BudgetFreed: st.builds(BudgetFreed, scope=words, unit=words),
    RunStopping: st.builds(RunStopping, run=runs, by=people),
    Metered: st.builds(Metered, run=runs, models=models),
    Alarmed: st.builds(Alarmed, alarm=words, text=words),
    AlarmEnded: st.builds(AlarmEnded, alarm=words),
    Decided: st.builds(Decided, tool=words, title=words, verdict=words, by=people),
    ProgramActed: st.builds(
        ProgramActed, run=runs, number=st.integers(1, 50), by=people, act=words, what=words
    ),
    LeftToCli: st.builds(LeftToCli, tool_use_id=words, branch=st.none() | words),
    WorktreeSettled: st.builds(WorktreeSettled, action=words, branch=words, by=people),
    FolderChanged: st.builds(FolderChanged, action=words, by=people),
    SessionRewound: st.builds(SessionRewound, prompt=prompts, by=people),
    Noted: st.builds(Noted, level=words, text=words),
}
events = st.one_of(*ALL.values())
ask_events = st.one_of(*OF_ASKS.values())


def test_the_properties_are_tried_with_every_event() -> None:
    assert set(ALL) == set(get_args(AnyEvent))


def stored(*happened: AnyEvent, first: int = 1) -> list[Stored]:
    return [
        Stored(
            session="s1",
            seq=seq,
            position=seq,
            at=1000 + seq,
            event=event,
            json=encode([event]).lines[0],
        )
        for seq, event in enumerate(happened, first)
    ]


def viewed(*happened: AnyEvent) -> SessionView:
    view = fold_all(None, stored(*happened))
    assert view is not None
    return view


STARTED = (
    SessionCreated(spec=SessionSpec(directory="/work", name="deck"), by="ann", parent="s0"),
    RunStarting(run="r1", machine="here"),
)


def ask(id_: str, run: str = "r1") -> AskOpened:
    return AskOpened(
        ask=id_,
        run=run,
        request_id="x",
        ask_kind=AskKind.TOOL,
        tool="Bash",
        title="t",
        request=Raw(b"{}"),
    )


def answer(id_: str) -> AskAnswered:
    return AskAnswered(ask=id_, by="ann", answer=Raw(b"{}"), allowed=True)


# --- properties ----------------------------------------------------------------------------------


@given(st.lists(events, max_size=25), st.lists(st.integers(0, 25), max_size=4))
def test_folding_in_chunks_is_folding_at_once(happened: list[AnyEvent], cuts: list[int]) -> None:
    whole = stored(*happened)
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    view: SessionView | None = None
    for start, stop in pairwise(edges):
        view = fold_all(view, whole[start:stop])
    assert view == fold_all(None, whole)


@given(st.lists(ask_events, max_size=25))
def test_a_question_is_open_iff_it_was_opened_and_not_settled_and_its_run_has_not_ended(
    happened: list[AnyEvent],
) -> None:
    opened = {event.ask for event in happened if isinstance(event, AskOpened)}
    settled = {event.ask for event in happened if isinstance(event, AskAnswered | AskWithdrawn)}
    ended = {event.run for event in happened if isinstance(event, RunEnded)}
    view = fold_all(None, stored(*happened))
    now = set() if view is None else set(view.asks)
    assert now == {ask for ask in opened - settled if RUN_OF[ask] not in ended}


@given(st.lists(events, max_size=20), events)
def test_events_that_only_count_change_nothing_but_the_counters(
    happened: list[AnyEvent], last: AnyEvent
) -> None:
    before = fold_all(None, stored(*happened))
    if before is None or not only_counts(last):
        return
    (event,) = stored(last, first=before.head + 1)
    after = fold(before, event)
    assert after == replace(
        before, head=event.seq, updated=event.at, said=after.said, sent=after.sent
    )


@given(st.lists(events, min_size=1, max_size=20))
def test_events_that_tell_nothing_can_be_left_out(happened: list[AnyEvent]) -> None:
    at_once = [replace(each, at=5) for each in stored(*happened)]
    told = list(significant(at_once))
    assert fold_all(None, told) == fold_all(None, at_once)
    assert [each for each in at_once if type(each.event) is not Said] == [
        each for each in told if type(each.event) is not Said
    ]


def test_of_a_row_of_lines_only_the_last_is_folded() -> None:
    lines = [Said(run="r1", number=number, line=Raw(b"{}")) for number in range(1, 9)]
    told = significant(stored(*lines, Noted(level="info", text="x"), *lines[:3], lines[1]))
    assert [each.seq for each in told] == [8, 9, 12, 13]


@given(st.lists(events, max_size=20))
def test_what_was_folded_is_not_folded_again(happened: list[AnyEvent]) -> None:
    whole = stored(*happened)
    view = fold_all(None, whole)
    assert fold_all(view, whole) == view


@settings(max_examples=examples(30))
@given(
    st.lists(
        events.filter(lambda event: not isinstance(event, SessionDeleted)), min_size=1, max_size=25
    )
)
async def test_a_journal_read_back_folds_to_the_view_that_it_keeps(
    happened: list[AnyEvent],
) -> None:
    journal = MemoryJournal()
    for start in range(0, len(happened), 3):
        await journal.append("s1", happened[start : start + 3])
    view = await journal.summary("s1")
    assert view is not None
    assert view == fold_all(None, await journal.read("s1"))
    assert [card.opened.ask for card in await journal.open_asks()] == list(view.asks)


# --- the state -----------------------------------------------------------------------------------


def test_a_session_that_was_only_made_has_not_started() -> None:
    view = viewed(STARTED[0])
    assert (view.state, view.detail) == (SessionState.ENDED, "not started yet")
    assert (view.name, view.by, view.parent, view.created) == ("deck", "ann", "s0", 1001)


def test_a_run_that_is_asked_for_is_starting_until_the_hub_says_otherwise() -> None:
    assert viewed(*STARTED).state is SessionState.STARTING
    working = StateChanged(state=SessionState.WORKING, detail="thinking")
    view = viewed(*STARTED, RunStarted(run="r1", pid=7, version="2.1.120"), working)
    assert (view.state, view.detail) == (SessionState.WORKING, "thinking")
    assert (view.run, view.machine, view.pid, view.version) == ("r1", "here", 7, "2.1.120")


def test_an_open_question_makes_the_session_wait_for_a_person() -> None:
    working = StateChanged(state=SessionState.WORKING)
    assert viewed(*STARTED, working, ask("q1")).state is SessionState.WAITING
    assert viewed(*STARTED, working, ask("q1"), answer("q1")).state is SessionState.WORKING


def test_a_lost_link_hides_the_state_until_it_is_found() -> None:
    idle = StateChanged(state=SessionState.IDLE)
    lost = LinkLost(run="r1", reason="the network is down")
    view = viewed(*STARTED, idle, lost)
    assert (view.state, view.detail) == (SessionState.DISCONNECTED, "the network is down")
    assert viewed(*STARTED, idle, lost, LinkFound(run="r1")).state is SessionState.IDLE
    assert viewed(*STARTED, idle, LinkLost(run="r0", reason="x")).state is SessionState.IDLE


def test_a_restart_of_the_hub_is_no_news_and_what_comes_after_it_is() -> None:
    said = Said(run="r1", number=1, line=Raw(b"{}"))
    restart = (LinkLost(run="r1", reason="the hub stopped"), LinkFound(run="r1"))
    told = (*STARTED, said, *restart)
    view = viewed(*told)
    assert (view.head, view.news) == (len(told), len(told) - len(restart))
    idle = StateChanged(state=SessionState.IDLE)
    again = Said(run="r1", number=2, line=Raw(b"{}"))
    assert viewed(*told, again, idle).news == len(told) + 1


def test_a_run_that_ended_by_itself_with_an_error_has_crashed() -> None:
    up = (*STARTED, RunStarted(run="r1", pid=7))

    def ended(**how: Any) -> RunEnded:
        return RunEnded(run="r1", reason="", **how)

    assert viewed(*up, ended(signal=9, cut_off=True)).crashed
    assert viewed(*up, ended(exit_code=1)).crashed
    assert not viewed(*up).crashed
    assert not viewed(*up, ended(exit_code=0)).crashed
    assert not viewed(*up, ended(clean=True)).crashed
    assert not viewed(*STARTED, ended()).crashed  # it never began
    assert not viewed(*up, RunStopping(run="r1", by="ann"), ended(signal=9)).crashed
    moved = CodedText(code=TextCode.MOVED_AWAY, name="here", other="there")
    assert not viewed(*up, ended(coded=moved)).crashed
    again = RunStarting(run="r2", machine="here")
    assert not viewed(*up, ended(signal=9), again).crashed


def test_an_ended_run_ends_the_session_with_its_reason_and_closes_its_questions() -> None:
    ended = RunEnded(run="r1", reason="killed", signal=9)
    view = viewed(*STARTED, ask("q1"), ended)
    assert (view.state, view.detail) == (SessionState.ENDED, "killed")
    assert (view.run, view.machine, view.ended, view.asks) == (None, "here", ended, {})
    again = viewed(*STARTED, ended, RunStarting(run="r2", machine="there"))
    assert (again.state, again.run, again.machine) == (SessionState.STARTING, "r2", "there")


def test_the_end_of_another_run_changes_nothing_in_the_present_one() -> None:
    view = viewed(*STARTED, RunStarting(run="r2", machine="here"), RunEnded(run="r1", reason="x"))
    assert (view.run, view.state) == ("r2", SessionState.STARTING)


def test_lines_are_counted_per_run() -> None:
    line = Raw(b"{}")
    view = viewed(
        *STARTED,
        Said(run="r1", number=3, line=line),
        SaidBroken(run="r1", number=4, text="x", error="no JSON"),
        Said(run="r1", number=2, line=line),
        Said(run="r0", number=99, line=line),
        Sent(run="r1", number=5, line=line),
    )
    assert (view.said, view.sent, view.head, view.updated) == (4, 5, 7, 1007)
    next_run = fold_all(view, stored(RunStarting(run="r2", machine="here"), first=8))
    assert next_run is not None
    assert (next_run.said, next_run.sent) == (0, 0)


def test_cost_and_turns_add_up() -> None:
    turn = TurnEnded(prompts=(), failed=False, outcome="success", cost_usd=0.25)
    view = viewed(*STARTED, turn, turn)
    assert (view.turns, view.cost_usd) == (2, 0.5)
    huge = TurnEnded(prompts=(), failed=False, outcome="success", cost_usd=1e308)
    assert viewed(*STARTED, huge, huge).cost_usd == 1e308


# --- prompts -------------------------------------------------------------------------------------


def queued(prompt: str, text: bytes = b'"x"') -> PromptQueued:
    return PromptQueued(prompt=prompt, content=Raw(text), by="ann")


def test_prompts_are_queued_in_order_and_leave_the_queue_when_they_are_sent() -> None:
    view = viewed(*STARTED, queued("p1"), queued("p2"), queued("p3"))
    assert [prompt.prompt for prompt in view.queued] == ["p1", "p2", "p3"]
    view = viewed(
        *STARTED,
        queued("p1"),
        queued("p2"),
        queued("p3"),
        PromptSent(prompt="p1", run="r1"),
        PromptCancelled(prompt="p2", by="bob"),
    )
    assert [prompt.prompt for prompt in view.queued] == ["p3"]
    assert [(prompt.prompt, prompt.run) for prompt in view.unsent] == [("p1", "r1"), ("p3", None)]


def test_a_view_forgets_the_oldest_prompts_that_are_done_and_counts_them() -> None:
    happened: list[AnyEvent] = [*STARTED, queued("waits")]
    for number in range(PROMPTS_KEPT + 50):
        id_ = f"p{number}"
        happened += [queued(id_), PromptSent(prompt=id_, run="r1"), PromptTaken(prompt=id_)]
    view = viewed(*happened)
    assert (len(view.prompts), view.prompts_forgotten) == (PROMPTS_KEPT, 51)
    assert view.prompts["waits"] is PromptStage.QUEUED
    assert f"p{PROMPTS_KEPT + 49}" in view.prompts
    assert "p0" not in view.prompts


def test_a_view_remembers_the_newest_ended_runs_only() -> None:
    happened: list[AnyEvent] = [*STARTED]
    for number in range(RUNS_KEPT + 5):
        happened += [
            RunStarting(run=f"n{number}", machine="here"),
            RunEnded(run=f"n{number}", reason="x"),
        ]
    assert len(viewed(*happened).ended_runs) == RUNS_KEPT


def test_a_prompt_goes_through_its_stages() -> None:
    happened: list[AnyEvent] = [*STARTED, queued("p1")]
    for event, stage in (
        (PromptSent(prompt="p1", run="r1"), PromptStage.SENT),
        (PromptTaken(prompt="p1"), PromptStage.TAKEN),
        (
            TurnEnded(prompts=("p1",), failed=False, outcome="success", cost_usd=0),
            PromptStage.DONE,
        ),
        (queued("p1"), PromptStage.DONE),
    ):
        happened.append(event)
        assert viewed(*happened).prompts == {"p1": stage}
    assert viewed(*happened).unsent == ()


@pytest.mark.parametrize(("sent", "content"), [(False, b'"new"'), (True, b'"old"')])
def test_a_prompt_can_be_changed_until_it_is_sent(sent: bool, content: bytes) -> None:
    before: list[AnyEvent] = [queued("p1", b'"old"')]
    if sent:
        before.append(PromptSent(prompt="p1", run="r1"))
    view = viewed(*STARTED, *before, PromptChanged(prompt="p1", content=Raw(b'"new"'), by="bob"))
    assert [bytes(prompt.content) for prompt in view.unsent] == [content]


def test_a_prompt_whose_run_ended_before_a_turn_took_it_is_still_there() -> None:
    view = viewed(
        *STARTED, queued("p1"), PromptSent(prompt="p1", run="r1"), RunEnded(run="r1", reason="x")
    )
    assert [(prompt.prompt, prompt.run) for prompt in view.unsent] == [("p1", "r1")]


def test_the_mode_and_the_model_hold_until_they_are_switched_or_another_run_starts() -> None:
    view = viewed(*STARTED)
    assert (view.mode, view.model) == (None, None)
    modes = (Switched(mode="plan"), Switched(model="haiku", by="ann"), Switched(mode="default"))
    view = viewed(*STARTED, *modes)
    assert (view.mode, view.model) == ("default", "haiku")
    view = viewed(*STARTED, *modes, RunEnded(run="r1", reason="x"))
    assert (view.mode, view.model) == ("default", "haiku")
    again = RunStarting(run="r2", machine="here", mode="acceptEdits")
    assert viewed(*STARTED, *modes, again).mode == "acceptEdits"


def test_effort_and_thinking_hold_likewise() -> None:
    switched = (Switched(effort="high"), Switched(thinking="off", by="ann"))
    view = viewed(*STARTED, *switched)
    assert (view.effort, view.thinking) == ("high", "off")
    view = viewed(*STARTED, *switched, RunStarting(run="r2", machine="here"))
    assert (view.effort, view.thinking) == (None, None), "as the spec says"


HELD = (
    OffersChanged(commands=(OfferedCommand(name="compact"),), cut={"commands": 3}),
    TodosChanged(todos=(Todo(todo="1", text="one"),), cut=2),
    TaskChanged(task=Task(task="t1", call="c1", background=True)),
    ToolStarted(call="c2", tool="Bash", title="ls"),
    ToolStarted(call="c3", tool="Read", agent="c1"),
    McpChanged(servers=(McpServer(name="db", status="connected"),), cut=1),
    ContextChanged(tokens=500, window=1000),
)


def test_what_holds_is_in_the_view_with_the_times_of_the_journal() -> None:
    assert viewed(*STARTED, *HELD).holds == Holds(
        offers=Offers(commands=(OfferedCommand(name="compact"),)),
        todos=(Todo(todo="1", text="one"),),
        tasks=(Task(task="t1", call="c1", background=True, since=1005),),
        tools=(
            RunningTool(call="c2", tool="Bash", title="ls", since=1006),
            RunningTool(call="c3", tool="Read", agent="c1", since=1007),
        ),
        mcp=(McpServer(name="db", status="connected"),),
        context=ContextUse(tokens=500, window=1000),
        cut={"commands": 3, "todos": 2, "mcp": 1},
    )


def test_a_turn_ends_its_tools_and_a_run_all_that_belonged_to_the_process() -> None:
    turn = TurnEnded(prompts=(), failed=False, outcome="success", cost_usd=0)
    after_turn = viewed(*STARTED, *HELD, turn).holds
    assert [tool.call for tool in after_turn.tools] == ["c3"], "its subagent works on"
    assert after_turn.tasks
    ended = viewed(*STARTED, *HELD, RunEnded(run="r1", reason="x")).holds
    assert (ended.tools, ended.tasks, ended.mcp) == ((), (), ())
    assert ended.todos
    assert ended.context.tokens == 500
    assert ended.offers.commands
    assert ended.cut == {"commands": 3, "todos": 2}
    other = viewed(*STARTED, *HELD, RunEnded(run="r0", reason="an old one")).holds
    assert other == viewed(*STARTED, *HELD).holds


@pytest.mark.parametrize(("cli_session", "todos"), [("c1", 1), (None, 0)])
def test_todos_and_context_belong_to_the_conversation(cli_session: str | None, todos: int) -> None:
    again = RunStarting(run="r2", machine="here", origin=Origin(cli_session=cli_session))
    holds = viewed(*STARTED, *HELD, RunEnded(run="r1", reason="x"), again).holds
    assert (len(holds.todos), holds.context.tokens) == (todos, 500 * todos)
    assert holds.offers.commands


def test_a_task_keeps_its_time_when_the_cli_tells_its_id() -> None:
    first = TaskChanged(task=Task(task="c1", call="c1", title="look"))
    second = TaskChanged(task=Task(task="a1", call="c1", title="look", background=True))
    (task,) = viewed(*STARTED, first, second).holds.tasks
    assert (task.task, task.since) == ("a1", 1003)
    assert viewed(*STARTED, first, second, TaskEnded(task="c1")).holds.tasks == (task,)
    assert viewed(*STARTED, first, second, TaskEnded(task="a1")).holds.tasks == ()


@settings(max_examples=examples(100))
@given(happened=st.lists(events, max_size=4))
def test_what_an_append_gives_back_is_what_is_read_again(happened: list[AnyEvent]) -> None:
    encoded = encode(happened)
    read = [decode(line, "a file", "s1", 1) for line in encoded.lines]
    assert encoded.events == read


@pytest.mark.parametrize("beside", [(), (Noted(level="info", text="x"),)])
def test_a_float_that_json_does_not_have_is_refused(beside: tuple[AnyEvent, ...]) -> None:
    reached = BudgetReached(scope="run", unit="usd", limit=float("nan"), spent=1.0)
    with pytest.raises(UsageError, match="BudgetReached cannot be stored"):
        encode([*beside, reached])


def test_a_run_of_any_length_has_few_settled_questions_in_its_view() -> None:
    view: SessionView | None = None
    events: list[AnyEvent] = [RunStarting(run="r1", machine="")]
    for number in range(3 * SETTLED_KEPT):
        opened = AskOpened(
            ask=f"q{number}",
            run="r1",
            request_id=f"request-{number}",
            ask_kind=AskKind.TOOL,
            tool="Bash",
            title="run",
            request=Raw(b"{}"),
        )
        events += [opened, AskWithdrawn(ask=f"q{number}", reason="gone"), opened]
    events.append(AskWithdrawn(ask="early", reason="gone"))
    for seq, event in enumerate(events, 1):
        data = encode([event]).lines[0]
        view = fold(
            view, Stored(session="s", seq=seq, position=seq, at=seq, event=event, json=data)
        )
    assert view is not None
    assert view.asks == {}, "a settled question is not opened again"
    assert len(view.settled) == SETTLED_KEPT
    assert list(view.settled)[-2:] == [f"q{3 * SETTLED_KEPT - 1}", "early"]
