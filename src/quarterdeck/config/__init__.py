"""The configuration: one file, checked as a whole, with a reason and a line for every problem.

Owns the settings (`settings`), how a file, the environment and flags become settings (`read`), the
differences between two versions (`changes`), and how settings are printed (`show`). All of it is
pure: text in, settings or problems out. The service reads files and applies settings.
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
