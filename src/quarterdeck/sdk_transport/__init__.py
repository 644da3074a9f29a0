"""A transport for the official `claude-agent-sdk`, over any link of Quarterdeck's.

A program written for the SDK calls `install()` once, or passes one more argument, and its bytes
travel over a link: a process that leaves no orphans, a CLI that dials a WebSocket, a recording.
`transport` is the transport, `default` puts it in the SDK's place, `launch` says what to start for
the SDK's options, `threads` serves programs on trio, `reconnect` restores the state after a lost
connection, `errors` has errors that are also the SDK's. The SDK handles the control protocol.
"""

from __future__ import annotations

try:
    import claude_agent_sdk as _needed
except ModuleNotFoundError as error:
    if error.name != "claude_agent_sdk":
        raise
    raise ModuleNotFoundError(
        "quarterdeck.sdk_transport needs the package claude-agent-sdk: "
        "install Quarterdeck with its extra, as in `pip install 'quarterdeck[sdk]'`",
        name="claude_agent_sdk",
    ) from error

from quarterdeck.sdk_transport.default import install, uninstall
from quarterdeck.sdk_transport.transport import QuarterdeckTransport

__all__ = ["QuarterdeckTransport", "install", "uninstall"]

del _needed
