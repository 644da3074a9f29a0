"""Transcripts of other machines: written below the CLI's folder only, and nothing is lost by it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import PlaceTranscript, PutTranscript
from quarterdeck.runner import restores
from quarterdeck.runner.restores import Restores
from quarterdeck.transcripts.layout import project_folder_name

ID = "dd3fe57c-de56-4d5d-a4c7-68d1271c663d"
AGENT = "subagents/agent-a1"


def line(uuid: str, text: str = "x") -> bytes:
    return json.dumps({"type": "user", "uuid": uuid, "text": text}).encode()


class Disk:
    """A machine's disk: the runner's folder, the CLI's, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.config = folder / "config"
        self.staged = folder / "restores"
        self.restores = Restores(self.staged)
        self.project = self.config / "projects" / project_folder_name(str(self.work))
        self.file = self.project / f"{ID}.jsonl"

    def put(self, *lines: bytes, file: str = "", upload: str = "u1") -> int:
        raw = tuple(map(Raw, lines))
        return self.restores.put(PutTranscript(upload=upload, lines=raw, file=file)).size

    def place(self, cli_session: str = ID, upload: str = "u1") -> tuple[str, int]:
        placed = self.restores.place(
            PlaceTranscript(
                upload=upload,
                cli_session=cli_session,
                directory=str(self.work),
                config=str(self.config),
            )
        )
        return placed.saved, placed.unknown


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def old(file: Path) -> None:
    os.utime(file, (1, 1))


def test_a_transcript_is_where_the_cli_looks_for_it_with_those_of_subagents(disk: Disk) -> None:
    disk.put(line("a"))
    disk.put(b'{"type":"agent_metadata","agentType":"x","finished":true}', file=AGENT)
    disk.put(line("s"), file=AGENT)
    disk.put(line("b"), line("c"))
    assert not disk.file.exists(), "nothing is there before all is"
    assert disk.place() == ("", 0)
    assert disk.file.read_bytes() == b"\n".join([line("a"), line("b"), line("c"), b""])
    assert disk.file.stat().st_mode & 0o777 == 0o600
    inner = disk.project / ID / "subagents"
    assert (inner / "agent-a1.jsonl").read_bytes() == line("s") + b"\n"
    kept = json.loads((inner / "agent-a1.meta.json").read_bytes())
    assert kept == {"agentType": "x", "finished": True}
    assert list(disk.staged.iterdir()) == []
    with pytest.raises(Conflict, match="try again"):
        disk.place()


def test_a_file_that_has_less_is_replaced(disk: Disk) -> None:
    disk.project.mkdir(parents=True)
    disk.file.write_bytes(line("a") + b"\n")
    disk.put(line("a"), line("b"))
    assert disk.place() == ("", 0)
    assert disk.file.read_bytes() == b"\n".join([line("a"), line("b"), b""])


def test_a_file_that_has_more_is_kept_under_another_name_and_that_is_told(disk: Disk) -> None:
    disk.project.mkdir(parents=True)
    disk.file.write_bytes(b"\n".join([line("a"), line("never sent"), b""]))
    old(disk.file)
    disk.put(line("a"), line("b"))
    saved, unknown = disk.place()
    assert unknown == 1
    assert Path(saved).parent == disk.project
    assert not saved.endswith(".jsonl"), "the CLI does not list it"
    assert b"never sent" in Path(saved).read_bytes()
    assert b"never sent" not in disk.file.read_bytes()


def test_a_conversation_that_somebody_holds_on_this_machine_is_left_alone(disk: Disk) -> None:
    disk.project.mkdir(parents=True)
    disk.file.write_bytes(line("just written") + b"\n")
    disk.put(line("a"))
    with pytest.raises(Conflict) as caught:
        disk.place()
    assert caught.value.code == "runs_elsewhere"
    assert disk.file.read_bytes() == line("just written") + b"\n"


@pytest.mark.parametrize("place", ["project", "session", "file", "pipe"])
def test_no_link_leads_out_of_the_folder_of_the_cli(disk: Disk, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{ID}.jsonl").write_text("somebody else's")
    if place == "project":
        disk.project.parent.mkdir(parents=True)
        disk.project.symlink_to(outside)
    else:
        disk.project.mkdir(parents=True)
    if place == "session":
        (disk.project / ID).symlink_to(outside)
    if place == "file":
        disk.file.symlink_to(outside / f"{ID}.jsonl")
    if place == "pipe":
        os.mkfifo(disk.file)
    disk.put(line("a"))
    disk.put(line("s"), file=AGENT)
    with pytest.raises(Conflict):
        disk.place()
    assert [path.name for path in outside.iterdir()] == [f"{ID}.jsonl"]
    assert (outside / f"{ID}.jsonl").read_text() == "somebody else's"


@pytest.mark.parametrize("file", ["../x", "/etc/x", "subagents/../../agent-a", "subagents/x", "x"])
def test_a_name_that_is_no_file_of_a_transcript_is_refused(disk: Disk, file: str) -> None:
    with pytest.raises(Conflict, match="no file of a transcript"):
        disk.put(line("a"), file=file)


def test_ids_become_no_paths(disk: Disk) -> None:
    with pytest.raises(Conflict, match="no file of a transcript"):
        disk.put(line("a"), upload="../u")
    disk.put(line("a"))
    with pytest.raises(Conflict, match="no conversation"):
        disk.place(cli_session="../../x")


def test_what_is_no_line_is_refused(disk: Disk) -> None:
    for bad in (b"[1]", b'{"a":\n1}', b'"text"'):
        with pytest.raises(Conflict, match="JSON object"):
            disk.put(bad)
    with pytest.raises(Conflict, match="not sent"):
        disk.place()


def test_what_is_sent_is_bounded(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restores, "MOST_BYTES", 300)
    monkeypatch.setattr(restores, "MOST_FILES", 2)
    monkeypatch.setattr(restores, "MOST_UPLOADS", 2)
    for name in ("agent-a", "agent-b"):
        disk.put(line("a"), file=f"subagents/{name}")
    with pytest.raises(Conflict, match="at most 2 files"):
        disk.put(line("a"), file="subagents/agent-c")
    with pytest.raises(Conflict, match="at most 300 bytes"):
        disk.put(line("a", "x" * 300), upload="u2")
    for upload in ("u3", "u4", "u5"):
        disk.put(line("a"), upload=upload)
    assert sorted(path.name for path in disk.staged.iterdir()) == ["u4", "u5"]
    Restores(disk.staged).prune()
    assert not disk.staged.exists()


def test_a_disk_that_cannot_be_written_is_told(disk: Disk) -> None:
    disk.config.mkdir()
    (disk.config / "projects").write_text("a file")
    disk.put(line("a"))
    with pytest.raises(Conflict, match="cannot be written") as caught:
        disk.place()
    assert caught.value.code == "not_stored"
