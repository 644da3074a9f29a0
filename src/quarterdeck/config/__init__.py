"""The configuration: one file, checked as a whole, with a reason and a line for all that is wrong.

Owns what can be set (`settings`), how a file, the environment and flags become that (`read`), what
is different between two versions of it (`changes`), and how it is written down again (`show`). All
of it is pure: text in, settings or problems out. Whoever reads files and applies settings is above.
"""

from quarterdeck.config.changes import Change, changes_between
from quarterdeck.config.read import Loaded, parse
from quarterdeck.config.settings import Settings
from quarterdeck.config.shape import Setting, all_settings

__all__ = [
    "Change",
    "Loaded",
    "Setting",
    "Settings",
    "all_settings",
    "changes_between",
    "parse",
]
