"""The commands of the hub, whichever front they come from.

One union of frozen structs. The hub checks a command, turns it into events, and answers with an
`Outcome`. `by` is the person who sent it: a front sets it from the login, never from the request.
Rights and routes are in `command_table`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Raw, field

from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.protocol.sessions import Budget, SessionSpec

Id = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
"""An id of the caller's choice: printable ASCII, so that it fits into a URL or a log."""
Name = Annotated[str, Meta(min_length=1, max_length=500)]
RuleText = Annotated[str, Meta(min_length=1, max_length=20_000)]
CONTROL_SECONDS = 600.0
"""The longest time that a client may wait for a CLI's answer."""


class Command(Value, tag_field="command", forbid_unknown_fields=True):
    """The base of all commands. Unknown members are refused: one may be a misspelt restriction."""

    by: str = ""


# --- sessions ------------------------------------------------------------------------------------


class CreateSession(Command, tag="session.create"):
    """Create a session and start it. Send your own `session` id to make the call idempotent."""

    spec: SessionSpec
    session: Id | None = None
    prompt: Raw = ABSENT
    """The first prompt: a text, or content blocks of the Messages API."""
    prompt_id: Id | None = None
    cli_session: Id | None = None
    """Continue a conversation that the CLI had before the hub knew it."""
    cli_fork: bool = False
    """Continue in a copy of it."""
    cli_at: Id | None = None
    """Continue in a copy of it up to this message."""
    cli_latest: bool = False
    """Continue the newest conversation of the folder, on the machine of the session."""


class RenameSession(Command, tag="session.rename"):
    """Rename a session."""

    session: str
    name: Name


class ArchiveSession(Command, tag="session.archive"):
    """Archive a session, or restore it from the archive."""

    session: str
    archived: bool = True


class DeleteSession(Command, tag="session.delete"):
    """Delete a session and its history. Its CLI must have ended."""

    session: str


class ChangeSession(Command, tag="session.change"):
    """Change what is auto-approved in a session, how long a question waits, and its budget."""

    session: str
    auto_approve: tuple[str, ...] | None = None
    ask_timeout: Annotated[float, Meta(gt=0)] | None = None
    budget: Budget | None = None
    """Replaces the old one. An empty budget removes all limits."""


class StopSession(Command, tag="session.stop"):
    """End the session's CLI. The session remains, and can be resumed."""

    session: str


class ResumeSession(Command, tag="session.resume"):
    """Start a CLI for the session again, where the last one ended."""

    session: str


class MoveSession(Command, tag="session.move"):
    """Resume the session on another machine, with the transcript that the journal has of it.

    A CLI of it must have ended, or its machine must not be connected: then the hub gives it up.
    """

    session: str
    machine: Annotated[str, Meta(min_length=1, max_length=256)]
    directory: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    """The folder on that machine, if it is another one there."""


class ForkSession(Command, tag="session.fork"):
    """Create a session that begins with a copy of this one, up to the message `at`."""

    session: str
    at: str | None = None
    name: Name | None = None
    copy: Id | None = None
    """The id of the new session. Choose one to make the command idempotent."""
    before: Id | None = None
    """Instead of `at`: up to before this prompt. The copy of a first prompt begins empty."""
    worktree: Annotated[str, Meta(min_length=1, max_length=250)] | None = None
    """Work in a git worktree of its own, on a new branch of this name. It begins with the files of
    this session's folder, also those that are not committed. None: in the same folder."""


class RewindSession(Command, tag="session.rewind"):
    """Go back to before a prompt: with the files, the conversation, or both.

    The outcome's `answer` says what changes. Files go back to the checkpoint that the CLI keeps.
    The conversation goes back in place from version 2.1.200 of the CLI on.
    """

    session: str
    prompt: Id
    files: bool = False
    conversation: bool = False
    dry_run: bool = True
    """Only say what would change."""


class Interrupt(Command, tag="session.interrupt"):
    """Stop the running turn. Queued prompts stay queued."""

    session: str


class Control(Command, tag="session.control"):
    """Send a control request to the session's CLI: model, mode, MCP, rewind and more.

    `request` is its body with its subtype. The CLI's answer is the outcome's `answer`.
    """

    session: str
    request: Raw
    timeout: Annotated[float, Meta(gt=0, le=CONTROL_SECONDS)] = 60.0


# --- prompts -------------------------------------------------------------------------------------


