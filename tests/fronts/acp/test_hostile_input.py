"""Whatever an editor sends: each request gets one answer, and the connection continues."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import msgspec
import pytest
from acp.meta import AGENT_METHODS
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.client import HubAddress
from quarterdeck.domain.errors import LinkRefused, UsageError
from quarterdeck.fronts.acp.agent import serve
from quarterdeck.fronts.acp.v1.asks import dialogue_for
from quarterdeck.protocol.events import AskKind
from quarterdeck.protocol.sessions import SessionSpec
from support.acp_pipe import MemoryPipe
from support.acp_shapes import me, opened
from support.bounds import SECONDS
from support.examples import examples

pytestmark = pytest.mark.anyio

_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
_names = ("sessionId", "cwd", "prompt", "mcpServers", "modeId", "configId", "value", "requestId")
_params = _values | st.dictionaries(st.sampled_from(_names), _values)
_methods = st.sampled_from([*AGENT_METHODS.values(), "$/cancel_request", ""]) | st.text(max_size=9)


async def _nowhere() -> HubAddress:
    raise LinkRefused("no hub")


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(_methods, _params, st.binary(max_size=20)), max_size=5))
async def test_each_request_is_answered_once(calls: list[tuple[str, Any, bytes]]) -> None:
    pipe = MemoryPipe()
    for number, (method, params, junk) in enumerate(calls):
        pipe.put(junk + b"\n")
        pipe.say(id=number, method=method, params=params)
        pipe.say(method=method, params=params)
    pipe.say(id="last", method="initialize", params={"protocolVersion": 1})
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, pipe, _nowhere, SessionSpec(directory="/"))
            await pipe.answer("last")
            for number in range(len(calls)):
                await pipe.answer(number)
            pipe.put(b"")
    ids = [message["id"] for message in pipe.heard if message.get("id") is not None]
    assert sorted(map(str, ids)) == sorted([*map(str, range(len(calls))), "last"])


@settings(max_examples=examples(300))
@given(
    st.sampled_from(list(AskKind)),
    _values,
    st.lists(_values, min_size=1, max_size=3),
    st.booleans(),
)
async def test_no_result_of_an_editor_is_an_answer_that_was_not_offered(
    kind: AskKind, given_: Any, results: list[Any], forms: bool
) -> None:
    """Neither what a model puts into its input nor what an editor answers allows anything."""
    dialogue = dialogue_for("s1", opened(kind=kind, given=given_), me(), forms=forms)
    assert dialogue is not None
    msgspec.json.encode(next(dialogue).model_dump(mode="json", by_alias=True))
    answer: object = None
    with suppress(UsageError):
        try:
            for result in results:
                dialogue.send(result)
        except StopIteration as end:
            answer = end.value
    assert answer is None
