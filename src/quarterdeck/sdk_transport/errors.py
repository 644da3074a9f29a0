"""Errors that are both ours and the SDK's, so that a program's handlers for either work.

They carry the fields of both sides. Nothing here raises.
"""

from __future__ import annotations

from claude_agent_sdk import CLIConnectionError, CLINotFoundError, ProcessError

from quarterdeck.domain.errors import LaunchError, LinkClosed, LinkError, UsageError


class OptionError(UsageError):
    """An option that a transport cannot keep. Also a `ValueError`, as every `UsageError` is."""


class NotFoundError(LaunchError, CLINotFoundError):
    """There is no CLI: our `LaunchError`, the SDK's `CLINotFoundError`."""

    def __init__(self, text: str) -> None:
        text = text.removeprefix("Claude Code was not found. ")
        Exception.__init__(self, f"Claude Code not found. {text}")


class StartError(LaunchError, CLIConnectionError):
    """The CLI could not be started: our `LaunchError`, the SDK's `CLIConnectionError`."""


class ConnectionLost(LinkError, CLIConnectionError):
    """Nothing more can be sent or received: our `LinkError`, the SDK's `CLIConnectionError`."""


class CliFailed(LinkClosed, ProcessError):
    """The CLI ended with an error: our `LinkClosed`, the SDK's `ProcessError`.

    `stderr` is a text here, as in the SDK; the lines are in the `LinkClosed` that is its cause.
    """

    stderr: str | None  # type: ignore[assignment]  # the two bases differ; the SDK's programs read it

    def __init__(self, closed: LinkClosed, exit_code: int) -> None:
        LinkClosed.__init__(
            self,
            closed.reason,
            exit_code=exit_code,
            signal=closed.signal,
            stderr=closed.stderr,
            fault=closed.fault,
        )
        self.stderr = "\n".join(closed.stderr) or None
