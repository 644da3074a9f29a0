"""Running the benchmarks: which rows, what is kept, what the page gets."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from bench.plot import growth_plot, points_of
from bench.table import Bar, Kind, Machine, Measure, Results, Sample

from bench import __main__ as running
from bench import docs


def measure(row: int, ours: float = 1.0, *, ratio: float | None = None) -> Measure:
    sample = None if ratio is None else Sample((ratio,))
    bar = Bar() if ratio is None else Bar(Kind.RATIO_AT_LEAST, 2.0)
    work = f"row {row}"
    return Measure(row=row, work=work, unit="s", ours=Sample((ours,)), ratio=sample, bar=bar)


def results(*measures: Measure) -> Results:
    machine = Machine(
        when="2026-11-16T02:00:00+00:00",
        python="3.11",
        processors=2,
        load_before=0.5,
        load_after=1.0,
        versions={"msgspec": "1"},
    )
    return Results(machine=machine, rounds=5, seconds=1.0, measures=measures)


def test_rows_are_chosen_by_number_list_and_range() -> None:
    assert running.chosen_rows(["4"]) == [4]
    assert running.chosen_rows(["6,4", "1-3"]) == [1, 2, 3, 4, 6]


@pytest.mark.parametrize("wanted", ["99", "0", "x", ""])
def test_a_row_that_there_is_not_is_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=r"row|invalid literal"):
        running.chosen_rows([wanted])


def test_a_run_of_one_row_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    file.write_bytes(msgspec.json.encode(results(measure(3), measure(4, 9.0))))
    monkeypatch.setitem(running.ROWS, 4, lambda _, rounds: [measure(4, float(rounds))])
    assert running.main(["4", "--rounds", "2", "--results", str(file)]) == 0
    kept = msgspec.json.decode(file.read_bytes(), type=Results)
    assert [(each.row, each.ours.median) for each in kept.measures] == [(3, 1.0), (4, 2.0)]
    assert "row 4" in capsys.readouterr().out


def test_a_ratio_that_falls_short_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "results.json"
    monkeypatch.setitem(running.ROWS, 5, lambda *_: [measure(5, ratio=1.9)])
    assert running.main(["--row", "5", "--results", str(file)]) == 1
    monkeypatch.setitem(running.ROWS, 5, lambda *_: [measure(5, ratio=2.1)])
    assert running.main(["--row", "5", "--results", str(file)]) == 0


def test_a_row_may_be_measured_on_an_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def row(folder: Path, _: int) -> list[Measure]:
        assert folder.name.startswith("quarterdeck-bench-")
        return [measure(6)]

    monkeypatch.setitem(running.ROWS, 6, row)
    assert running.main(["6", "--results", str(tmp_path / "results.json")]) == 0


def test_the_page_gets_the_table_between_its_marks_and_the_plot_beside_it(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("before\n<!-- table -->\nold\n<!-- end of table -->\nafter\n")
    grown = [
        Measure(
            row=12,
            work=f"processor time of the hub: {size:,} sessions with a follower each",
            unit="µs",
            ours=Sample((50.0,)),
            ratio=Sample((ratio,)),
        )
        for size, ratio in ((1, 1.0), (1000, 1.5))
    ]
    docs.write(results(measure(1), *grown), page)
    text = page.read_text()
    assert text.startswith("before\n<!-- table -->")
    assert text.endswith("<!-- end of table -->\nafter\n")
    assert "| 1 | row 1 | 1.00 s |" in text
    assert "old" not in text
    assert (tmp_path / docs.PLOT.name).read_text().startswith("<svg ")


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("nothing here")
    with pytest.raises(ValueError, match="no marks"):
        docs.write(results(measure(1)), page)
    assert page.read_text() == "nothing here"


def test_the_plot_has_a_curve_for_each_way_to_grow() -> None:
    def grown(work: str, ratio: float) -> Measure:
        ours = Sample((1.0,))
        return Measure(row=12, work=work, unit="µs", ours=ours, ratio=Sample((ratio,)))

    measures = [
        grown("cost: 1 session with a follower", 1.0),
        grown("cost: 10 sessions with a follower each", 1.1),
        grown("cost: 1,000 events in the journal", 1.0),
        grown("cost: 1,000,000 events in the journal", 1.2),
    ]
    assert points_of(measures) == {
        "sessions": [(1, 1.0), (10, 1.1)],
        "events": [(1000, 1.0), (1_000_000, 1.2)],
    }
    plot = growth_plot(measures)
    assert plot is not None
    assert plot.count("<polyline") == 2
    assert growth_plot([measure(1)]) is None
