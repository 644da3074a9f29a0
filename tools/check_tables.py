"""Hold the option tables of programs against `--help`: `python tools/check_tables.py [NAME…]`.

For every program that has a table and is installed, prints the options that its help lists and its
table does not know, or knows in another way. Help texts differ: what is printed is to be looked at.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> int:
    """Check these programs, or all; gives the exit code."""
    sys.path.insert(0, str(ROOT / "tests"))
    from quarterdeck.policy.shell.tables import table_names, table_of
    from support.help_texts import checkable, differences, help_of

    count = 0
    for name in arguments or sorted(table_names()):
        table = table_of(name)
        if table is None or table.name != name or not checkable(table):
            continue
        for what in differences(table, help_of(name, table)):
            count += 1
            print(f"{name}: {what}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
