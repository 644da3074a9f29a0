"""`quarterdeck usage`: what was used, as a chart for people or as JSON for machines."""

from __future__ import annotations

import time
from datetime import date, datetime, timedelta

from rich.table import Table
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.output import print_json
from quarterdeck.cli.hub.target import Target, connect
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.text import plain
from quarterdeck.journal.usage import LimitState, UsageReport, Used

DAYS = 30
"""How far back it looks when nobody says otherwise."""
_BAR = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def run_usage(
    target: Target, by: str, since: str | None, until: str | None, *, json_output: bool
) -> int:
    """Print it."""
    first = since or (date.today() - timedelta(days=DAYS - 1)).isoformat()
    client = connect(target)
    report = client.usage(by, since=first, until=until)
    if json_output:
        print_json([report])
        return Exit.SUCCESS
    names = {shape.session: shape.name for shape in client.sessions()} if by == "session" else {}
    console = consoles.stdout()
    if not report.rows:
        console.print(Text(f"nothing was used since {plain(first)}"))
    else:
        console.print(_table(report, names))
    for limit in report.limits:
        console.print(limit_text(limit, time.time()))
    return Exit.SUCCESS


def _table(report: UsageReport, names: dict[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(report.by.value, no_wrap=True, overflow="ellipsis", max_width=40)
    table.add_column("", no_wrap=True)
    for heading in ("cost", "tokens", "turns", "calls", "waited"):
        table.add_column(heading, justify="right", no_wrap=True)
    by_cost = report.total.cost_usd > 0
    most = max(_measure(row.used, by_cost) for row in report.rows)
    for row in report.rows:
        name = names.get(row.key) or row.key or "(none)"
        share = _measure(row.used, by_cost) / most if most else 0.0
        table.add_row(Text(plain(name)), Text(bar(share), style="cyan"), *_cells(row.used))
    table.add_section()
    table.add_row(Text("in all", style="bold"), "", *_cells(report.total))
    return table


def _measure(used: Used, by_cost: bool) -> float:
    return used.cost_usd if by_cost else float(used.tokens)


def bar(share: float, width: int = _BAR) -> str:
    """A bar of up to so many letters; what is not nothing can be seen."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _cells(used: Used) -> tuple[str, ...]:
    about = "~" if used.estimated_usd > 0 else ""
    return (
        f"{about}${used.cost_usd:,.2f}",
        short(used.tokens),
        f"{used.turns:,}",
        f"{used.tool_calls:,}",
        duration(used.waiting_ms / 1000),
    )


def short(number: int) -> str:
    """A large number in few letters: 950, 12.3k, 4.5M."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def duration(seconds: float) -> str:
    """A length of time in its two largest units."""
    if seconds < 1:
        return "-"
    for size, unit, part, smaller in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} {int(seconds % size // part)}{smaller}"
    return f"{int(seconds)}s"


def limit_text(limit: LimitState, now: float) -> Text:
    """Where an account stands, in one line."""
    name = plain(limit.limit.replace("_", " ") or "the account's limit")
    where = f" on {plain(limit.machine)}" if limit.machine else ""
    used = f", {limit.used:.0%} used" if limit.used is not None else ""
    style = {"allowed": "green", "allowed_warning": "yellow", "rejected": "red"}.get(limit.status)
    resets = ""
    if limit.resets_at is not None:
        at = datetime.fromtimestamp(limit.resets_at / 1000).astimezone()
        left = limit.resets_at / 1000 - now
        resets = f", resets {at:%Y-%m-%d %H:%M}" + (f" (in {duration(left)})" if left > 0 else "")
    status = plain(limit.status.replace("_", " "))
    return Text.assemble(f"{name}{where}: ", (status, style or ""), f"{used}{resets}")
