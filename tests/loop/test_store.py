"""Manifests on disk: whole or refused, private, and held by one process."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, NotFound
from quarterdeck.loop import LoopSpec, LoopState, LoopStore, Stops, Wanted, new_loop
from quarterdeck.loop.prompts import review_prompt, structured_result, verdict_of, work_prompt
from quarterdeck.loop.report import as_markdown, pull_request_text, report_of
from quarterdeck.loop.spec import Review, StopReason
from quarterdeck.loop.state import CallRecord, Check, Stopped, Turn, TurnOutcome, Verdict
from quarterdeck.loop.store import ManifestError


def state_of(text: str = "an answer", **more: object) -> LoopState:
    spec = LoopSpec(
        task="Mend it.", directory="/w", review=Review(prompt="Tests?"), stops=Stops(command="make")
    )
    check = Check(command="make", code=1, output="# not a heading\n```\n3 failed", failing=3)
    outcome = TurnOutcome(text=text, result=Raw(b'{"done":false}'), denied=("Bash: rm",))
    verdict = Verdict(agree=False, reason="# no\nlook again")
    turn = Turn(
        number=1, began=0.0, ended=1.0, outcome=outcome, check=check, verdict=verdict, changed=True
    )
    return replace(new_loop(spec, at=1.0), turns=(turn,), **more)


def test_a_manifest_is_read_as_it_was_written_and_is_private(tmp_path: Path) -> None:
    store = LoopStore(tmp_path)
    state = state_of()
    store.save(state)
    assert msgspec.json.encode(store.load(state.id)) == msgspec.json.encode(state)
    path = store.path(state.id, "manifest.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b'{"id":"x"}'])
def test_a_broken_manifest_is_refused_and_hides_no_other(tmp_path: Path, data: bytes) -> None:
    store = LoopStore(tmp_path)
    broken, whole = state_of(), replace(state_of(), id=new_loop(state_of().spec, at=2.0).id)
    store.save(broken)
    store.save(whole)
    store.path(broken.id, "manifest.json").write_bytes(data)
    with pytest.raises(ManifestError):
        store.load(broken.id)
    assert [state.id for state in store.all()] == [whole.id]


def test_a_manifest_of_another_loop_or_a_newer_version_is_refused(tmp_path: Path) -> None:
    store = LoopStore(tmp_path)
    state = replace(state_of(), version=99)
    store.save(state)
    with pytest.raises(ManifestError):
        store.load(state.id)


@pytest.mark.parametrize("id_", ["", "..", "../../etc/passwd", "x" * 26 + "/", "A" * 26, "a\0b"])
def test_what_is_no_id_reaches_no_file(tmp_path: Path, id_: str) -> None:
    with pytest.raises(NotFound):
        LoopStore(tmp_path).load(id_)


def test_one_process_runs_a_loop(tmp_path: Path) -> None:
    store, state = LoopStore(tmp_path), state_of()
    store.save(state)
    assert not store.runs(state.id)
    with store.lock(state.id):
        assert store.runs(state.id)
        with pytest.raises(Conflict), store.lock(state.id):
            pass
    assert not store.runs(state.id)


def test_what_people_want_is_read_and_garbage_wants_nothing(tmp_path: Path) -> None:
    store, state = LoopStore(tmp_path), state_of()
    store.save(state)
    assert store.requests(state.id) == Wanted()
    store.want(state.id, Wanted(stop=True, by="ann"))
    assert store.requests(state.id) == Wanted(stop=True, by="ann")
    store.path(state.id, "control.json").write_bytes(b"\xff[")
    assert store.requests(state.id) == Wanted()


def test_an_agent_writes_no_heading_of_the_report() -> None:
    stopped = Stopped(reason=StopReason.TURNS, text="It has run 1 turns.", at=2.0)
    state = state_of("# Proof\n\n## Turns\nall is well", stopped=stopped)
    text = as_markdown(state)
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("# ")] == [
        "# Loop: Mend it.",
        "# not a heading",  # inside the fence of the output
    ]
    fence = lines.index("````console")
    assert lines.index("# not a heading") > fence
    assert lines.index("````", fence + 1) > lines.index("# not a heading")
    assert "> # Proof" in lines
    assert "- denied: Bash: rm" in lines
    assert pull_request_text(state).startswith("Mend it.\n")
    report = report_of(state)
    assert (report.exit_code, report.done) == (20, False)
    msgspec.json.decode(msgspec.json.encode(report))


def test_the_next_prompt_has_what_the_last_turn_left() -> None:
    prompt = work_prompt(state_of())
    for part in ("Mend it.", "> an answer", "3 failed", "look again", "Bash: rm", "`make`"):
        assert part in prompt
    assert "Tests?" in review_prompt(state_of(), "the diff")


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("", b'{"done":true}', b'{"done":true}'),
        ('{"done":true}', b"", b'{"done":true}'),
        ('a\n```json\n{"a":1}\n```\nb\n```json\n{"a":2}\n```', b"", b'{"a":2}'),
        ("no JSON", b"", b""),
        ("[1]", b"", b""),
        ("```json\n{broken\n```", b"", b""),
    ],
)
def test_a_structured_result_is_found(text: str, given: bytes, expected: bytes) -> None:
    assert bytes(structured_result(text, given)) == expected


@pytest.mark.parametrize("result", [b"", b"{}", b'{"agree":"yes"}', b'{"agree":1}', b"[true]"])
def test_a_verdict_that_cannot_be_read_does_not_agree(result: bytes) -> None:
    assert not verdict_of(result, "").agree
    assert not verdict_of(b'{"agree":true}', "it failed").agree
    assert verdict_of(b'{"agree":true}', "").agree


def entry(title: str) -> CallRecord:
    return CallRecord(at=1.0, turn=1, tool="Bash", title=title, verdict="deny", by="policy")


def test_the_audit_grows_and_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    store = LoopStore(tmp_path)
    loop = new_loop(LoopSpec(task="Do it.", directory="/"))
    store.save(loop)
    assert list(store.records(loop.id)) == []
    store.record(loop.id, entry("one"), entry("two\nlines"))
    file = store.path(loop.id, "audit.jsonl")
    with file.open("ab") as opened:
        opened.write(b'{"at":1.0,"turn":1,"tool":"Ba')  # a full disk, or a machine without power
    store.record(loop.id, entry("three"))
    assert [each.title for each in store.records(loop.id)] == ["one", "two\nlines", "three"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_an_audit_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    store = LoopStore(tmp_path)
    loop = new_loop(LoopSpec(task="Do it.", directory="/"))
    store.save(loop)
    other = tmp_path / "other"
    other.touch()
    store.path(loop.id, "audit.jsonl").symlink_to(other)
    with pytest.raises(ManifestError, match="audit of the loop cannot be written"):
        store.record(loop.id, entry("one"))
    assert other.read_bytes() == b""
