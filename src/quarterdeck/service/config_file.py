"""The configuration file of this machine's hub: where it is, and reading it, once or again.

Owns the path and the file; what is in it is `config`'s. `serve`, `config` and `doctor` stand above.
A new version that is wrong changes nothing: the last good one stays in force.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from quarterdeck.config import Change, Loaded, changes_between, parse
from quarterdeck.config.read import LARGEST, Overrides
from quarterdeck.domain.errors import ConfigError
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.settings import CHECKS

NAME = "quarterdeck.toml"
VARIABLE = "QUARTERDECK_CONFIG"

Stamp = tuple[int, int, int] | None


class Configuration:
    """The file, and what it says now. Making one reads it: raises `ConfigError`."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        overrides: Overrides | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`path`: as a person gave it; else by the environment, or in the data folder."""
        self._environ = dict(os.environ if environ is None else environ)
        self._overrides = dict(overrides or {})
        self.path, self.chosen = config_path(path, self._environ)
        self._seen = self.stamp()
        self.loaded = self._read()

    def stamp(self) -> Stamp:
        """What tells one version of the file from another; None if there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    @property
    def changed(self) -> bool:
        """Whether the file is another one than the one that was read last."""
        return self.stamp() != self._seen

    def reload(self) -> list[Change]:
        """Read it again; gives what is different. Raises `ConfigError`, and the old one stays."""
        self._seen = stamp = self.stamp()
        if stamp is None:
            raise ConfigError((f"{self.path}: it is gone; what it said last stays in force",))
        fresh = self._read()
        changes = changes_between(self.loaded.settings, fresh.settings)
        self.loaded = fresh
        return changes

    def _read(self) -> Loaded:
        return parse(
            read_text(self.path, must_be_there=self.chosen),
            name=str(self.path),
            folder=str(self.path.parent),
            home=self._environ.get("HOME", "/"),
            environ=self._environ,
            overrides=self._overrides,
            checks=CHECKS,
        )


def config_path(given: Path | None, environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Where the file is, and whether somebody has said so."""
    if given is not None:
        return given.expanduser().absolute(), True
    if chosen := environ.get(VARIABLE):
        return Path(chosen).expanduser().absolute(), True
    return data_home(create=False) / NAME, False


def read_text(path: Path, *, must_be_there: bool) -> str:
    """The file's text; none is no text. Raises `ConfigError`."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError as error:
        if not must_be_there:
            return ""
        raise ConfigError((f"{path}: there is no such file",)) from error
    except OSError as error:
        raise ConfigError((f"{path}: it cannot be read: {error.strerror}",)) from error
    if len(data) > LARGEST:
        raise ConfigError((f"{path}: it is larger than {LARGEST >> 20} MiB",))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError((f"{path}:{line}: it is not UTF-8",)) from error
