"""The scenes of `quarterdeck demo`: what each scripted agent is asked, says and waits for.

Owns the texts and steps only: a plan that was sent back with comments, questions, a permission
request, a change of many files, to-dos with a subagent at work, and a failure. It starts nothing
and knows no hub. Above is `demo`.
"""

from __future__ import annotations

from itertools import count

from quarterdeck.domain.structs import Value
from quarterdeck.testing import fake

DAY = 86400.0
SCRIPTED = "This agent is scripted: it ran nothing, and from here on it only repeats what you type."
_numbers = count(1)


class Scene(Value):
    """One session of the demo."""

    session: str
    name: str
    folder: str
    prompt: str
    steps: tuple[fake.Step, ...]
    mode: str | None = None
    comments: str = ""
    """With what its first plan is sent back."""
    changes: bool = False
    """Whether the files of its folder are changed, as if it had done so."""


def says(*content: str | fake.Line, parent: str | None = None) -> fake.Step:
    """A message of its own."""
    line = fake.assistant(*content, parent=parent)
    message = line["message"]
    assert isinstance(message, dict)
    return fake.say(line | {"message": message | {"id": f"msg_{next(_numbers)}"}})


def did(tool: str, given: fake.Line, output: str, *, failed: bool = False) -> tuple[fake.Step, ...]:
    """A call with its result."""
    name = f"toolu_{next(_numbers)}"
    return (
        says(fake.tool_use(tool, given, name)),
        fake.Wait(0.04),
        fake.say(fake.tool_result(output, name, is_error=failed)),
    )


def asks(tool: str, given: fake.Line, ask: str, **fields: object) -> tuple[fake.Step, ...]:
    """A call that waits for a person."""
    line = fake.can_use_tool(tool, given, ask, **fields)
    request = line["request"]
    assert isinstance(request, dict)
    name = f"toolu_{next(_numbers)}"
    return (
        says(fake.tool_use(tool, given, name)),
        fake.say(line | {"request": request | {"tool_use_id": name}}),
        fake.Expect("control_response", timeout=DAY, polite=True),
        fake.say(fake.tool_result("Not executed: this agent is scripted.", name)),
    )


def begin(mode: str = "default") -> tuple[fake.Step, ...]:
    """The start of a scene: the first prompt, and what a CLI tells of itself then."""
    greeting: fake.Line = {
        "type": "system",
        "subtype": "init",
        "cwd": ".",
        "tools": ["Bash", "Edit", "Read"],
        "mcp_servers": [],
        "model": "scripted",
        "permissionMode": mode,
        "slash_commands": [],
        "apiKeySource": "none",
        "session_id": "$session_id",
        "uuid": "$uuid",
    }
    return (
        fake.Initialize(),
        fake.Expect("user", timeout=DAY, polite=True),
        fake.say(greeting),
    )


def end(text: str, **fields: object) -> tuple[fake.Step, ...]:
    """The end of a turn; later prompts are repeated."""
    return (fake.say(fake.result(text, **fields)), fake.Serve())


def thanks() -> tuple[fake.Step, ...]:
    """The end of a scene after an answer."""
    return (says(SCRIPTED), *end(SCRIPTED, total_cost_usd=0.0412))


def _tests(command: str, description: str) -> fake.Line:
    return {"command": command, "description": description}


# --- the scenes ---------------------------------------------------------------------------------

CHECKOUT = Scene(
    session="demo-checkout",
    name="checkout",
    folder="shop",
    prompt="The tax is wrong for customers outside Germany. Fix it.",
    steps=(
        *begin(),
        says("I look at how the checkout computes the price."),
        *did("Read", {"file_path": "src/checkout.ts"}, "export function total(price: number) {"),
        *did("Grep", {"pattern": "taxRate", "path": "src"}, "src/countries.ts\nsrc/invoice.ts"),
        says("The rate of **19 %** is written into `total`. I use the customer's country instead."),
        *did(
            "Edit",
            {
                "file_path": "src/checkout.ts",
                "old_string": "  return price * 1.19;",
                "new_string": "  return round(price * (1 + taxRate(country)), 2);",
            },
            "The file has been updated.",
        ),
        says("Now I run the tests of the checkout."),
        *asks("Bash", _tests("npm test -- checkout", "Run the checkout tests"), "ask-tests"),
        *thanks(),
    ),
)

