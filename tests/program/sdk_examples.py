"""The examples of the official SDK: how each is run, and what the scripted model answers them.

The examples themselves are not in this repository: `make test` loads them with the SDK's source.
Where an example waits for a time, the test decides when it is over (`run_example.py`): CLOCKS has,
for each such wait, what must have happened.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import Path

import msgspec

from quarterdeck.testing import Gate, Reply, Text, Thinking, ToolUse, reply
from quarterdeck.testing.request import ModelRequest

SESSIONS = {
    "agents.py": 3,
    "filesystem_agents.py": 1,
    "hooks.py": 5,
    "include_partial_messages.py": 1,
    "max_budget_usd.py": 3,
    "mcp_calculator.py": 6,
    "plugin_example.py": 1,
    "quick_start.py": 3,
    "setting_sources.py": 4,
    "stderr_callback_example.py": 1,
    "streaming_mode.py": 10,
    "streaming_mode_ipython.py": 7,
    "streaming_mode_trio.py": 1,
    "system_prompt.py": 4,
    "tool_permission_callback.py": 1,
    "tools_option.py": 3,
}
"""Each example, and how many sessions it has: one for each query and client."""
ALL = ("hooks.py", "setting_sources.py", "streaming_mode.py")
"""Those that run everything with the argument `all`."""
FOLDER = {
    ".claude/commands/commit.md": "---\ndescription: Commits.\n---\nCommit.\n",
    ".claude/agents/test-agent.md": "---\nname: test-agent\ndescription: Tests.\n---\nTest.\n",
}
"""What the SDK's repository has beside the examples, and its source distribution has not."""


class Answered(msgspec.Struct, frozen=True):
    """Every prompt that the example has printed has a result."""

    def holds(self, said: str) -> bool:
        """Whether that is so in what it printed."""
        return said.count("User: ") == said.count("Result ended")


class Ended(msgspec.Struct, frozen=True):
    """A turn in which the model said this has ended."""

    text: str

    def holds(self, said: str) -> bool:
        """Whether that is so in what it printed."""
        return "Result ended" in said.partition(self.text)[2]


class AtGate(msgspec.Struct, frozen=True):
    """The model has sent all before this gate, which nobody opens."""

    gate: str


CLOCKS: dict[str, Answered | Ended | AtGate] = {
    "example_concurrent_responses 3": Answered(),
    "example_concurrent_responses 2": Answered(),
    "example_with_interrupt 2": AtGate("to 100 slowly"),
    "example_async_iterable_prompt 30.0": Ended("echo: Second, what's 15% of 200?"),
    "example_control_protocol 2": AtGate("to 20 slowly"),
    "example_error_handling 3.0": AtGate("5 seconds"),
    "<module> 10": AtGate("to 100, run"),
    "<module> 20.0": AtGate("60 seconds"),
}
"""Each wait of an example, by its function and seconds, and when its time is over."""


def _tool(name: str, **given: object) -> Reply:
    return reply(ToolUse(name, given))


def _agent(name: str) -> Reply:
    given = {"description": "work", "prompt": f"as {name}", "subagent_type": name}
    return reply(ToolUse("Agent", {**given, "run_in_background": False}))


def _stuck(gate: str, *before: Reply) -> tuple[Reply, ...]:
    return (*before, reply(Gate(gate), Text("never said")))


ANSWERS: dict[str, tuple[Reply, ...]] = {
    "Use the code-reviewer agent": (_agent("code-reviewer"), reply("reviewed")),
    "Use the doc-writer agent": (_agent("doc-writer"), reply("explained")),
    "Use the analyzer agent": (_agent("analyzer"), reply("found")),
    "Run the bash command: ./foo.sh": (_tool("Bash", command="./foo.sh --help"), reply("no")),
    "Run the bash command: echo": (_tool("Bash", command="echo Hello"), reply("said")),
    "Run this command: ls": (_tool("Bash", command="ls /nonexistent_directory"), reply("failed")),
    "Write the text 'test data' to a file called important": (
        _tool("Write", file_path="important_config.txt", content="test data"),
        reply("blocked"),
    ),
    "Write the text 'test data' to a file called regular": (
        _tool("Write", file_path="regular_file.txt", content="test data"),
        reply("written"),
    ),
    "Run this bash command: echo 'CRITICAL": (
        _tool("Bash", command="echo 'CRITICAL ERROR: system failure'"),
        reply("never said"),
    ),
    "Think of three jokes": (reply(Thinking("one, two, three"), Text("a joke")),),
    "Read the README.md": (_tool("Read", file_path="README.md"), reply("a summary")),
    "Calculate 15 + 27": (_tool("mcp__calc__add", a=15, b=27), reply("42")),
    "What is 100 divided by 7": (_tool("mcp__calc__divide", a=100, b=7), reply("14.3")),
    "Calculate the square root": (_tool("mcp__calc__sqrt", n=144), reply("12")),
    "What is 2 raised": (_tool("mcp__calc__power", base=2, exponent=8), reply("256")),
    "Calculate (12 + 8)": (
        _tool("mcp__calc__add", a=12, b=8),
        _tool("mcp__calc__multiply", a=20, b=3),
        _tool("mcp__calc__subtract", a=60, b=10),
        reply("50"),
    ),
    "Create a file called hello.txt": (
        _tool("Write", file_path="hello.txt", content="Hello, World!"),
        reply("created"),
    ),
    "Create a simple hello.txt": (
        _tool("Write", file_path="hello.txt", content="Hello!"),
        reply("created"),
    ),
    "Run a bash echo command": (_tool("Bash", command="echo 'Hello from bash!'"), reply("done")),
    "Count from 1 to 100 slowly": _stuck("to 100 slowly"),
    "Count from 1 to 20 slowly": _stuck("to 20 slowly"),
    "Count from 1 to 100, run": _stuck("to 100, run"),
    "List 5 programming languages": (reply("Python, Rust and Go"),),
    "Run a bash sleep command for 5 seconds": _stuck(
        "5 seconds", _tool("Bash", command="touch slept; sleep 5")
    ),
    "Run a bash sleep command for 60 seconds": _stuck(
        "60 seconds", _tool("Bash", command="touch slept; sleep 60")
    ),
    "Please do the following": (
        _tool("Bash", command="touch listed; ls"),
        _tool("Write", file_path="/etc/none/hello.py", content="print('no')"),
        _tool("Write", file_path="hello.py", content="print('hello')"),
        _tool("Bash", command="rm -rf none"),
        reply("all done"),
    ),
}
"""By the beginning of a prompt, what the model answers; to all others it says them back."""


