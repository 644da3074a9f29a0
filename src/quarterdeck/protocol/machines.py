"""The names of machines that are none of the runners'."""

from __future__ import annotations

LOCAL = "local"
"""The name of the machine that the hub itself is on."""


INBOUND = "dialled"
"""The machine of a run whose CLI connected to the hub itself: which machine that is, is unknown.
Journals have this value, so it keeps its spelling."""


PROGRAM = "program"
"""The machine of a run that a program has started by itself, with `quarterdeck-claude`."""


UNMANAGED = frozenset({INBOUND, PROGRAM})
"""Machines on which the hub can start nothing."""
