"""`quarterdeck acp`: an editor on stdin and stdout, served through the hub."""

from __future__ import annotations

import sys
from functools import partial

import anyio

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.target import Target, address_later, address_of
from quarterdeck.domain.errors import LinkRefused
from quarterdeck.protocol.sessions import SessionSpec


def run_acp(target: Target, defaults: SessionSpec) -> int:
    """Serve until stdin ends. A hub may come later, but a wrong target is an error at once."""
    from quarterdeck.fronts.acp.agent import serve
    from quarterdeck.fronts.acp.stdio import StdioPipe

    try:
        address_of(target)
    except LinkRefused as error:
        sys.stderr.write(f"quarterdeck: {error}\n")  # the editor is told when it wants something
    pipe = StdioPipe(sys.stdin.fileno(), sys.stdout.fileno())
    anyio.run(serve, pipe, partial(address_later, target), defaults)
    return Exit.SUCCESS
