"""Readers get no lines of a CLI's transcript: only the journal has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.fronts.http.masks import masked_json
from quarterdeck.journal.base import Journal
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.protocol.events import Said
from quarterdeck.protocol.stored_events import Stored, may_hold_secrets

pytestmark = pytest.mark.anyio

MIRROR = (
    b'{"type":"transcript_mirror","filePath":"/h/x.jsonl",'
    b'"entries":[{"type":"attachment",  "text":"CLAUDE.md: the key is 1234","n":1.50}]}'
)
OTHERS = [
    b'{"type":"assistant","message":{"content":"transcript_mirror"}}',
    b'{"type":"x","word":"transcript_mirror","entries":[1]}',
    b'["transcript_mirror"]',
]


def shown(stored: Stored) -> object:
    return json.loads(masked_json(stored))["line"]


async def test_a_reader_gets_no_line_of_the_transcript_and_the_journal_has_each_to_the_byte(
    tmp_path: Path,
) -> None:
    async with await SqliteJournal.open(tmp_path / "journal.db") as journal:
        for each in (MemoryJournal(), journal):
            await check(each)


async def check(journal: Journal) -> None:
    lines = [MIRROR, *OTHERS]
    said = [Said(run="r" * 26, number=at, line=Raw(line)) for at, line in enumerate(lines, 1)]
    await journal.append("s", said)
    events = await journal.read("s")
    kept = [bytes(each.event.line) for each in events if isinstance(each.event, Said)]
    assert kept == lines
    first, *others = events
    assert may_hold_secrets(first.json), "it is never passed on undecoded"
    assert shown(first) == {"type": "transcript_mirror", "filePath": "/h/x.jsonl", "entries": []}
    assert [shown(each) for each in others] == [json.loads(line) for line in OTHERS]
