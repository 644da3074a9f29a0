"""The names of machines that are none of the runners'."""

from __future__ import annotations

LOCAL = "local"
"""The name of the machine that the hub itself is on."""


DIALLED = "dialled"
"""The machine of a run whose CLI dialled the hub itself: which machine that is, is unknown."""


PROGRAM = "program"
"""The machine of a run that a program has started by itself, with `quarterdeck-claude`."""


UNMANAGED = frozenset({DIALLED, PROGRAM})
"""Machines on which the hub can start nothing."""
