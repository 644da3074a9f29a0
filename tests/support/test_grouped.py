"""A table of cases as one test."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.grouped import cases_of, in_a_row

TESTS = Path(__file__).parents[1]

each_letter = pytest.mark.parametrize("letter", ["a", pytest.param("b", id="second")])


@each_letter
@pytest.mark.parametrize(("number", "text"), [(1, "one"), (2, "two")], ids=["x", "y"])
def _small(number: int, text: str, letter: str) -> None:
    assert number == 1, f"{letter} {text}"


def test_every_combination_is_a_case() -> None:
    table = cases_of(_small)
    assert table is not None
    assert {(each["number"], each["text"], each["letter"]) for _, each in table} == {
        (1, "one", "a"),
        (1, "one", "b"),
        (2, "two", "a"),
        (2, "two", "b"),
    }


def test_all_cases_run_and_each_that_fails_is_named() -> None:
    table = cases_of(_small)
    assert table is not None
    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases failed") as told:
        in_a_row(_small, table)()
    assert "case: 2, 'two'-'a'" in str(told.value)
    assert "case: 2, 'two'-second" in str(told.value)
    assert [str(each).split("\n", maxsplit=1)[0] for each in told.value.exceptions] == [
        "a two",
        "b two",
    ]


def test_what_needs_more_than_its_parameters_stays_as_it_is() -> None:
    def pure(letter: str) -> str:
        return letter

    def with_a_fixture(letter: str, tmp_path: Path) -> str:
        return letter

    async def later(letter: str) -> str:
        return letter

    def marked(letter: str) -> str:
        return letter

    def read_once(letter: str) -> str:
        return letter

    def slow(letter: str) -> str:
        return letter

    assert cases_of(pure) is None
    assert cases_of(each_letter(pure)) == [("'a'", {"letter": "a"}), ("second", {"letter": "b"})]
    assert cases_of(each_letter(with_a_fixture)) is None
    assert cases_of(each_letter(later)) is None
    assert cases_of(each_letter(pytest.mark.process(slow))) is None
    one = pytest.param("a", marks=pytest.mark.xfail)
    assert cases_of(pytest.mark.parametrize("letter", [one])(marked)) is None
    assert cases_of(pytest.mark.parametrize("letter", iter("ab"))(read_once)) is None


SUITE = """
import pytest

@pytest.mark.parametrize("number", range(50))
def test_numbers(number):
    assert number not in {7, 31}

@pytest.mark.parametrize("number", range(3))
def test_skips(number):
    if number == 1:
        pytest.skip("not this one")

@pytest.mark.parametrize("number", range(2))
def test_fixture(number, tmp_path):
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
"""


def test_a_table_is_one_test_where_that_is_asked_for(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    pytester.makepyfile(SUITE)
    run = ("-p", "support.grouped", "-p", "no:cacheprovider")
    grouped = pytester.runpytest_subprocess(*run, "--grouped")
    grouped.assert_outcomes(passed=2, failed=1, skipped=1)
    grouped.stdout.fnmatch_lines(["*2 of 50 cases failed*", "*case: 7", "*case: 31"])
    single = pytester.runpytest_subprocess(*run)
    single.assert_outcomes(passed=52, failed=2, skipped=1)
