"""One request of the CLI to the model, typed, with its purpose.

Reads the body of `POST /v1/messages`. `model` keeps every request and chooses the replies.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from quarterdeck.testing.script import PLAY


class Purpose(Enum):
    """Why the CLI asked: for a turn, or on the side, for itself."""

    TURN = "turn"
    TITLE = "title"  # a name for the session
    TOPIC = "topic"  # whether a prompt opens a new topic
    PATHS = "paths"  # which files a command touched
    PREFIX = "prefix"  # how a command begins, for a rule about its like
    QUOTA = "quota"  # one token, to see whether the account works
    SUMMARY = "summary"  # compaction
    PAGE = "page"  # the summary of a fetched page
    SIDE_QUESTION = "side question"
    COUNT = "count"  # count_tokens


class Block(msgspec.Struct, frozen=True):
    """A content block; members that its type does not have are empty."""

    type: str = "text"
    text: str = ""
    thinking: str = ""
    name: str = ""
    id: str = ""
    input: dict[str, object] = {}
    tool_use_id: str = ""
    is_error: bool = False
    content: str | tuple[Block, ...] = ()

    @property
    def plain(self) -> str:
        """The text of the block, or of the tool result that it is."""
        if self.type == "tool_result":
            if isinstance(self.content, str):
                return self.content
            return "".join(part.text for part in self.content)
        return self.text


class Message(msgspec.Struct, frozen=True):
    """One message of the conversation so far."""

    role: str
    content: str | tuple[Block, ...] = ()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content as blocks, also where it came as a bare string."""
        return (Block(text=self.content),) if isinstance(self.content, str) else self.content

    @property
    def has_tool_result(self) -> bool:
        """Whether it brings the result of a tool rather than a prompt."""
        return any(block.type == "tool_result" for block in self.blocks)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of a person (or a Task call), without the parts that the CLI adds."""
        texts = [block.text.strip() for block in self.blocks if block.type == "text"]
        return tuple(text for text in texts if text and not text.startswith(_WRAPPERS))


class Tool(msgspec.Struct, frozen=True):
    """A tool that the CLI offers to the model."""

    name: str = ""
    description: str = ""


class ThinkingConfig(msgspec.Struct, frozen=True):
    """The thinking that the CLI asks for."""

    type: str = ""
    budget_tokens: int | None = None


class _Metadata(msgspec.Struct, frozen=True):
    user_id: str = ""


class _UserId(msgspec.Struct, frozen=True):
    session_id: str = ""


class _Body(msgspec.Struct, frozen=True):
    model: str = ""
    messages: tuple[Message, ...] = ()
    system: str | tuple[Block, ...] = ()
    tools: tuple[Tool, ...] = ()
    thinking: ThinkingConfig | None = None
    metadata: _Metadata = _Metadata()
    max_tokens: int = 0
    stream: bool = False


class ModelRequest(msgspec.Struct, frozen=True):
    """One request. `body` has the bytes, for members without a field."""

    number: int
    path: str
    purpose: Purpose
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    thinking: ThinkingConfig | None
    max_tokens: int
    stream: bool
    session_id: str
    headers: dict[str, str]
    body: bytes

    @property
    def first_prompt(self) -> str:
        """The first prompt; it distinguishes a subagent from its caller."""
        texts = [text for message in self._of_user() for text in message.texts]
        return texts[0] if texts else ""

    @property
    def last_message(self) -> Message:
        """The last message of the user's side; newer CLIs put `system` messages behind it."""
        return next(reversed(self._of_user()), Message("user"))

    @property
    def last_text(self) -> str:
        """The last text for the model: a prompt, or the results of tools."""
        last = self.last_message
        if last.texts:
            return last.texts[-1]
        return "\n".join(block.plain for block in last.blocks if block.type == "tool_result")

    @property
    def script_position(self) -> tuple[str, int] | None:
        """The script for this request, and the number of the next reply.

        It is the script of the newest prompt. Texts that the CLI adds itself (reminders, reports of
        background tasks, the instruction to continue after a cut answer) are not prompts.
        """
        answers = 0
        newer = ""
        for message in reversed(self.messages):
            if message.role == "assistant":
                # Several in a row are one answer: of a retried one the CLI may keep both halves.
                answers += newer != "assistant"
                newer = "assistant"
            elif message.role == "user":
                newer = "user"
                for text in reversed(message.texts):
                    if text.startswith(PLAY):
                        return text, answers
                    if text.startswith(_EMPTY_ANSWER):
                        answers += 1  # the history does not contain that answer
                    elif not message.has_tool_result and not text.startswith(_CONTINUATIONS):
                        return None
        return None

    def _of_user(self) -> list[Message]:
        return [message for message in self.messages if message.role == "user"]


_WRAPPERS = ("<system-reminder>",)
_EMPTY_ANSWER = "[Your previous response had no visible output"
_CONTINUATIONS = (
    "<task-notification>",
    "Output token limit hit",
    "Your response was cut off",
    "Your response above was",  # cut off in mid-stream, or stopped by a classifier
    "Continue from where you left off",
)


def read_request(number: int, path: str, headers: dict[str, str], body: bytes) -> ModelRequest:
    """Decode a body. Raises `msgspec.DecodeError` (or its `ValidationError`) for a wrong one."""
    seen = msgspec.json.decode(body, type=_Body)
    system = seen.system if isinstance(seen.system, str) else "\n".join(b.text for b in seen.system)
    return ModelRequest(
        number=number,
        path=path,
        purpose=Purpose.COUNT if path.endswith("/count_tokens") else _purpose(seen, system),
        model=seen.model,
        system=system,
        messages=seen.messages,
        tools=tuple(tool.name for tool in seen.tools),
        thinking=seen.thinking,
        max_tokens=seen.max_tokens,
        stream=seen.stream,
        session_id=_session_id(seen.metadata.user_id),
        headers=headers,
        body=body,
    )


def _session_id(user_id: str) -> str:
    """The session's id; the CLI up to 2.1.62 puts it into a word, later ones into JSON."""
    if user_id.startswith("{"):
        return msgspec.json.decode(user_id, type=_UserId).session_id
    return user_id.rpartition("_session_")[2]


def _purpose(seen: _Body, system: str) -> Purpose:
    """Recognise side requests by their text; any other request is a turn."""
    last = next((m for m in reversed(seen.messages) if m.role == "user"), Message("user"))
    said = "\n".join(block.text for block in last.blocks)
    if seen.max_tokens == 1:
        return Purpose.QUOTA
    if "This is a side question from the user" in said:
        return Purpose.SIDE_QUESTION
    if "Your task is to create a detailed summary of" in said:
        return Purpose.SUMMARY
    if seen.tools:
        return Purpose.TURN
    for mark, purpose in _MARKS.items():
        if mark in system or said.lstrip().startswith(mark):
            return purpose
    return Purpose.TURN


# Side requests offer no tools, and each kind has its own system prompt.
_MARKS = {
    "sentence-case title": Purpose.TITLE,
    "You are naming a coding session": Purpose.TITLE,
    "Summarize this coding conversation": Purpose.TITLE,
    "isNewTopic": Purpose.TOPIC,
    "<filepaths>": Purpose.PATHS,
    "Your task is to process Bash commands": Purpose.PREFIX,
    "Web page content:": Purpose.PAGE,
}
