"""What a killed runner's CLI had written down: found, put into its words, and told once."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import msgspec
import pytest

from quarterdeck.protocol.runner_frames import TranscriptQuery
from quarterdeck.runner.home import RunRecord
from quarterdeck.runner.transcripts import MissedMessages
from quarterdeck.testing import fake
from quarterdeck.transcripts import project_folder_name, project_path
from quarterdeck.transcripts.layout import config_dir_of
from support.processes import Processes
from support.runners import running, small, spec_of
from support.scripted_hub import scripted_hub

SESSION, OTHER = (f"1111111{n}-2222-4333-8444-555555555555" for n in (1, 2))
ALL = 1 << 30


class Desk:
    """A folder with transcripts, as a CLI keeps them."""

    def __init__(self, root: Path) -> None:
        self.config = root / "config"
        self.work = root / "work"
        self.work.mkdir()
        self.folder = self.config / "projects" / project_folder_name(project_path(str(self.work)))
        self.folder.mkdir(parents=True)
        self.record = RunRecord(
            run="r", session="s", mark="m", directory=str(self.work), config=str(self.config)
        )

    def write(self, session: str, *entries: dict[str, object]) -> None:
        path = self.folder / f"{session}.jsonl"
        lines = (json.dumps({"sessionId": session, **entry}) for entry in entries)
        path.write_text("".join(f"{line}\n" for line in lines))

    def find(self, wanted: TranscriptQuery) -> tuple[str | None, list[dict[str, object]]]:
        unheard = MissedMessages(wanted, self.record)
        found = [json.loads(line) for line in unheard.some(ALL)]
        assert unheard.some(ALL) == []
        return unheard.cli_session, found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def user(uuid: str, text: str = "do it") -> dict[str, object]:
    message = {"role": "user", "content": text}
    return {"type": "user", "uuid": uuid, "message": message, "isSidechain": False}


def model(uuid: str, text: str = "done") -> dict[str, object]:
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "uuid": uuid, "message": message, "isSidechain": False}


def test_only_what_came_in_this_run_and_is_news_is_found_in_its_order(desk: Desk) -> None:
    desk.write(
        SESSION,
        user("old"),
        model("before this run"),
        user("p1"),
        {"type": "attachment", "uuid": "x"},
        model("a1"),
        model("a2"),
        {"type": "system", "uuid": "y"},
        model("a3"),
    )
    session, found = desk.find(
        TranscriptQuery(cli_session=SESSION, known=("p1", "a1"), prompts=("p1",))
    )
    assert session == SESSION
    assert [line["uuid"] for line in found] == ["a2", "a3"]
    assert found[0] == {
        "type": "assistant",
        "message": model("a2")["message"],
        "parent_tool_use_id": None,
        "session_id": SESSION,
        "uuid": "a2",
    }


def test_a_prompt_that_was_taken_is_told_as_its_echo(desk: Desk) -> None:
    desk.write(SESSION, user("old"), user("p1"), model("a1"))
    _, found = desk.find(TranscriptQuery(cli_session=SESSION, prompts=("p1",)))
    assert [(line["uuid"], line.get("isReplay")) for line in found] == [("p1", True), ("a1", None)]


def test_a_session_that_was_never_told_is_found_by_its_prompt(desk: Desk) -> None:
    desk.write(OTHER, user("another's"), model("not ours"))
    desk.write(SESSION, user("p1"), model("a1"))
    session, found = desk.find(TranscriptQuery(prompts=("p1",)))
    assert session == SESSION
    assert [line["uuid"] for line in found] == ["p1", "a1"]


@pytest.mark.parametrize(
    "wanted",
    [
        TranscriptQuery(cli_session=SESSION, prompts=("nobody took it",)),
        TranscriptQuery(cli_session="../../etc/passwd", prompts=("p9",)),
        TranscriptQuery(),
    ],
)
def test_nothing_is_told_of_a_run_that_left_nothing(desk: Desk, wanted: TranscriptQuery) -> None:
    desk.write(SESSION, user("old"), model("a0"))
    assert desk.find(wanted) == (None, [])


def test_of_an_earlier_run_only_what_stands_before_the_next_prompt_is_told(desk: Desk) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "interrupted"}
    closed: dict[str, object] = {
        "type": "user",
        "uuid": "closed",
        "message": {"role": "user", "content": [result]},
        "isSidechain": False,
    }
    before = (user("old"), user("p1"), model("a1"), closed, model("none", "No response requested."))
    wanted = TranscriptQuery(
        cli_session=SESSION, known=("p1", "a1"), prompts=("p2", "p3"), earlier=True
    )
    desk.write(SESSION, *before)
    assert desk.find(wanted) == (SESSION, []), "its prompt is not written yet"
    desk.write(SESSION, *before, user("p2"), model("a2"), user("p3"))
    session, found = desk.find(wanted)
    assert session == SESSION
    assert [line["uuid"] for line in found] == ["closed", "none"]


def test_much_is_told_in_pieces(desk: Desk) -> None:
    desk.write(SESSION, user("p1"), *(model(f"a{n}", "x" * 1000) for n in range(20)))
    unheard = MissedMessages(TranscriptQuery(cli_session=SESSION, prompts=("p1",)), desk.record)
    pieces: list[list[bytes]] = []
    while some := unheard.some(4000):
        pieces.append(some)
    assert sum(map(len, pieces)) == 21
    assert 5 <= len(pieces) <= 7


def test_a_cli_keeps_its_sessions_where_its_environment_says() -> None:
    assert config_dir_of({"CLAUDE_CONFIG_DIR": "/c", "HOME": "/h"}) == "/c"
    assert config_dir_of({"HOME": "/h"}) == "/h/.claude"
    assert config_dir_of({}) is None


@pytest.mark.anyio
async def test_the_next_runner_tells_what_the_one_before_never_read(
    tmp_path: Path, processes: Processes
) -> None:
    """RUN-13, RUN-14"""
    place = tmp_path / "place"
    place.mkdir()
    desk = Desk(place)
    script = [fake.say(fake.result()), fake.Hang()]
    spec = spec_of(desk.work, script)
    spec = msgspec.structs.replace(spec, env={"CLAUDE_CONFIG_DIR": str(desk.config)})
    async with scripted_hub() as hub:
        async with running(tmp_path / "home", hub.url) as runner:
            await hub.start("one", spec)
            cli = processes.started((await hub.started("one")).pid)
            await hub.until(lambda: hub.runs["one"].upto == 1)
            assert await hub.recall("one", TranscriptQuery(prompts=("p1",))) == (None, [])
            # As a kill leaves it: no end in the spool, and the process gone with its runner.
            spool = runner.runs["one"].spool
            kept = {path: path.read_bytes() for path in spool._folder.iterdir()}
            os.kill(cli, signal.SIGKILL)
            hub.acknowledging = False
            await hub.ended("one")
        for path, data in kept.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        run = hub.runs["one"]
        run.ended, run.upto = None, 1
        desk.write(SESSION, user("p1"), *(model(f"a{n}", "x" * 5000) for n in range(20)))
        async with running(tmp_path / "home", hub.url, limits=small()):
            ended = await hub.ended("one")
            assert ended.unheard
            session, lines = await hub.recall(
                "one", TranscriptQuery(known=("a3",), prompts=("p1",))
            )
            assert session == SESSION
            uuids = [json.loads(line)["uuid"] for line in lines]
            assert uuids == ["p1", *(f"a{n}" for n in range(20) if n != 3)]
            assert len(run.transcripts) > 3
            hub.acknowledging = True
            await hub.acknowledge_all()
    hub.check()


def at(second: int, entry: dict[str, object]) -> dict[str, object]:
    return {**entry, "timestamp": f"2026-11-17T12:00:{second:02}.000Z"}


def test_of_a_long_run_only_what_follows_the_newest_known_messages_is_told(desk: Desk) -> None:
    desk.write(
        SESSION,
        model("heard long ago"),
        model("k1"),
        model("n1"),
        model("k2"),  # written later than the newer `n1`
        model("n2"),
        model("unheard"),
    )
    known = ("k1", "k2", "n1", "n2")
    _, found = desk.find(TranscriptQuery(cli_session=SESSION, known=known, since=("n1", "n2")))
    assert [line["uuid"] for line in found] == ["unheard"]
    _, found = desk.find(
        TranscriptQuery(cli_session=SESSION, known=known, since=("gone",), prompts=())
    )
    assert found == []


def test_of_a_long_run_old_messages_of_subagents_are_not_told_again(desk: Desk) -> None:
    desk.write(
        SESSION,
        at(1, model("call", "calls an agent")),
        at(20, model("n1")),
        at(30, model("unheard")),
    )
    folder = desk.folder / SESSION / "subagents"
    folder.mkdir(parents=True)
    side: dict[str, object] = {"sessionId": SESSION, "isSidechain": True, "agentId": "a"}
    entries = [
        at(2, {**model("heard long ago"), **side}),
        at(21, {**model("n2"), **side}),
        at(31, {**model("unheard too"), **side}),
    ]
    (folder / "agent-a.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in entries))
    meta = {"agentType": "Explore", "toolUseId": "toolu_1"}
    (folder / "agent-a.meta.json").write_text(json.dumps(meta))
    wanted = TranscriptQuery(cli_session=SESSION, known=("n1", "n2"), since=("n1", "n2"))
    _, found = desk.find(wanted)
    assert [line["uuid"] for line in found] == ["unheard", "unheard too"]
