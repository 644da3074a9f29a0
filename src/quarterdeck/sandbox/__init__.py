"""The sandbox that a CLI is started in: made from rules, enforced by the kernel.

`plan` makes a `SandboxSpec`, `open_sandbox` turns a command into one that runs inside, and `probe`
tells which kinds work on this machine. The runner is above; it starts the process.
"""

from quarterdeck.sandbox.open import Sandbox, open_now, open_sandbox, waiting_launcher
from quarterdeck.sandbox.plan import plan
from quarterdeck.sandbox.probe import Probe, choose, last_probe, probe
from quarterdeck.sandbox.proxy import Connection
from quarterdeck.sandbox.repository import Repository, find_repository
from quarterdeck.sandbox.spec import (
    Kind,
    Limits,
    Network,
    NetworkKind,
    SandboxMode,
    SandboxSpec,
)

__all__ = [
    "Connection",
    "Kind",
    "Limits",
    "Network",
    "NetworkKind",
    "Probe",
    "Repository",
    "Sandbox",
    "SandboxMode",
    "SandboxSpec",
    "choose",
    "find_repository",
    "last_probe",
    "open_now",
    "open_sandbox",
    "plan",
    "probe",
    "waiting_launcher",
]
