"""Calls of the Bot API: one HTTP request each, with a bound, and errors with their facts.

Owns the connection and its limits: no redirects, no cookies, bounded answers. It keeps no state,
retries nothing and paces nothing: that is the outbox's work. The token is a part of every URL, so
no URL is ever logged or shown in an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import anyio
import msgspec
from msgspec import Raw

from quarterdeck.domain.addresses import check_encrypted
from quarterdeck.domain.errors import JournalError, QuarterdeckError, UsageError
from quarterdeck.domain.structs import DECODE_ERRORS, Value

if TYPE_CHECKING:
    import httpx2

API = "https://api.telegram.org"
CALL_SECONDS = 30.0
UPLOAD_SECONDS = 300.0
LONGEST_ANSWER = 32 * 1024 * 1024
"""Bytes of an answer: a hundred updates with the longest texts and replies are far below this."""
LARGEST_DOWNLOAD = 20 * 1024 * 1024

_Result = TypeVar("_Result")


class BotApiError(QuarterdeckError):
    """Telegram refused a call, or could not be reached.

    `code` is the status (400, 403, 409, 429, …), and 0 when there was no answer that could be
    understood. `retry_after` and `migrate_to` are set where Telegram gives them. `sent` is False
    if the request certainly did not arrive.
    """

    def __init__(
        self,
        code: int,
        description: str,
        *,
        retry_after: float | None = None,
        migrate_to: int | None = None,
        sent: bool = True,
    ) -> None:
        self.code = code
        self.description = description
        self.retry_after = retry_after
        self.migrate_to = migrate_to
        self.sent = sent
        super().__init__(
            f"Telegram: {description} [{code}]" if code else f"Telegram: {description}"
        )

    @property
    def passing(self) -> bool:
        """Whether the same call may work later: no answer, too many calls, a failure there."""
        return self.code in {0, 429} or self.code >= 500

    @property
    def unchanged(self) -> bool:
        """Whether an edit was refused because the message already is so."""
        return self.code == 400 and "message is not modified" in self.description

    @property
    def gone(self) -> bool:
        """Whether the message of an edit or a deletion does not exist any more."""
        return self.code == 400 and any(text in self.description for text in _GONE)


_GONE = (
    "message to edit not found",
    "message to delete not found",
    "message can't be edited",
    "message can't be deleted",
    "MESSAGE_ID_INVALID",
)


class Parameters(Value):
    """Why a call was refused, for programs."""

    migrate_to_chat_id: int | None = None
    retry_after: float | None = None


class Answer(Value):
    """The frame of every answer."""

    ok: bool
    result: Raw = Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: Parameters = Parameters()


class Upload(Value):
    """A file to send."""

    name: str
    data: bytes
    masked: bool = True
    """Whether it may be sent as it is. Else it is a text, which is masked when it is sent."""


class BotCalls:
    """Calls any method of one bot."""

    def __init__(
        self,
        token: str,
        client: httpx2.AsyncClient,
        *,
        base: str = API,
        timeout: float = CALL_SECONDS,
    ) -> None:
        """`base` is another server of the Bot API. It must be encrypted or on this machine."""
        if not token or quote(token, safe=":") != token:
            raise UsageError("this is not a token of a Telegram bot")
        if urlsplit(base).scheme not in {"http", "https"}:
            raise UsageError("the address of the Bot API must begin with https:// or http://")
        check_encrypted(base, insecure=False)
        self._token = token
        self._client = client
        self._base = base.rstrip("/")
        self.timeout = timeout
        self.before: Callable[[], Awaitable[None]] | None = None
        """Done before each call. If it fails with a `JournalError`, nothing is called."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base!r})"

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, Upload] | None = None,
        timeout: float | None = None,
    ) -> Raw:
        """Call any method; its result as JSON. Parameters that are None are left out."""
        if self.before is not None:
            try:
                await self.before()
            except JournalError as error:
                raise BotApiError(0, f"not called: {error}", sent=False) from error
        given = {name: value for name, value in (params or {}).items() if value is not None}
        url = f"{self._base}/bot{self._token}/{method}"
        if files:
            fields = {name: _field(value) for name, value in given.items()}
            parts = {name: (file.name, file.data) for name, file in files.items()}
            options: dict[str, Any] = {"data": fields, "files": parts}
        else:
            body = msgspec.json.encode(given)
            options = {"content": body, "headers": {"content-type": "application/json"}}
        status, answer = await self._fetch("POST", url, timeout or self.timeout, **options)
        return _result(status, answer)

    async def _fetch(
        self, verb: str, url: str, seconds: float, *, largest: int = LONGEST_ANSWER, **options: Any
    ) -> tuple[int, bytes]:
        import httpx2

        failure = BotApiError(0, f"no answer within {seconds:g} s")
        try:
            with anyio.move_on_after(seconds):
                async with self._client.stream(verb, url, **options) as answer:
                    body = bytearray()
                    async for piece in answer.aiter_bytes():
                        body += piece
                        if len(body) > largest:
                            raise BotApiError(0, "the answer is too large")
                    return answer.status_code, bytes(body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            text = f"cannot be reached ({type(error).__name__})"
            failure = BotApiError(0, text, sent=False)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            # Its text may contain the URL, which contains the token.
            failure = BotApiError(0, f"the connection failed ({type(error).__name__})")
        raise failure from None

    async def call_typed(
        self,
        kind: type[_Result],
        method: str,
        params: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> _Result:
        """Call a method; its result as a value of this type."""
        result = await self.call(method, params, **options)
        try:
            return msgspec.json.decode(result, type=kind)
        except DECODE_ERRORS as error:
            raise BotApiError(0, f"the result of {method} is not as expected: {error}") from None

    async def fetch_file(self, path: str, *, largest: int = LARGEST_DOWNLOAD) -> bytes:
        """The contents of a file that is ready for download, at most `largest` bytes."""
        url = f"{self._base}/file/bot{self._token}/{quote(path)}"
        status, body = await self._fetch("GET", url, UPLOAD_SECONDS, largest=largest)
        if status != 200:
            raise BotApiError(status, "the file cannot be downloaded")
        return body


def _field(value: Any) -> str:
    """A parameter as a form has it: texts as they are, everything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _result(status: int, body: bytes) -> Raw:
    try:
        answer = msgspec.json.decode(body, type=Answer)
    except DECODE_ERRORS:
        # A proxy on the way answers in HTML.
        code = status if status >= 400 else 0
        raise BotApiError(code, f"status {status} with no answer of the Bot API") from None
    if answer.ok:
        return answer.result
    given = answer.parameters
    raise BotApiError(
        answer.error_code or status,
        answer.description[:500] or f"status {status}",
        retry_after=given.retry_after,
        migrate_to=given.migrate_to_chat_id,
    )
