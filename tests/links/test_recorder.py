from __future__ import annotations

import io
import json
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.domain.errors import LinkClosed, RecordingError, UsageError
from quarterdeck.links.base import Dropped, Link, Resumed
from quarterdeck.links.memory import memory_pair
from quarterdeck.links.recorder import RecordingLink
from quarterdeck.links.replay import ReplayLink, read_records
from support.bounds import SECONDS

DROPPED = Dropped("The far end has dropped the connection.")


async def drain(link: Link) -> tuple[list[bytes | Dropped | Resumed], LinkClosed]:
    items: list[bytes | Dropped | Resumed] = []
    with anyio.fail_after(SECONDS):
        while True:
            try:
                items.append(await link.receive())
            except LinkClosed as closed:
                return items, closed


def records(file: io.BytesIO) -> list[dict[str, object]]:
    return [
        {key: value for key, value in json.loads(line).items() if key != "t"}
        for line in file.getvalue().splitlines()
    ]


async def test_both_directions_are_written_down_line_by_line_in_their_order() -> None:
    file = io.BytesIO()
    inner, peer = memory_pair()
    link = RecordingLink(inner, file)
    assert link.resumable
    await link.send(b'{"a":1}\n{"b":"\xc3\xa9"}\n')
    await peer.send(b'{"c"')
    await peer.send(b":2}\nbad \xff\nhal")
    peer.drop()
    peer.resume("seen")
    await link.send(b"")
    await link.end_input()
    peer.close("It ended.", exit_code=3)
    items, closed = await drain(link)
    await link.close()
    assert items == [b'{"c"', b":2}\nbad \xff\nhal", DROPPED, Resumed("seen")]
    assert closed.exit_code == 3
    assert records(file) == [
        {"dir": "meta", "event": "start"},
        {"dir": "in", "line": '{"a":1}'},
        {"dir": "in", "line": '{"b":"é"}'},
        {"dir": "meta", "event": "end_input"},
        {"dir": "out", "line": '{"c":2}'},
        {"dir": "out", "base64": "YmFkIP8="},
        {"dir": "out", "line": "hal", "partial": True},
        {"dir": "meta", "event": "dropped", "reason": DROPPED.reason},
        {"dir": "meta", "event": "resumed", "last_request_id": "seen"},
        {"dir": "meta", "event": "closed", "reason": "It ended.", "exit_code": 3},
    ]


async def test_a_file_of_its_own_is_closed_with_the_link_and_says_who_closed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "recording.ndjson"
    inner, _ = memory_pair()
    async with RecordingLink(inner, path) as link:
        await link.send(b"x\n")
        with pytest.raises(UsageError):
            await link.send(b"half a line")
    await link.close()
    assert [record.event or record.line for record in read_records(path.read_bytes())] == [
        "start",
        "x",
        "close",
    ]


lines = st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=8)


@given(lines=lines, rest=st.binary(max_size=5), chunk=st.integers(1, 20))
async def test_a_replay_gives_the_bytes_that_were_recorded_however_they_were_cut(
    lines: list[bytes], rest: bytes, chunk: int
) -> None:
    sent = b"".join(line + b"\n" for line in lines) + rest

    file = io.BytesIO()
    inner, peer = memory_pair()
    recording = RecordingLink(inner, file)
    await peer.send(sent, chunk=chunk)
    peer.close()
    await drain(recording)
    items, _ = await drain(ReplayLink(read_records(file.getvalue())))
    assert b"".join(item for item in items if isinstance(item, bytes)) == sent


def recording(*entries: tuple[str, object]) -> bytes:
    """A recording from (direction, JSON value) pairs, 100 ms apart; «meta» takes the record."""
    made = []
    for number, (way, value) in enumerate(entries):
        extra = value if isinstance(value, dict) and way == "meta" else {"line": json.dumps(value)}
        made.append(json.dumps({"dir": way, "t": number * 100, **extra}))
    return "\n".join(made).encode()


async def test_what_came_after_a_sent_line_is_given_only_after_that_many_lines() -> None:
    link = ReplayLink(
        read_records(recording(("out", 0), ("in", "a"), ("in", "b"), ("out", 1), ("out", 2)))
    )
    assert await link.receive() == b"0\n"
    await link.send(b'"something else"\n')
    with anyio.move_on_after(0.05) as waited:
        await link.receive()
    assert waited.cancelled_caught
    async with anyio.create_task_group() as group:
        group.start_soon(link.send, b'"b"\n')
        assert await link.receive() == b"1\n"
    assert await link.receive() == b"2\n"
    with pytest.raises(LinkClosed, match="recording has ended"):
        await link.receive()


