"""Who gets which line: every row of the table in `quarterdeck.program.router`."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from quarterdeck.program.acts import Act
from quarterdeck.program.arguments import Given
from quarterdeck.program.router import GONE, ProgramAnswer, Routed, Router

Line = dict[str, Any]


class Scene:
    """A router, with lines as objects, and what each side has got."""

    def __init__(self, **given: Any) -> None:
        numbers = count(1)
        self.router = Router(Given(**given), new_uuid=lambda: f"made-{next(numbers)}")
        self.cli: list[Line] = []
        self.program: list[Line] = []
        self.hub: list[Line | ProgramAnswer] = []
        self.acts: list[Act] = []
        self.warnings: list[str] = []

    def program_says(self, line: Line) -> None:
        self.take(self.router.from_program(_bytes(line)))

    def hub_says(self, line: Line) -> None:
        self.take(self.router.from_hub(_bytes(line)))

    def cli_says(self, line: Line) -> None:
        self.take(self.router.from_cli(_bytes(line)))

    def program_ends(self) -> None:
        self.take(self.router.program_ended())

    def greet(self) -> None:
        """Both have said `initialize`, and the CLI has answered."""
        self.program_says(_request("p1", "initialize", hooks={"PreToolUse": [_matcher("hook_0")]}))
        self.hub_says(_request("h1", "initialize", hooks={"PreToolUse": [_matcher("watch")]}))
        self.cli_says(_success("p1", {"models": []}))
        self.clear()

    def may_end(self) -> bool:
        return self.router.may_end_input

    def clear(self) -> None:
        self.cli, self.program, self.hub, self.acts = [], [], [], []

    def take(self, routed: Routed) -> None:
        self.cli += [json.loads(line) for line in routed.cli]
        self.program += [json.loads(line) for line in routed.program]
        for each in routed.hub:
            match each:
                case Act():
                    self.acts.append(each)
                case ProgramAnswer():
                    self.hub.append(each)
                case bytes():
                    self.hub.append(json.loads(each))
        self.warnings += routed.warnings


def _bytes(line: Line) -> bytes:
    return json.dumps(line).encode()


def _request(request_id: str, subtype: str, **more: Any) -> Line:
    body = {"subtype": subtype, **more}
    return {"type": "control_request", "request_id": request_id, "request": body}


def _matcher(callback: str, matcher: str | None = None) -> Line:
    return {"matcher": matcher, "hookCallbackIds": [callback]}


def _success(request_id: str, body: object) -> Line:
    response = {"subtype": "success", "request_id": request_id, "response": body}
    return {"type": "control_response", "response": response}


def _ask(request_id: str = "q1") -> Line:
    return _request(request_id, "can_use_tool", tool_name="Bash", input={"command": "ls"})


def _user(text: str, **more: Any) -> Line:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def _replay(uuid: str) -> Line:
    return _user("x", uuid=uuid, isReplay=True, session_id="s", parent_tool_use_id=None)


def _lifecycle(uuid: str, state: str) -> Line:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state, "uuid": "u"}


def _state(state: str) -> Line:
    return {"type": "system", "subtype": "session_state_changed", "state": state, "uuid": "u"}


INIT = {"type": "system", "subtype": "init", "cwd": "/", "uuid": "i", "session_id": "s"}
RESULT = {"type": "result", "subtype": "success", "result": "ok", "uuid": "r", "session_id": "s"}
ALLOW = {"behavior": "allow", "updatedInput": {"command": "ls"}}

# --- initialize ----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["program", "hub"])
def test_initialize_waits_for_both_and_is_sent_once_with_the_hooks_of_both(first: str) -> None:
    scene = Scene()
    mine = _request(
        "p1", "initialize", hooks={"PreToolUse": [_matcher("hook_0", "Bash")]}, agents={"a": {}}
    )
    hubs = _request("h1", "initialize", hooks={"PreToolUse": [_matcher("watch")]})
    if first == "program":
        scene.program_says(mine)
        assert scene.cli == []
        scene.hub_says(hubs)
    else:
        scene.hub_says(hubs)
        assert scene.cli == []
        scene.program_says(mine)
    (sent,) = scene.cli
    assert sent["request_id"] == "p1"
    assert sent["request"]["agents"] == {"a": {}}
    assert sent["request"]["hooks"]["PreToolUse"] == [
        _matcher("watch"),
        _matcher("hook_0", "Bash"),
    ]
    scene.cli_says(_success("p1", {"models": [1]}))
    assert scene.program == [_success("p1", {"models": [1]})]
    assert scene.hub == [_success("h1", {"models": [1]})]


def test_the_hub_gets_its_initialize_again_from_memory() -> None:
    scene = Scene()
    scene.greet()
    scene.hub_says(_request("h9", "initialize"))
    assert scene.cli == []
    assert scene.hub == [_success("h9", {"models": []})]


def test_a_program_without_initialize_waits_for_the_hubs() -> None:
    scene = Scene()
    scene.program_says(_user("hello"))
    assert scene.cli == []
    assert scene.router.program_spoke
    scene.hub_says(_request("h1", "initialize", hooks={"PreToolUse": [_matcher("watch")]}))
    assert [line["type"] for line in scene.cli] == ["control_request", "user"]
    scene.cli_says(_success("h1", {}))
    assert scene.hub == [_success("h1", {})]
    assert scene.program == []


def test_a_later_initialize_of_the_program_keeps_the_hubs_hooks() -> None:
    scene = Scene()
    scene.greet()
    scene.program_says(_request("p2", "initialize", hooks=None))
    (sent,) = scene.cli
    assert sent["request"]["hooks"] == {"PreToolUse": [_matcher("watch")]}


def test_a_program_cannot_take_a_callback_of_the_hub() -> None:
    scene = Scene()
    scene.hub_says(_request("h1", "initialize", hooks={"PreToolUse": [_matcher("watch")]}))
    scene.program_says(_request("p1", "initialize", hooks={"Stop": [_matcher("watch")]}))
    assert scene.program[0]["response"]["subtype"] == "error"
    assert [line["request_id"] for line in scene.cli] == ["h1"]


# --- hooks, servers, forms -----------------------------------------------------------------------


def test_a_hook_goes_to_the_one_whose_callback_it_is() -> None:
    scene = Scene()
    scene.greet()
    scene.cli_says(_request("c1", "hook_callback", callback_id="watch", input={}))
    assert [line["request_id"] for line in scene.hub if isinstance(line, dict)] == ["c1"]
    assert scene.program == []
    scene.cli_says(_request("c2", "hook_callback", callback_id="hook_0", input={}))
    assert [line["request_id"] for line in scene.program] == ["c2"]
    assert len(scene.hub) == 1
    scene.hub_says(_success("c1", {}))
    scene.program_says(_success("c2", {"decision": "block"}))
    assert scene.cli == [_success("c1", {}), _success("c2", {"decision": "block"})]


def test_servers_of_the_program_live_on_and_forms_go_to_the_hub() -> None:
    scene = Scene()
    scene.greet()
    scene.cli_says(_request("m1", "mcp_message", server_name="calc", message={}))
    scene.cli_says(_request("e1", "elicitation", mcp_server_name="x", message="?"))
    assert [line["request_id"] for line in scene.program] == ["m1"]
    assert [line["request_id"] for line in scene.hub if isinstance(line, dict)] == ["e1"]
    scene.program_says(_success("m1", {"mcp_response": {}}))
    assert scene.cli == [_success("m1", {"mcp_response": {}})]


# --- permission requests -------------------------------------------------------------------------


def test_a_permission_request_goes_to_the_hub_only_without_a_callback() -> None:
    scene = Scene()
    scene.greet()
    scene.cli_says(_ask())
    assert scene.hub == [_ask()]
    assert scene.program == []
    scene.hub_says(_success("q1", ALLOW))
    assert scene.cli == [_success("q1", ALLOW)]


def test_the_programs_answer_goes_to_the_hub_and_only_the_hub_answers() -> None:
    scene = Scene(callback=True)
    scene.greet()
    scene.cli_says(_ask())
    assert scene.program == scene.hub == [_ask()]
    scene.program_says(_success("q1", ALLOW))
    assert scene.cli == []
    answer = scene.hub[-1]
    assert isinstance(answer, ProgramAnswer)
    assert (answer.request_id, json.loads(bytes(answer.response))) == ("q1", ALLOW)
    assert scene.router.is_open("q1")
    scene.hub_says(_success("q1", ALLOW))
    assert scene.cli == [_success("q1", ALLOW)]
    assert scene.program == [_ask()], "it has answered: there is nothing to withdraw"
    assert not scene.router.is_open("q1")


def test_a_program_that_is_slower_than_the_hub_hears_that_it_is_not_asked_any_more() -> None:
    scene = Scene(callback=True)
    scene.greet()
    scene.cli_says(_ask())
    scene.hub_says(_success("q1", {"behavior": "deny", "message": "no"}))
    assert scene.program[-1] == {"type": "control_cancel_request", "request_id": "q1"}
    scene.program_says(_success("q1", ALLOW))
    assert len(scene.cli) == 1
    assert scene.hub == [_ask()]


def test_a_callback_that_fails_has_denied() -> None:
    scene = Scene(callback=True)
    scene.greet()
    scene.cli_says(_ask())
    failed = {"subtype": "error", "request_id": "q1", "error": "oops"}
    scene.program_says({"type": "control_response", "response": failed})
    answer = scene.hub[-1]
    assert isinstance(answer, ProgramAnswer)
    assert json.loads(bytes(answer.response))["behavior"] == "deny"


def test_what_the_cli_withdraws_is_withdrawn_from_both() -> None:
    scene = Scene(callback=True)
    scene.greet()
    scene.cli_says(_ask())
    scene.clear()
    gone = {"type": "control_cancel_request", "request_id": "q1"}
    scene.cli_says(gone)
    assert scene.hub == scene.program == [gone]
    scene.hub_says(_success("q1", ALLOW))
    assert scene.cli == [], "an answer that comes too late"


# --- requests of both ----------------------------------------------------------------------------


def test_each_gets_the_answers_to_its_own_requests() -> None:
    scene = Scene()
    scene.greet()
    scene.program_says(_request("p2", "set_model", model="opus"))
    scene.hub_says(_request("h2", "interrupt"))
    scene.cli_says(_success("h2", {}))
    scene.cli_says(_success("p2", {}))
    assert scene.hub == [_success("h2", {})]
    assert scene.program == [_success("p2", {})]


def test_a_request_id_that_is_open_already_is_refused() -> None:
    scene = Scene()
    scene.greet()
    scene.hub_says(_request("same", "interrupt"))
    scene.program_says(_request("same", "interrupt"))
    assert scene.program[0]["response"]["subtype"] == "error"
    assert len(scene.cli) == 1


def test_echoed_answers_are_for_a_program_that_wanted_replay() -> None:
    for replay in (False, True):
        scene = Scene(replay=replay)
        scene.greet()
        scene.cli_says(_ask())
        scene.hub_says(_success("q1", ALLOW))
        scene.clear()
        scene.cli_says(_success("q1", ALLOW))
        assert scene.program == ([_success("q1", ALLOW)] if replay else [])
        assert scene.hub == []


# --- what the program did not ask for ------------------------------------------------------------


def test_what_the_program_did_not_ask_for_is_kept_from_it() -> None:
    extra = [
        _replay("own-0"),
        {"type": "stream_event", "event": {"type": "message_start"}, "uuid": "u"},
        {"type": "system", "subtype": "status", "status": "requesting", "uuid": "u"},
        _state("idle"),
    ]
    scene = Scene()
    scene.greet()
    scene.program_says(_user("mine", uuid="own-0"))
    for line in extra:
        scene.cli_says(line)
    scene.cli_says(INIT)
    scene.cli_says(_replay("the output of a command"))
    assert scene.program == [INIT, _replay("the output of a command")]
    assert scene.hub == [*extra, INIT, _replay("the output of a command")]
    asked = Scene(replay=True, partial=True, states=True)
    asked.greet()
    asked.program_says(_user("mine", uuid="own-0"))
    for line in extra:
        asked.cli_says(line)
    assert asked.program == extra


def test_a_prompt_gets_a_uuid_and_the_program_hears_nothing_of_it() -> None:
    scene = Scene()
    scene.greet()
    scene.program_says(_user("hello"))
    assert scene.cli[0]["uuid"] == "made-1"
    scene.cli_says(_lifecycle("made-1", "queued"))
    assert scene.program == []
    told = {"type": "system", "subtype": "thinking_tokens", "uuid": "u"}
    scene.cli_says({**told, "user_message_uuid": "made-1"})
    assert scene.program == [told]
    scene.cli_says({**told, "user_message_uuids": ["other"]})
    assert scene.program[-1] == {**told, "user_message_uuids": ["other"]}
    scene.clear()
    scene.program_says(_user("own", uuid="own-1"))
    assert scene.cli[0] == _user("own", uuid="own-1")
    scene.cli_says(_lifecycle("own-1", "queued"))
    assert scene.program == [_lifecycle("own-1", "queued")]


def test_a_turn_that_only_the_hub_asked_for_is_hidden_from_the_program() -> None:
    scene = Scene(states=True)
    scene.greet()
    scene.hub_says(_user("by a person", uuid="hub-1"))
    for line in (_lifecycle("hub-1", "started"), INIT, _replay("hub-1"), RESULT):
        scene.cli_says(line)
    assert scene.program == []
    scene.cli_says(_state("idle"))
    assert scene.program == [_state("idle")]
    scene.program_says(_user("mine", uuid="own-1"))
    scene.cli_says(_lifecycle("own-1", "started"))
    scene.cli_says(RESULT)
    assert scene.program[-1] == RESULT


def test_a_turn_that_takes_in_a_prompt_of_the_program_is_shown_from_then_on() -> None:
    scene = Scene()
    scene.greet()
    scene.hub_says(_user("by a person", uuid="hub-1"))
    scene.cli_says(_lifecycle("hub-1", "started"))
    scene.program_says(_user("mine", uuid="own-1"))
    scene.cli_says(_lifecycle("own-1", "started"))
    scene.cli_says(RESULT)
    assert RESULT in scene.program


# --- the end -------------------------------------------------------------------------------------


def test_the_end_of_the_programs_input_is_not_that_of_the_cli() -> None:
    scene = Scene()
    scene.greet()
    scene.program_says(_user("hello"))
    scene.program_ends()
    assert not scene.may_end(), "the prompt waits"
    scene.cli_says(_state("running"))
    scene.cli_says(_lifecycle("made-1", "started"))
    scene.cli_says(_ask())
    scene.hub_says(_success("q1", ALLOW))
    assert not scene.may_end(), "no result"
    scene.cli_says(RESULT)
    assert not scene.may_end(), "not idle"
    scene.cli_says(_state("idle"))
    assert scene.may_end()


def test_an_open_question_keeps_the_input_open() -> None:
    scene = Scene()
    scene.greet()
    scene.program_ends()
    assert scene.may_end()
    scene.cli_says(_ask())
    assert not scene.may_end()
    scene.hub_says(_success("q1", ALLOW))
    assert scene.may_end()


def test_a_program_that_has_ended_its_input_answers_nothing_any_more() -> None:
    scene = Scene(callback=True)
    scene.greet()
    scene.cli_says(_request("c1", "hook_callback", callback_id="hook_0", input={}))
    scene.cli_says(_ask("q0"))
    scene.clear()
    scene.program_ends()
    (refused,) = scene.cli
    assert refused["response"] == {"subtype": "error", "request_id": "c1", "error": GONE}
    assert scene.router.is_open("q0"), "people can still answer"
    scene.cli_says(_request("m1", "mcp_message", server_name="calc", message={}))
    assert scene.cli[-1]["response"]["request_id"] == "m1"
    scene.cli_says(_ask("q2"))
    assert scene.program == []
    assert scene.hub == [_ask("q2")]


def test_a_program_without_a_word_ends_at_once() -> None:
    scene = Scene()
    scene.program_ends()
    assert scene.router.program_spoke
    scene.hub_says(_request("h1", "initialize"))
    scene.cli_says(_success("h1", {}))
    assert scene.may_end()


def test_lines_that_are_none_are_passed_as_they_are() -> None:
    scene = Scene()
    scene.greet()
    router = scene.router
    assert router.from_program(b"not json").cli == [b"not json"]
    assert router.from_cli(b"not json").program == [b"not json"]
    assert router.from_cli(b"not json").hub == [b"not json"]
    keep = {"type": "keep_alive"}
    scene.program_says(keep)
    scene.hub_says(keep)
    assert scene.cli == [keep, keep]


def test_a_request_that_was_cancelled_does_not_keep_the_input_open() -> None:
    scene = Scene()
    scene.greet()
    scene.program_says(_request("p2", "set_model", model="opus"))
    scene.hub_says(_request("h2", "interrupt"))
    scene.program_ends()
    assert not scene.may_end()
    scene.program_says({"type": "control_cancel_request", "request_id": "p2"})
    scene.hub_says({"type": "control_cancel_request", "request_id": "h2"})
    assert scene.may_end()


# --- what a program does to its agent -------------------------------------------------------------


def test_what_a_program_asks_of_its_agent_is_told_to_the_hub() -> None:
    scene = Scene()
    scene.greet()
    servers = {"web": {"headers": {"Authorization": "secret"}}}
    requests: list[tuple[str, Line]] = [
        ("set_permission_mode", {"mode": "acceptEdits"}),
        ("set_model", {"model": "opus"}),
        ("interrupt", {}),
        ("apply_flag_settings", {"settings": {"effortLevel": "low", "env": {"KEY": "secret"}}}),
        ("mcp_set_servers", {"servers": servers}),
        ("rewind_files", {"user_message_id": "u1", "dry_run": True}),
        ("mcp_status", {}),
        ("get_context_usage", {}),
    ]
    for number, (subtype, more) in enumerate(requests):
        scene.program_says(_request(f"r{number}", subtype, **more))
    assert [(act.what, act.detail) for act in scene.acts] == [
        ("set_permission_mode", "mode acceptEdits"),
        ("set_model", "model opus"),
        ("interrupt", ""),
        ("apply_flag_settings", "settings (effortLevel, env)"),
        ("mcp_set_servers", "servers (web)"),
        ("rewind_files", "user_message_id u1, dry_run true"),
    ]
    assert {(act.act, act.refused) for act in scene.acts} == {("request", False)}
    assert len(scene.cli) == len(requests)
    scene.program_says({"type": "bash_command", "command": "ls"})
    assert (scene.acts[-1].what, scene.acts[-1].detail) == ("bash_command", "command ls")


@pytest.mark.parametrize(
    "settings",
    [
        {"env": {"CLAUDE_CODE_SIMPLE": "1"}},
        {"env": {"CLAUDE_CODE_SIMPLE": 1}},
        {"crossSessionInbound": "accept"},
        {"crossSessionInbound": None},
        {"permissions": {"defaultMode": "bypassPermissions"}},
        "none",
    ],
)
def test_settings_that_undo_what_the_hub_forces_are_refused(settings: object) -> None:
    scene = Scene()
    scene.greet()
    scene.program_says(_request("r1", "apply_flag_settings", settings=settings))
    assert scene.cli == []
    (refused,) = scene.program
    assert refused["response"]["subtype"] == "error"
    (act,) = scene.acts
    assert act.refused
    assert "refused" in act.detail
    scene.program_ends()
    assert scene.may_end(), "nothing is open"


def test_who_may_skip_permissions_may_do_so_by_settings() -> None:
    scene = Scene(skip_permissions=True)
    scene.greet()
    settings = {"permissions": {"defaultMode": "bypassPermissions"}}
    scene.program_says(_request("r1", "apply_flag_settings", settings=settings))
    assert len(scene.cli) == 1


def test_variables_that_switch_hooks_off_are_not_passed_on() -> None:
    scene = Scene()
    scene.greet()
    kind = "update_environment_variables"
    scene.program_says({"type": kind, "variables": {"CLAUDE_CODE_SIMPLE": "1"}})
    scene.program_says({"type": kind, "variables": {"CLAUDE_CODE_SIMPLE": True}, "request_id": "r"})
    scene.program_says({"type": kind, "variables": 5})
    assert scene.cli == []
    assert len(scene.warnings) == 3
    assert [each["response"]["request_id"] for each in scene.program] == ["r"]
    scene.program_says({"type": kind, "variables": {"A": "secret"}})
    assert len(scene.cli) == 1
    assert scene.acts[-1].detail == "variables (A)"


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"control_request","request_id":7,"request":{"subtype":"initialize"}}',
        b'{"type":"control_request","request_id":"\\ud800","request":{"subtype":"initialize"}}',
        b'\xef\xbb\xbf{"type":"control_request","request_id":"r","request":{}}',
        b'\x0b{"type":"control_request","request_id":"r","request":{}}',
        b'\xc2\xa0{"type":"control_request","request_id":"r","request":{}}',
        b'[{"type":"control_request"}]',
        b'{"type":"user","uuid":5}',
        b"[" * 100_000,
    ],
)
def test_what_only_the_cli_could_read_is_not_passed_on(line: bytes) -> None:
    scene = Scene()
    scene.greet()
    scene.take(scene.router.from_program(line))
    assert scene.cli == scene.program == []
    assert len(scene.warnings) == 1
    (act,) = scene.acts
    assert (act.what, act.refused) == ("malformed", True)


@pytest.mark.parametrize(
    ("line", "what", "detail"),
    [
        (
            {
                "type": "update_environment_variables",
                "variables": {"CLAUDE_CODE_SIMPLE": "1", "TOKEN": "secret"},
            },
            "update_environment_variables",
            "variables (CLAUDE_CODE_SIMPLE, TOKEN)",
        ),
        (
            {
                "type": "control_request",
                "request_id": "p2",
                "request": {
                    "subtype": "initialize",
                    "hooks": {"Stop": [{"matcher": None, "hookCallbackIds": ["watch"]}]},
                },
            },
            "initialize",
            "the callback id 'watch' is the hub's",
        ),
        (
            {
                "type": "control_request",
                "request_id": "h2",
                "request": {"subtype": "get_context_usage"},
            },
            "get_context_usage",
            "is open already",
        ),
    ],
)
def test_what_is_refused_is_in_the_audit_log(line: Line, what: str, detail: str) -> None:
    scene = Scene()
    scene.greet()
    scene.hub_says(_request("h2", "interrupt"))
    scene.clear()
    scene.program_says(line)
    assert scene.cli == []
    (act,) = scene.acts
    assert (act.act, act.what, act.refused) == ("request", what, True)
    assert detail in act.detail
    assert "refused: " in act.detail
    assert "secret" not in act.detail


def test_what_nobody_can_read_is_the_business_of_the_cli() -> None:
    scene = Scene()
    scene.greet()
    routed = scene.router.from_program(b'{"type":"keep_alive"}\r{"type":"control_request"}')
    assert routed.cli == [b'{"type":"keep_alive"} {"type":"control_request"}']


def test_a_program_cannot_take_back_requests_of_the_hub() -> None:
    scene = Scene()
    scene.greet()
    scene.hub_says(_request("h2", "interrupt"))
    scene.clear()
    scene.program_says({"type": "control_cancel_request", "request_id": "h2"})
    assert scene.cli == []


def _called(request_id: str, event: str, **more: Any) -> Line:
    """The CLI calls the program's hook."""
    seen = {
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "session_id": "s",
        "transcript_path": "",
        "cwd": "/",
    }
    body = {"callback_id": "hook_0", "input": seen, "tool_use_id": "t1", **more}
    return _request(request_id, "hook_callback", **body)