PLAN = """# Rate limits for the public API

## 1. Where the limits are counted

A counter for each API key in Redis, in windows of one minute. The key is `limit:{key}:{minute}`.

| plan | requests a minute | burst |
|---|---|---|
| free | 60 | 10 |
| team | 600 | 100 |
| enterprise | 6,000 | 1,000 |

## 2. What a client sees

Every answer has `X-RateLimit-Remaining`. Over the limit it is a `429` with `Retry-After`.

```python
if not await limiter.take(key):
    raise TooManyRequests(retry_after=limiter.reset(key))
```
"""
BETTER = "\n## 3. When Redis is away\n\nRequests pass, and an alarm is raised once a minute.\n"
COMMENTS = (
    "> ## 1. Where the limits are counted\n"
    "What happens when Redis cannot be reached? Customers must not notice.\n\n"
    "> ## 2. What a client sees\n"
    "Good. Please add the time of the reset, too."
)

PLANNED = Scene(
    session="demo-plan",
    name="rate limits",
    folder="api",
    prompt="Plan rate limits for the public API.",
    mode="plan",
    comments=COMMENTS,
    steps=(
        *begin("plan"),
        *did("Glob", {"pattern": "src/api/**/*.py"}, "src/api/app.py\nsrc/api/keys.py"),
        says("I have read how requests are authenticated. This is my plan."),
        *asks("ExitPlanMode", {"plan": PLAN}, "ask-plan-1"),
        says("Thank you for the comments. The second version says what happens without Redis."),
        *asks("ExitPlanMode", {"plan": PLAN + BETTER}, "ask-plan-2"),
        *thanks(),
    ),
)

QUESTIONS: fake.Line = {
    "questions": [
        {
            "header": "Sign-in",
            "question": "How should people sign in at first?",
            "multiSelect": False,
            "options": [
                {"label": "Link by e-mail", "description": "No password, one more step each time."},
                {"label": "Passkey", "description": "No password; needs a recent browser."},
                {"label": "Password", "description": "What people know, with all its problems."},
            ],
        },
        {
            "header": "Steps",
            "question": "Which steps belong into the onboarding?",
            "multiSelect": True,
            "options": [
                {"label": "Profile", "description": "Name and picture."},
                {"label": "Team", "description": "Invite colleagues by e-mail."},
                {"label": "First project", "description": "A template to start with."},
            ],
        },
    ]
}

ASKED = Scene(
    session="demo-questions",
    name="onboarding",
    folder="web",
    prompt="Build the onboarding of new customers.",
    steps=(
        *begin(),
        says("Two things decide how I build it. I ask before I begin."),
        *asks("AskUserQuestion", QUESTIONS, "ask-questions"),
        *thanks(),
    ),
)

MIGRATION = Scene(
    session="demo-changes",
    name="decimal prices",
    folder="shop-prices",
    prompt="Replace floating point prices by decimals, everywhere.",
    changes=True,
    steps=(
        *begin(),
        says("Prices are floats in 24 modules. I replace them one after the other."),
        *did("Bash", _tests("grep -rl 'price: float' prices", "Find the modules"), "24 files"),
        *did(
            "Bash", _tests("python tools/to_decimal.py prices", "Change them"), "24 files changed"
        ),
        *did("Bash", _tests("pytest -q", "Run all tests"), "318 passed in 4.21s"),
        says(
            "All prices are `Decimal` now, in **24 modules**. Rounding is in one place,"
            " `prices/rounding.py`, and all 318 tests pass. Look at the changes before you commit."
        ),
        *end("All prices are decimals now.", total_cost_usd=1.2731, duration_ms=412_000),
    ),
)

