"""The hub's configuration file on this machine: its path, reading and reloading it.

Owns the path and the file; `config` owns the settings in it. `serve`, `config` and `doctor` are
above. An invalid new version changes nothing: the last valid one stays in force.
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
    """The file and its settings. Creating it reads the file: raises `ConfigError`."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        overrides: Overrides | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`path`: as given by a person; otherwise from the environment, or in the data folder."""
        self._environ = dict(os.environ if environ is None else environ)
        self._overrides = dict(overrides or {})
        self.path, self.chosen = config_path(path, self._environ)
        self._seen = self.stamp()
        self.loaded = self._read()

    def stamp(self) -> Stamp:
        """What distinguishes two versions of the file; None if there is no file."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    @property
    def changed(self) -> bool:
        """Whether the file has changed since it was read."""
        return self.stamp() != self._seen

    def reload(self) -> list[Change]:
        """Read the file again; returns the changes. On `ConfigError` the old settings stay."""
        self._seen = stamp = self.stamp()
        if stamp is None:
            raise ConfigError((f"{self.path}: the file is gone; its last settings stay in force",))
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
    """The path of the file, and whether it was chosen explicitly."""
    if given is not None:
        return given.expanduser().absolute(), True
    if chosen := environ.get(VARIABLE):
        return Path(chosen).expanduser().absolute(), True
    return data_home(create=False) / NAME, False


def read_text(path: Path, *, must_be_there: bool) -> str:
    """The file's text, empty if there is no file. Raises `ConfigError`."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError as error:
        if not must_be_there:
            return ""
        raise ConfigError((f"{path}: no such file",)) from error
    except OSError as error:
        raise ConfigError((f"{path}: cannot be read: {error.strerror}",)) from error
    if len(data) > LARGEST:
        raise ConfigError((f"{path}: larger than {LARGEST >> 20} MiB",))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError((f"{path}:{line}: not UTF-8",)) from error