def _output(event: str, **more: Any) -> Line:
    return {"hookSpecificOutput": {"hookEventName": event, **more}}


def test_decisions_of_hooks_are_told_to_the_hub() -> None:
    scene = Scene()
    scene.greet()
    allowed = _output("PreToolUse", permissionDecision="allow", permissionDecisionReason="mine")
    changed = _output("PostToolUse", updatedToolOutput="x", additionalContext="y")
    outputs: list[tuple[Line, str | None]] = [
        (allowed, "allow, mine"),
        ({"decision": "block", "continue": False}, "block, ends the turn"),
        (changed, "changes the output, adds context"),
        ({}, None),
        ({"continue": True, "suppressOutput": True}, None),
    ]
    for number, (output, _) in enumerate(outputs):
        scene.cli_says(_called(f"c{number}", "PreToolUse"))
        scene.program_says(_success(f"c{number}", output))
    assert [act.detail for act in scene.acts] == [words for _, words in outputs if words]
    assert {(a.act, a.what, a.tool, a.tool_use_id) for a in scene.acts} == {
        ("hook", "PreToolUse", "Bash", "t1")
    }
    assert len(scene.cli) == len(outputs)
    scene.cli_says(_called("c9", "PreToolUse"))
    error = {"subtype": "error", "request_id": "c9", "error": "broken"}
    scene.program_says({"type": "control_response", "response": error})
    assert scene.acts[-1].detail == "failed: broken"


