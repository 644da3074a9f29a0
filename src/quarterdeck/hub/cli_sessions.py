"""The sessions that the CLI has on the disks of machines: asked from their runners.

Owns the request and its bounds. Fronts are above; `machine_requests` is below. Which of them the
hub knows already is seen by their CLI's id, and is not decided here.
"""

from __future__ import annotations

from quarterdeck.hub.machine_requests import MachineRequests
from quarterdeck.protocol.machine_requests import CliSessionsOnDisk, SeeCliSessions

SECONDS = 60.0
"""A disk with thousands of transcripts takes a few seconds."""


class CliSessions:
    """Looks at the disks of machines."""

    def __init__(self, requests: MachineRequests) -> None:
        self._requests = requests

    async def on_disk(
        self, machine: str, *, directory: str | None = None, limit: int = 100
    ) -> CliSessionsOnDisk:
        """The newest ones. Raises `Conflict` with the machine's code, or `LinkError`."""
        wanted = SeeCliSessions(limit=limit, directory=directory)
        return await self._requests.run(machine, wanted, CliSessionsOnDisk, seconds=SECONDS)

    async def newest(self, machine: str, directory: str, config: str | None) -> str | None:
        """The newest conversation in a folder, if there is one. Raises as `on_disk`.

        `config` is the folder in which the CLI keeps them, if that is not where it always is.
        """
        wanted = SeeCliSessions(limit=1, directory=directory, worktrees=False, config=config)
        found = await self._requests.run(machine, wanted, CliSessionsOnDisk, seconds=SECONDS)
        return found.sessions[0].cli_session if found.sessions else None
