"""The conversation on the screen: each thing once, in order, and nothing obeyed."""

from __future__ import annotations

import io

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.wire.codec import from_cli

Line = dict[str, object]


def screen(*, terminal: bool = False, width: int = 60) -> tuple[Screen, io.StringIO]:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=terminal, width=width, color_system=None, highlight=False
    )
    return Screen(console), out


def shown(*lines: Line, terminal: bool = False, width: int = 60) -> str:
    where, out = screen(terminal=terminal, width=width)
    for line in lines:
        where.show(from_cli(msgspec.json.encode(line)))
    return out.getvalue()


def assistant(*blocks: Line, parent: str | None = None) -> Line:
    message = {"id": "m", "role": "assistant", "content": list(blocks)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def text(said: str) -> Line:
    return {"type": "text", "text": said}


def thinking(said: str) -> Line:
    return {"type": "thinking", "thinking": said, "signature": ""}


def call(name: str, given_input: object, tool_id: str = "t1") -> Line:
    return {"type": "tool_use", "id": tool_id, "name": name, "input": given_input}


def outcome(content: str, tool_id: str = "t1", *, error: bool = False, **more: object) -> Line:
    block = {"type": "tool_result", "tool_use_id": tool_id, "content": content, "is_error": error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, **more}


def delta(kind: str, said: str) -> Line:
    change = {"type": f"{kind}_delta", "text" if kind == "text" else "thinking": said}
    event = {"type": "content_block_delta", "index": 0, "delta": change}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None}


def result(**fields: object) -> Line:
    base: Line = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1}
    return base | {"duration_ms": 1000, "total_cost_usd": 0.5, "result": "hi"} | fields


def test_streamed_text_is_not_shown_again_when_its_block_is_complete() -> None:
    lines = (delta("text", "one "), delta("text", "two"), assistant(text("one two")), result())
    assert shown(*lines) == "one two\n\ndone · $0.5000 · 1 turn · 1.0 s\n"


def test_what_was_lost_of_a_stream_comes_with_the_block() -> None:
    assert shown(delta("text", "one "), assistant(text("one two"))) == "one two\n"


def test_without_a_stream_whole_blocks_are_shown() -> None:
    assert shown(assistant(thinking("hm")), assistant(text("hello"))) == "hm\n\nhello\n"


def test_thinking_and_text_are_kept_apart() -> None:
    lines = (
        delta("thinking", "hm"),
        assistant(thinking("hm")),
        delta("text", "so"),
        assistant(text("so")),
    )
    assert shown(*lines) == "hm\n\nso\n"


def test_the_result_of_a_call_stands_below_it_or_names_it() -> None:
    below = shown(assistant(call("Bash", {"command": "ls"})), outcome("a\nb"))
    assert below == "• command      ls\n  └ a\n    b\n"
    apart = shown(
        assistant(call("Bash", {"command": "one"}, "t1")),
        assistant(call("Bash", {"command": "two"}, "t2")),
        outcome("first", "t1"),
    )
    assert apart.endswith("• command      one\n  └ first\n")


def test_an_edit_shows_the_patch_that_the_cli_reports() -> None:
    hunk = {"oldStart": 3, "oldLines": 1, "newStart": 3, "newLines": 1, "lines": ["-a", "+b"]}
    edit = call("Edit", {"file_path": "f", "old_string": "a", "new_string": "b"})
    done = outcome("ok", tool_use_result={"filePath": "f", "structuredPatch": [hunk]})
    assert shown(assistant(edit), done).endswith("f  +1 -1\n    @@ -3,1 +3,1 @@\n    -a\n    +b\n")
    assert "no luck" in shown(assistant(edit), outcome("no luck", error=True))


def test_a_diff_that_was_seen_before_is_only_counted() -> None:
    where, out = screen()
    where.diff_seen("t1")
    edit = call("Edit", {"file_path": "f", "old_string": "a", "new_string": "b"})
    for line in (assistant(edit), outcome("ok")):
        where.show(from_cli(msgspec.json.encode(line)))
    assert out.getvalue().endswith("    f  +1 -1\n")


def test_todos_are_listed() -> None:
    todos = [{"content": "do", "status": "in_progress"}, {"content": "did", "status": "completed"}]
    assert shown(assistant(call("TodoWrite", {"todos": todos}))).endswith(
        "    [>] do\n    [x] did\n"
    )