def test_the_hub_is_shown_the_input_that_a_hook_of_the_program_makes() -> None:
    scene = Scene()
    scene.greet()
    scene.cli_says(_called("c1", "PreToolUse"))
    changed = _output("PreToolUse", permissionDecision="allow", updatedInput={"command": "rm"})
    scene.program_says(_success("c1", changed))
    assert scene.cli == []
    (shown,) = scene.hub
    assert isinstance(shown, dict)
    assert shown["request"]["callback_id"] == "watch"
    assert shown["request"]["input"]["tool_input"] == {"command": "rm"}
    assert shown["request"]["tool_use_id"] == "t1"
    denial = _output("PreToolUse", permissionDecision="deny", permissionDecisionReason="no")
    scene.program_ends()
    assert not scene.may_end()
    scene.hub_says(_success(shown["request_id"], denial))
    assert scene.cli == [_success("c1", denial)]
    assert scene.may_end()


@pytest.mark.parametrize(
    ("ruled", "decision", "command"),
    [
        ({}, "allow", "rm"),
        (_output("PreToolUse", permissionDecision="allow"), "allow", "rm"),
        (_output("PreToolUse", permissionDecision="ask"), "ask", "rm"),
        (_output("PreToolUse", updatedInput={"command": "rm -i"}), "allow", "rm -i"),
    ],
)
def test_the_rules_on_a_changed_input_hold(ruled: Line, decision: str, command: str) -> None:
    scene = Scene()
    scene.greet()
    scene.cli_says(_called("c1", "PreToolUse"))
    changed = _output("PreToolUse", permissionDecision="allow", updatedInput={"command": "rm"})
    scene.program_says(_success("c1", changed))
    scene.hub_says(_success("c1-changed", ruled))
    (answer,) = scene.cli
    output = answer["response"]["response"]["hookSpecificOutput"]
    assert output["permissionDecision"] == decision
    assert output["updatedInput"] == {"command": command}


