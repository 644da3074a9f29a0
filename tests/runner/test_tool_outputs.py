"""Stored outputs of tools: read in parts, from the one folder of their conversation."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import UUID

import pytest

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import SeeToolOutput
from quarterdeck.runner import tool_outputs
from quarterdeck.runner.tool_outputs import see_tool_output
from quarterdeck.transcripts.layout import project_folder_name, project_path

OWN = str(UUID(int=1))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project's folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def results(tmp_path: Path, work: Path) -> Path:
    """Where the CLI stores the results of the conversation."""
    project = tmp_path / "config" / "projects" / project_folder_name(project_path(work))
    folder = project / OWN / "tool-results"
    folder.mkdir(parents=True)
    return folder


def wanted(work: Path, name: str = "b1.txt", **more: object) -> SeeToolOutput:
    members: dict[str, object] = {"cli_session": OWN, "config": str(work.parent / "config"), **more}
    return SeeToolOutput(directory=str(work), name=name, **members)  # type: ignore[arg-type]  # a test's own members


def test_a_long_output_is_read_in_parts_and_no_letter_is_cut(
    work: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "aé€😀" * 50
    (results / "b1.txt").write_text(text)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(work.parent / "config"))
    for size in (7, 10, 11, 12, 13):
        monkeypatch.setattr(tool_outputs, "PART", size)
        read, offset = "", 0
        while True:
            part = see_tool_output(wanted(work, offset=offset, config=None))
            assert part.size == len(text.encode())
            assert "\ufffd" not in part.text
            read += part.text
            if part.next is None:
                break
            assert part.next > offset
            offset = part.next
        assert read == text
    beyond = see_tool_output(wanted(work, offset=10**6))
    assert (beyond.text, beyond.next) == ("", None)


def test_bytes_that_are_no_text_are_shown_and_never_stop_the_reading(
    work: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (results / "b1.txt").write_bytes(b"\x80\xff\xc3" * 40)
    monkeypatch.setattr(tool_outputs, "PART", 8)
    offset, parts = 0, 0
    while (part := see_tool_output(wanted(work, offset=offset))).next is not None:
        assert part.next > offset
        offset, parts = part.next, parts + 1
    assert parts >= 14


def test_nothing_outside_of_the_folder_is_read(work: Path, results: Path) -> None:
    secret = work.parent / "secret.txt"
    secret.write_text("secret")
    (results / "link.txt").symlink_to(secret)
    (results / "folder.txt").mkdir()
    os.mkfifo(results / "pipe.txt")
    other = results.parent.parent / str(UUID(int=2))
    other.symlink_to(results.parent)
    (results / "b1.txt").write_text("fine")
    assert see_tool_output(wanted(work)).text == "fine"
    names = ("link.txt", "folder.txt", "pipe.txt", "none.txt")
    hostile = ("../b1.txt", "/etc/passwd", "..", ".", "", "a/b", "a\0b", "-x", "x" * 300)
    for name, code in [
        *((one, "no_such_file") for one in names),
        *((one, "bad_path") for one in hostile),
    ]:
        with pytest.raises(Conflict) as refused:
            see_tool_output(wanted(work, name))
        assert refused.value.code == code, name
    for session, code in ((str(UUID(int=2)), "no_such_file"), ("..", "bad_path"), ("", "bad_path")):
        with pytest.raises(Conflict) as refused:
            see_tool_output(wanted(work, cli_session=session))
        assert refused.value.code == code, session
