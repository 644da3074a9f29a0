"""The words between a runner and the hub: normative, and versioned by `PROTOCOL`.

A runner opens one WebSocket for its machine and one for each run. A frame is a header, which is one
line of JSON, and what belongs to it: the lines of a CLI, as they are. So a line of 10 MB is never
escaped, and never decoded on its way.

What a run says is numbered from 1, each line and the end too. The runner keeps what the hub does
not `have`; the hub says so after it has committed. What is written to a run is numbered as well,
from 1; the runner writes each number once, in order, and says what it has `written`.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, field

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.exits import Exit
from quarterdeck.domain.ids import derived_id
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.sandbox import SandboxReport, SandboxRequest
from quarterdeck.protocol.sessions import Origin, SessionSpec

PROTOCOL = 1

EARLIER = "recall.earlier"
"""What a runner `can` that knows `TranscriptQuery.earlier`."""


class Header(Value, tag_field="t"):
    """The base of all headers."""


# --- the machine's socket: runner to hub ---


class RunReport(Value):
    """A run that the runner has, and how far it is. `ended`: only its last words are left."""

    run: str
    session: str
    said: int
    written: int
    ended: bool = False


class Hello(Header, tag="hello"):
    """The first frame of a runner."""

    machine: str
    runner: str
    protocol: int
    version: str
    pid: int
    runs: tuple[RunReport, ...] = ()
    can: tuple[str, ...] = ()
    """What it can do beyond the first version of this protocol."""
    closed: tuple[str, ...] = ()
    """Folders of its own that agents on this machine must not touch; absolute paths."""
    worktrees: str = ""
    """The folder in those where agents do work."""


class Refused(Header, tag="refused"):
    """A run could not be started: no memory, too many, no such folder, no CLI."""

    run: str
    reason: str
    coded: CodedText | None = None
    """The reason as a code; None: the reason is a message of the machine, or of an older runner."""


class Vitals(Header, tag="vitals"):
    """How the machine is, now and then. `memory_available` is 0 where nobody knows."""

    runs: int
    memory_available: int
    load: float
    at: int = 0
    """What its clock says, in ms since 1970."""


class Reply(Header, tag="reply"):
    """The answer to a request: its result follows as one line, or (`refused`) the reason."""

    request: str = field(name="errand")
    refused: bool = False


# --- the machine's socket: hub to runner ---


class Welcome(Header, tag="welcome"):
    """The first frame of the hub. `hub` names this start of it."""

    hub: str
    protocol: int


class Start(Header, tag="start"):
    """Start a CLI. The same run twice is once."""

    run: str
    session: str
    spec: SessionSpec
    origin: Origin = Origin()
    sandbox: SandboxRequest | None = None
    """None: of a hub that knows no sandbox. Then there is none."""
    agent_token: str = ""
    """With it the agent may use the hub's MCP server, in the name of its session; empty: it gets
    none."""


class Stop(Header, tag="stop"):
    """End a run: gently, or by force."""

    run: str
    force: bool = False


class Forget(Header, tag="forget"):
    """The hub has all of this run, or wants nothing of it. A run that goes on is forgotten at its
    end.
    """

    run: str


class MachineRequest(Header, tag="errand"):
    """Do or look up something outside of a run; the request follows as one line.

    Only for a runner that says in its hello that it `can`.
    """

    request: str = field(name="errand")


# --- a run's socket: runner to hub ---


class Lines(Header, tag="lines"):
    """Lines of the CLI follow, one after the other, the first with the number `first`."""

    first: int


class Started(Header, tag="started"):
    """The process runs, or ran: the first frame of every connection of a run.

    `directory` is where it works: the worktree's folder, if there is one.
    """

    pid: int
    version: str | None = None
    directory: str | None = None
    sandbox: SandboxReport | None = None
    """None: of a runner that knows no sandbox."""


class Ended(Header, Exit, tag="ended"):
    """The process has ended and all its output was read. It is numbered like a line, as the last.

    `unheard`: it may have written more, which was not read; its transcript may have it.
    """

    number: int
    unheard: bool = False


class Written(Header, tag="written"):
    """Everything up to this number has been written to the CLI. The second frame, too."""

    upto: int


class Gap(Header, tag="gap"):
    """The numbers from the last one sent up to `first`, and without it, will not come.

    They were transient lines, given up because nobody came for them in time. The next frame of
    lines, or the end, has the number `first`.
    """

    first: int


class Connection(Header, tag="connection"):
    """The CLI has connected to a host through the sandbox's proxy, or was refused.

    It is numbered like a line. Repetitions within a minute are counted, and sent as one.
    """

    number: int
    host: str
    port: int
    allowed: bool
    count: int = 1


class Transcript(Header, tag="transcript"):
    """Messages from the CLI's transcript follow, in the form in which it would have said them.

    `cli_session` names the transcript that was found. None: there is none, and no line. `earlier`
    is that of the `TranscriptQuery` which it answers.
    """

    cli_session: str | None = None
    last: bool = False
    earlier: bool = False


# --- a program's socket: it is that of its run, and begins with a frame of its own ---


class ProgramLimits(Value):
    """What a program has forbidden to its CLI, by options that the spec of a session has, too."""

    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    setting_sources: tuple[str, ...] | None = None
    strict_mcp_config: bool = False
    disable_slash_commands: bool = False
    safe_mode: bool = False
    restricted: bool = False
    max_turns: int | None = None
    max_budget_usd: float | None = None


class Program(Header, tag="program"):
    """The first frame of `quarterdeck-claude`: the agent of a program, and its session.

    The session's id is derived from `began` and `key` (`program_session`): who has the key owns the
    session, also when hub or link were lost.
    """

    protocol: int
    session: str
    run: str
    key: str
    began: float
    name: str
    """What the program calls itself."""
    directory: str
    version: str | None = None
    mode: str | None = None
    skip_permissions: bool = False
    model: str | None = None
    limits: ProgramLimits = ProgramLimits()
    own_options: bool = True
    """It has started its CLI with options that a spec does not have, and that may forbid something,
    such as settings. A frame that does not say so may have."""


class ProgramAnswer(Header, tag="answer"):
    """What the program answers to a permission request, in the CLI's form.

    It is sent again on each connection until the hub has answered the CLI.
    """

    request_id: str
    response: Raw


class ProgramAct(Header, tag="act"):
    """The program has asked something of its CLI, or one of its hooks has decided something.

    It is numbered like a line. `act` is `request` or `hook`.
    """

    number: int
    act: str
    what: str
    detail: str = ""
    tool: str | None = None
    tool_use_id: str | None = None
    refused: bool = False


def program_session(began: float, key: str) -> str:
    """The session of the program that has this key."""
    return derived_id(began, "program", key)


# --- a run's socket: hub to runner ---


class Ack(Header, tag="have"):
    """The hub has committed everything up to this number. The first frame of the hub."""

    upto: int


class Write(Header, tag="write"):
    """A line for the CLI follows."""

    number: int


class TranscriptQuery(Header, tag="recall"):
    """Read what nobody heard of an ended run in the transcript that the CLI kept.

    `known` are the uuids of the last messages that the hub has of the run, `prompts` those of
    prompts that were written to it. Of the messages from the first of all these on, it wants the
    ones that are not `known`. Of a long run not all messages are `known`: then `since` are the
    newest of them, and what is wanted begins with the first of `since` and `prompts`.

    `earlier` is for a run that resumed a conversation, and may still be alive: `known` are messages
    of runs before it, and the hub wants only what lies between the first of these and the first of
    the `prompts`, without messages of subagents. If none of the `prompts` is in the transcript, it
    wants nothing. Only a runner that `can` do that is asked.
    """

    cli_session: str | None = None
    known: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    since: tuple[str, ...] = ()
    earlier: bool = False


RunnerHeader = (
    Hello
    | Refused
    | Vitals
    | Reply
    | Lines
    | Started
    | Ended
    | Written
    | Gap
    | Connection
    | Transcript
    | Program
    | ProgramAnswer
    | ProgramAct
)
HubHeader = Welcome | Start | Stop | Forget | MachineRequest | Ack | Write | TranscriptQuery

_runner = msgspec.json.Decoder(RunnerHeader)
_hub = msgspec.json.Decoder(HubHeader)


def frame(header: Header, lines: tuple[bytes, ...] | list[bytes] = ()) -> bytes:
    """A frame: the header, and the lines that belong to it."""
    return b"\n".join((msgspec.json.encode(header), *lines))


def read_runner_frame(data: bytes) -> tuple[RunnerHeader, list[bytes]]:
    """A frame that a runner sent. Raises `msgspec.DecodeError` for what is none."""
    head, lines = _parts(data)
    return _runner.decode(head), lines


def read_hub_frame(data: bytes) -> tuple[HubHeader, list[bytes]]:
    """A frame that the hub sent. Raises `msgspec.DecodeError` for what is none."""
    head, lines = _parts(data)
    return _hub.decode(head), lines


def _parts(data: bytes) -> tuple[bytes, list[bytes]]:
    head, *lines = data.split(b"\n")  # one copy: a line may have tens of megabytes
    return head, [] if lines == [b""] else lines
