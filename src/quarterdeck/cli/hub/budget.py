"""`quarterdeck budget`: what a session may spend, what it has spent, and how to raise it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.target import Target, connect, find_session
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http.shapes import SessionChanges, SessionShape
from quarterdeck.protocol.sessions import Budget


def run_budget(given: str, target: Target, changes: Mapping[str, float], *, lift: bool) -> int:
    """Change what is to be changed, and print what holds."""
    if lift and changes:
        raise UsageError("--lift takes all limits away: name none with it")
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
        words = f"reached  {amount} for the {one.scope}: no prompt is begun"
        lines.append(Text(words, style="red"))
    return lines


def _words(name: str, value: float) -> str:
    scope, _, unit = name.partition("_")
    amount = f"${value:,.2f}" if unit == "usd" else f"{value:,.0f} tokens"
    whose = "each run" if scope == "run" else "the session"
    return f"{amount} for {whose}"
