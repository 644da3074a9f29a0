"""What the routes about policy take and give. Above are the routes and the client of the commands.

Like `shapes`, it needs no web framework.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.http.shapes import Body, Id
from quarterdeck.policy.grants import Grant
from quarterdeck.policy.suggest import Suggestion

Text = Annotated[str, Meta(max_length=1_000_000)]
Word = Annotated[str, Meta(max_length=4096)]


class PolicyText(Body):
    """A policy, as its file would have it."""

    text: Text


class CallQuestion(Body):
    """A call to be explained. What is left out is unknown, or the session's."""

    tool: Annotated[str, Meta(min_length=1, max_length=256)]
    argument: Text = ""
    """The input, as a JSON object; or the one argument that the tool is about, as a command."""
    session: Id | None = None
    policy: Word | None = None
    text: Text | None = None
    """A policy's text to try, in place of what is in force."""
    cwd: Word | None = None
    branch: Word | None = None
    project: Word | None = None
    machine: Word | None = None
    user: Word | None = None
    mode: Word | None = None
    origin: Word | None = None
    cost: float | None = None
    at: Annotated[int, Meta(ge=0, le=2**50)] | None = None


class PolicyTrial(Body):
    """A policy to be held against the calls of the past."""

    text: Text
    since: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    """In ms since 1970; else the last 30 days."""
    session: Id | None = None


class NewPolicyGrant(Body):
    """Allow something without a question, until it is revoked or for some time."""

    rules: Annotated[tuple[Word, ...], Meta(min_length=1, max_length=50)]
    """In Claude Code's words: `Bash(npm test:*)`."""
    seconds: Annotated[float, Meta(gt=0, le=315_360_000)] | None = None
    directory: Word | None = None
    project: Word | None = None


class SuggestionList(Value, omit_defaults=False):
    """Rules that people's answers support, the best supported first."""

    suggestions: tuple[Suggestion, ...]


class PolicyGrants(Value, omit_defaults=False):
    """What people have granted, oldest first."""

    grants: tuple[Grant, ...]
