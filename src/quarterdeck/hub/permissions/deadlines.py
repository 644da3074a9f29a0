"""What a rule says about its question: who may answer, how long it waits, and what happens then.

Pure. All of it is on the card, and so in the journal: a hub that was started anew goes by the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.domain.errors import Forbidden
from quarterdeck.hub.permissions.raw_answers import read_raw
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, DenyAnswer, RawAnswer
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.protocol.roles import may_answer
from quarterdeck.protocol.session_view import SessionView

NOBODY_ANSWERED = "Nobody answered in time."
TIME_LIMIT = "time limit"


def check_answerer(opened: AskOpened, command: AnswerAsk) -> None:
    """Raise `Forbidden` unless this person may answer. Every person may deny."""
    answer = command.answer
    if isinstance(answer, DenyAnswer):
        return
    if isinstance(answer, RawAnswer) and read_raw(answer.body).behavior == "deny":
        return
    if not may_answer(opened.answered_by, command.by, command.role):
        people = "; and ".join(" or ".join(each) for each in opened.answered_by)
        raise Forbidden(f"the rule {opened.rule!r} wants an answer by {people}")


def overdue(view: SessionView, now: float) -> Iterator[tuple[AskOpened, AnswerAsk]]:
    """The questions that have waited long enough at a time in ms, and what is answered for them."""
    for ask, card in view.asks.items():
        opened = card.opened
        limits = [limit for limit in (view.spec.ask_timeout, opened.wait) if limit is not None]
        if not limits or card.at + min(limits) * 1000 > now:
            continue
        ruled = opened.wait is not None and card.at + opened.wait * 1000 <= now
        if ruled and opened.then == "allow" and opened.ask_kind is AskKind.TOOL:
            by = f"policy: {opened.rule}"
            yield opened, AnswerAsk(ask=ask, answer=AllowAnswer(), by=by)
        else:
            answer = DenyAnswer(message=NOBODY_ANSWERED)
            yield opened, AnswerAsk(ask=ask, answer=answer, by=TIME_LIMIT)
