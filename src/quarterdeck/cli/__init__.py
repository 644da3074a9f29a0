"""The command line of Quarterdeck.

Owns the way from arguments to an exit code. `commands` declares all commands; each loads its module
only when it runs, so that `--version` and `--help` are fast. The library is below, and imports
nothing from here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from quarterdeck import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code. Our own errors are one line on stderr."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        sys.stdout.write(f"quarterdeck {__version__}\n")
        return 0
    from quarterdeck.cli.app import run_app
    from quarterdeck.cli.exits import Exit, OutputClosed, exit_code
    from quarterdeck.domain.errors import QuarterdeckError

    try:
        return run_app(given)
    except QuarterdeckError as error:
        if os.environ.get("QUARTERDECK_DEBUG") == "1":
            raise
        from quarterdeck.cli.terminal.text import plain  # loads more than most commands need

        sys.stderr.write(f"quarterdeck: {plain(str(error))}\n")
        return exit_code(error)
    except OutputClosed:
        # Otherwise Python would fail again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OUTPUT_CLOSED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
