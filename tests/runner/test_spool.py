"""The spool: numbers, bounds, what is given up, and what another runner finds."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quarterdeck.protocol.runner_frames import Ended
from quarterdeck.runner.limits import Bounds
from quarterdeck.runner.segments import Kind, Segment
from quarterdeck.runner.spool import Spool, is_transient
from support.examples import examples

BOUNDS = Bounds(memory=4_000, disk=40_000, segment=4_000, batch=2_000)


def durable(number: int, size: int = 100) -> bytes:
    return json.dumps({"type": "assistant", "n": number, "pad": "x" * size}).encode()


def delta(number: int, size: int = 100) -> bytes:
    line = {"type": "stream_event", "n": number, "pad": "x" * size}
    return json.dumps(line, separators=(",", ":")).encode()


def end(spool: Spool) -> None:
    spool.end(Ended(number=spool.last + 1, reason="It ended.", exit_code=0))


def read_all(spool: Spool, after: int = 0) -> tuple[dict[int, bytes], list[int]]:
    """Every line after a number, and where there were holes; checks the order on the way."""
    lines: dict[int, bytes] = {}
    holes: list[int] = []
    while batch := spool.batch(after):
        numbers = [record.number for record in batch]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert numbers[0] > after
        if numbers[0] != after + 1:
            holes.append(numbers[0])
        if batch[0].kind is Kind.END:
            assert len(batch) == 1
        else:
            lines |= {record.number: record.data for record in batch}
        after = numbers[-1]
    assert after == spool.last
    return lines, holes


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """A disk that is full after so many bytes of each file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_are_numbered_from_one_and_the_end_gets_the_last_number(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    spool.add([durable(1), durable(2)])
    spool.add([durable(3)])
    end(spool)
    lines, holes = read_all(spool)
    assert lines == {n: durable(n) for n in (1, 2, 3)}
    assert not holes
    assert spool.last == 4
    assert spool.batch(3)[0].kind is Kind.END
    assert spool.batch(4) == []


def test_what_does_not_fit_into_memory_is_read_from_the_disk(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    for n in range(1, 151):
        spool.add([durable(n)])
    assert spool.held <= BOUNDS.memory
    lines, holes = read_all(spool)
    assert lines == {n: durable(n) for n in range(1, 151)}
    assert not holes
    assert spool.held <= BOUNDS.memory + 4 * BOUNDS.segment


def test_a_frame_holds_several_lines_but_not_too_many(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    spool.add([durable(n) for n in range(1, 41)])
    batch = spool.batch(0)
    assert len(batch) > 1
    assert sum(record.size for record in batch) <= BOUNDS.batch + batch[-1].size
    spool.add([durable(41, 10_000)])
    assert spool.batch(40)[0].data == durable(41, 10_000)


def test_what_the_hub_has_is_deleted(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    spool.add([durable(n) for n in range(1, 151)])
    before = spool.size
    spool.acknowledge(75)
    assert spool.size < before * 0.7
    assert read_all(spool, 75)[0] == {n: durable(n) for n in range(76, 151)}
    spool.acknowledge(150)
    assert spool.held == 0
    assert spool.size < BOUNDS.segment
    assert len(list((tmp_path / "run").iterdir())) <= 1


def test_token_deltas_are_given_up_first_and_oldest_first(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    count = 600
    for n in range(1, count + 1):
        spool.add([durable(n) if n % 10 == 0 else delta(n)])
    assert spool.size <= BOUNDS.disk
    assert not spool.full
    lines, holes = read_all(spool)
    kept = set(lines)
    assert {n for n in range(1, count + 1) if n % 10 == 0} <= kept
    lost = set(range(1, count + 1)) - kept
    assert lost
    assert all(n % 10 for n in lost)
    assert holes
    oldest_kept_delta = min(n for n in kept if n % 10)
    assert max(lost) < oldest_kept_delta
    assert spool.dropped > 0


def test_many_given_up_segments_do_not_leave_many_files(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    for n in range(1, 5_001):
        spool.add([durable(n, 1) if n % 100 == 0 else delta(n)])
    files = len(list((tmp_path / "run").iterdir()))
    assert files <= BOUNDS.disk // BOUNDS.segment + 4
    lines, _ = read_all(spool)
    assert {n for n in range(1, 5_001) if n % 100 == 0} <= set(lines)


def test_durable_lines_are_never_given_up_the_spool_is_full_instead(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    n = 0
    while not spool.full:
        n += 1
        spool.add([durable(n)])
        assert n < 1_000
    assert spool.size <= BOUNDS.disk + 2 * BOUNDS.segment
    assert read_all(spool)[0] == {k: durable(k) for k in range(1, n + 1)}
    spool.acknowledge(n // 2)
    assert not spool.full


def test_a_full_disk_keeps_lines_in_memory_until_that_is_full_too(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    spool.add([durable(1)])
    count = 1
    with files_no_larger_than(200):
        while not spool.full:
            count += 1
            spool.add([durable(count)])
            assert count < 1_000
        assert "File too large" in spool.write_error
        assert read_all(spool)[0] == {n: durable(n) for n in range(1, count + 1)}
    spool.flush()
    assert spool.write_error == ""
    assert spool.size < BOUNDS.disk
    assert read_all(spool)[0] == {n: durable(n) for n in range(1, count + 1)}
    found = Spool.load(tmp_path / "run", BOUNDS)
    assert read_all(found)[0] == {n: durable(n) for n in range(1, count + 1)}


def test_a_hub_that_takes_all_makes_up_for_a_full_disk(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    with files_no_larger_than(0):
        for n in range(1, 200):
            spool.add([durable(n)])
            assert [record.data for record in spool.batch(n - 1)] == [durable(n)]
            spool.acknowledge(n)
            assert not spool.full
    assert spool.held == 0


def test_another_runner_finds_everything_that_was_said(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    spool.add([durable(n) for n in range(1, 121)])
    spool.note_written(7)
    spool.acknowledge(60)
    found = Spool.load(tmp_path / "run", BOUNDS)  # nothing was closed: it was killed
    assert (found.last, found.written, found.ended) == (120, 7, None)
    assert read_all(found, 60)[0] == {n: durable(n) for n in range(61, 121)}
    found.end(Ended(number=121, reason="killed"))
    again = Spool.load(tmp_path / "run", BOUNDS)
    assert again.ended == Ended(number=121, reason="killed")
    assert read_all(again, 120) == ({}, [])


def test_what_was_written_is_known_though_all_lines_are_gone(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    spool.note_written(3)
    spool.add([durable(n) for n in range(1, 121)])
    spool.acknowledge(120)
    spool.add([durable(121)])
    found = Spool.load(tmp_path / "run", BOUNDS)
    assert (found.last, found.written) == (121, 3)


@pytest.mark.parametrize("cut", [1, 5, 13, 14, 60])
def test_a_torn_record_at_the_end_is_cut_off(tmp_path: Path, cut: int) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    spool.add([durable(1), durable(2)])
    (path,) = (tmp_path / "run").iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    found = Spool.load(tmp_path / "run", BOUNDS)
    assert read_all(found)[0] == {1: durable(1)}
    found.add([durable(9)])
    assert Spool.load(tmp_path / "run", BOUNDS).batch(1)[0].data == durable(9)


def test_garbage_in_place_of_a_segment_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "00000001.log"
    path.write_bytes(b"not a record at all, but long enough to look like one")
    segment, records = Segment.load(path)
    assert (segment.size, records) == (0, [])


def test_a_file_that_somebody_deleted_is_a_hole_and_not_the_end(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    spool.add([durable(n) for n in range(1, 121)])
    sorted((tmp_path / "run").iterdir())[1].unlink()
    lines, holes = read_all(spool)
    assert len(holes) == 1
    assert 100 > len(lines) > 60


def test_a_spool_is_private_and_gone_when_it_is_removed(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path / "run", BOUNDS)
    spool.add([durable(1)])
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "run").iterdir())
    spool.remove()
    assert not (tmp_path / "run").exists()


def test_only_stream_events_are_transient() -> None:
    assert is_transient(b'{"type":"stream_event","event":{}}')
    assert is_transient(b'{"type": "stream_event", "event": {}}')
    assert not is_transient(b'{"type":"assistant","text":"\\"type\\":\\"stream_event\\""}')
    assert not is_transient(b'{"type":"stream_events"}')


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_happens_in_whatever_order_no_durable_line_is_lost(
    tmp_path: Path, data: st.DataObject
) -> None:
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    bounds = Bounds(memory=1_500, disk=6_000, segment=1_000, batch=500)
    spool = Spool.create(folder, bounds)
    lines: dict[int, bytes] = {}
    acknowledged = 0
    for _ in range(data.draw(st.integers(1, 40))):
        match data.draw(st.sampled_from(["say", "say", "delta", "delta", "have", "restart"])):
            case "have":
                acknowledged = data.draw(st.integers(acknowledged, spool.last))
                spool.acknowledge(acknowledged)
            case "restart":
                spool.close()
                spool = Spool.load(folder, bounds)
                # Where the hub had everything, no file may be left to say what the last one was.
                assert spool.last == len(lines) or spool.last <= acknowledged == len(lines)
                spool.last = len(lines)
                spool.acknowledge(acknowledged)
            case kind if not spool.full:
                make = durable if kind == "say" else delta
                new = data.draw(st.integers(1, 6))
                first = len(lines) + 1
                sizes = [data.draw(st.integers(0, 400)) for _ in range(new)]
                made = [make(first + i, size) for i, size in enumerate(sizes)]
                lines |= dict(enumerate(made, first))
                spool.add(made)
            case _:
                assert spool.size >= bounds.disk
        found, _ = read_all(spool, acknowledged)
        assert found.items() <= lines.items()
        wanted = {
            n: line for n, line in lines.items() if n > acknowledged and not is_transient(line)
        }
        assert wanted.items() <= found.items()
