"""One tool: a Python function with a name, a description, and a schema of its arguments.

Owns what the decorator reads from a function and how one call runs: the arguments are checked, the
function is called, and an exception becomes a result that the model can read. The `mcp` package
derives schemas. It does not know JSON-RPC.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
import typing
from collections.abc import Callable, Mapping
from typing import Generic, ParamSpec, TypeVar, overload

import anyio.to_thread
import msgspec
from mcp.server import ServerRequestContext
from mcp.server.mcpserver.exceptions import InvalidSignature
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata, func_metadata
from mcp_types import (
    CallToolResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    ToolAnnotations,
)
from mcp_types import Tool as ToolDefinition
from pydantic import ValidationError
from pydantic.errors import PydanticUserError

from quarterdeck.agent.mcp.results import explain, failure, to_result
from quarterdeck.domain.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The characters that the model's API accepts in a tool's name; `mcp__<server>__` is put before it.
The CLI replaces any other character of a server's name by `_`, and two servers could then get the
same name."""

_TOOL_USE_ID = "claudecode/toolUseId"

_log = logging.getLogger(__name__)


class ToolContext:
    """The context of a running call. A tool gets it through a parameter of this type.

    The parameter is not part of the schema, and the model does not see it.
    """

    def __init__(self, server: str, request: ServerRequestContext[object]) -> None:
        self.server = server
        self._request = request

    @property
    def tool_use_id(self) -> str | None:
        """The id of the model's `tool_use` block; the same one that permission requests name."""
        found = (self._request.meta or {}).get(_TOOL_USE_ID)
        return found if isinstance(found, str) else None

    async def progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report how far the call has come. Nothing is sent if the CLI did not ask for it."""
        await self._request.session.report_progress(done, total, message)

    async def log(self, text: str, *, level: LoggingLevel = "info") -> None:
        """Send a line for the CLI's log of this server; the model does not read it."""
        params = LoggingMessageNotificationParams(level=level, data=text, logger=self.server)
        await self._request.session.send_notification(
            LoggingMessageNotification(params=params), self._request.request_id
        )


class Tool(Generic[P, R]):
    """A function that the agent can call. Made by `tool`; calling it calls the function."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        self.function = function
        self.name = check_name(str(name or getattr(function, "__name__", "")), "tool")
        self._context_parameter = _context_parameter(function, self.name)
        self._metadata = _metadata(function, self.name, self._context_parameter)
        self._returns = _return_struct(function)
        self.definition = ToolDefinition(
            name=self.name,
            title=title,
            description=description or inspect.getdoc(function) or "",
            input_schema=_input_schema(self._metadata, self.name),
            output_schema=self._output_schema(),
            annotations=annotations,
            _meta=dict(meta) if meta else None,
        )
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as if it had not been decorated."""
        return self.function(*args, **kwargs)

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> CallToolResult:
        """Check the arguments, call the function, and convert its return value or exception.

        Every error becomes a result, because the model can read it and try again. A JSON-RPC error
        would only say that the server is broken.
        """
        try:
            return self._result(await self._call(self._check(arguments), context))
        except _ArgumentsError as error:
            return failure(str(error))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the model must hear
            _log.warning("tool %s failed", self.name, exc_info=True)
            return failure(explain(error))

    def _check(self, arguments: Mapping[str, object]) -> dict[str, object]:
        unknown = sorted(arguments.keys() - self.definition.input_schema["properties"].keys())
        if unknown:
            raise _ArgumentsError(
                f"Invalid arguments for {self.name}: unknown: {', '.join(unknown)}"
            )
        try:
            return self._metadata.validate_arguments(dict(arguments))
        except ValidationError as error:
            raise _ArgumentsError(f"Invalid arguments for {self.name}: {explain(error)}") from error

    async def _call(self, arguments: dict[str, object], context: ToolContext) -> object:
        if self._context_parameter:
            arguments[self._context_parameter] = context
        call = functools.partial(typing.cast("Callable[..., object]", self.function), **arguments)
        if _is_async(self.function):
            returned = call()
        else:
            # A thread cannot be stopped. After a cancellation it runs to its end alone, so that
            # neither the answer nor the end of the session waits for it.
            returned = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        return await returned if inspect.isawaitable(returned) else returned

    def _result(self, returned: object) -> CallToolResult:
        if self._metadata.output_schema is None or isinstance(returned, CallToolResult):
            return to_result(returned)
        # Checked against the declared type: the CLI refuses a result that does not fit the schema.
        converted = self._metadata.convert_result(returned)
        if not isinstance(converted, CallToolResult):
            raise TypeError(f"cannot return {type(converted).__name__}")
        return to_result(converted.structured_content)

    def _output_schema(self) -> dict[str, object] | None:
        """The schema of the return value, if it is an object; MCP allows no other."""
        schema: dict[str, object] | None = self._metadata.output_schema
        if self._returns:
            (root,), definitions = msgspec.json.schema_components(
                [self._returns], ref_template="#/$defs/{name}"
            )
            # The root must be an object itself, not a reference to one.
            schema = {**definitions[root["$ref"].rpartition("/")[2]], "$defs": definitions}
        return schema if schema and schema.get("type") == "object" else None


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    always_load: bool = False,
    max_result_chars: int | None = None,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    always_load: bool = False,
    max_result_chars: int | None = None,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a function a tool: the model sees its name, docstring and type hints.

    The flags are unchecked hints for the CLI and for people: it changes nothing (`read_only`), may
    destroy (`destructive`), may be repeated without further effect (`idempotent`), reaches beyond
    this machine (`open_world`). `always_load` makes a CLI with tool search offer this tool at once;
    `max_result_chars` raises the size at which the CLI moves a result to a file. Raises
    `UsageError` when the function cannot be described by a schema.
    """
    hints = ToolAnnotations(
        title=title,
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=open_world,
    )
    annotations = hints if hints.model_dump(exclude_none=True) else None
    meta: dict[str, object] = {}
    if always_load:
        meta["anthropic/alwaysLoad"] = True
    if max_result_chars is not None:
        meta["anthropic/maxResultSizeChars"] = max_result_chars

    def decorate(decorated: Callable[P, R]) -> Tool[P, R]:
        return Tool(
            decorated,
            name=name,
            title=title,
            description=description,
            annotations=annotations,
            meta=meta,
        )

    return decorate if function is None else decorate(function)


class _ArgumentsError(Exception):
    """An invalid call by the model; the text is for the model."""


def check_name(name: str, what: str) -> str:
    """Return `name` if it can be the name of a tool or a server; raise `UsageError` if not."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be a {what}'s name: use letters, digits, _ and -, at most 64"
        )
    return name


