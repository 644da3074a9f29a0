"""Permission requests, plans and questions, answered by a person at the keyboard.

Owns the dialogues, from an `Ask` of the library to the `Decision` that answers it. One dialogue is
shown at a time; the others wait. A question that the CLI withdraws is removed from the screen. When
the input ends (Ctrl-D) during a question, the answer is a denial: it fails closed.

Used by `run`, and by `hub.keyboard_answers` for the hub's sessions; uses `keys`, `render` and
`diffs`.
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
from msgspec import Raw
from rich.console import Console
from rich.text import Text

from quarterdeck.agent.asks import AnyAsk, Decision, Deny, PlanAsk, QuestionsAsk, ToolAsk
from quarterdeck.cli.terminal import diffs, render
from quarterdeck.cli.terminal.keys import Area, Keys
from quarterdeck.cli.terminal.permission_text import in_words
from quarterdeck.cli.terminal.prompt_line import Silence, Typing
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.cli.terminal.text import count, marked_lines, plain
from quarterdeck.domain.marks import mark_invisible
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.rawjson import members
from quarterdeck.wire.tools import Plan, Question, Questions, one_line

SHOWN_LINES = 60
"""The most lines of an input that a question shows; the editor shows all of it."""

T = TypeVar("T")

NO_ANSWER = "There was no answer: the input of the terminal ended."


class Keyboard:
    """Answers asks by asking the person at the terminal."""

    def __init__(
        self,
        console: Console,
        keys: Keys,
        screen: Screen,
        *,
        settle: Callable[[], Awaitable[None]],
        typing: Typing | Silence | None = None,
    ) -> None:
        self._typing = typing
        self._console = console
        self._keys = keys
        self._screen = screen
        self._settle = settle
        self._one_at_a_time = anyio.Lock()
        self.waiting = 0
        self.editing = False

    async def decide(self, ask: AnyAsk, *, always: list[str] | None = None) -> Decision:
        """Ask the person. Cancelled when the CLI withdraws its question.

        `always` says what that answer does; None: it makes the changes that the CLI suggests.
        """
        return await self.converse(partial(self._answer, ask, always))

    async def converse(self, dialogue: Callable[[Area], Awaitable[T]]) -> T:
        """Hold a dialogue below the text so far, one at a time. Other output waits meanwhile."""
        self.waiting += 1
        try:
            async with self._one_at_a_time, self._own_keyboard():
                # Show everything that came before the question first.
                await self._settle()
                self._screen.hold()
                try:
                    return await self._dialogue(dialogue)
                finally:
                    self._screen.resume()
        finally:
            self.waiting -= 1

    @asynccontextmanager
    async def _own_keyboard(self) -> AsyncIterator[None]:
        """Take the keyboard from the prompt line, if there is one."""
        if self._typing is None:
            yield
        else:
            async with self._typing.lend(self._say_waiting):
                yield

    def _say_waiting(self) -> None:
        self._screen.note(
            "a question waits: send your text, or clear it with Ctrl-U, to see it", "yellow"
        )

    async def _dialogue(self, dialogue: Callable[[Area], Awaitable[T]]) -> T:
        area = Area(self._console, self._keys)
        self._keys.forget()
        answered = False
        try:
            decision = await dialogue(area)
            answered = True
            return decision
        finally:
            if not answered and not area.erase():
                self._console.print(Text("\n(the question was withdrawn)", "dim"))

    async def _answer(self, ask: AnyAsk, always: list[str] | None, area: Area) -> Decision:
        match ask:
            case ToolAsk():
                if always is None:
                    hidden = ask.request.suppress_always_allow_rule
                    always = [] if hidden else in_words(ask.suggestions)
                return await self._tool(ask, always, area)
            case PlanAsk():
                return await self._plan(ask, area)
            case QuestionsAsk():
                return await self._questions(ask, area)

    # --- tools ----------------------------------------------------------------------------

    async def _tool(self, ask: ToolAsk, always: list[str], area: Area) -> Decision:
        area.print(Text(), *tool_card(ask))
        if diffs.of_call(ask.tool_name, ask.input) is not None:
            self._screen.diff_seen(ask.request.tool_use_id)
        area.print(*menu(_tool_choices(always)))
        while True:
            reply = await area.ask("? ")
            if reply is None:
                return ask.deny(NO_ANSWER)
            word, _, rest = reply.partition(" ")
            match word.lower():
                case "y" | "yes":
                    return ask.allow()
                case "a" | "always" if always:
                    return ask.always()
                case "e" | "edit":
                    changed = await self._edit(ask.input, area)
                    if changed is not None:
                        return ask.allow(changed)
                case "n" | "no":
                    reason = rest.strip() or await area.ask("  why (for the model; or Enter): ")
                    return ask.deny(reason) if reason else ask.deny()
                case "s" | "stop":
                    return ask.deny(interrupt=True)
                case _:
                    area.print(Text("  one of the letters above, then Enter", "dim"))

    async def _edit(self, tool_input: Raw, area: Area) -> Raw | None:
        """Let the person edit the input; None if it was not changed, or is invalid."""
        given = json.dumps(json.loads(bytes(tool_input)), indent=2, ensure_ascii=False)
        self.editing = True
        try:
            with tempfile.TemporaryDirectory(prefix="quarterdeck-edit-") as folder:
                path = Path(folder) / "input.json"
                path.write_text(given + "\n", encoding="utf-8")
                command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
                done = await anyio.run_process(
                    [*command, str(path)], stdin=None, stdout=None, stderr=None, check=False
                )
                if done.returncode:
                    area.print(Text(f"  the editor exited with code {done.returncode}", "red"))
                    return None
                text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            area.print(Text(f"  the editor failed: {plain(str(error))}", "red"))
            return None
        finally:
            self.editing = False
        try:
            changed = Raw(msgspec.json.encode(json.loads(text)))
            if not bytes(changed).startswith(b"{"):
                raise ValueError("it is not an object")
        except ValueError as error:
            area.print(Text(f"  not valid JSON for a tool's input: {error}", "red"))
            return None
        return changed

    # --- plans ----------------------------------------------------------------------------

    async def _plan(self, ask: PlanAsk, area: Area) -> Decision:
        area.print(Text(), *plan_card(ask.plan), *menu(_PLAN_CHOICES))
        while True:
            reply = await area.ask("? ")
            if reply is None:
                return ask.reject(NO_ANSWER)
            word, _, rest = reply.partition(" ")
            match word.lower():
                case "y" | "yes":
                    return ask.approve()
                case "a" | "auto":
                    return ask.approve(PermissionMode.ACCEPT_EDITS)
                case "k" | "keep":
                    feedback = rest.strip() or await area.ask("  what should be different: ")
                    if feedback:
                        return ask.revise(feedback)
                case "r" | "reject":
                    return ask.reject()
                case _:
                    area.print(Text("  one of the letters above, then Enter", "dim"))

    # --- questions ------------------------------------------------------------------------

    async def _questions(self, ask: QuestionsAsk, area: Area) -> Decision:
        answers = await self.answers_to(ask.questions, area)
        return ask.answer(answers) if answers else ask.skip()

    async def answers_to(self, questions: Questions, area: Area) -> dict[str, str | Sequence[str]]:
        """The answers by the text of their question; empty if the person skips all."""
        answers: dict[str, str | Sequence[str]] = {}
        for question in questions.questions:
            given = await self._question(question, area)
            if given is None:
                return {}
            if given:
                answers[question.question] = given
        return answers

    async def _question(self, question: Question, area: Area) -> str | list[str] | None:
        """The answer; empty if the person skips this one, None if they skip all."""
        area.print(Text(), title(one_line(question.header, 60) or "Question", ""))
        area.print(*(inside(Text(line, "bold")) for line in _lines(question.question)))
        for number, option in enumerate(question.options, 1):
            line = Text.assemble((f"{number}", "bold cyan"), "  ", one_line(option.label, 300))
            if option.description:
                line.append(f"  {one_line(option.description, 500)}", style="dim")
            area.print(inside(line))
            for shown in _lines(option.preview)[:20] if option.preview else ():
                area.print(inside(Text(f"     {shown}", "dim")))
        many = "numbers, as in 1,3" if question.multi_select else "a number"
        area.print(
            inside(
                Text(f"{many}, or your own text; Enter skips this question, /skip skips all", "dim")
            )
        )
        while True:
            reply = await area.ask("? ")
            if reply is None or reply == "/skip":
                return None
            chosen = _parse_choice(question, reply)
            if isinstance(chosen, str | list):
                return chosen
            area.print(Text(f"  {chosen.args[0]}", "red"))


def _parse_choice(question: Question, reply: str) -> str | list[str] | ValueError:
    """The person's choice: labels by their numbers, or their own text."""
    parts = [part for part in reply.replace(",", " ").split() if part]
    if not parts or not all(part.isdecimal() for part in parts) or not question.options:
        return reply
    numbers = [int(part) for part in parts]
    if not all(1 <= number <= len(question.options) for number in numbers):
        return ValueError(f"there are {len(question.options)} answers to choose from")
    if len(numbers) > 1 and not question.multi_select:
        return ValueError("only one answer is allowed")
    labels = [question.options[number - 1].label for number in dict.fromkeys(numbers)]
    return labels if question.multi_select else labels[0]