def test_a_changed_input_that_no_rule_was_held_against_does_not_run() -> None:
    scene = Scene()
    scene.greet()
    scene.cli_says(_called("c1", "PreToolUse"))
    scene.program_says(_success("c1", _output("PreToolUse", updatedInput={"command": "rm"})))
    error = {"subtype": "error", "request_id": "c1-changed", "error": "no"}
    scene.hub_says({"type": "control_response", "response": error})
    (answer,) = scene.cli
    assert answer["response"]["response"]["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_changed_input_whose_hook_is_not_waited_for_is_withdrawn() -> None:
    scene = Scene()
    scene.greet()
    scene.cli_says(_called("c1", "PreToolUse"))
    scene.program_says(_success("c1", _output("PreToolUse", updatedInput={"command": "rm"})))
    scene.clear()
    scene.cli_says({"type": "control_cancel_request", "request_id": "c1"})
    assert scene.hub == [{"type": "control_cancel_request", "request_id": "c1-changed"}]
    scene.hub_says(_success("c1-changed", {}))
    assert scene.cli == []


def test_a_denied_call_may_have_a_changed_input() -> None:
    scene = Scene()
    scene.greet()
    scene.cli_says(_called("c1", "PreToolUse"))
    output = _output("PreToolUse", permissionDecision="deny", updatedInput={"command": "rm"})
    scene.program_says(_success("c1", output))
    assert scene.cli == [_success("c1", output)]


@pytest.mark.parametrize(
    ("asked_first", "named"),
    [(True, True), (True, False), (False, True)],
    ids=["both at once", "without a name", "the hook first"],
)
def test_a_hook_that_answers_a_permission_request_is_the_programs_answer(
    asked_first: bool, named: bool
) -> None:
    scene = Scene(callback=True)
    scene.greet()
    ask = _ask("q1")
    ask["request"]["tool_use_id"] = "t1"
    hook = _called("c1", "PermissionRequest", tool_use_id="t1" if named else None)
    decision = {"behavior": "allow", "updatedInput": {"command": "ls"}}
    output = _output("PermissionRequest", decision=decision)
    if asked_first:
        scene.cli_says(ask)
    scene.cli_says(hook)
    scene.program_says(_success("c1", {**output, "decision": "approve"}))
    if not asked_first:
        scene.cli_says(ask)
        assert [line["request_id"] for line in scene.program] == ["c1"], "it is not asked again"
    assert scene.cli == [_success("c1", {})], "the CLI is told of no decision"
    (given,) = [each for each in scene.hub if isinstance(each, ProgramAnswer)]
    assert (given.request_id, json.loads(bytes(given.response))) == ("q1", decision)
    assert [act.detail for act in scene.acts] == ["approve, allow, changes the input"]
    scene.hub_says(_success("q1", {"behavior": "deny", "message": "no"}))
    assert scene.cli[-1] == _success("q1", {"behavior": "deny", "message": "no"})


def test_a_hook_without_a_decision_answers_nothing() -> None:
    scene = Scene()
    scene.greet()
    scene.cli_says(_called("c1", "PermissionRequest"))
    scene.program_says(_success("c1", {"systemMessage": "hm"}))
    assert scene.cli == [_success("c1", {"systemMessage": "hm"})]
    assert not any(isinstance(each, ProgramAnswer) for each in scene.hub)
