"""A loop without a hub, under the rules of this machine: composed here.

Owns what holds for its agents: the configuration with its projects, the policies of the data
folder, and the sandbox. All of it is as a hub on this machine would have it for a session in the
same folder. The configuration is read once, the files of policies before each call.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import asdict, replace

from quarterdeck.agent.options import Options
from quarterdeck.config import Settings
from quarterdeck.domain.structs import Value
from quarterdeck.loop.boxes import Box
from quarterdeck.loop.store import LoopStore
from quarterdeck.policy.facts import Private
from quarterdeck.protocol.projects import BYPASS, resolve_spec, with_sandbox
from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.runner.launch import launch_of
from quarterdeck.service.config_file import Configuration
from quarterdeck.service.local_hub import private_in
from quarterdeck.service.loop_boxes import sandboxes
from quarterdeck.service.loop_policy import MachinePolicies, PolicyArbiter

WORKTREES = "worktrees"
"""The folder in that of the loops where agents work."""


class LocalAgents(Value):
    """How the agents of a local loop are started, and what stands around them."""

    options: Options
    arbiter: PolicyArbiter
    box: Box
    warnings: tuple[str, ...] = ()
    """What is wrong with the files of policies."""


def local_agents(loop: str, given: SessionSpec, home: Path, by: str) -> LocalAgents:
    """Everything for the agents of a loop. `given` is what the person wants. Reads the disk.

    Raises `UsageError` or `ConfigError`: without rules that can be read, nothing is started.
    """
    configuration = Configuration()
    spec = _with_defaults(given, configuration.loaded.settings)
    store = LoopStore(home)
    file = configuration.loaded.settings.policy.file
    policies = MachinePolicies(
        home,
        file=Path(file) if file else None,
        private=_private(home, configuration.path, store.folder / WORKTREES),
    )
    policies.check(spec.policy)

    async def sandbox_request() -> SandboxRequest:
        return await policies.sandbox_for(spec, by)

    return LocalAgents(
        options=_options(spec),
        arbiter=PolicyArbiter(policies, spec, store, by),
        box=sandboxes(loop, sandbox_request),
        warnings=tuple(policies.flaws),
    )


def _with_defaults(given: SessionSpec, settings: Settings) -> SessionSpec:
    """The spec as a hub would start a session with it."""
    if given.mode == BYPASS:
        given = replace(given, skip_permissions=True)
    return with_sandbox(resolve_spec(given, settings.projects), settings.sandbox)


def _private(home: Path, config: Path, worktrees: Path) -> Private:
    found = private_in(home, config)
    places = dict.fromkeys((worktrees.absolute(), worktrees.resolve()))
    return replace(found, open=(*found.open, *map(str, places)))


def _options(spec: SessionSpec) -> Options:
    """The options of an agent with this spec. Raises `UsageError`."""
    return Options(
        **asdict(launch_of(spec, Origin())),
        claude=spec.claude,
        env=spec.env,
        api_billing=spec.api_billing,
    )
