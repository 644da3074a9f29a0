"""The errors of Quarterdeck, in one tree.

Each says whose fault it is and what to do about it, and carries its facts as fields::

    QuarterdeckError
    ├── UsageError               the caller's: an invalid call
    │   ├── UnsupportedError     … for the version of the CLI at the other end
    │   └── ConfigError          … in the configuration, with all its problems
    ├── LaunchError              the machine's: the CLI could not be found or started
    ├── LinkError                the link's: no more bytes can be received or sent
    │   ├── LinkClosed           … it ended, and this says how
    │   └── LinkRefused          … it never began: address, token, or handshake
    ├── RequestError             a request of ours ended without its answer
    │   ├── RequestRefused       … the CLI answered with an error
    │   ├── RequestTimeout       … the CLI did not answer in time
    │   └── RequestCancelled     … it was withdrawn, by us or by the CLI
    ├── TurnFailed               the turn failed (raised only on request)
    ├── RecordingError           a recording that cannot be read or replayed
    ├── NotFound                 the session, question, prompt or machine does not exist
    ├── Conflict                 the present state does not allow it
    ├── Forbidden                the caller may not do this
    ├── WorkLimit                it would take more time or memory than one call may have
    └── JournalError             the journal cannot be read or written
        ├── StaleHead            … the session has other events than the writer knows
        └── StaleFence           … the session or machine belongs to another hub
            └── StaleLease       … what this hub did for all is done by another one

`UsageError` also is a `ValueError`, `RequestTimeout` a `TimeoutError`, and `LinkError` a
`ConnectionError`, so that code which knows nothing of us handles them rightly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quarterdeck.domain.coded import CodedText


class QuarterdeckError(Exception):
    """The base of every error that Quarterdeck raises on purpose."""


class UsageError(QuarterdeckError, ValueError):
    """The caller asked for something that cannot be right; nothing was sent."""


class UnsupportedError(UsageError):
    """The CLI's version does not support the request; nothing was sent."""

    def __init__(self, what: str, *, version: str | None = None, since: str | None = None) -> None:
        self.what = what
        self.version = version
        self.since = since
        text = f"{what} is not supported by Claude Code {version or '(version unknown)'}"
        if since:
            text += f"; it needs {since} or newer"
        super().__init__(text)


class ConfigError(UsageError):
    """The configuration cannot be right. `problems` has a line for each thing that is wrong."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class LaunchError(QuarterdeckError):
    """The CLI could not be found or started on this machine."""


class LinkError(QuarterdeckError, ConnectionError):
    """The pipe to the CLI does not work."""


class LinkClosed(LinkError):
    """The pipe has ended: no more bytes will come, or go.

    `reason` is one sentence for a person. `exit_code` and `signal` are set when the other end was
    a process of ours, `close_code` when it was a WebSocket; `stderr` holds the last lines that the
    process wrote there. `fault` is what had to be done about the process: `output_closed` or
    `no_exit`. `coded` is the reason as data, for who stores it.
    """

    def __init__(
        self,
        reason: str,
        *,
        exit_code: int | None = None,
        signal: int | None = None,
        close_code: int | None = None,
        stderr: tuple[str, ...] = (),
        fault: str = "",
        coded: CodedText | None = None,
    ) -> None:
        self.reason = reason
        self.exit_code = exit_code
        self.signal = signal
        self.close_code = close_code
        self.stderr = stderr
        self.fault = fault
        self.coded = coded
        tail = "\n".join(f"  stderr: {line}" for line in stderr[-5:])
        super().__init__(f"{reason}\n{tail}" if tail else reason)

    def copy(self, more: str = "") -> LinkClosed:
        """A new exception with the same facts, and with `more` added to its reason.

        An exception that is raised twice collects both tracebacks, so each raise needs its own.
        """
        return LinkClosed(
            f"{self.reason} {more}" if more else self.reason,
            exit_code=self.exit_code,
            signal=self.signal,
            close_code=self.close_code,
            stderr=self.stderr,
            fault=self.fault,
            coded=self.coded,
        )

    @property
    def clean(self) -> bool:
        """Whether the other end closed the link by itself and without an error."""
        return self.exit_code == 0 or self.close_code in {1000, 1001}


class LinkRefused(LinkError):
    """The link could not be opened: no answer, a wrong token, or no WebSocket."""


class RequestError(QuarterdeckError):
    """A control request of ours ended without its answer."""

    def __init__(self, subtype: str, text: str) -> None:
        self.subtype = subtype
        super().__init__(f"{subtype}: {text}")


class RequestRefused(RequestError):
    """The CLI answered with an error."""

    def __init__(self, subtype: str, error: str, *, code: str | None = None) -> None:
        self.error = error
        self.code = code
        super().__init__(subtype, f"{error} [{code}]" if code else error)


class RequestTimeout(RequestError, TimeoutError):
    """The CLI did not answer in time. Versions up to 2.1.37 never answer a request they do not
    know.
    """

    def __init__(self, subtype: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(subtype, f"no answer within {seconds:g} s")


class RequestCancelled(RequestError):
    """The request was withdrawn before it was answered."""


class TurnFailed(QuarterdeckError):
    """A turn failed. `subtype` is the result's; `errors` are the messages of the CLI."""

    def __init__(self, text: str, *, subtype: str, errors: tuple[str, ...] = ()) -> None:
        self.subtype = subtype
        self.errors = errors
        super().__init__(text)


class RecordingError(QuarterdeckError):
    """A recording cannot be read, or the replay asks for something that is not in it."""


class NotFound(QuarterdeckError):
    """The object does not exist. `what` is its kind, `id` its id."""

    def __init__(self, what: str, id_: str) -> None:
        self.what = what
        self.id = id_
        super().__init__(f"there is no {what} {id_!r}")


class Conflict(QuarterdeckError):
    """The present state does not allow it. `code` is stable, for programs."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(text)


class Forbidden(QuarterdeckError):
    """The caller may not do this."""


class WorkLimit(QuarterdeckError):
    """It would take more time or memory than one call may have; nothing was changed.

    `code` is `took_too_long`, or `busy` where other calls were first and it had no turn.
    """

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(text)


class JournalError(QuarterdeckError):
    """The journal cannot be read or written; the text says what to do about it.

    `code` is stable, for programs: `full` (the disk), `damaged`, `foreign` (not a journal of ours),
    `newer` (than this program), `busy` (another process has it), `closed`, `away` (the database
    does not answer), `refused` (it refuses the user, or is too old), `moved` (it was restored),
    `stale_head`, `stale_fence`, or `failed`.
    """

    def __init__(self, text: str, *, code: str = "failed") -> None:
        self.code = code
        super().__init__(text)


class StaleHead(JournalError):
    """The session has other events than the writer knows: nothing was stored.

    `head` is the number of its last event, `after` the expected one.
    """

    def __init__(self, session: str, head: int, after: int) -> None:
        self.session = session
        self.head = head
        self.after = after
        super().__init__(
            f"session {session}: its last event is {head}, not {after}; nothing was stored",
            code="stale_head",
        )


class StaleFence(JournalError):
    """The session, machine or lease belongs to another hub by now: nothing was stored.

    `what` names it, `owner` is the id of the hub it belongs to, or empty.
    """

    def __init__(self, what: str, owner: str = "") -> None:
        self.what = what
        self.owner = owner
        belongs = f"belongs to hub {owner}" if owner else "is no longer held"
        super().__init__(f"{what} {belongs}; nothing was stored", code="stale_fence")


class StaleLease(StaleFence):
    """Another hub took the lease of this work: nothing was stored, and the work is over here."""
