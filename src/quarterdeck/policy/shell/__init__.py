"""Shell understanding: what a command would run, read and write, told without running it.

`read` is total: whatever text it is given, it gives a `Script`. What it cannot know it says in
`problems`, and nobody may take a script with problems for harmless.
"""

from quarterdeck.policy.shell.reader import LIMIT, read
from quarterdeck.policy.shell.script import (
    Assignment,
    Effect,
    EffectKind,
    Form,
    Part,
    Problem,
    Script,
    Target,
    Word,
)

__all__ = [
    "LIMIT",
    "Assignment",
    "Effect",
    "EffectKind",
    "Form",
    "Part",
    "Problem",
    "Script",
    "Target",
    "Word",
    "read",
]
