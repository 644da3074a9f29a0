"""Row 17: what the web app took, with the bars that were set before."""

from __future__ import annotations

from bench.deck import Found, Streamed, measures
from bench.deck_asks import Answered
from bench.deck_changes import Reviewed
from bench.table import Kind, exit_code, plain

from bench import __main__ as running


def found(*, list_kb: float = 100.0, tasks: list[float] | None = None) -> Found:
    still = Streamed(tasks=[], busy=0.2, script=0.1, shift=0.0)
    return Found(
        list_kb=list_kb,
        paints=[200.0, 220.0, 240.0],
        busy=[90.0],
        frames=[16.7] * 20,
        memory_mb=30.0,
        short=still,
        long=Streamed(tasks=tasks or [], busy=0.5, script=0.4, shift=0.0),
        phones=[2800.0],
        asks=Answered(shown=[40.0], settled=[31.0], in_inbox=[45.0]),
        reviewed=Reviewed(
            opened=[100.0],
            by_address=[365.0],
            next_file=[30.0],
            long_file=[120.0],
            frames=[16.7] * 20,
        ),
    )


def test_each_bar_of_the_web_app_is_judged_and_none_fails_the_run() -> None:
    made = measures(found(list_kb=151.0, tasks=[60.0, 101.0]))
    assert {each.row for each in made} == {17}
    missed = [each.work for each in made if each.reached is False]
    assert missed == [
        "code of the list, compressed",
        "longest task with 200 deltas/s into a paragraph of 65 kB",
        "review of 200 files with 10,000 changed lines, opened by its address",
    ]
    judged = [each for each in made if each.bar.kind is not Kind.NONE]
    assert len(judged) == 12
    assert exit_code(made) == 0
    assert "at most 50.0 ms: reached" in plain(made)


def test_the_row_is_run_with_the_table_and_by_its_name() -> None:
    assert running.chosen_rows(["deck", "4"]) == [4, 17]
    assert running.ROWS[17].__name__ == "deck"
