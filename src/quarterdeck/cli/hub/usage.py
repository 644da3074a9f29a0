"""`quarterdeck usage` and `budget`: what was used, and what a session may spend."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import date, datetime, timedelta

import msgspec
from rich.table import Table
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.target import Target, connect, find_session
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_json
from quarterdeck.cli.terminal.text import plain
from quarterdeck.client import calls
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.sessions import Budget
from quarterdeck.protocol.shapes import SessionChanges
from quarterdeck.protocol.usage import LimitState, UsageBy, UsageReport, Used
from quarterdeck.protocol.views import SessionShape

DAYS = 30
"""How far back it looks by default."""
_BAR = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def run_usage(
    target: Target, by: str, since: str | None, until: str | None, *, json_output: bool
) -> int:
    """Print the usage."""
    first = since or (date.today() - timedelta(days=DAYS - 1)).isoformat()
    client = connect(target)
    report = client.call(calls.usage(UsageBy(by), first, until))
    if json_output:
        print_json([report])
        return Exit.SUCCESS
    names = {shape.session: shape.name for shape in client.sessions()} if by == "session" else {}
    console = consoles.stdout()
    if not report.rows:
        console.print(Text(f"no usage since {plain(first)}"))
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
    table.add_row(Text("total", style="bold"), "", *_cells(report.total))
    return table


def _measure(used: Used, by_cost: bool) -> float:
    return used.cost_usd if by_cost else float(used.tokens)


def bar(share: float, width: int = _BAR) -> str:
    """A bar of up to so many characters; a share above 0 is always visible."""
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
    """A large number in few characters: 950, 12.3k, 4.5M."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def duration(seconds: float) -> str:
    """A duration in its two largest units."""
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
    """The state of a limit of the account, in one line."""
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


# --- budget ---------------------------------------------------------------------------------------


def run_budget(given: str, target: Target, changes: Mapping[str, float], *, lift: bool) -> int:
    """Change the budget, and print it."""
    if lift and changes:
        raise UsageError("--lift removes all limits: give no limit with it")
    client = connect(target)
    session = find_session(client, given)
    shape = client.session(session)
    if lift or changes:
        old = {} if lift or shape.spec.budget is None else msgspec.to_builtins(shape.spec.budget)
        budget = msgspec.convert({**old, **changes}, Budget)
        shape = client.change(session, SessionChanges(budget=budget))
    for line in _lines(shape):
        consoles.stdout().print(line, soft_wrap=True)
    return Exit.SUCCESS


def _lines(shape: SessionShape) -> list[Text]:
    about = "about " if shape.estimated_usd else ""
    lines = [Text(f"spent    {about}${shape.cost_usd:,.2f}, {shape.tokens:,} tokens")]
    budget = shape.spec.budget or Budget()
    limits = [
        f"{_words(name, value)}"
        for name in budget.__struct_fields__
        if (value := getattr(budget, name)) is not None
    ]
    lines.append(Text(f"budget   {', '.join(limits) or 'no limit'}"))
    for one in shape.budgets:
        amount = f"${one.limit:,.2f}" if one.unit == "usd" else f"{one.limit:,.0f} tokens"
        words = f"reached  {amount} for the {one.scope}: no new prompt is started"
        lines.append(Text(words, style="red"))
    return lines


def _words(name: str, value: float) -> str:
    scope, _, unit = name.partition("_")
    amount = f"${value:,.2f}" if unit == "usd" else f"{value:,.0f} tokens"
    whose = "each run" if scope == "run" else "the session"
    return f"{amount} for {whose}"
