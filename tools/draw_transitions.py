"""Draw the transitions of a session into the docs, from the tables that the code runs on.

`make docs` writes the page; a test fails when the page and the tables differ.
"""

from __future__ import annotations

import inspect
import typing
from pathlib import Path

from quarterdeck.hub.decisions import table
from quarterdeck.hub.effects import EFFECTS
from quarterdeck.hub.facts import GATHER
from quarterdeck.protocol.events import Event

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "session-transitions.md"

_HEAD = """\
# Transitions of a session

How the hub handles everything that happens to a session. `make docs` draws this page from the
tables in `quarterdeck/hub/decisions/table.py` and `quarterdeck/hub/effects.py`.
[State is a fold of events](../explanation/architecture.md#state-is-a-fold-of-events) explains it.

```mermaid
flowchart LR
    input([input]) --> facts[look up facts]
    facts --> decide["decide(state, input, facts)"]
    decide -->|events| evolve["evolve(state, event)"]
    evolve --> decide
    decide --> journal[(journal)]
    decide -.->|refusal| caller([caller])
    journal --> effects["effects(events)"]
    effects --> process([process, caller])
    journal -->|what follows| input
```

“Facts” are what is looked up before the decision, besides the time. A decision gives some of the
events of its row, or none, or refuses the input.
"""

_GROUPS = {
    "Commands of people": table.COMMANDS,
    "The process and its machine": table.PROCESS,
    "The clock": table.CLOCK,
    "What follows, once the events of an input are in the journal": table.FOLLOWING,
    "The hub": table.HUB,
    "What others do to it": table.OTHERS,
}


def draw() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, rows in _GROUPS.items():
        lines = [f"## {title}\n", "| input | decided by | facts | events |", "|---|---|---|---|"]
        lines += [_row(kind, row) for kind, row in rows.items()]
        parts.append("\n".join(lines) + "\n")
    lines = [
        "## Effects\n",
        "Events that are not in this table are journalled, and have no other effect.\n",
        "| event | effect |",
        "|---|---|",
    ]
    for event, make in EFFECTS.items():
        kinds = typing.get_type_hints(make)["return"]
        made = [each for each in typing.get_args(kinds) or (kinds,) if each is not type(None)]
        names = ", ".join(f"`{each.__name__}`: {_about(each)}" for each in made)
        lines.append(f"| `{_tag(event)}` | {names} |")
    parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _row(kind: type[object], row: table.Transition) -> str:
    name = f"`{kind.__name__}`"
    if kind not in table.COMMANDS:
        name = f"{name}: {_about(kind)}"
    where = row.decide.__module__.rpartition(".")[2]
    look_up = GATHER.get(kind)
    facts = typing.get_type_hints(row.decide)["facts"].__name__
    seen = f"`{facts}`" if look_up is not None or facts != "Facts" else ""
    events = ", ".join(f"`{_tag(event)}`" for event in dict.fromkeys(row.events))
    return f"| {name} | `{where}.{row.decide.__name__}` | {seen} | {events} |"


def _about(kind: type[object]) -> str:
    """The first sentence of its docstring, without the full stop."""
    text = " ".join((inspect.getdoc(kind) or "").split())
    return text.partition(". ")[0].removesuffix(".").replace("|", "\\|")


def _tag(event: type[object]) -> str:
    assert issubclass(event, Event)
    return str(event.__struct_config__.tag)


if __name__ == "__main__":
    PAGE.write_text(draw())
