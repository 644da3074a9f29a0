"""Draw the diagram of the CLI's states into the docs, from the table that the code runs on.

`make docs` writes it; a test fails when the page and the table differ.
"""

from __future__ import annotations

from pathlib import Path

from quarterdeck.wire.states import TABLE, State, Transition

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "states.md"

_HEAD = """\
# States of a CLI

What a CLI is doing, as reported by `Agent.state` and `wire.Peer.state`. `make docs` draws this page
from the table in `quarterdeck/wire/states.py`. An input that is not in the table leaves the state
unchanged; if it is an action of ours, it is refused.

```mermaid
stateDiagram-v2
"""


def draw() -> str:
    """The whole page."""
    lines = [f'    state "{state.value}" as {state.name}' for state in State]
    lines += [f"    [*] --> {State.NEW.name}"]
    for state, row in TABLE.items():
        for after in State:
            reasons = [h.value for h in Transition if row.get(h) is after and after is not state]
            if reasons:
                lines.append(f"    {state.name} --> {after.name}: {' / '.join(reasons)}")
    lines += [f"    {State.CLOSED.name} --> [*]"]
    table = [
        "| in this state | when | it becomes |",
        "|---|---|---|",
        *(
            f"| {state.value} | {happening.value} | {row[happening].value} |"
            for state, row in TABLE.items()
            for happening in Transition
            if happening in row
        ),
    ]
    return _HEAD + "\n".join(lines) + "\n```\n\n" + "\n".join(table) + "\n"


if __name__ == "__main__":
    PAGE.write_text(draw())
