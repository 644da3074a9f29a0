"""Claude Code's own rules, row by row of the parity table."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.parity import ClaudeRule, RuleSet
from quarterdeck.policy.specifiers import Behavior, parse_rule
from support.parity import Row, filled, rows, table, written

PLACES = {"cwd": "/project", "home": "/home/someone", "outside": "/outside"}
CONTEXT = Context(cwd=PLACES["cwd"], home=PLACES["home"])


def outcome(given: dict[str, list[str]], tool: str, call: dict[str, object]) -> str:
    """What rules make of a call, in the table's words."""
    placed = [
        ClaudeRule(rule=parse_rule(text), behavior=Behavior(verb))
        for verb, texts in given.items()
        for text in texts
    ]
    request = needs_of(tool, Raw(msgspec.json.encode(call)), CONTEXT)
    behavior = RuleSet(tuple(placed)).weigh(request, CONTEXT).behavior
    if behavior is None:
        return "free" if all(need.free for need in request.needs) else "open"
    return behavior.value


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.tool} {row.call}")
def test_a_row_of_the_table_holds(row: Row) -> None:
    assert outcome(filled(row.rules, PLACES), row.tool, filled(row.input, PLACES)) == row.ours


def test_the_reference_shows_the_table() -> None:
    assert written() == table(rows())


def test_the_rules_of_a_session_do_not_disturb_each_other() -> None:
    """The real CLI gets the rules of many rows at once: each row must come out as by itself."""
    for session in {row.session for row in rows()}:
        together: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
        mine = [row for row in rows() if row.session == session]
        for row in mine:
            for verb, given in row.rules.items():
                together[verb] += given
        for row in mine:
            found = outcome(filled(together, PLACES), row.tool, filled(row.input, PLACES))
            assert found == row.ours, row
