"""The page about performance: tables and profiles go between their marks, the plot beside it."""

from __future__ import annotations

from pathlib import Path

from bench.plot import growth_plot
from bench.table import Results, markdown

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "performance.md"
PLOT = PAGE.with_name("performance-growth.svg")


def write(results: Results | None, page: Path = PAGE) -> None:
    """Write the tables and the plot of a run into the page."""
    if results is None:
        raise SystemExit("bench/results.json is not there: run `make bench` first")
    machine = results.machine
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    text = (
        f"Measured {machine.when[:10]}, {results.rounds} rounds, {machine.processors} processors, "
        f"load {machine.load_before:g} before and {machine.load_after:g} after, "
        f"Python {machine.python}, {versions}.\n\n{markdown(results.measures)}"
    )
    replace(page, "table", text)
    if (plot := growth_plot(results.measures)) is not None:
        page.with_name(PLOT.name).write_text(plot)


def replace(page: Path, mark: str, text: str) -> None:
    """Put text between two marks of a page."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, found, rest = page.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"{page} has no marks for the {mark}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