# --- the looks ----------------------------------------------------------------------------------


def tool_card(ask: ToolAsk, most: int = SHOWN_LINES) -> list[Text]:
    """All that a person needs in order to decide. No part of a line is cut off.

    `most` is the number of lines of each member of the input.
    """
    request = ask.request
    kind = ask.action.kind.value.replace("_", " ")
    lines = [title("Permission", f"{kind}: {one_line(request.display_name or ask.tool_name, 80)}")]
    if request.agent_id:
        lines.append(inside(Text(f"for the subagent {one_line(request.agent_id, 60)}", "dim")))
    lines += _subject(ask, most)
    why = request.decision_reason or request.blocked_path
    if why:
        lines.append(inside(Text(f"reason: {one_line(why, 500)}", "dim")))
    return lines


def _subject(ask: ToolAsk, most: int) -> list[Text]:
    lines: list[Text] = []
    in_diff: frozenset[str] = frozenset()
    if (change := diffs.of_call(ask.tool_name, ask.input, careful=True)) is not None:
        lines = [inside(line) for line in render.diff(change, most)]
        in_diff = _IN_DIFF.get(ask.tool_name, in_diff)
    for name, value in members(ask.input).items():
        if name in in_diff:
            continue
        shown, more = marked_lines(_value(value), most)
        label = _LABELS.get(name, mark_invisible(name))
        if len(shown) == 1:
            lines.append(inside(Text.assemble((f"{label}: ", "dim"), shown[0])))
        else:
            lines.append(inside(Text(f"{label}:", "dim")))
            lines += [inside(Text(f"  {line}")) for line in shown]
        if more:
            lines.append(inside(Text(f"  … {count(more, 'more line')}; e shows all", "yellow")))
    return lines or [inside(Text("(no input)", "dim"))]


