"""The search index: what is found, what is not (any more), and that every query is answered."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quarterdeck.domain.errors import JournalError, UsageError
from quarterdeck.journal.search import Text, match_of
from quarterdeck.journal.sqlite import search
from quarterdeck.journal.sqlite.file import transaction
from quarterdeck.journal.sqlite.search import MOST_NAMED, SearchIndex
from quarterdeck.protocol.events import (
    AnyEvent,
    CliSession,
    Noted,
    RunStarting,
    SessionCreated,
    SessionDeleted,
    SessionRenamed,
    SpecChanged,
)
from quarterdeck.protocol.search import Hits, Search, TextKind
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored
from support.examples import examples

DAY = 86_400_000


def extract(stored: Stored) -> tuple[Text, ...]:
    """In these tests a note says what it is: `kind:tool:text`."""
    match stored.event:
        case Noted(level=level, text=text):
            kind, _, tool = level.partition(":")
            return (Text(kind=TextKind(kind), text=text, tool=tool or None),)
        case _:
            return ()


class Filled:
    """An index, and the events that went into it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0
        self.seqs: dict[str, int] = {}
        self.index = self.open()

    def open(self, epoch: str = "e") -> SearchIndex:
        return SearchIndex(self.path, epoch, self.position, extract)

    def reopen(self, epoch: str = "e") -> None:
        self.index.close()
        self.index = self.open(epoch)

    def add(self, session: str, *events: AnyEvent, at: int = 0) -> list[Stored]:
        stored: list[Stored] = []
        for event in events:
            self.position += 1
            seq = self.seqs[session] = self.seqs.get(session, 0) + 1
            stored.append(
                Stored(
                    session=session,
                    seq=seq,
                    position=self.position,
                    at=at,
                    event=event,
                    json=b"",
                )
            )
        self.index.add(stored)
        return stored

    def find(self, words: str, **more: Any) -> list[tuple[str, int]]:
        return [(hit.session, hit.seq) for hit in self.hits(words, **more).hits]

    def hits(self, words: str, **more: Any) -> Hits:
        return self.index.search(Search(words=words, **more), self.position)


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    filled = Filled(tmp_path / "search.db")
    yield filled
    filled.index.close()


def prompt(text: str) -> Noted:
    return Noted(level="prompt", text=text)


def answer(text: str) -> Noted:
    return Noted(level="answer", text=text)


def call(tool: str, text: str) -> Noted:
    return Noted(level=f"tool:{tool}", text=text)


def created(directory: str = "/srv", **more: Any) -> SessionCreated:
    return SessionCreated(spec=SessionSpec(directory=directory, **more), by="ann")


def test_all_words_must_be_there_and_the_newest_comes_first(filled: Filled) -> None:
    filled.add("a", prompt("fix the parser"), answer("the parser is fixed"), prompt("thanks"))
    filled.add("b", prompt("the Parser again"))
    assert filled.find("parser") == [("b", 1), ("a", 2), ("a", 1)]
    assert filled.find("parser fixed") == [("a", 2)]
    assert filled.find("parser -again") == [("a", 2), ("a", 1)]
    assert filled.find('"the parser"') == [("b", 1), ("a", 2), ("a", 1)]
    assert filled.find('"parser the"') == []
    assert filled.find("fix*") == [("a", 2), ("a", 1)]
    assert filled.find("nothing") == []


def test_letters_are_found_whatever_their_case_and_marks(filled: Filled) -> None:
    filled.add("a", prompt("Größe für CAFÉ, src/parser_test.py"))
    for words in ("größe", "grosse* fur", "cafe", "parser_test.py", "PARSER", "src/parser"):
        expected = [] if words.startswith("grosse") else [("a", 1)]
        assert filled.find(words) == expected, words


def test_a_snippet_is_plain_text_with_the_places_of_the_matches(filled: Filled) -> None:
    said = "x " * 200 + "<b>the 😀 needle</b> and\x02 the\x03 needle " + "y " * 200
    filled.add("a", answer(said))
    (hit,) = filled.hits("needle").hits
    marked = [hit.snippet.text[first:last] for first, last in hit.snippet.ranges]
    assert marked == ["needle", "needle"]
    assert "<b>the 😀 needle</b>" in hit.snippet.text
    assert len(hit.snippet.text) < 300
    assert "\x02" not in hit.snippet.text


