"""What holds in a session now, by the lines of real CLIs and by lines that no CLI should send."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from quarterdeck.hub.clip import LONGEST_ID, NAME, TEXT
from quarterdeck.hub.holdings import MOST_TOOLS, changes, changes_by_answer
from quarterdeck.hub.offers import MOST_OFFERS, MOST_SERVERS, commands_in
from quarterdeck.hub.tasks import MOST_TASKS
from quarterdeck.hub.todos import MOST_TODOS
from quarterdeck.journal.holds import evolve_holds
from quarterdeck.links.replay import read_records
from quarterdeck.protocol.events import (
    ContextChanged,
    Event,
    McpChanged,
    OffersChanged,
    TaskChanged,
    TaskEnded,
    TodosChanged,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from quarterdeck.protocol.holds import Holds, McpServer, Todo
from quarterdeck.wire import codec
from quarterdeck.wire.base import Message
from quarterdeck.wire.exchange import Answered
from quarterdeck.wire.info import SlashCommand
from quarterdeck.wire.peer import Peer, RequestEnded
from quarterdeck.wire.turns import TurnEnded as WireEnded
from support import lines

FOLDER = Path(__file__).parent.parent / "fixtures" / "recordings"
VERSIONS = ("2.1.37", "2.1.62", "2.1.120", "2.1.325")
each_version = pytest.mark.parametrize("version", VERSIONS)


class Holdings:
    """What holds, kept up to date with its events as a run does."""

    def __init__(self) -> None:
        self.holds = Holds()

    def receive(self, message: Message, at: int) -> list[Event]:
        return self._keep(changes(self.holds, message), at)

    def answered(self, subtype: str, answer: Raw | None, at: int) -> list[Event]:
        return self._keep(changes_by_answer(self.holds, subtype, answer), at)

    def evolve(self, event: Event, at: int) -> None:
        self.holds = evolve_holds(self.holds, event, at)

    def _keep(self, events: Iterable[Event], at: int) -> list[Event]:
        found = list(events)
        for event in found:
            self.evolve(event, at)
        return found


class Played:
    """What a recording of a real CLI comes to."""

    def __init__(self, name: str) -> None:
        self.holdings = Holdings()
        self.events: list[Event] = []
        self.states: list[Holds] = []
        """What held after each line."""
        peer = Peer()
        for at, record in enumerate(read_records((FOLDER / f"{name}.ndjson").read_bytes())):
            if record.line is None:
                continue
            if record.dir == "in":
                peer.note_sent(record.line.encode())
                continue
            for heard in peer.receive_data(record.line.encode() + b"\n"):
                match heard:
                    case RequestEnded(subtype=subtype, ending=Answered(json=answer)):
                        self.events += self.holdings.answered(subtype, answer, at)
                    case WireEnded():
                        self.holdings.evolve(turn_ended(), at)
                    case Message():
                        self.events += self.holdings.receive(heard, at)
                    case _:
                        pass
            self.states.append(self.holdings.holds)

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]


def turn_ended() -> TurnEnded:
    return TurnEnded(prompts=(), failed=False, outcome="success", cost_usd=0.0)


def say(holdings: Holdings, *given: bytes) -> list[Event]:
    events: list[Event] = []
    for line in given:
        events += holdings.receive(codec.from_cli(line), 1)
    return events


def call(tool: str, given: Any, id_: str = "toolu_1", parent: str | None = None) -> bytes:
    block = {"type": "tool_use", "id": id_, "name": tool, "input": given}
    message = {"id": "m", "role": "assistant", "model": "claude", "content": [block]}
    return lines.line(
        type="assistant", message=message, parent_tool_use_id=parent, uuid="u", session_id="s"
    )


def outcome(told: Any, id_: str = "toolu_1", *, failed: bool = False) -> bytes:
    block = {"type": "tool_result", "tool_use_id": id_, "content": "x", "is_error": failed}
    return lines.line(
        type="user",
        message={"role": "user", "content": [block]},
        tool_use_result=told,
        uuid="u",
        session_id="s",
    )


def system(subtype: str, **members: Any) -> bytes:
    return lines.line(type="system", subtype=subtype, uuid="u", session_id="s", **members)


# --- recordings of real CLIs ----------------------------------------------------------------------


@each_version
def test_initialize_tells_what_can_be_chosen_and_later_turns_tell_nothing_new(version: str) -> None:
    played = Played(f"{version}-stdio-mcp")
    offers = played.holdings.holds.offers
    assert "compact" in {command.name for command in offers.commands}
    assert "default" in {model.model for model in offers.models}
    assert all(command.description for command in offers.commands if command.name == "compact")
    if version != "2.1.37":
        assert "general-purpose" in {agent.name for agent in offers.agents}
    told = played.of(OffersChanged)
    assert len(told) <= 2, "by the answer, and by the first turn where that tells more"


@each_version
def test_mcp_servers_are_told_with_their_status_once(version: str) -> None:
    played = Played(f"{version}-stdio-mcp")
    assert played.holdings.holds.mcp == (McpServer(name="calc", status="connected"),)
    told = played.of(McpChanged)
    assert told[-1].servers == played.holdings.holds.mcp
    assert len(told) == len({msgspec.json.encode(one) for one in told})


@each_version
def test_a_tool_runs_from_its_call_to_its_result(version: str) -> None:
    played = Played(f"{version}-stdio-tools-allowed")
    started, ended = played.of(ToolStarted), played.of(ToolEnded)
    assert started
    assert [one.call for one in started] == [one.call for one in ended]
    assert any(len(state.tools) == 1 for state in played.states)
    assert started[0].title
    assert played.holdings.holds.tools == ()


@each_version
def test_a_subagent_is_a_task_while_it_works(version: str) -> None:
    played = Played(f"{version}-stdio-subagent")
    (first, *_), ended = played.of(TaskChanged), played.of(TaskEnded)
    assert (first.task.kind, first.task.title) == ("agent", "some work")
    assert first.task.agent == "general-purpose"
    assert [one.status for one in ended] == ["completed"]
    running = [state for state in played.states if state.tasks]
    assert all(len(state.tasks) == 1 for state in running), "one subagent, whoever tells of it"
    inner = [tool for state in running for tool in state.tools if tool.agent]
    assert {(tool.tool, tool.agent) for tool in inner} == {("Bash", first.task.call)}
    assert not any(task.background for state in running for task in state.tasks)
    assert played.holdings.holds.tasks == ()
    if version in {"2.1.120", "2.1.325"}:
        (told,) = {task.last_tool for state in running for task in state.tasks} - {None}
        assert told == "Bash"


@each_version
def test_a_shell_in_the_background_is_a_task_until_the_cli_tells_its_end(version: str) -> None:
    played = Played(f"{version}-stdio-background")
    running = [state.tasks for state in played.states if state.tasks]
    (task,) = running[-1]
    assert (task.kind, task.background) == ("shell", True)
    assert task.title
    if version == "2.1.37":  # it tells the end with the next turn, which the scene does not have
        assert played.holdings.holds.tasks == (task,)
    else:
        assert played.holdings.holds.tasks == ()
        assert [one.status for one in played.of(TaskEnded)] == ["completed"]


@each_version
def test_the_context_is_told_with_its_window(version: str) -> None:
    played = Played(f"{version}-stdio-slash-commands")
    context = played.holdings.holds.context
    assert context.window in {200_000, 1_000_000}
    told = played.of(ContextChanged)
    assert told
    assert all(one.tokens is not None or one.window is not None for one in told)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.ndjson")))
def test_every_event_of_a_recording_changes_something_and_ends_what_ended(name: str) -> None:
    played = Played(name)
    replayed = Holdings()
    for event in played.events:
        before = replayed.holds
        replayed.evolve(event, 1)
        assert replayed.holds != before, event
    assert len(msgspec.json.encode(played.holdings.holds)) < 32 * 1024


# --- to-dos --------------------------------------------------------------------------------------


def test_todo_write_gives_the_whole_list() -> None:
    holdings = Holdings()
    todos = [
        {"content": "one", "status": "completed", "activeForm": "Doing one"},
        {"content": "two", "status": "in_progress", "activeForm": "Doing two"},
    ]
    events = say(holdings, call("TodoWrite", {"todos": todos}))
    assert [type(event) for event in events] == [ToolStarted, TodosChanged]
    assert holdings.holds.todos == (
        Todo(todo="1", text="one", status="completed", doing="Doing one"),
        Todo(todo="2", text="two", status="in_progress", doing="Doing two"),
    )
    again = say(holdings, outcome(None), call("TodoWrite", {"todos": todos}, "toolu_2"))
    assert not [event for event in again if isinstance(event, TodosChanged)]
    inside = say(holdings, call("TodoWrite", {"todos": []}, "toolu_3", parent="toolu_0"))
    assert not [event for event in inside if isinstance(event, TodosChanged)], "a subagent's own"


def test_the_newest_todo_tools_create_update_list_and_delete() -> None:
    """The results are those of 2.1.325."""
    holdings = Holdings()
    for place, text in (("1", "one"), ("2", "two")):
        say(
            holdings,
            call("TaskCreate", {"subject": text, "description": "d"}),
            outcome({"task": {"id": place, "subject": text, "description": "d"}}),
        )
    assert [(todo.todo, todo.text, todo.status) for todo in holdings.holds.todos] == [
        ("1", "one", "pending"),
        ("2", "two", "pending"),
    ]
    say(
        holdings,
        call("TaskUpdate", {"taskId": "1", "status": "in_progress", "activeForm": "Doing one"}),
    )
    assert holdings.holds.todos[0].status == "pending", "not before the tool says so"
    change = {"from": "pending", "to": "in_progress"}
    say(holdings, outcome({"success": True, "taskId": "1", "statusChange": change}))
    assert holdings.holds.todos[0] == Todo(
        todo="1", text="one", status="in_progress", doing="Doing one"
    )
    say(holdings, call("TaskUpdate", {"taskId": "2", "status": "completed", "subject": "second"}))
    say(holdings, outcome({"success": False, "taskId": "2", "updatedFields": []}, failed=True))
    assert holdings.holds.todos[1] == Todo(todo="2", text="second")
    listed = [{"id": "2", "subject": "zwei", "status": "completed", "blockedBy": []}]
    say(holdings, call("TaskList", {}), outcome({"tasks": listed}))
    assert [(todo.todo, todo.text) for todo in holdings.holds.todos] == [("2", "zwei")]
    change = {"from": "completed", "to": "deleted"}
    say(
        holdings,
        call("TaskUpdate", {"taskId": "2", "status": "deleted"}),
        outcome({"success": True, "taskId": "2", "statusChange": change}),
    )
    assert holdings.holds.todos == ()


# --- tasks, tools, servers, context ---------------------------------------------------------------


def test_a_subagent_in_the_background_outlives_its_call_and_its_turn() -> None:
    holdings = Holdings()
    say(
        holdings,
        call("Task", {"description": "look", "subagent_type": "Explore"}),
        system("task_started", task_id="a1", tool_use_id="toolu_1", description="look"),
        outcome({"status": "async_launched", "agentId": "a1"}),
        call("Bash", {"command": "ls"}, "toolu_2", parent="toolu_1"),
    )
    holdings.evolve(turn_ended(), 2)
    (task,), (tool,) = holdings.holds.tasks, holdings.holds.tools
    assert (task.task, task.background, task.agent) == ("a1", True, "Explore")
    assert (tool.call, tool.agent) == ("toolu_2", "toolu_1")
    say(holdings, system("task_notification", task_id="a1", status="failed", summary=""))
    assert holdings.holds.tasks == ()


def test_the_set_of_background_tasks_ends_those_that_are_not_in_it() -> None:
    holdings = Holdings()
    tasks = [{"task_id": f"b{n}", "task_type": "local_bash", "description": "x"} for n in range(3)]
    events = say(holdings, system("background_tasks_changed", tasks=tasks))
    assert [type(event) for event in events] == [TaskChanged] * 3
    assert say(holdings, system("background_tasks_changed", tasks=tasks)) == []
    events = say(holdings, system("background_tasks_changed", tasks=tasks[1:2]))
    assert events == [TaskEnded(task="b0"), TaskEnded(task="b2")]
    paused = system("task_updated", task_id="b1", patch={"status": "paused"})
    say(holdings, paused)
    assert holdings.holds.tasks[0].status == "paused"
    assert say(holdings, paused) == []


def test_several_results_in_one_message_each_count() -> None:
    holdings = Holdings()
    say(holdings, call("TaskCreate", {}, "toolu_1"), call("Bash", {"command": "x"}, "toolu_2"))
    blocks = [
        {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "x"} for n in (1, 2, 3)
    ]
    events = say(
        holdings,
        lines.line(type="user", message={"role": "user", "content": blocks}, uuid="u"),
    )
    assert events == [ToolEnded(call="toolu_1"), ToolEnded(call="toolu_2")]
    assert holdings.holds.tools == ()


def test_a_server_that_fails_keeps_its_error_through_the_next_turn() -> None:
    holdings = Holdings()
    status = [{"name": "db", "status": "failed", "error": "no such file"}]
    events = holdings.answered("mcp_status", Raw(json.dumps({"mcpServers": status}).encode()), 1)
    told = McpServer(name="db", status="failed", error="no such file")
    assert events == [McpChanged(servers=(told,))]
    init = system("init", mcp_servers=[{"name": "db", "status": "failed"}])
    assert say(holdings, init) == []
    init = system("init", mcp_servers=[{"name": "db", "status": "connected"}])
    assert say(holdings, init) == [McpChanged(servers=(McpServer(name="db", status="connected"),))]


def test_the_context_is_told_in_steps_and_exactly_when_it_is_compacted_or_cleared() -> None:
    holdings = Holdings()

    def spoken(tokens: int) -> list[Event]:
        message = {
            "id": "m",
            "role": "assistant",
            "model": "claude",
            "content": [],
            "usage": {"input_tokens": 1, "cache_read_input_tokens": tokens - 1},
        }
        return say(holdings, lines.line(type="assistant", message=message, uuid="u"))

    assert spoken(5000) == [ContextChanged(tokens=5000)]
    assert spoken(5100) == []
    assert spoken(6100) == [ContextChanged(tokens=6100)]
    compacted = system("compact_boundary", compact_metadata={"pre_tokens": 6100, "post_tokens": 90})
    assert say(holdings, compacted) == [ContextChanged(tokens=90)]
    say(holdings, call("TodoWrite", {"todos": [{"content": "one", "status": "pending"}]}))
    reset = lines.line(type="conversation_reset", new_conversation_id="n", uuid="u")
    assert say(holdings, reset) == [ContextChanged(tokens=0), TodosChanged(todos=())]


# --- a hostile CLI --------------------------------------------------------------------------------

LONG = "x" * 10_000


@pytest.mark.no_cover
def test_nothing_grows_without_limit_and_what_is_cut_is_counted() -> None:
    holdings = Holdings()
    many = range(500)
    initialized = {
        "commands": [{"name": f"c{n}{LONG}", "description": LONG} for n in range(400)],
        "models": [{"value": f"m{n}", "displayName": LONG} for n in range(400)],
        "agents": [{"name": f"a{n}", "description": LONG} for n in range(400)],
    }
    holdings.answered("initialize", Raw(json.dumps(initialized).encode()), 1)
    servers = [{"name": f"s{n}", "status": LONG} for n in many]
    for _ in range(3):
        say(
            holdings,
            system(
                "init",
                mcp_servers=servers,
                slash_commands=[f"n{n}" for n in many],
                agents=[f"n{n}" for n in many],
            ),
            call("TodoWrite", {"todos": [{"content": LONG, "status": LONG} for _ in many]}),
        )
    for n in many:
        say(
            holdings,
            call("Task", {"description": LONG, "subagent_type": LONG}, f"toolu_{n}"),
            call("Bash", {"command": "x" * 500}, f"bash_{n}"),
            system("task_started", task_id=f"t{n}", description="x", task_type="x" * 5000),
        )
    say(holdings, call("Task", {}, LONG), system("task_started", task_id=LONG, description=""))
    tasks = [{"task_id": f"b{n}", "task_type": "local_bash"} for n in many]
    say(holdings, system("background_tasks_changed", tasks=tasks))
    holds = holdings.holds
    assert len(holds.offers.commands) == len(holds.offers.models) == MOST_OFFERS
    assert len(holds.todos) == MOST_TODOS
    assert len(holds.tasks) == MOST_TASKS
    assert len(holds.tools) == MOST_TOOLS
    assert len(holds.mcp) == MOST_SERVERS
    assert holds.cut == {
        "commands": 100,
        "models": 100,
        "agents": 100,
        "todos": 400,
        "mcp": 450,
    }
    assert max(map(len, texts(msgspec.to_builtins(holds)))) <= max(TEXT, LONGEST_ID, NAME)
    assert len(msgspec.json.encode(holds)) < 400_000


def texts(value: Any) -> Iterable[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from texts(each)
        case list() | tuple():
            for each in value:
                yield from texts(each)
        case _:
            pass


odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["task", "tasks", "id", "subject", "taskId", "statusChange", "todos"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(
    given=st.lists(
        st.tuples(
            st.sampled_from(["TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "Task", "Bash"]),
            odd,
            odd,
        ),
        max_size=5,
    )
)
def test_inputs_and_results_of_any_shape_raise_nothing(given: list[tuple[str, Any, Any]]) -> None:
    holdings = Holdings()
    for tool, input_, result in given:
        say(holdings, call(tool, input_), outcome(result))
        holdings.answered("initialize", Raw(json.dumps(result).encode()), 1)
        holdings.answered("mcp_status", Raw(json.dumps(result).encode()), 1)
    assert holdings.holds.tools == ()


def test_commands_of_the_project_are_told_from_those_of_the_cli() -> None:
    flagged = [
        SlashCommand(name="compact", builtin=True),
        SlashCommand(name="tidy", description="Tidy up"),
        SlashCommand(name="other", builtin=False),
    ]
    assert [each.own for each in commands_in(flagged)] == [False, True, True]
    # Versions without the flag name the source at the end of the description.
    older = [
        SlashCommand(name="compact", description="Free up context"),
        SlashCommand(name="tidy", description="Tidy up " + "x" * 500 + " (project)"),
        SlashCommand(name="mine", description="Mine (user)"),
        SlashCommand(name="debug", description="Debug (bundled)"),
        SlashCommand(name="plug", description="Plugged (plugin:tools)"),
    ]
    assert [each.own for each in commands_in(older)] == [False, True, True, False, True]
