"""`quarterdeck top`: the check that there is a hub and a terminal, and then the whole screen."""

from __future__ import annotations

import os
import sys
from functools import partial

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.target import Target, address_later, connect
from quarterdeck.cli.terminal.keys import keyboard_there
from quarterdeck.client import calls
from quarterdeck.domain.errors import UsageError


def run_top(target: Target) -> int:
    """Show the whole screen until the person leaves; returns the exit code."""
    if not keyboard_there() or not sys.stdout.isatty():
        raise UsageError("top needs a terminal; use `quarterdeck ps` and `asks` without one")
    if os.environ.get("TERM", "dumb") in {"dumb", "unknown"}:
        raise UsageError("top needs a terminal that can move the cursor, and TERM is dumb")
    connect(target).call(calls.whoami())  # a clear error before the screen is taken
    from quarterdeck.cli.top.app import Top

    app = Top(partial(address_later, target))
    code = app.run()
    if app.error is not None:
        raise app.error
    return app.return_code or code or Exit.SUCCESS
