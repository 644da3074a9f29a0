"""The gate remembers which files the calls of a run have written."""

from __future__ import annotations

import json

from msgspec import Raw

from quarterdeck.hub.permissions.gate import MOST_REMEMBERED, MOST_WRITTEN, PermissionGate
from quarterdeck.protocol.events import Decided
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire.hooks import PreToolUseInput
from quarterdeck.wire.messages import User
from quarterdeck.wire.requests import decode_hook_input


def shown(id_: str, command: str) -> PreToolUseInput:
    seen = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": id_,
        "cwd": "/p",
    }
    found = decode_hook_input(Raw(json.dumps(seen).encode()))
    assert isinstance(found, PreToolUseInput)
    return found


def ended(id_: str) -> User:
    block = {"type": "tool_result", "tool_use_id": id_, "content": "x", "is_error": True}
    message = {"role": "user", "content": [block]}
    return User(message_json=Raw(json.dumps(message).encode()))


def written(gate: PermissionGate) -> frozenset[str]:
    question = gate.hook_question(shown("last", "ls"), "default", 0, None)
    assert question is not None
    return question.written


def test_a_file_counts_as_written_when_its_call_has_ended() -> None:
    gate = PermissionGate.of(SessionSpec(directory="/p"))
    gate.hook_shown(shown("a", "echo x > x.sh"), "default")
    assert written(gate) == set()
    gate.results(ended("a"), "default")
    assert written(gate) == {"/p/x.sh"}


def test_a_call_that_was_denied_has_written_nothing() -> None:
    gate = PermissionGate.of(SessionSpec(directory="/p"))
    gate.hook_shown(shown("a", "echo x > x.sh"), "default")
    gate.note_decision(
        Decided(tool="Bash", title="x", verdict="deny", by="policy", tool_use_id="a"), at=0
    )
    gate.results(ended("a"), "default")
    assert written(gate) == set()


def test_the_oldest_files_are_forgotten() -> None:
    gate = PermissionGate.of(SessionSpec(directory="/p"))
    step = 100
    for at in range(0, MOST_REMEMBERED + step, step):
        gate.hook_shown(
            shown(f"{at}", "tee " + " ".join(f"f{at + n}" for n in range(step))), "default"
        )
        gate.results(ended(f"{at}"), "default")
    found = written(gate)
    assert len(found) == MOST_REMEMBERED
    assert "/p/f0" not in found
    assert f"/p/f{MOST_REMEMBERED}" in found


def test_the_next_run_is_told_what_was_written_and_what_may_have_been() -> None:
    gate = PermissionGate.of(SessionSpec(directory="/p"))
    gate.wrote_before(["/p/old.sh"])
    gate.hook_shown(shown("a", "echo x > x.sh"), "default")
    gate.results(ended("a"), "default")
    gate.hook_shown(shown("b", "echo x > y.sh"), "default")
    assert gate.written == ("/p/old.sh", "/p/x.sh", "/p/y.sh")


def test_the_next_run_is_told_the_newest_names_if_they_are_very_long() -> None:
    gate = PermissionGate.of(SessionSpec(directory="/p"))
    gate.wrote_before(f"/{number}" + "x" * (MOST_WRITTEN // 4) for number in range(8))
    assert [name[:2] for name in gate.written] == ["/5", "/6", "/7"]
