"""The texts of policy files, to be read and replaced by owners.

Owns how a text is replaced: as a whole, only if it is valid, and only if nobody has changed the
file since it was read. It knows neither people nor their rights: the front checks those. Above is
`service`; below is `policies`, which puts a file in force.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from anyio import to_thread

from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.policy.toml import LIMIT
from quarterdeck.runtime.files import replace_file

STALE = "policy_changed"


class PolicyFileText(Value, omit_defaults=False):
    """A policy file as it is on the disk."""

    name: str
    path: str
    text: str
    version: str
    """Names these contents; empty: there is no such file yet."""


class PolicyTexts:
    """The policy files of a hub, as texts."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._writing = threading.Lock()

    async def read(self, name: str) -> PolicyFileText:
        """A file's text. Raises `UsageError` where there can be no such file."""
        return await to_thread.run_sync(self._read, name)

    async def replace(self, name: str, text: str, version: str) -> PolicyFileText:
        """Replace a file's text, which must be valid, and put it in force.

        Raises `Conflict` if its version is another by now, and `UsageError` if it cannot be
        written.
        """
        made = await to_thread.run_sync(self._replace, name, text, version)
        await self._policies.refresh()
        return made

    def _read(self, name: str) -> PolicyFileText:
        path = self._policies.path_of(name)
        try:
            with path.open("rb") as file:
                data = file.read(4 * LIMIT + 1)
        except FileNotFoundError:
            return PolicyFileText(name=name, path=str(path), text="", version="")
        except OSError as error:
            raise UsageError(f"policy: {path} cannot be read: {error.strerror}") from error
        if len(data) > 4 * LIMIT:
            raise UsageError(f"policy: {path} is too large")
        # A file that is not UTF-8 is in force nowhere: it is shown, and can be replaced.
        text = data.decode(errors="replace")
        return PolicyFileText(name=name, path=str(path), text=text, version=_version(data))

    def _replace(self, name: str, text: str, version: str) -> PolicyFileText:
        with self._writing:
            now = self._read(name)
            if now.version != version:
                raise Conflict(STALE, f"{now.path} has changed since you opened it: load it again")
            loaded = self._policies.read(text, name)
            if loaded.policy is None:
                flaw = loaded.flaws[0]
                raise UsageError(f"policy: line {flaw.line}: {flaw.text}")
            path = Path(now.path)
            if path.is_symlink():
                raise UsageError(f"policy: {path} is a link: change the file that it points to")
            data = text.encode()
            try:
                path.parent.mkdir(mode=0o700, exist_ok=True)
                replace_file(path, data)
            except OSError as error:
                raise UsageError(f"policy: {path} cannot be written: {error.strerror}") from error
            return PolicyFileText(name=name, path=str(path), text=text, version=_version(data))


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
