"""Steps and replies of the scripted model, and their JSON.

A reply answers one request of the CLI and is a list of steps: text, thinking, tool calls, a wait, a
fault. In JSON a step is an object named by its first key (`{"tool": "Bash", "input": {…}}`), a
string is a text, a reply is a list of steps or one step, and a script is a list of replies.

Pure data: `sse` makes the events, and `model` chooses which reply answers which request.
"""

from __future__ import annotations

import json

import msgspec

from quarterdeck.domain.errors import UsageError

PLAY = "PLAY "
"""A prompt that begins so carries the script of the conversation that it opens."""


class _Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Text(_Step, frozen=True):
    """Text: `times` deltas of `text` each, `delay` seconds apart; many make it slow, or large."""

    text: str
    times: int = 1
    delay: float = 0.0


class Thinking(_Step, frozen=True):
    """A thinking block and the signature that ends it."""

    thinking: str
    signature: str = "c2NyaXB0ZWQ="


class ToolUse(_Step, frozen=True):
    """A tool call. Several in one reply are parallel calls. With no `id` the model numbers it."""

    tool: str
    input: dict[str, object] = {}
    id: str | None = None


class Stop(_Step, frozen=True):
    """The stop reason, where it is not `end_turn`, or `tool_use` after a tool call."""

    stop: str


class Pause(_Step, frozen=True):
    """Wait so many seconds."""

    pause: float


class Gate(_Step, frozen=True):
    """Wait until the test calls `release` with this name."""

    gate: str = "gate"


class ApiError(_Step, frozen=True):
    """An HTTP error in place of an answer, `times` times; then the steps after it are played.

    It must be the first step. Without steps after it, in a script that a prompt carries, it is
    repeated without end.
    """

    status: int
    message: str = "scripted error"
    headers: dict[str, str] = {}
    times: int = 1
    kind: str = ""

    @property
    def error_type(self) -> str:
        """The API's name for the error: `kind`, or the usual one for the status."""
        return self.kind or _ERROR_TYPES.get(self.status, "api_error")


class MidStreamError(_Step, frozen=True):
    """An `error` event inside the stream, after whatever was said before it."""

    fault: str = "overloaded_error"
    message: str = "Overloaded"


class CutConnection(_Step, frozen=True):
    """The connection is closed in mid-stream."""

    cut: bool = True


class ResponseHeaders(_Step, frozen=True):
    """Headers of the HTTP response, such as those of a rate limit."""

    headers: dict[str, str]


Step = (
    Text
    | Thinking
    | ToolUse
    | Stop
    | Pause
    | Gate
    | ApiError
    | MidStreamError
    | CutConnection
    | ResponseHeaders
)

_STEPS: tuple[type[Step], ...] = (
    Text,
    Thinking,
    ToolUse,
    Stop,
    Pause,
    Gate,
    ApiError,
    MidStreamError,
    CutConnection,
    ResponseHeaders,
)

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Reply(msgspec.Struct, frozen=True):
    """The answer to one request. Make it with `reply`."""

    steps: tuple[Step, ...]

    @property
    def error(self) -> ApiError | None:
        """The HTTP error at the start of the reply, if there is one."""
        first = self.steps[0] if self.steps else None
        return first if isinstance(first, ApiError) else None

    @property
    def after_error(self) -> Reply:
        """The steps after the error."""
        return Reply(self.steps[1:]) if self.error else self

    @property
    def headers(self) -> dict[str, str]:
        """All extra headers of the HTTP response."""
        rows = [step.headers for step in self.steps if isinstance(step, ResponseHeaders)]
        return {name: value for row in rows for name, value in row.items()}

    @property
    def stop_reason(self) -> str:
        """Why the answer ends, as the API says it."""
        for step in self.steps:
            if isinstance(step, Stop):
                return step.stop
        return "tool_use" if any(isinstance(step, ToolUse) for step in self.steps) else "end_turn"


Said = Reply | Step | str
"""A value that can be made a reply: a reply, one step, or a text."""


def reply(*parts: Step | str) -> Reply:
    """Make a reply of steps and texts. Raises `UsageError` for an error that is not first."""
    steps = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    if any(isinstance(step, ApiError) for step in steps[1:]):
        raise UsageError("an ApiError must be the first step of its reply: it replaces the answer")
    return Reply(steps)


def as_reply(said: Said) -> Reply:
    """Make a reply of any value that can be one."""
    return said if isinstance(said, Reply) else reply(said)


def play(*replies: Said) -> str:
    """A prompt that carries its own script: reply i answers the i-th request that it causes."""
    rows = [[_plain(step) for step in as_reply(said).steps] for said in replies]
    return PLAY + json.dumps(rows)


def parse_script(text: str) -> tuple[Reply, ...]:
    """Read a script from JSON; ignores text after it. Raises `UsageError`."""
    try:
        rows, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError as error:
        raise UsageError(f"the script is not JSON: {error}") from error
    if not isinstance(rows, list):
        raise UsageError("the script is not a list of replies")
    return tuple(
        reply(*(_step(part, number) for part in (row if isinstance(row, list) else [row])))
        for number, row in enumerate(rows)
    )


def _step(value: object, number: int) -> Step | str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for kind in _STEPS:
            if kind.__struct_fields__[0] in value:
                try:
                    return msgspec.convert(value, kind)
                except msgspec.ValidationError as error:
                    raise UsageError(f"reply {number} of the script: {error}") from error
    raise UsageError(f"reply {number} of the script has an invalid step: {value!r:.80}")


def _plain(step: Step) -> object:
    match step:
        case Text(text, times=1):
            return text
        case Gate() | MidStreamError() | CutConnection():
            # Their first field has a default, and the first key is what names a step.
            return {field: getattr(step, field) for field in step.__struct_fields__}
        case _:
            return msgspec.to_builtins(step)