def test_filters_narrow_the_search(filled: Filled) -> None:
    filled.add("a", created("/srv/one", project="alpha", name="A"), at=DAY)
    filled.add("b", created("/srv/onetwo", project="beta", machine="far"), at=DAY)
    filled.add("a", prompt("word"), call("Bash", "word"), at=10 * DAY)
    filled.add("b", answer("word"), call("mcp__x__y", "word"), at=20 * DAY)
    assert filled.find("word", session="a") == [("a", 3), ("a", 2)]
    assert filled.find("word", project="beta") == [("b", 3), ("b", 2)]
    assert filled.find("word", project="/srv/one") == [("a", 3), ("a", 2)]
    assert len(filled.find("word", project="/srv")) == 4
    assert len(filled.find("word", project="/")) == 4
    assert filled.find("word", machine="far", kind=TextKind.ANSWER) == [("b", 2)]
    assert filled.find("word", machine="local", tool="Bash") == [("a", 3)]
    assert filled.find("word", tool="mcp__x__y") == [("b", 3)]
    assert filled.find("word", tool="Ba") == []
    assert filled.find("word", since=11 * DAY) == [("b", 3), ("b", 2)]
    assert filled.find("word", since=DAY, until=11 * DAY) == [("a", 3), ("a", 2)]
    assert filled.find("word", since=5 * DAY, until=5 * DAY) == []
    assert filled.find("word", since=0, until=5000 * DAY, kind=TextKind.PROMPT) == [("a", 2)]
    assert filled.find("word", session="none") == []
    (hit,) = filled.hits("word", kind=TextKind.PROMPT).hits
    assert (hit.name, hit.project, hit.machine, hit.directory) == (
        "A",
        "alpha",
        "local",
        "/srv/one",
    )


def test_what_is_beside_a_text_is_no_text(filled: Filled) -> None:
    filled.add("a", call("Bash", "word"))
    for words in ("ktool", "s1", "d0", "facts"):
        assert filled.find(words) == []


def test_a_filter_for_very_many_sessions_is_a_filter_too(filled: Filled) -> None:
    for number in range(MOST_NAMED + 10):
        project = "one" if number % 100 else "two"
        filled.add(f"s{number}", created(project=project), prompt("word"))
    assert filled.find("word", project="two", limit=200) == [
        (f"s{number}", 2) for number in (400, 300, 200, 100, 0)
    ]
    assert len(filled.find("word", project="one", limit=200)) == 200


def test_pages_follow_each_other_without_gap_or_double(filled: Filled) -> None:
    filled.add("a", *(prompt(f"word {number}") for number in range(25)))
    seen: list[tuple[str, int]] = []
    before: int | None = None
    while True:
        page = filled.hits("word", limit=10, before=before)
        seen += [(hit.session, hit.seq) for hit in page.hits]
        if page.next is None:
            break
        before = page.next
        filled.add("a", prompt("a newer word"))  # which belongs before the first page
    assert seen == [("a", seq) for seq in range(25, 0, -1)]


def test_a_deleted_session_vanishes(filled: Filled, tmp_path: Path) -> None:
    filled.add("a", created(), CliSession(cli_session="c1"), prompt("a secret unicorn"))
    filled.add("b", prompt("unicorn"))
    filled.add("a", SessionDeleted(by="ann"))
    assert filled.find("unicorn") == [("b", 1)]
    assert filled.index.owners("c1") == []
    filled.index.close()
    assert b"secret unicorn" not in (tmp_path / "search.db").read_bytes()
    filled.index = filled.open()


def test_what_changes_about_a_session_is_found_by_its_new_words(filled: Filled) -> None:
    filled.add("a", created("/"), prompt("word"), SessionRenamed(name="new", by="ann"))
    spec = SessionSpec(directory="/moved", project="p")
    filled.add("a", SpecChanged(spec=spec, by="cli"), RunStarting(run="r", machine="m"))
    (hit,) = filled.hits("word", project="p", machine="m").hits
    assert (hit.name, hit.directory) == ("new", "/moved")


