"""The sandbox of a session: its own wishes first, then the project's, then those for all."""

from __future__ import annotations

import msgspec
import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.projects import Project, resolve_spec, with_sandbox
from quarterdeck.protocol.runner_frames import Start, frame, read_hub_frame
from quarterdeck.protocol.sandbox import (
    SandboxOptions,
    SandboxRequest,
    SandboxSettings,
    merged_options,
)
from quarterdeck.protocol.sessions import SessionSpec

PROJECTS = {
    "web": Project(
        directory="/srv/web",
        sandbox=SandboxSettings(mode="strict", network=("a.example",), writable=("/srv/out",)),
    )
}


def test_a_session_has_the_sandbox_of_its_project() -> None:
    made = resolve_spec(SessionSpec(project="web"), PROJECTS)
    assert made.sandbox == "strict"
    assert made.sandbox_options == SandboxOptions(network=("a.example",), writable=("/srv/out",))


def test_what_a_session_says_of_its_sandbox_holds_and_paths_are_added_up() -> None:
    own = SandboxOptions(network="all", writable=("/more",))
    made = resolve_spec(SessionSpec(project="web", sandbox="off", sandbox_options=own), PROJECTS)
    assert made.sandbox == "off"
    assert made.sandbox_options == SandboxOptions(network="all", writable=("/more", "/srv/out"))


def test_the_default_for_all_comes_last() -> None:
    default = SandboxSettings(mode="protect", network="model", processes=99)
    inside = with_sandbox(resolve_spec(SessionSpec(project="web"), PROJECTS), default)
    outside = with_sandbox(SessionSpec(directory="/tmp"), default)
    assert (inside.sandbox, outside.sandbox) == ("strict", "protect")
    assert inside.sandbox_options == SandboxOptions(
        network=("a.example",), processes=99, writable=("/srv/out",)
    )
    assert outside.sandbox_options == SandboxOptions(network="model", processes=99)


def test_an_empty_list_of_hosts_is_not_taken_for_no_list() -> None:
    merged = merged_options(SandboxOptions(network=()), SandboxSettings(network="all"))
    assert merged == SandboxOptions(network=())


@pytest.mark.parametrize("path", ["relative", "~/there", ""])
def test_a_writable_path_of_a_session_is_absolute(path: str) -> None:
    with pytest.raises((UsageError, msgspec.ValidationError)):
        msgspec.convert({"writable": [path]}, SandboxOptions)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"directory": "/work", "sandbox": "none"}, SessionSpec)


def test_a_start_without_a_sandbox_reads_as_one_without() -> None:
    bare = Start(run="r", session="s", spec=SessionSpec(directory="/work"))
    assert b"sandbox" not in frame(bare)
    asked = msgspec.structs.replace(bare, sandbox=SandboxRequest(mode="strict"))
    assert [read_hub_frame(frame(each))[0] for each in (bare, asked)] == [bare, asked]