def test_a_subagent_is_set_apart() -> None:
    said = shown(
        assistant(text("sub"), parent="task"),
        assistant(call("Bash", {"command": "ls"}), parent="task"),
    )
    assert said == "  │ sub\n\n  │ • command      ls\n"


def test_an_api_error_is_said_once() -> None:
    line = assistant(text("API Error: 500")) | {"error": "server_error"}
    said = shown(line, result(is_error=True, result="API Error: 500"))
    assert said.count("API Error") == 1
    assert said.endswith("failed (api error) · $0.5000 · 1 turn · 1.0 s\n")


def test_a_result_without_any_message_is_still_told() -> None:
    assert shown(result(result="from a command")).startswith("from a command\n")
    broken = result(subtype="error_during_execution", is_error=True, errors=["it broke"])
    assert "it broke" in shown(broken)


def test_structured_output_is_shown_as_json() -> None:
    assert '{\n  "a": 1\n}' in shown(result(structured_output={"a": 1}))


def test_the_cost_is_the_turns_own() -> None:
    said = shown(result(), result(total_cost_usd=0.75))
    assert "$0.2500" in said


def test_nothing_is_shown_while_somebody_reads_a_question() -> None:
    where, out = screen()
    where.hold()
    where.show(from_cli(msgspec.json.encode(assistant(text("later")))))
    assert out.getvalue() == ""
    where.resume()
    assert "later" in out.getvalue()


def test_a_line_fits_a_narrow_terminal() -> None:
    said = shown(assistant(call("Bash", {"command": "x" * 100})), terminal=True, width=24)
    (line,) = said.splitlines()
    assert len(line) == 24
    assert line.endswith("…")


def test_a_pipe_gets_no_escape_at_all_and_no_cut_lines() -> None:
    said = shown(assistant(call("Bash", {"command": "x" * 100})), width=24)
    assert "x" * 100 in said
    assert "\x1b" not in said


_EVIL = "\x1b[2J\x1b]0;pwned\x07[red]x[/red]\x9b31m\r\u202e"


def test_escapes_and_markup_of_the_model_and_its_tools_are_only_shown() -> None:
    said = shown(
        delta("text", _EVIL),
        assistant(text(_EVIL)),
        assistant(thinking(_EVIL)),
        assistant(call(_EVIL, {"command": _EVIL, "description": _EVIL})),
        assistant(call("Bash", {"command": _EVIL, "description": _EVIL}, "t2")),
        outcome(_EVIL, "t2"),
        assistant(call("Write", {"file_path": _EVIL, "content": _EVIL}, "t3")),
        outcome("ok", "t3"),
        assistant(call("TodoWrite", {"todos": [{"content": _EVIL, "status": _EVIL}]}, "t4")),
        assistant({"type": _EVIL}),
        {"type": "system", "subtype": "informational", "content": _EVIL, "level": _EVIL},
        {"type": "system", "subtype": "status", "permissionMode": _EVIL},
        {"type": "system", "subtype": "task_notification", "task_id": "t", "summary": _EVIL},
        {"type": "system", "subtype": "api_retry", "error": _EVIL},
        result(is_error=True, errors=[_EVIL], terminal_reason=_EVIL),
        terminal=True,
    )
    assert not {"\x1b", "\x07", "\x9b", "\r", "\u202e"} & set(said)
    assert "[red]x[/red]" in said


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
_types = st.sampled_from(["assistant", "user", "result", "system", "stream_event", "new"])


@given(st.lists(st.tuples(_types, _json, _json), max_size=5))
def test_messages_of_any_shape_are_borne(parts: list[tuple[str, object, object]]) -> None:
    shown(
        *(
            {"type": kind, "subtype": "status", "message": one, "event": two, "result": two}
            for kind, one, two in parts
        )
    )


def test_changes_of_the_todo_list_are_one_row_each() -> None:
    lines = (
        assistant(call("TaskCreate", {"subject": "Replace floats", "description": "…"}, "t1")),
        assistant(call("TaskUpdate", {"taskId": "1", "status": "in_progress"}, "t2")),
        assistant(call("TaskUpdate", {"taskId": 7, "status": "\x1b[2J"}, "t3")),
        outcome("Task #1 created", "t1"),
        outcome("Updated task #1", "t2"),
        outcome("no such task", "t3", error=True),
    )
    assert shown(*lines, width=100) == (
        "• tool         TaskCreate Replace floats\n"
        "• tool         TaskUpdate  # to-do 1: in progress\n"
        "• tool         TaskUpdate  # to-do 7: \ufffd[2J\n"
        "  └ no such task\n"
    )
