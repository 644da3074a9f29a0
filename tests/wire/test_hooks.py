from typing import get_args

import msgspec
import pytest
from claude_agent_sdk.types import HookEvent as OfficialEvent
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.hooks import (
    HookEvent,
    HookInput,
    HookInputBase,
    HookMatcher,
    PermissionRequestInput,
    PostToolUseInput,
    StopInput,
    UnknownHook,
)
from quarterdeck.wire.permissions import SetMode
from quarterdeck.wire.requests import decode_hook_input

BASE = {"session_id": "s", "transcript_path": "/t", "cwd": "/c", "permission_mode": "default"}


def read(**body: object) -> HookInput | UnknownHook:
    return decode_hook_input(Raw(msgspec.json.encode(body)))


def test_every_event_of_the_official_sdk_is_known() -> None:
    named = {name for each in get_args(OfficialEvent) for name in get_args(each)}
    assert "PreToolUse" in named
    assert named <= {event.value for event in HookEvent}


@pytest.mark.parametrize("event", list(HookEvent))
def test_every_event_has_a_type_with_the_shared_members(event: HookEvent) -> None:
    found = read(hook_event_name=event, **BASE)

    assert isinstance(found, HookInputBase)
    assert type(found).__name__ == f"{event.value}Input"
    assert (found.session_id, found.cwd) == ("s", "/c")
    assert msgspec.json.decode(msgspec.json.encode(found)) == {"hook_event_name": event, **BASE}


def test_what_a_tool_was_given_and_gave_stays_raw() -> None:
    found = read(
        hook_event_name="PostToolUse",
        tool_name="Bash",
        tool_input={"command": "ls"},
        tool_response={"stdout": "x"},
        tool_use_id="t",
        duration_ms=1.5,
    )

    assert isinstance(found, PostToolUseInput)
    assert found.tool_response == Raw(b'{"stdout":"x"}')
    assert found.arguments == {"command": "ls"}
    assert found.duration_ms == 1.5


def test_a_hook_on_a_permission_sees_the_suggestions() -> None:
    found = read(
        hook_event_name="PermissionRequest",
        tool_name="Write",
        permission_suggestions=[{"type": "setMode", "mode": "plan", "destination": "session"}],
    )

    assert isinstance(found, PermissionRequestInput)
    assert isinstance(found.suggestions()[0], SetMode)


def test_a_stop_tells_of_what_still_runs() -> None:
    found = read(
        hook_event_name="Stop",
        stop_hook_active=True,
        background_tasks=[{"id": "b1", "type": "local_bash", "status": "running"}],
    )

    assert isinstance(found, StopInput)
    assert found.background_tasks is not None
    assert found.background_tasks[0].id == "b1"


def test_a_new_event_is_a_value_of_its_own() -> None:
    assert read(hook_event_name="FullMoon", phase=1) == UnknownHook(
        event="FullMoon", json=Raw(b'{"hook_event_name":"FullMoon","phase":1}')
    )


def test_a_known_event_that_does_not_fit_says_why() -> None:
    found = read(hook_event_name="Stop", stop_hook_active="yes")

    assert isinstance(found, UnknownHook)
    assert found.event == "Stop"
    assert found.error is not None


@pytest.mark.parametrize("junk", [b"", b"5", b"{}", b'{"hook_event_name":7}', b"[" * 100_000])
def test_junk_is_an_unknown_event(junk: bytes) -> None:
    assert isinstance(decode_hook_input(Raw(junk)), UnknownHook)


def test_a_matcher_always_names_its_callbacks() -> None:
    assert msgspec.json.encode(HookMatcher()) == b'{"hookCallbackIds":[]}'
    assert (
        msgspec.json.encode(
            HookMatcher(hook_callback_ids=("h1",), matcher="Bash", timeout=5, on_failure="block")
        )
        == b'{"hookCallbackIds":["h1"],"matcher":"Bash","timeout":5,"onFailure":"block"}'
    )


def test_a_matcher_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError):
        HookMatcher(on_failure="explode")
    with pytest.raises(UsageError):
        HookMatcher(timeout=0)
