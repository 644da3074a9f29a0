"""Questions of a hub's session, answered by a person at the keyboard.

Owns the step from an open question to an `Answer` for the hub. The dialogues are those of
`quarterdeck run` (`terminal.keyboard`), except for what only a hub can do: execute a plan in a new
conversation, and fill in an MCP server's form.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, cast

import msgspec
from msgspec import Raw
from rich.text import Text

from quarterdeck.agent.asks import Allow, Decision, Deny, PlanAsk, QuestionsAsk, ToolAsk, to_ask
from quarterdeck.cli.terminal.keyboard import NO_ANSWER, Keyboard, inside, menu, plan_card, title
from quarterdeck.cli.terminal.keys import Area
from quarterdeck.cli.terminal.text import marked_lines, plain
from quarterdeck.domain.structs import ABSENT
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    DenyAnswer,
    ElicitationAnswer,
    PlanAnswer,
    QuestionsAnswer,
    Scope,
    SkipAnswer,
)
from quarterdeck.protocol.events import AskOpened
from quarterdeck.wire.requests import CanUseTool, Elicitation, decode_request
from quarterdeck.wire.tools import one_line

SCHEMA_LINES = 30
_PLAN_CHOICES = [
    ("f", "execute it in a new conversation, and accept all file edits"),
    ("a", "execute it here, and accept all file edits"),
    ("y", "execute it here, and ask about every call"),
    ("k", "keep planning; you may say what to change"),
    ("r", "reject, and stop the turn"),
]
_FORM_CHOICES = [
    ("y", "accept; you may add the form's values as JSON"),
    ("n", "decline"),
    ("c", "cancel"),
]
_WORDS: dict[str, Literal["fresh", "auto", "manual"]] = {
    "f": "fresh",
    "fresh": "fresh",
    "a": "auto",
    "auto": "auto",
    "y": "manual",
    "yes": "manual",
}


async def answer_at(keyboard: Keyboard, opened: AskOpened) -> Answer:
    """Ask the person. Cancelled when the question was answered elsewhere or withdrawn."""
    request = decode_request(opened.request)
    match request:
        case CanUseTool():
            ask = to_ask(opened.request_id, request)
        case Elicitation():
            return await keyboard.converse(partial(_form, request))
        case _:
            return DenyAnswer(message="The question could not be read.")
    match ask:
        case PlanAsk():
            return await keyboard.converse(partial(_plan, ask, opened.plan))
        case QuestionsAsk():
            return await keyboard.converse(partial(_questions, keyboard, ask))
        case ToolAsk():
            always = [f"allow {one_line(rule, 300)} in this project" for rule in opened.narrowest]
            return _answer_of(await keyboard.decide(ask, always=always), opened.narrowest)


def _answer_of(decision: Decision, rules: tuple[str, ...]) -> Answer:
    match decision:
        case Deny(message=message, interrupt=stop):
            # The hub has the same default text for a denial.
            return DenyAnswer(message="" if message == Deny().message else message, stop=stop)
        case Allow(input=changed, updates=updates):
            if updates:
                # «always» grants what was shown, and makes no change that the CLI suggests.
                return AllowAnswer(scope=Scope.ALWAYS, rules=rules)
            return AllowAnswer(input=cast("Raw", changed) if changed else ABSENT)


async def _plan(ask: PlanAsk, text: str | None, area: Area) -> Answer:
    plan = msgspec.structs.replace(ask.plan, plan=text or ask.plan.plan)
    # A new conversation needs the text of the plan, which some versions do not send.
    choices = _PLAN_CHOICES if text else _PLAN_CHOICES[1:]
    area.print(Text(), *plan_card(plan), *menu(choices))
    while True:
        reply = await area.ask("? ")
        if reply is None:
            return PlanAnswer(choice="reject", feedback=NO_ANSWER)
        word, _, rest = reply.partition(" ")
        if (choice := _WORDS.get(word.lower())) is not None:
            return PlanAnswer(choice=choice)
        match word.lower():
            case "k" | "keep":
                feedback = rest.strip() or await area.ask("  what should be different: ")
                if feedback:
                    return PlanAnswer(choice="revise", feedback=feedback)
            case "r" | "reject":
                return PlanAnswer(choice="reject", feedback=rest.strip())
            case _:
                area.print(Text("  one of the letters above, then Enter", "dim"))


async def _questions(keyboard: Keyboard, ask: QuestionsAsk, area: Area) -> Answer:
    answers = await keyboard.answers_to(ask.questions, area)
    if not answers:
        return SkipAnswer()
    return QuestionsAnswer(
        answers={
            question: chosen if isinstance(chosen, str) else tuple(chosen)
            for question, chosen in answers.items()
        }
    )


async def _form(request: Elicitation, area: Area) -> Answer:
    area.print(Text(), title("Form", f"of the MCP server {one_line(request.mcp_server_name, 80)}"))
    area.print(*(inside(Text(line)) for line in marked_lines(request.message)[0]))
    if request.url:
        area.print(inside(Text(f"to visit: {one_line(request.url, 2000)}")))
    if request.requested_schema:
        schema = msgspec.json.format(bytes(request.requested_schema), indent=2).decode()
        area.print(*(inside(Text(line, "dim")) for line in marked_lines(schema, SCHEMA_LINES)[0]))
    area.print(*menu(_FORM_CHOICES))
    while True:
        reply = await area.ask("? ")
        word, _, rest = (reply or "c").partition(" ")
        match word.lower():
            case "y" | "yes":
                values = rest.strip() or (await area.ask("  the values, as JSON: ") or "{}")
                try:
                    members = msgspec.json.decode(values, type=dict[str, Raw])
                except msgspec.DecodeError as error:
                    area.print(Text(f"  {plain(str(error))}", "red"))
                    continue
                return ElicitationAnswer(action="accept", content=Raw(msgspec.json.encode(members)))
            case "n" | "no":
                return ElicitationAnswer(action="decline")
            case "c" | "cancel":
                return ElicitationAnswer(action="cancel")
            case _:
                area.print(Text("  one of the letters above, then Enter", "dim"))