def test_a_result_that_repeats_the_answer_is_found_once(filled: Filled) -> None:
    filled.add("a", answer("all done"), answer("all done"), prompt("x"), answer("all done again"))
    assert filled.find("done") == [("a", 4), ("a", 1)]


def test_the_sessions_that_had_an_id_of_the_cli_are_known(filled: Filled) -> None:
    filled.add("a", CliSession(cli_session="c1"), CliSession(cli_session="c2"))
    filled.add("b", CliSession(cli_session="c2"), CliSession(cli_session="c2"))
    assert filled.index.owners("c1") == ["a"]
    assert filled.index.owners("c2") == ["a", "b"]


def test_an_index_goes_on_where_it_was_and_takes_nothing_twice(filled: Filled) -> None:
    stored = filled.add("a", prompt("word one"))
    filled.reopen()
    assert filled.index.position == 1
    filled.index.add(stored)
    filled.add("a", prompt("word two"))
    assert filled.find("word") == [("a", 2), ("a", 1)]


def test_an_index_of_another_journal_or_from_its_future_is_emptied(filled: Filled) -> None:
    filled.add("a", prompt("word"))
    filled.reopen(epoch="other")
    assert (filled.index.position, filled.find("word")) == (0, [])
    filled.position = 0
    filled.add("a", prompt("word"), prompt("word"))
    filled.position = 1
    filled.reopen(epoch="other")
    assert filled.index.position == 0


@pytest.mark.parametrize("damage", [b"garbage" * 100, b"SQLite format 3\0" + bytes(4000)])
def test_a_damaged_index_is_made_anew(filled: Filled, damage: bytes) -> None:
    filled.add("a", prompt("word"))
    filled.index.close()
    filled.path.write_bytes(damage)
    filled.index = filled.open()
    assert (filled.index.position, filled.find("word")) == (0, [])


def test_how_far_the_index_is_behind_is_told(filled: Filled) -> None:
    filled.add("a", prompt("word"))
    assert filled.index.search(Search(words="word"), 5).behind == 4


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"none/search\.db"):
        SearchIndex(tmp_path / "none" / "search.db", "e", 0, extract)


@pytest.mark.parametrize("words", ["", "   ", "-only", "&& || !", '""', "*", "-", "'", "()"])
def test_a_query_without_a_word_is_refused(filled: Filled, words: str) -> None:
    with pytest.raises(UsageError, match="no word"):
        filled.find(words)


def test_a_query_beyond_measure_is_refused(filled: Filled) -> None:
    with pytest.raises(UsageError, match="too long"):
        filled.find("x" * 1001)
    with pytest.raises(UsageError, match="too many"):
        filled.find("x " * 40)
    with pytest.raises(UsageError, match="limit"):
        filled.find("x", limit=0)


@pytest.mark.parametrize(
    "words",
    [
        'NEAR(a b, 2) AND "',
        "text:word OR facts:k*",
        "{text} : x",
        "^first + second",
        "a AND OR NOT b",
        'say "hello',
        "col*umn ***",
        "x'; DROP TABLE words; --",
        "日本語 ünïcödé \x00",
    ],
)
def test_what_would_be_syntax_elsewhere_is_words_here(filled: Filled, words: str) -> None:
    filled.add("a", prompt("something"))
    assert filled.find(words) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(150))
@given(st.text(alphabet="ab\"*-()^:+{}'\\NEAROT ,.;é日\x00\x02\n", max_size=30))
def test_no_query_fails_in_any_other_way(filled: Filled, words: str) -> None:
    try:
        match_of(words)
    except UsageError:
        return
    filled.find(words)


def test_the_position_is_told_after_the_commit(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = filled.index.position
    seen: list[int] = []
    real = transaction

    @contextmanager
    def watched(connection: sqlite3.Connection) -> Iterator[None]:
        with real(connection):
            yield
            seen.append(filled.index.position)

    monkeypatch.setattr(search, "transaction", watched)
    filled.add("late", prompt("needle"))
    assert seen == [before]
    assert filled.index.position == before + 1