def _is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )


def _context_parameter(function: Callable[..., object], name: str) -> str | None:
    """Refuse parameters that the model cannot fill by name; find the one that takes the context."""
    found: str | None = None
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except (NameError, TypeError, ValueError) as error:
        raise UsageError(f"tool {name}: its signature cannot be read: {error}") from error
    for parameter in parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UsageError(f"tool {name}: {parameter} cannot be passed by name")
        if parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
            raise UsageError(f"tool {name}: make a tool of the bound method: tool(object.method)")
        kinds = (parameter.annotation, *typing.get_args(parameter.annotation))
        if any(isinstance(kind, type) and issubclass(kind, ToolContext) for kind in kinds):
            found = parameter.name
    return found


def _metadata(function: Callable[..., object], name: str, context: str | None) -> FuncMetadata:
    skipped = [context] if context else []
    if not hasattr(function, "__name__"):
        function = _with_name(function, name)
    try:
        if _return_struct(function):
            return func_metadata(function, skipped, structured_output=False)
        metadata = func_metadata(function, skipped)
        if metadata.wrap_output:  # not an object: see `results`
            return func_metadata(function, skipped, structured_output=False)
    except (InvalidSignature, PydanticUserError, TypeError, NameError) as error:
        raise UsageError(f"tool {name}: {error}") from error
    return metadata


def _with_name(function: Callable[..., object], name: str) -> Callable[..., object]:
    """Stand in for an object or a partial: `func_metadata` wants a name beside the signature."""

    def stand_in(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    functools.update_wrapper(stand_in, function)
    stand_in.__name__ = name
    return stand_in


def _input_schema(metadata: FuncMetadata, name: str) -> dict[str, object]:
    try:
        schema = metadata.arg_model.model_json_schema(by_alias=True)
    except PydanticUserError as error:
        raise UsageError(
            f"tool {name}: a parameter's type has no JSON schema: {error.message}"
        ) from error
    return {"properties": {}, **schema, "additionalProperties": False}


def _return_struct(function: Callable[..., object]) -> type[msgspec.Struct] | None:
    returned = inspect.signature(function, eval_str=True).return_annotation
    if isinstance(returned, type) and issubclass(returned, msgspec.Struct):
        return returned
    return None
