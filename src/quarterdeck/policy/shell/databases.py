"""Clients of databases: they run their input, where no option gives them something to run."""

from __future__ import annotations

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.effects import ProgramEffects, runs
from quarterdeck.policy.shell.uses import Invocation, Reader

_GIVEN = {
    "psql": name_set("-c --command -f --file -l --list -? --help -V --version"),
    "mysql": name_set("-e --execute -? --help -V --version"),
}
"""Options with which the input is not read."""


def _client(use: Invocation) -> ProgramEffects:
    """The input of such a client may hold commands for a shell: `system`, `!`."""
    given = {each.option.name for each in use.parse().options}
    if not given.isdisjoint(_GIVEN[use.table.name]):
        return use.effects()
    return use.effects([runs(f"{use.name} runs its input", "-")])


READERS: dict[str, Reader] = dict.fromkeys(_GIVEN, _client)
