"""`quarterdeck runner`: this machine runs agents for a hub elsewhere, in the foreground."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.cli.deck.place import FAR_RUNNER
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http.home import data_home
from quarterdeck.runner.__main__ import main


def run_runner(
    hub: str, token_file: Path, machine: str | None, home: Path | None, max_runs: int | None
) -> int:
    """Run until a signal comes; its agents end with it. Gives the exit code."""
    if not token_file.is_file():
        raise UsageError(f"--token-file: {token_file} is no file; see `quarterdeck token`")
    folder = home or data_home() / FAR_RUNNER
    # It stays while the hub is away, however long: somebody has started it by hand.
    arguments = ["--home", str(folder), "--hub", hub, "--token-file", str(token_file)]
    arguments += ["--idle", "inf"]
    if machine is not None:
        arguments += ["--machine", machine]
    if max_runs is not None:
        arguments += ["--max-runs", str(max_runs)]
    return main(arguments)