def answer(request: ModelRequest) -> Reply | None:
    """The next answer to the newest prompts of a request."""
    prompts: list[str] = []
    answers = 0
    for message in reversed(request.messages):
        if message.role == "assistant":
            if prompts:
                break
            answers += 1
        elif message.role == "user" and not message.has_tool_result:
            if any(text.startswith("[Request interrupted") for text in message.texts):
                break
            prompts[:0] = message.texts
    for begin, replies in ANSWERS.items():
        if prompts and prompts[-1].startswith(begin):
            return replies[min(answers, len(replies) - 1)]
    lines = [line for prompt in prompts for line in prompt.splitlines()]
    return reply("\n".join(f"echo: {line}" for line in lines))


class Difference(msgspec.Struct, frozen=True):
    """Lines that an example prints otherwise with the hub, and why."""

    example: str
    plain: tuple[str, ...]
    ours: tuple[str, ...]
    reason: str


_TOOLS = (
    "without a callback, the agent also has the tools `AskUserQuestion`, `EnterPlanMode` and "
    "`ExitPlanMode`"
)
DIFFERENCES = (
    Difference("include_partial_messages.py", (), ("'AskUserQuestion',",), _TOOLS),
    Difference("include_partial_messages.py", (), ("'EnterPlanMode',",), _TOOLS),
    Difference("include_partial_messages.py", (), ("'ExitPlanMode',",), _TOOLS),
    Difference(
        "streaming_mode.py",
        ("Received 4 messages before timeout",),
        ("Received 3 messages before timeout",),
        "a call that the CLI would deny waits for an answer",
    ),
    Difference(
        "tools_option.py",
        ("Tools from system message (22 tools): ['Task',",),
        ("Tools from system message (25 tools): ['Task',", "'AskUserQuestion',"),
        _TOOLS,
    ),
    Difference(
        "tools_option.py", ("'CronDelete',", "'CronList']..."), ("'CronDelete']...",), _TOOLS
    ),
)
"""Everything that is not the same; the reasons are those of the how-to."""
ASKED = ("touch slept; sleep 5", "touch slept; sleep 60")
"""Calls that the CLI alone denies. With the hub a person is asked; in the test, one denies them."""


def differences(example: str, plain: list[str], ours: list[str]) -> list[Difference]:
    """Where two outputs of an example differ; the reason is one that is listed, or empty."""
    known = {(each.plain, each.ours): each.reason for each in DIFFERENCES}
    found = []
    for tag, a, b, c, d in SequenceMatcher(None, plain, ours, autojunk=False).get_opcodes():
        if tag != "equal":
            lines = tuple(plain[a:b]), tuple(ours[c:d])
            found.append(Difference(example, *lines, known.get(lines, "")))
    return found


_SEVERAL = re.compile(r"=== Async Iterable Prompt Example ===.*?-----", re.DOTALL)
"""Three prompts at once: the CLI answers them in one, two or three turns, as they come in time."""
_VARIES = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\b(msg|toolu|req)_\w+"), r"\1_ID"),
    (re.compile(r"\$\d+\.\d+"), "$COST"),
    (re.compile(r"(cost_usd['\"]?[=:] ?)[\d.e-]+", re.IGNORECASE), r"\1COST"),
    (re.compile(r"((?:_ms|Ms)['\"]?[=:] ?)[\d.]+"), r"\1MS"),
    (re.compile(r"Duration: \d+ms"), "Duration: MS"),
    (re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+", re.MULTILINE), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\d+\.sock"), "PID.sock"),
)


def normal(text: str, *folders: Path) -> list[str]:
    """What was printed, without what differs in each run: ids, times, costs, folders."""
    for folder in folders:
        text = text.replace(str(folder), "FOLDER")
        text = text.replace(re.sub(r"[^a-zA-Z0-9]", "-", str(folder)), "FOLDER")
    text = _SEVERAL.sub(lambda found: re.sub("Claude: |Result ended\n", "", found[0]), text)
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    # A message that is printed whole is a long line: one line for each member tells differences.
    return [part for line in text.splitlines() for part in re.split(r"(?<=,) (?=')", line)]
