"""The commands that people type: `quarterdeck run`, `doctor`, `record`, `replay`, `sessions`.

Owns the way from a command line to an exit code. `app` declares the commands, and each loads its
own module only when it runs, so that `--version` and `--help` come at once. Below is the library;
nothing here is imported by it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from quarterdeck import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; gives the exit code. An error of ours is one line on stderr."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        sys.stdout.write(f"quarterdeck {__version__}\n")
        return 0
    from quarterdeck.cli.app import run_app
    from quarterdeck.cli.exits import Exit, OutputClosed, exit_code
    from quarterdeck.cli.terminal.text import plain
    from quarterdeck.domain.errors import QuarterdeckError

    try:
        return run_app(given)
    except QuarterdeckError as error:
        if os.environ.get("QUARTERDECK_DEBUG") == "1":
            raise
        sys.stderr.write(f"quarterdeck: {plain(str(error))}\n")
        return exit_code(error)
    except OutputClosed:
        # Python would complain once more when it flushes stdout at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OUTPUT_CLOSED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
