"""Static analysis of shell commands: what a command would run, read and write.

`read` is total: it returns a `Script` for any text. Unknown parts are listed in `problems`; a
script with problems must not be taken for harmless.
"""

from quarterdeck.policy.shell.commands import UNTOUCHED
from quarterdeck.policy.shell.environment import finds_hidden
from quarterdeck.policy.shell.git import git_without_options
from quarterdeck.policy.shell.reader import LIMIT, read
from quarterdeck.policy.shell.script import (
    Effect,
    EffectKind,
    Part,
    Script,
    Target,
    Word,
)
from quarterdeck.policy.shell.working_dir import locate

__all__ = [
    "LIMIT",
    "UNTOUCHED",
    "Effect",
    "EffectKind",
    "Part",
    "Script",
    "Target",
    "Word",
    "finds_hidden",
    "git_without_options",
    "locate",
    "read",
]
