"""Answers to the CLI where the program's own functions return what they must not."""

from __future__ import annotations

import pytest

from support import lines
from support.far_end import driven

pytestmark = pytest.mark.anyio


async def _nothing(ask: object) -> None:
    """A function that forgot to return."""


@pytest.mark.parametrize("decide", [lambda ask: None, lambda ask: "yes", _nothing])
async def test_a_decision_that_is_none_denies_and_says_what_is_wanted(decide: object) -> None:
    async with driven(decide=decide) as (_, far):
        await far.say(lines.asks_permission("q1"))
        answer = (await far.read())["response"]["response"]
        assert answer["behavior"] == "deny"
        assert "must return Allow or Deny, got" in answer["message"]
        assert "Error" not in answer["message"]


@pytest.mark.parametrize("elicit", [lambda request: None, lambda request: {"action": "accept"}])
async def test_an_elicitation_without_a_proper_answer_is_refused_in_words(elicit: object) -> None:
    async with driven(elicit=elicit) as (_, far):
        await far.say(lines.requests("q", subtype="elicitation", mcp_server_name="s", message="?"))
        answer = (await far.read())["response"]
        assert answer["subtype"] == "error"
        assert "must return an ElicitationAnswer" in answer["error"]
