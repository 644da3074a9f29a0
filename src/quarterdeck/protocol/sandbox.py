"""The sandbox of a session's CLI: what people want, what a machine is asked for, what is in force.

Words only. The hub makes a `SandboxRequest` from the session's spec and policy; the runner makes
the sandbox from it with what it knows of its machine, and reports a `SandboxState`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value

SANDBOX = "sandbox"
"""The capability in the `hello` of a runner that can be asked for a sandbox."""

SandboxMode = Literal["off", "protect", "strict"]
"""`protect` is made where the machine can; without `strict` nothing is started."""
OFF: SandboxMode = "off"
PROTECT: SandboxMode = "protect"
STRICT: SandboxMode = "strict"

Host = Annotated[str, Meta(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.*:\[\]_-]+$")]
Network = Literal["all", "model"] | tuple[Host, ...]
"""Every host, the model's host only, or the model's host and these."""
Count = Annotated[int, Meta(gt=0)]
AbsolutePath = Annotated[str, Meta(min_length=1, extra={"path": True})]


class SandboxOptions(Value, forbid_unknown_fields=True):
    """What a sandbox lets through. Missing members use the defaults of the mode."""

    network: Network | None = None
    """None: `all`, and `model` in the mode `strict`."""
    memory_mb: Count | None = None
    processes: Count | None = None
    file_size_mb: Count | None = None
    writable: tuple[AbsolutePath, ...] = ()
    """More files and folders that may be written."""

    def __post_init__(self) -> None:
        """Refuse a path that no machine could understand."""
        if any(not path.startswith("/") for path in self.writable):
            raise UsageError("writable: absolute paths are wanted")


class SandboxSettings(SandboxOptions):
    """A sandbox as a configuration file has it: for a project, or for all."""

    SHORT: ClassVar[str] = "mode"
    """The member that a text in place of the table stands for: `sandbox = "strict"`."""

    mode: SandboxMode | None = None


def merged_options(
    own: SandboxOptions | None, default: SandboxOptions | None
) -> SandboxOptions | None:
    """Options, with a default for each that is not set. Writable paths are added up."""
    if default is None:
        return own
    own = own or SandboxOptions()
    made = SandboxOptions(
        network=default.network if own.network is None else own.network,
        memory_mb=own.memory_mb or default.memory_mb,
        processes=own.processes or default.processes,
        file_size_mb=own.file_size_mb or default.file_size_mb,
        writable=tuple(dict.fromkeys((*own.writable, *default.writable))),
    )
    return None if made == SandboxOptions() else made


class SandboxRequest(Value):
    """What the hub asks of a machine for one run.

    A path may have wildcards, as in gitignore. It begins with `/`, with `~/` for the home folder of
    the machine's user, or with `./` for the folder of the session.
    """

    mode: SandboxMode = PROTECT
    options: SandboxOptions = SandboxOptions()
    private: tuple[str, ...] = ()
    """The hub's own folders: hidden with all that is in them."""
    open: tuple[str, ...] = ()
    """Folders inside those where agents work."""
    deny_read: tuple[str, ...] = ()
    deny_edit: tuple[str, ...] = ()
    allow_edit: tuple[str, ...] = ()
    """What may be written besides the project."""


class SandboxState(Value):
    """The sandbox of a run, for people. Short: it is in every view of the session."""

    mode: SandboxMode = OFF
    """What is in force."""
    kind: str = ""
    """`bubblewrap`, `landlock` or `seatbelt`; empty if there is none."""
    wanted: SandboxMode = OFF
    network: Network = "all"
    reason: str = ""
    """Why there is none: `chosen`, `not_available`, `old_runner`, `not_recorded`."""
    detail: str = ""
    """For a person: what is missing on the machine, or what this kind cannot do."""


class SandboxPaths(Value):
    """The paths of a run's sandbox, on its machine. What is in none of them can be read."""

    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    not_enforced: tuple[str, ...] = ()
    """Paths of rules with wildcards that match too much to be listed."""


class SandboxReport(Value):
    """What a machine reports of the sandbox of a run."""

    state: SandboxState
    paths: SandboxPaths = SandboxPaths()


NOT_RECORDED = SandboxState(reason="not_recorded")
"""For runs of earlier versions, and for CLIs that were started elsewhere."""
OLD_RUNNER = "old_runner"


def old_runner_report(wanted: SandboxMode) -> SandboxReport:
    """The report on a run whose machine has a runner that knows no sandbox."""
    return SandboxReport(state=replace(NOT_RECORDED, wanted=wanted, reason=OLD_RUNNER))
