"""`quarterdeck config show|check|path`: the configuration, its problems, and its path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.terminal.output import print_json, print_line
from quarterdeck.cli.terminal.text import plain
from quarterdeck.config.show import as_toml, as_values
from quarterdeck.domain.errors import ConfigError, UsageError
from quarterdeck.service.config_file import Configuration, config_path


def run_show(config: Path | None, *, json_output: bool) -> int:
    """Print every setting with its current value."""
    configuration = Configuration(config)
    if json_output:
        print_json([as_values(configuration.loaded)])
    else:
        there = "" if configuration.path.exists() else ", which does not exist"
        print_line(f"# {configuration.path}{there}\n")
        print_line(as_toml(configuration.loaded).rstrip("\n"))
    return Exit.SUCCESS


def run_check(config: Path | None) -> int:
    """Print all problems; the exit code is 1 if there are any."""
    problems = problems_of(config)
    for problem in problems:
        sys.stderr.write(f"{plain(problem)}\n")
    if problems:
        return Exit.FAILED
    path, _ = config_path(config, os.environ)
    print_line(f"{path} is valid" if path.exists() else f"{path} does not exist; defaults apply")
    return Exit.SUCCESS


def problems_of(config: Path | None) -> tuple[str, ...]:
    """All problems that keep the hub from using this configuration."""
    try:
        Configuration(config)
    except ConfigError as error:
        return error.problems
    return ()


def run_path(config: Path | None) -> int:
    """Print the path of the file; the exit code is 1 if it does not exist."""
    path, _ = config_path(config, os.environ)
    print_line(str(path))
    return Exit.SUCCESS if path.exists() else Exit.FAILED


def check_chosen(config: Path | None) -> Path | None:
    """Refuse a file that was named and does not exist. Raises `UsageError`."""
    if config is not None and not config.is_file():
        raise UsageError(f"--config: {config} is not a file")
    return None if config is None else config.absolute()
