"""Shell understanding: what a command would run, read and write, told without running it.

`read` is total: whatever text it is given, it gives a `Script`. What it cannot know it says in
`problems`, and nobody may take a script with problems for harmless.
"""

from quarterdeck.policy.shell.commands import UNTOUCHED
from quarterdeck.policy.shell.environment import finds_hidden
from quarterdeck.policy.shell.git import git_without_options
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
from quarterdeck.policy.shell.working_dir import locate

__all__ = [
    "LIMIT",
    "UNTOUCHED",
    "Assignment",
    "Effect",
    "EffectKind",
    "Form",
    "Part",
    "Problem",
    "Script",
    "Target",
    "Word",
    "finds_hidden",
    "git_without_options",
    "locate",
    "read",
]