class SendPrompt(Command, tag="prompt.send"):
    """Send a prompt. It is queued while a turn runs, unless it is to steer that turn.

    Choose a `prompt` id to make the command idempotent, and send it again when no answer came.
    """

    session: str
    prompt: Id = field(default_factory=new_id)
    content: Raw
    steer: bool = False
    """Send it into the running turn. The model reads it with the next tool result. If the turn ends
    first, it is the next prompt. A slash command cannot steer."""


class ChangePrompt(Command, tag="prompt.change"):
    """Change a prompt; only while it is queued."""

    session: str
    prompt: str
    content: Raw


class CancelPrompt(Command, tag="prompt.cancel"):
    """Cancel a prompt; only while it is queued."""

    session: str
    prompt: str


# --- answers -------------------------------------------------------------------------------------


class Scope(StrEnum):
    """Where an answer that allows is valid: for one call, or by a grant."""

    ONCE = "once"
    SESSION = "session"
    """In this session."""
    ALWAYS = "always"
    """In the session's project, or in its folder if it has no project."""
    EVERYWHERE = "everywhere"


class AnswerBase(Value, tag_field="answer", forbid_unknown_fields=True):
    """The base of all answers."""


class AllowAnswer(AnswerBase, tag="allow"):
    """Allow the call; `input` replaces the input that the model sent.

    A scope other than `once` creates a grant.
    """

    scope: Scope = Scope.ONCE
    input: Raw = ABSENT
    seconds: Annotated[float, Meta(gt=0, le=315_360_000)] | None = None
    """How long the grant is valid; None is until it is revoked."""
    rules: Annotated[tuple[RuleText, ...], Meta(max_length=50)] = ()
    """What is granted, in Claude Code's syntax. The rules must allow this call. Empty: the
    narrowest rules that allow it."""
    updates: Annotated[tuple[int, ...], Meta(max_length=50)] = ()
    """The changes suggested by the CLI that it is to make, by their index in
    `permission_suggestions` of the request. No others are made."""


class DenyAnswer(AnswerBase, tag="deny"):
    """Deny the call; `stop` ends the turn as well."""

    message: str = ""
    stop: bool = False


class PlanAnswer(AnswerBase, tag="plan"):
    """The decision on a plan.

    `fresh` implements it in a new conversation, `auto` here with edits accepted, `manual` here with
    every call asked about; `revise` continues the planning with `feedback`, `reject` ends the turn.
    """

    choice: Literal["fresh", "auto", "manual", "revise", "reject"]
    feedback: str = ""


class QuestionsAnswer(AnswerBase, tag="questions"):
    """The answers by the text of their question: a label, several labels, or any text."""

    answers: dict[str, str | tuple[str, ...]]
    notes: dict[str, str] | None = None


class SkipAnswer(AnswerBase, tag="skip"):
    """No answer; the model continues without one."""

    message: str = ""


class ElicitationAnswer(AnswerBase, tag="elicitation"):
    """What a person entered into an MCP server's form."""

    action: Literal["accept", "decline", "cancel"]
    content: Raw = ABSENT


class RawAnswer(AnswerBase, tag="raw"):
    """An answer in the CLI's own form, as programs give it to the CLI.

    `body` has the `behavior` `allow`, with `updatedInput` and `updatedPermissions`, or `deny`, with
    `message` and `interrupt`. It fits questions about tools, plans, and questions of the model.
    """

    body: Raw


Answer = (
    AllowAnswer
    | DenyAnswer
    | PlanAnswer
    | QuestionsAnswer
    | SkipAnswer
    | ElicitationAnswer
    | RawAnswer
)


class AnswerAsk(Command, tag="ask.answer"):
    """Answer a question. The first answer counts; a later one is refused with a conflict."""

    ask: str
    answer: Answer
    role: str = ""
    """The role of the person, set by the server: a rule may require an owner."""


AnyCommand = (
    CreateSession
    | RenameSession
    | ArchiveSession
    | DeleteSession
    | ChangeSession
    | StopSession
    | ResumeSession
    | MoveSession
    | ForkSession
    | RewindSession
    | Interrupt
    | Control
    | SendPrompt
    | ChangePrompt
    | CancelPrompt
    | AnswerAsk
)


class Outcome(Value):
    """The result of a command: the session and, where there is one, the prompt or an answer."""

    session: str
    prompt: str | None = None
    ask: str | None = None
    repeated: bool = False
    """The command was executed before, by the same id; nothing was done again."""
    answer: Raw = ABSENT
