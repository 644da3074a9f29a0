"""What a program says of itself, as the spec of its session. Pure.

Its own run is as the program started it. The spec is for the next one, which a runner starts: it
has what the program forbade to its CLI, and nothing that the program only claims to be allowed.
"""

from __future__ import annotations

from msgspec.structs import asdict

from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.modes import DEFAULT, is_within
from quarterdeck.protocol.runner_frames import Program
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire.tools import one_line

NAME = 100


def program_spec(hello: Program) -> tuple[SessionSpec, bool]:
    """The spec, and whether it has all restrictions of the program. Raises `UsageError`."""
    mode = hello.mode
    if mode is not None and not is_within(mode, DEFAULT):
        mode = DEFAULT  # a token of a program gives nobody leave to ask less
    plain = SessionSpec(
        directory=hello.directory,
        name=one_line(hello.name, NAME) or None,
        model=hello.model,
        mode=mode,
        restart="never",
    )
    try:
        limited = SessionSpec(**{**asdict(plain), **asdict(hello.limits)})
    except (UsageError, TypeError):
        return plain, False
    return limited, not hello.own_options
