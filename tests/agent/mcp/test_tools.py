"""Tools as the model meets them: through a real MCP client, which checks every schema."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import math
import threading
from collections.abc import Callable
from typing import Annotated, Literal, cast

import anyio
import msgspec
import pytest
from mcp.server.mcpserver import Image
from mcp_types import CallToolResult, ImageContent, RequestParamsMeta, TextContent
from pydantic import BaseModel, Field, RootModel

from quarterdeck.agent.mcp import Tool, ToolContext, ToolServer, tool
from quarterdeck.domain.errors import UsageError
from support.mcp_client import connected

pytestmark = pytest.mark.anyio


class Point(BaseModel):
    x: int
    y: int = 0


class Weather(msgspec.Struct):
    city: str
    degrees: float


class Pair(msgspec.Struct, array_like=True):
    left: int
    right: int


@dataclasses.dataclass
class Size:
    width: int


def serving(*tools: Callable[..., object]) -> ToolServer:
    return ToolServer("here", tools)


def text_of(result: CallToolResult) -> str:
    assert [block.type for block in result.content] == ["text"]
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


@tool
async def add(a: int, b: Annotated[int, Field(description="the second summand", ge=0)] = 1) -> int:
    """Add two numbers."""
    return a + b


async def test_name_docstring_and_hints_become_what_the_model_sees() -> None:
    async with connected([serving(add)], "here") as client:
        (seen,) = (await client.session.list_tools()).tools
    assert (seen.name, seen.description) == ("add", "Add two numbers.")
    assert seen.input_schema["required"] == ["a"]
    assert seen.input_schema["properties"]["b"]["description"] == "the second summand"
    assert seen.input_schema["additionalProperties"] is False
    assert seen.output_schema is None
    assert seen.annotations is None


async def test_a_decorated_function_can_still_be_called() -> None:
    assert await add(2, b=3) == 5
    assert inspect.signature(add) == inspect.signature(add.function)
    assert add.__doc__ == "Add two numbers."


async def test_the_decorator_takes_another_name_and_hints() -> None:
    @tool(
        name="wipe-all",
        title="Wipe",
        description="Gone for good.",
        read_only=False,
        destructive=True,
        idempotent=True,
        open_world=False,
        always_load=True,
        max_result_chars=500_000,
    )
    def wipe() -> str:
        return "gone"

    async with connected([serving(wipe)], "here") as client:
        (seen,) = (await client.session.list_tools()).tools
        assert text_of(await client.call("wipe-all")) == "gone"
    assert (seen.name, seen.title, seen.description) == ("wipe-all", "Wipe", "Gone for good.")
    assert seen.annotations is not None
    assert seen.annotations.model_dump(by_alias=True) == {
        "title": "Wipe",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert seen.meta == {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 500_000}


async def test_a_plain_function_in_the_list_becomes_a_tool() -> None:
    def shout(text: str) -> str:
        return text.upper()

    async with connected([serving(shout)], "here") as client:
        assert text_of(await client.call("shout", text="hey")) == "HEY"


async def test_a_sync_function_runs_in_a_thread_and_an_async_one_in_the_loop() -> None:
    def sync_thread() -> int:
        return threading.get_ident()

    async def async_thread() -> int:
        return threading.get_ident()

    async with connected([serving(sync_thread, async_thread)], "here") as client:
        assert text_of(await client.call("async_thread")) == str(threading.get_ident())
        assert text_of(await client.call("sync_thread")) != str(threading.get_ident())


async def test_an_object_with_an_async_call_method_or_a_partial_can_be_a_tool() -> None:
    class Greeter:
        async def __call__(self, name: str) -> str:
            return f"hello {name}"

    increase = tool(name="increase")(functools.partial(add, b=1))
    async with connected([serving(tool(name="greet")(Greeter()), increase)], "here") as client:
        assert text_of(await client.call("greet", name="Ann")) == "hello Ann"
        assert text_of(await client.call("increase", a=1)) == "2"


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("plain", "plain"),
        (7, "7"),
        (True, "true"),
        ([1, 2], "[1,2]"),
        ([{"a": 1}], '[{"a":1}]'),
        ({1: "one"}, '{"1":"one"}'),
        (Pair(1, 2), "[1,2]"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
    ],
)
async def test_what_is_no_object_is_only_text(returned: object, text: str) -> None:
    def give() -> object:
        return returned

    async with connected([serving(give)], "here") as client:
        result = await client.call("give")
    assert text_of(result) == text
    assert result.structured_content is None
    assert not result.is_error


@pytest.mark.parametrize(
    ("returned", "structured"),
    [
        ({"a": [1, Point(x=2)]}, {"a": [1, {"x": 2, "y": 0}]}),
        (Point(x=1), {"x": 1, "y": 0}),
        (Weather("Rome", 21.5), {"city": "Rome", "degrees": 21.5}),
        (Size(3), {"width": 3}),
        ({"deep": Weather("Oslo", math.nan)}, {"deep": {"city": "Oslo", "degrees": None}}),
    ],
)
async def test_objects_are_structured_content_and_the_same_as_text(
    returned: object, structured: object
) -> None:
    def give() -> object:
        return returned

    async with connected([serving(give)], "here") as client:
        result = await client.call("give")
    assert result.structured_content == structured
    assert msgspec.json.decode(text_of(result)) == structured


async def test_a_declared_object_type_is_published_as_the_output_schema() -> None:
    def model() -> Point:
        return Point(x=1)

    def struct() -> Weather:
        return Weather("Rome", 21.5)

    def mapping() -> dict[str, int]:
        return {"one": 1}

    def data() -> Size:
        return Size(4)

    tools = serving(model, struct, mapping, data)
    async with connected([tools], "here") as client:
        seen = (await client.session.list_tools()).tools
        for each in seen:
            assert each.output_schema is not None
            assert each.output_schema["type"] == "object"
        assert (await client.call("model")).structured_content == {"x": 1, "y": 0}
        expected = {"city": "Rome", "degrees": 21.5}
        assert (await client.call("struct")).structured_content == expected
        assert (await client.call("mapping")).structured_content == {"one": 1}
        assert (await client.call("data")).structured_content == {"width": 4}


async def test_a_declared_type_that_is_no_object_publishes_no_schema() -> None:
    def root() -> RootModel[list[int]]:
        return RootModel[list[int]]([1, 2])

    def pair() -> Pair:
        return Pair(1, 2)

    async with connected([serving(root, pair)], "here") as client:
        seen = (await client.session.list_tools()).tools
        assert [each.output_schema for each in seen] == [None, None]
        assert text_of(await client.call("root")) == "[1,2]"
        assert text_of(await client.call("pair")) == "[1,2]"


async def test_a_value_that_breaks_its_declared_type_is_an_error_for_the_model() -> None:
    def wrong() -> dict[str, int]:
        return cast("dict[str, int]", {"one": "many"})

    async with connected([serving(wrong)], "here") as client:
        result = await client.call("wrong")
    assert result.is_error
    assert text_of(result).startswith("one: Input should be a valid integer")


async def test_content_blocks_and_images_are_passed_on() -> None:
    def picture() -> list[str | Image | TextContent]:
        return ["look:", Image(data=b"png", format="png"), TextContent(type="text", text="nice")]

    def ready() -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="as is")], is_error=True)

    def nothing() -> None:
        return None

    async with connected([serving(picture, ready, nothing)], "here") as client:
        blocks = (await client.call("picture")).content
        assert [block.type for block in blocks] == ["text", "image", "text"]
        assert isinstance(blocks[1], ImageContent)
        assert (blocks[1].data, blocks[1].mime_type) == ("cG5n", "image/png")
        as_is = await client.call("ready")
        assert (text_of(as_is), as_is.is_error) == ("as is", True)
        assert (await client.call("nothing")).content == []


async def test_an_exception_is_a_result_with_its_message_and_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def grouped() -> None:
        async with anyio.create_task_group():
            raise RuntimeError("the disk is full")

    def silent() -> None:
        raise LookupError

    with caplog.at_level(logging.WARNING):
        async with connected([serving(grouped, silent)], "here") as client:
            full, unnamed = await client.call("grouped"), await client.call("silent")
    assert (full.is_error, text_of(full)) == (True, "the disk is full")
    assert (unnamed.is_error, text_of(unnamed)) == (True, "LookupError")
    assert "Traceback" in caplog.text  # for the programmer


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "a: Field required"),
        ({"a": "x"}, "a: Input should be a valid integer, unable to parse string as an integer"),
        ({"a": 1, "b": -1}, "b: Input should be greater than or equal to 0"),
        ({"a": 1, "c": 2, "d": 3}, "unknown: c, d"),
    ],
)
async def test_wrong_arguments_are_explained_and_the_function_is_not_called(
    arguments: dict[str, object], complaint: str
) -> None:
    async with connected([serving(add)], "here") as client:
        result = await client.call("add", **arguments)
    assert result.is_error
    assert text_of(result) == f"Invalid arguments for add: {complaint}"


async def test_arguments_arrive_as_the_types_of_the_hints() -> None:
    def area(corner: Point, unit: Literal["cm", "m"], sizes: list[int]) -> str:
        return f"{type(corner).__name__} {corner.x} {unit} {sum(sizes)}"

    async with connected([serving(area)], "here") as client:
        result = await client.call("area", corner={"x": 4}, unit="cm", sizes="[1, 2]")
        assert text_of(result) == "Point 4 cm 3"
        assert (await client.call("area", corner={"x": 4}, unit="ft", sizes=[])).is_error


async def test_a_context_parameter_is_filled_and_stays_out_of_the_schema() -> None:
    async def whoami(context: ToolContext, greeting: str = "I am") -> str:
        return f"{greeting} {context.server} {context.tool_use_id}"

    async with connected([serving(whoami)], "here") as client:
        (seen,) = (await client.session.list_tools()).tools
        assert list(seen.input_schema["properties"]) == ["greeting"]
        meta = cast("RequestParamsMeta", {"claudecode/toolUseId": "toolu_1"})
        result = await client.session.call_tool("whoami", {}, meta=meta)
        assert isinstance(result, CallToolResult)
        assert text_of(result) == "I am here toolu_1"
        assert text_of(await client.call("whoami")) == "I am here None"


async def test_progress_and_log_lines_reach_the_client_before_the_answer() -> None:
    async def work(context: ToolContext | None = None) -> str:
        assert context is not None
        await context.progress(1, 2, "half")
        await context.log("nearly", level="notice")
        return "done"

    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with connected([serving(work)], "here") as client:
        await client.session.call_tool("work", {}, progress_callback=on_progress)
        logged = [msgspec.json.decode(message) for message in client.heard]
    assert seen == [(1, 2, "half")]
    assert logged[-1]["method"] == "notifications/message"
    assert logged[-1]["params"] == {"level": "notice", "logger": "here", "data": "nearly"}


async def test_a_sync_tool_reports_progress_from_its_thread() -> None:
    def work(context: ToolContext) -> str:
        anyio.from_thread.run(context.progress, 1)
        return "done"

    async def ignore(progress: float, total: float | None, message: str | None) -> None:
        pass

    async with connected([serving(work)], "here") as client:
        await client.session.call_tool("work", {}, progress_callback=ignore)
        assert b"notifications/progress" in bytes(client.heard[0])


def _variadic(*numbers: int) -> None: ...
def _keywords(**numbers: int) -> None: ...
def _positional(a: int, /) -> None: ...
def _undescribable(a: Weather) -> None: ...
def _private(_a: int) -> None: ...


class _Holder:
    def method(self, a: int) -> int:
        return a


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (_variadic, r"\*numbers: int cannot be passed by name"),
        (_keywords, r"\*\*numbers: int cannot be passed by name"),
        (_positional, "cannot be passed by name"),
        (_undescribable, "a parameter's type has no JSON schema"),
        (_private, "cannot start with '_'"),
        (_Holder.method, "make a tool of the bound method"),
        (lambda: None, "'<lambda>' cannot be a tool's name"),
    ],
)
def test_a_function_that_no_schema_describes_is_refused_at_once(
    function: Callable[..., object], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        tool(function)


async def test_a_bound_method_can_be_a_tool() -> None:
    async with connected([serving(_Holder().method)], "here") as client:
        assert text_of(await client.call("method", a=3)) == "3"


def test_a_name_that_the_api_refuses_is_refused_here() -> None:
    with pytest.raises(UsageError, match="cannot be a tool's name"):
        tool(name="has space")(add.function)
    with pytest.raises(UsageError, match="cannot be a server's name"):
        ToolServer("a.b", [])
    with pytest.raises(UsageError, match="two tools named add"):
        ToolServer("here", [add, add])
    assert isinstance(add, Tool)


async def test_an_unknown_tool_is_an_error_that_names_the_known_ones() -> None:
    async with connected([serving(add)], "here") as client:
        result = await client.call("sub")
    assert result.is_error
    assert text_of(result) == "Unknown tool 'sub'; the tools of here are: add"


async def test_tools_come_and_go_while_the_session_runs() -> None:
    server = serving(add)

    def late() -> str:
        return "late"

    async with connected([server], "here") as client:
        server.add(late)
        server.remove("add")
        await client.host.tools_changed("here")
        assert [each.name for each in (await client.session.list_tools()).tools] == ["late"]
        assert text_of(await client.call("late")) == "late"
        assert [msgspec.json.decode(heard)["method"] for heard in client.heard] == [
            "notifications/tools/list_changed"
        ]
    with pytest.raises(UsageError, match="no tool named add"):
        server.remove("add")
