"""The checks of `quarterdeck doctor` for inbound webhooks: their secret files.

A file is read to see whether its secrets are long enough; nothing of it is ever shown.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from quarterdeck.cli.local.findings import Finding, Level
from quarterdeck.config.settings import Settings
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.schedules import InboundHook

TOPIC = "inbound"


def look_at_inbound(settings: Settings) -> Iterator[Finding]:
    """One finding or more for each inbound webhook."""
    for hook in settings.inbound:
        found = list(_flaws(hook))
        yield from found or [Finding(TOPIC, Level.OK, f"{hook.name}: its secret file is private")]


def _flaws(hook: InboundHook) -> Iterator[Finding]:
    from quarterdeck.fronts.inbound.checks import read_secrets

    file = Path(hook.secret_file)
    try:
        read_secrets(hook)
    except UsageError as error:
        text = f"{hook.name}: no request is taken: {error}"
        yield Finding(TOPIC, Level.PROBLEM, text, "Make one: `quarterdeck webhook secret`.")
    try:
        found = file.stat()
    except OSError:
        return  # reported above
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in {os.geteuid(), 0}:
        text = f"{hook.name}: {file} belongs to another user, who can start sessions"
        yield Finding(TOPIC, Level.PROBLEM, text, "Make a file of your own.")
    elif mode & 0o022:
        text = f"{hook.name}: other users can change {file}, and so start sessions"
        yield Finding(TOPIC, Level.PROBLEM, text, f"chmod 600 {file}")
    elif mode & 0o044:
        text = f"{hook.name}: other users can read {file}, and so start sessions"
        yield Finding(TOPIC, Level.WARNING, text, f"chmod 600 {file}")