def request(identity: str) -> dict[str, object]:
    return {"type": "control_request", "request_id": identity, "request": {"subtype": "x"}}


async def test_recorded_ids_are_replaced_by_those_of_the_live_requests_and_prompts() -> None:
    link = ReplayLink(
        read_records(
            recording(
                ("in", request("r1")),
                ("in", request("r2")),
                ("in", {"type": "user", "uuid": "u1"}),
                ("out", {"answers": "r2", "and": ["r1", "r10", "r1 r2"], "echo": "u1"}),
            )
        )
    )
    # The new ids are recorded ones in another order: no replacement may be replaced again.
    await link.send(json.dumps(request("r2")).encode() + b"\n")
    await link.send(json.dumps(request("r1")).encode() + b"\n")
    await link.send(b'{"type":"user","uuid":"u9"}\n')
    answer = await link.receive()
    assert isinstance(answer, bytes)
    assert json.loads(answer) == {"answers": "r1", "and": ["r2", "r10", "r1 r2"], "echo": "u9"}


async def test_the_recorded_end_comes_after_the_end_of_the_input() -> None:
    link = ReplayLink(
        read_records(
            recording(
                ("in", 1),
                ("out", 2),
                ("meta", {"event": "end_input"}),
                ("out", 3),
                ("meta", {"event": "dropped", "reason": "It broke.", "close_code": 1006}),
                ("meta", {"event": "resumed", "last_request_id": "q"}),
                ("meta", {"event": "dropped"}),
                ("meta", {"event": "closed", "reason": "Killed.", "exit_code": -9, "signal": 9}),
            )
        )
    )
    assert link.resumable
    await link.send(b"1\n")
    assert await link.receive() == b"2\n"
    with anyio.move_on_after(0.05) as waited:
        await link.receive()
    assert waited.cancelled_caught
    await link.end_input()
    items, closed = await drain(link)
    assert items == [
        b"3\n",
        Dropped("It broke.", 1006),
        Resumed("q"),
        Dropped("The recorded link lost its connection."),
    ]
    assert (closed.reason, closed.exit_code, closed.signal) == ("Killed.", -9, 9)
    with pytest.raises(LinkClosed):
        await link.send(b"more\n")


async def test_the_recorded_pauses_are_left_out_kept_or_scaled() -> None:
    def paused(seconds: int) -> bytes:
        return b"".join(
            b'{"dir":"out","t":%d,"line":"x"}\n' % (number * seconds * 1000) for number in range(3)
        )

    for text, speed, least in ((paused(3600), None, 0.0), (paused(1), 4.0, 0.5)):
        began = anyio.current_time()
        items, _ = await drain(ReplayLink(read_records(text), speed=speed))
        assert items == [b"x\n"] * 3
        assert anyio.current_time() - began >= least - 0.01


async def test_closing_a_replay_ends_its_waits_and_its_pauses() -> None:
    waiting = ReplayLink(read_records(recording(("in", 0), ("out", 1))))
    pausing = ReplayLink(
        read_records(b'{"dir":"out","t":60000,"line":"late"}'),
        speed=1.0,
    )
    with anyio.fail_after(SECONDS):
        for link in (waiting, pausing):
            async with anyio.create_task_group() as group:
                group.start_soon(drain, link)
                await anyio.sleep(0.01)
                await link.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is empty"),
        (b"{}", "line 1"),
        (b'{"dir":"in","t":1,"line":"x"}\nnonsense', "line 2"),
        (b'{"dir":"sideways","t":1,"line":"x"}', "line 1"),
        (b'{"dir":"in","t":1}', "either a line or base64"),
        (b'{"dir":"in","t":1,"line":"x","base64":"eA=="}', "either a line or base64"),
        (b'{"dir":"in","t":1,"line":"x\\ny"}', "newline"),
        (b'{"dir":"out","t":1,"base64":"?"}', "base64"),
        (b'{"dir":"meta","t":1}', "event"),
        (b'{"dir":"in","t":1,"line":"\xff"}', "line 1"),
    ],
)
async def test_a_malformed_recording_is_refused_with_the_number_of_the_line(
    tmp_path: Path, text: bytes, words: str
) -> None:
    path = tmp_path / "broken.ndjson"
    path.write_bytes(text)
    with pytest.raises(RecordingError, match=words) as caught:
        await ReplayLink.open(path)
    assert "broken.ndjson" in str(caught.value)


async def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be read"):
        await ReplayLink.open(tmp_path / "missing")