_IN_DIFF = {
    "Edit": frozenset({"file_path", "old_string", "new_string"}),
    "MultiEdit": frozenset({"file_path"}),
    "Write": frozenset({"file_path", "content"}),
}
"""Members of an edit that its diff shows completely."""
_LABELS = {"description": "the agent says"}
"""Labels for members whose text could be taken for ours."""


def _value(value: Raw) -> str:
    """A member of an input: text unchanged, everything else as JSON."""
    try:
        found: object = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bytes(value).decode("utf-8", "replace")
    return found if isinstance(found, str) else json.dumps(found, indent=2, ensure_ascii=False)


def _tool_choices(always: list[str]) -> list[tuple[str, str]]:
    choices = [("y", "allow once")]
    if always:
        choices.append(("a", "always: " + "; and\n             ".join(always)))
    return [
        *choices,
        ("e", "edit the input, then allow"),
        ("n", "deny; you may add a message"),
        ("s", "deny, and stop the turn"),
    ]


_PLAN_CHOICES = [
    ("y", "approve"),
    ("a", "approve, and accept all file edits"),
    ("k", "keep planning; you may say what to change"),
    ("r", "reject, and stop the turn"),
]


def plan_card(plan: Plan) -> list[Text]:
    """The whole plan, and the permissions that it announces."""
    text = plan.plan or "(the model has not written a plan)"
    lines = [title("Plan", "for review"), *(inside(Text(line)) for line in _lines(text))]
    for prompt in plan.allowed_prompts or ():
        wanted = f"{one_line(prompt.tool, 40)}: {one_line(prompt.prompt, 300)}"
        lines.append(inside(Text(f"it will ask for: {wanted}", "dim")))
    return lines


def menu(choices: list[tuple[str, str]]) -> list[Text]:
    """The keys, and what each does."""
    return [Text.assemble("  ", (key, "bold cyan"), f"  {what}") for key, what in choices]


def title(what: str, more: str) -> Text:
    """The first line of a card."""
    return Text.assemble(("┌ ", "yellow"), (what, "bold yellow"), f" {more}" if more else "")


def inside(line: Text) -> Text:
    """Another line of a card."""
    return Text.assemble(("│ ", "yellow"), line)


def _lines(text: str) -> list[str]:
    return marked_lines(text)[0]


def deny_unattended(ask: AnyAsk) -> Decision:
    """The answer without a person to ask: a denial with the reason."""
    return Deny(
        f"{ask.tool_name} was denied: no person can be asked here, and no rule allows it."
        " Work without it, or say what you would need."
    )
