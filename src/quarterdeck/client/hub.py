"""The hub from a program: an asynchronous client over HTTP.

Owns one connection pool. Each method is one request, and none is retried: a command with an id of
the caller's choice can be sent again. Following a session is `session`'s.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

from msgspec.structs import replace

from quarterdeck.client import calls
from quarterdeck.client.calls import AnswerLost, Call, HubAddress, HubOffline, content_of
from quarterdeck.client.local import URL_VARIABLE, address_in
from quarterdeck.client.session import SessionClient
from quarterdeck.domain.errors import LinkRefused, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import ABSENT
from quarterdeck.protocol.command_table import REPEATED_HEADER
from quarterdeck.protocol.commands import AnyCommand, CreateSession, Outcome
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.shapes import Health, Me, ProjectShape
from quarterdeck.protocol.usage import UsageBy, UsageReport
from quarterdeck.protocol.views import AskView, EventShape, MachineView, SessionShape
from quarterdeck.runtime.client_tls import client_context

if TYPE_CHECKING:
    import httpx2

    from quarterdeck.client.calls import Content

SECONDS = 60.0
"""For one answer. The slowest, a stop, waits for a CLI to end by itself."""

T = TypeVar("T")


class HubClient:
    """The hub at one address, by one token; an async context manager.

        async with HubClient("http://127.0.0.1:8765", token) as hub:
            session = await hub.create(SessionSpec(directory="/work"), prompt="Run the tests.")

    Methods raise `HubRefused` where the hub refuses, `LinkRefused` where no hub answers. Plain HTTP
    to another machine is refused unless `insecure` is set. `ca_file` is the only certificate
    authority to trust, as `serve --tls auto` makes one.
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        timeout: float = SECONDS,
        insecure: bool = False,
        ca_file: str | Path | None = None,
    ) -> None:
        self.where = HubAddress(
            address=address,
            token=token,
            insecure=insecure,
            ca_file=None if ca_file is None else Path(ca_file),
        )
        self._timeout = timeout
        self._http: httpx2.AsyncClient | None = None
        self._stack = AsyncExitStack()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """The hub that `QUARTERDECK_URL` and `QUARTERDECK_TOKEN` name. Raises `UsageError`."""
        found = address_in(environment)
        if found is None:
            raise UsageError(f"the environment variable {URL_VARIABLE} is not set")
        return cls(found.address, found.token, insecure=found.insecure, ca_file=found.ca_file)

    patient = False
    """Whether a hub that is away is waited for."""

    async def locate(self) -> HubAddress:
        """Where the hub is now."""
        return self.where

    async def __aenter__(self) -> Self:
        import httpx2  # a fifth of a second, for who follows the stream only

        self._http = await self._stack.enter_async_context(
            httpx2.AsyncClient(
                timeout=self._timeout,
                trust_env=False,  # a proxy knows nothing of a hub on loopback
                follow_redirects=False,
                # The certificates of authorities take 25 ms to load: not for a hub without TLS.
                verify=client_context(self.where.ca_file)
                if self.where.base.startswith("https:")
                else False,
            )
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http = None
        await self._stack.aclose()

    async def call(self, call: Call[T]) -> T:
        """Send any call, and give its answer."""
        import httpx2

        if self._http is None:
            raise UsageError("the client is not open: use it with `async with`")
        try:
            answer = await self._http.request(
                call.method,
                self.where.base + call.path,
                content=call.body,
                headers=call.headers(self.where.token),
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise HubOffline(f"no hub answers at {self.where.base}: {error}") from error
        except httpx2.TimeoutException as error:
            raise AnswerLost(f"the hub at {self.where.base} does not answer") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise AnswerLost(f"no hub answers at {self.where.base}: {error}") from error
        found = call.decode(answer.status_code, answer.content, self.where.base)
        if isinstance(found, Outcome) and REPEATED_HEADER in answer.headers:
            return cast("T", replace(found, repeated=True))
        return found

    async def download(self, path: str, *, largest: int) -> bytes:
        """The contents at a path of the API. Raises `UsageError` if they are larger."""
        import httpx2

        if self._http is None:
            raise UsageError("the client is not open: use it with `async with`")
        found = bytearray()
        try:
            headers = {"Authorization": f"Bearer {self.where.token}"}
            async with self._http.stream("GET", self.where.base + path, headers=headers) as answer:
                async for piece in answer.aiter_bytes():
                    found += piece
                    if len(found) > largest:
                        raise UsageError(f"it is larger than {largest} bytes")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise LinkRefused(f"no hub answers at {self.where.base}: {error}") from error
        if answer.status_code >= 400:
            raise calls.refusal(calls.problem_in(answer.status_code, bytes(found)))
        return bytes(found)

    async def submit(self, command: AnyCommand) -> Outcome:
        """Send any command."""
        return await self.call(calls.submit(command))

    # --- sessions ------------------------------------------------------------------------------

    async def create(
        self,
        spec: SessionSpec,
        *,
        prompt: Content | None = None,
        session: str | None = None,
        cli_session: str | None = None,
    ) -> SessionClient:
        """Create a session and start it. A `session` id of your choice makes it idempotent."""
        command = CreateSession(
            spec=spec,
            session=session,
            prompt=ABSENT if prompt is None else content_of(prompt),
            prompt_id=None if prompt is None else new_id(),
            cli_session=cli_session,
        )
        return SessionClient(self, (await self.submit(command)).session)

    def session(self, session: str) -> SessionClient:
        """A session by its id. It is not looked up before it is used."""
        return SessionClient(self, session)

    async def sessions(self, *, archived: bool = False) -> AsyncIterator[SessionShape]:
        """All sessions, newest first, or all archived ones; a page is read when it is needed."""
        after: str | None = None
        while True:
            page = await self.call(calls.sessions(after, archived=archived))
            for shape in page.sessions:
                yield shape
            after = page.next
            if after is None:
                return

    # --- the hub -------------------------------------------------------------------------------

    async def asks(self, session: str | None = None, *, ended: bool = False) -> tuple[AskView, ...]:
        """The open questions, oldest first; also (`ended`) those whose agent has ended."""
        return (await self.call(calls.asks(session, ended=ended))).asks

    async def audit(self, session: str | None = None) -> AsyncIterator[EventShape]:
        """The audit log, oldest entry first."""
        after: int | None = 0
        while after is not None:
            page = await self.call(calls.audit(session, after))
            for shape in page.events:
                yield shape
            after = page.next

    async def machines(self) -> tuple[MachineView, ...]:
        """The machines that run agents, or did."""
        return (await self.call(calls.machines())).machines

    async def projects(self) -> tuple[ProjectShape, ...]:
        """The projects of the configuration."""
        return (await self.call(calls.projects())).projects

    async def usage(
        self, by: UsageBy = UsageBy.DAY, *, since: str | None = None, until: str | None = None
    ) -> UsageReport:
        """What was used. `since` and `until` are days or times in ISO 8601."""
        return await self.call(calls.usage(by, since, until))

    async def whoami(self) -> Me:
        """The person that the token belongs to, and their rights."""
        return await self.call(calls.whoami())

    async def health(self) -> Health:
        """Whether the hub answers, and its version."""
        return await self.call(calls.health())
