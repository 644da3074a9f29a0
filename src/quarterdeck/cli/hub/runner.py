"""`quarterdeck runner`: this machine runs agents for a hub elsewhere, in the foreground."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from quarterdeck.domain.errors import UsageError
from quarterdeck.runner.__main__ import main
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.local_hub import FAR_RUNNER


def run_runner(
    hub: str,
    token_file: Path,
    machine: str | None,
    home: Path | None,
    options: Mapping[str, object],
) -> int:
    """Run until a signal comes; its agents end with it. Gives the exit code.

    `options` are more of its command line, by their names; None is left out.
    """
    if not token_file.is_file():
        raise UsageError(f"--token-file: {token_file} is no file; see `quarterdeck token`")
    folder = home or data_home() / FAR_RUNNER
    # It stays while the hub is away, however long: somebody has started it by hand.
    arguments = ["--home", str(folder), "--hub", hub, "--token-file", str(token_file)]
    arguments += ["--idle", "inf"]
    arguments += ["--closed", str(data_home(create=False)), "--closed", str(token_file.absolute())]
    if machine is not None:
        arguments += ["--machine", machine]
    for option, value in options.items():
        if value is not None:
            arguments += [option, str(value)]
    return main(arguments)
