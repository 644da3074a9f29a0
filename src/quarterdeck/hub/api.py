"""The hub's API: what fronts may ask of the hub, and the types that it gives back.

Fronts (HTTP, chat, terminal) know this, `protocol` and the libraries below, and nothing else of the
hub, its journal and its policy. An import rule holds them to it. `HubApi` is the hub; the services
beside it (worktrees, reviews, CLIs on disk) are named here, and are the only ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from quarterdeck.hub.call_record import CallRecord as CallRecord
from quarterdeck.hub.checkpoints import read_checkpoints as read_checkpoints
from quarterdeck.hub.cli_access import CliAccess as CliAccess
from quarterdeck.hub.cli_tokens import session_of as session_of
from quarterdeck.hub.fleet import Asker as Asker
from quarterdeck.hub.fleet import Fleet as Fleet
from quarterdeck.hub.fleet import PeerOffline as PeerOffline
from quarterdeck.hub.fleet import RemoteAgent as RemoteAgent
from quarterdeck.hub.fleet import act_as as act_as
from quarterdeck.hub.fleet import ask_as as ask_as
from quarterdeck.hub.fleet import own_work as own_work
from quarterdeck.hub.live import Live as Live
from quarterdeck.hub.new_sessions import CliSessions as CliSessions
from quarterdeck.hub.permissions.policy_texts import PolicyFileText as PolicyFileText
from quarterdeck.hub.permissions.service import PolicyService as PolicyService
from quarterdeck.hub.permissions.service import PolicyView as PolicyView
from quarterdeck.hub.permissions.service import Question as Question
from quarterdeck.hub.permissions.tool_calls import rule_on_agent as rule_on_agent
from quarterdeck.hub.permissions.tool_calls import rule_on_person as rule_on_person
from quarterdeck.hub.permissions.trials import PolicyChecked as PolicyChecked
from quarterdeck.hub.reviews import Act as Act
from quarterdeck.hub.reviews import ReviewService as ReviewService
from quarterdeck.hub.rewinds import goes_back_in_place as goes_back_in_place
from quarterdeck.hub.workers import Workers as Workers
from quarterdeck.hub.worktrees import TEXT_LIMIT as TEXT_LIMIT
from quarterdeck.hub.worktrees import WorktreeService as WorktreeService
from quarterdeck.journal.base import Follower as Follower
from quarterdeck.journal.base import Sharing as Sharing
from quarterdeck.journal.ownership import HubPlace as HubPlace
from quarterdeck.journal.ownership import Owner as Owner
from quarterdeck.policy.decide import Rules as Rules
from quarterdeck.policy.decide import Verdict as Verdict
from quarterdeck.policy.explain import Explanation as Explanation
from quarterdeck.policy.grants import Grant as Grant
from quarterdeck.policy.replay import Replay as Replay
from quarterdeck.policy.specifiers import Behavior as Behavior
from quarterdeck.policy.suggest import LEAST as LEAST
from quarterdeck.policy.suggest import Suggestion as Suggestion
from quarterdeck.protocol.audit import AuditKind, AuditPage
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import UsageBy, UsageReport
from quarterdeck.protocol.views import AskView, Deltas, MachineView, Piece


class HubApi(Protocol):
    """Commands in, events out."""

    @property
    def epoch(self) -> str:
        """Names the journal: sequence numbers of another epoch mean nothing."""

    @property
    def position(self) -> int:
        """The position of the last event; 0 when there is none."""

    async def reaches(self, position: int) -> bool:
        """Whether the journal has come to this position, also by another hub."""

    @property
    def policy(self) -> PolicyService:
        """What is decided about tool calls without a person, and what was."""

    @property
    def workers(self) -> Workers:
        """Processes for work that may take long."""

    async def submit(self, command: AnyCommand) -> Outcome:
        """Do what a command asks for.

        Raises `NotFound`, `Conflict`, `Forbidden`, `UsageError`, or what the CLI made of it:
        `RequestError`, `LinkError`.
        """

    async def sessions(
        self, *, after: str | None = None, limit: int = 100, archived: bool = False
    ) -> list[SessionView]:
        """Sessions, newest first, a page at a time: `after` is the last id of the page before."""

    async def session(self, session: str) -> SessionView:
        """One session. Raises `NotFound`."""

    def view(self, session: str) -> SessionView | None:
        """A session without a read of the journal; None if it is not in memory.

        It may lack the newest events: `head` is the last one that is folded.
        """

    async def events(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Stored]:
        """A session's history, a page at a time. Raises `NotFound`."""

    async def asks(self, *, session: str | None = None, ended: bool = False) -> list[AskView]:
        """The open questions, oldest first.

        With `ended` also those whose agent has ended: an answer resumes the session.
        """

    async def audit(
        self,
        *,
        session: str | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 1000,
    ) -> list[Stored]:
        """Who or what let each call pass, or did not, in the order in which it happened.

        With `before` the entries before that position, the newest first.
        """

    async def audit_page(
        self,
        kind: AuditKind,
        *,
        before: int,
        after: int = 0,
        session: str | None = None,
        limit: int = 1000,
    ) -> AuditPage:
        """Entries of one kind in the audit log, the newest first; a page may be empty."""

    async def usage(
        self, by: UsageBy, *, since: int | None = None, until: int | None = None
    ) -> UsageReport:
        """What was used from `since` on and before `until`, both in ms since 1970."""

    async def machines(self) -> list[MachineView]:
        """The machines."""

    def follow(
        self, cursors: Mapping[str, int] | None = None, *, after: int | None = None
    ) -> Follower:
        """Events as they happen, of these sessions after these numbers.

        Without `cursors`: of all sessions, after the position `after`, or from now on.
        """

    def live(self, listener: Callable[[Deltas], None]) -> Callable[[], None]:
        """Have `listener` called, in the loop and at once, with each delta from now on.

        It must be quick and must not raise. Call what is given back to have it end.
        """

    def so_far(self, session: str) -> tuple[Deltas, ...]:
        """The text so far of the blocks that are still being made: all that `live` gave of them.

        A block is left out as soon as its whole message is on its way into the journal.
        """

    def pieces(self, listener: Callable[[Piece], None]) -> Callable[[], None]:
        """Have `listener` called, in the loop and at once, with each line that is not journalled.

        It must be quick and must not raise. A piece may be given twice, with the same number. It
        may come before the journalled lines that precede it: see `Piece.after`. Call what is given
        back to have it end.
        """