TODOS = (
    ("List the pages with links", "Listing the pages", "completed"),
    ("Check the guides", "Checking the guides", "completed"),
    ("Check the reference", "Checking the reference", "in_progress"),
    ("Report what is dead", "Writing the report", "pending"),
)
WORKING = Scene(
    session="demo-todos",
    name="dead links",
    folder="handbook",
    prompt="Check every link in the handbook, and report the dead ones.",
    steps=(
        *begin(),
        says("212 pages have links. I work through them in parts."),
        *did(
            "TodoWrite",
            {
                "todos": [
                    {"content": text, "activeForm": doing, "status": status}
                    for text, doing, status in TODOS
                ]
            },
            "Todos have been modified successfully.",
        ),
        *did("Bash", _tests("tools/links guides", "Check the guides"), "148 links, 2 dead"),
        says(
            "A subagent checks the reference meanwhile.",
            fake.tool_use(
                "Task",
                {
                    "description": "Check the links of the reference",
                    "prompt": "Follow every link below reference/ and list those that fail.",
                    "subagent_type": "general-purpose",
                },
                "toolu_subagent",
            ),
        ),
        says("The reference has 64 pages. I begin with the API.", parent="toolu_subagent"),
        says(
            fake.tool_use("WebFetch", {"url": "https://example.org/api", "prompt": "Is it there?"}),
            parent="toolu_subagent",
        ),
        # At work until a person interrupts it.
        fake.Expect("control_request", "interrupt", timeout=DAY, polite=True),
        fake.say(fake.answer()),
        *end(
            "",
            subtype="error_during_execution",
            is_error=True,
            terminal_reason="aborted_streaming",
            total_cost_usd=0.2204,
        ),
    ),
)

FAILED = Scene(
    session="demo-failure",
    name="nightly report",
    folder="reports",
    prompt="Write the nightly report and send it to the team.",
    steps=(
        *begin(),
        *did(
            "Bash",
            _tests("make report", "Make the report"),
            "psycopg.OperationalError: connection to server at 10.0.3.7, port 5432 failed\n"
            "make: *** [Makefile:41: report] Error 1",
            failed=True,
        ),
        says("The database does not answer. I try once more in a minute."),
        *end(
            "API Error: 529 Overloaded. The model could not be reached after ten attempts.",
            subtype="error_during_execution",
            is_error=True,
            api_error_status=529,
            total_cost_usd=0.0318,
        ),
    ),
)

SCENES = (FAILED, MIGRATION, WORKING, ASKED, PLANNED, CHECKOUT)
"""In the order in which they are started."""

GREETING: fake.Line = {
    "command": "echo 'Hello from the quarterdeck.' > hello.txt",
    "description": "Write the greeting",
}
OTHER: tuple[fake.Step, ...] = (
    *begin(),
    says(
        "I am a scripted agent: whatever you ask, I play this one scene. I would now run a shell"
        " command, and need your permission."
    ),
    *asks("Bash", GREETING, "ask-greeting"),
    *thanks(),
)
"""What an agent plays that a visitor starts."""


def module_before(number: int) -> str:
    """A module of the folder whose files are changed."""
    body = "\n\n".join(
        f"def part_{part}(price: float, count: int = 1) -> float:\n"
        f'    """Part {part} of the price, for {number} articles."""\n'
        f"    rate = {number / 100 + part / 10:.2f}\n"
        f"    return price * rate * count"
        for part in range(1, 9)
    )
    return f'"""Prices of group {number}."""\n\n{body}\n'


def module_after(number: int) -> str:
    """The same module as the agent left it."""
    before = module_before(number)
    changed = before.replace("price: float", "price: Decimal").replace("-> float", "-> Decimal")
    changed = changed.replace("rate = ", 'rate = Decimal("').replace(
        "\n    return price", '")\n    return price'
    )
    changed = changed.replace(
        "    return price * rate * count", "    return rounded(price * rate * count)"
    )
    first, _, rest = changed.partition("\n")
    return f"{first}\n\nfrom decimal import Decimal\n\nfrom prices.rounding import rounded\n{rest}"


ROUNDING = '''"""The one place where prices are rounded."""

from decimal import ROUND_HALF_EVEN, Decimal


def rounded(price: Decimal) -> Decimal:
    """The price in whole cents."""
    return price.quantize(Decimal("0.01"), ROUND_HALF_EVEN)
'''
