"""The rest of plans."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from quarterdeck.hub.permissions.cooldown import Cooldown
from quarterdeck.protocol.commands import DenyAnswer, PlanAnswer

REVISE = Raw(msgspec.json.encode(PlanAnswer(choice="revise", feedback="x")))
APPROVE = Raw(msgspec.json.encode(PlanAnswer(choice="auto")))


def test_without_a_base_there_is_no_rest() -> None:
    cooldown = Cooldown(None)
    cooldown.note_answer(REVISE, 0)
    assert cooldown.wait(1) == 0


def test_the_rest_grows_with_each_revision_up_to_four_times() -> None:
    cooldown = Cooldown(30)
    for revision, rest in enumerate((30, 60, 90, 120, 120), 1):
        cooldown.note_answer(REVISE, revision * 1_000_000)
        assert cooldown.wait(revision * 1_000_000) == rest


def test_the_rest_ends_and_begins_anew_when_it_is_broken() -> None:
    cooldown = Cooldown(30)
    cooldown.note_answer(REVISE, 0)
    assert cooldown.wait(20_000) == 10
    cooldown.note_refusal(20_000)
    assert cooldown.wait(49_000) == 1
    cooldown.note_refusal(49_000)
    assert cooldown.wait(79_001) == 0


def test_a_decision_ends_it_and_other_answers_do_not_matter() -> None:
    cooldown = Cooldown(30)
    cooldown.note_answer(REVISE, 0)
    cooldown.note_answer(Raw(msgspec.json.encode(DenyAnswer())), 0)
    cooldown.note_answer(Raw(b"[]"), 0)
    assert cooldown.wait(1) == 30
    cooldown.note_answer(APPROVE, 2)
    assert cooldown.wait(3) == 0
