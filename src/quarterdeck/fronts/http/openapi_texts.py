"""What readers of the OpenAPI document need besides types: names, groups and examples of bodies.

Pure. `openapi` puts it into the document. The name of an operation is that of its handler; a test
looks that every body has an example here, and that its type accepts it.
"""

from __future__ import annotations

import re

TAGS: dict[str, str] = {
    "Sessions": "Create, prompt, steer, stop, fork and read sessions",
    "Questions": "What waits for a person, and the answers",
    "Changes": "The files of a session's folder: differences, commits, worktrees, checkpoints",
    "History": "Search, export, import and retention",
    "Permissions": "Policies, grants and the audit log",
    "Automation": "Schedules and loops",
    "Usage": "Costs, tokens and projects",
    "Access": "Logins, tokens, paired chats and read-only links",
    "People": "What belongs to a person: preferences, saved prompts and templates",
    "Notifications": "Web Push",
    "Hub": "The hub and its machines",
}
"""The groups of operations, in the order of the document, with what they are about."""

_PARTS: dict[str, tuple[str, ...]] = {
    "Sessions": ("sessions",),
    "Questions": ("asks",),
    "History": ("search", "import", "retention"),
    "Permissions": ("policy", "audit"),
    "Automation": ("schedules", "loops"),
    "Usage": ("usage", "projects"),
    "Access": (
        *("tokens", "token", "pairing", "logins", "login", "logout", "whoami", "shares", "shared"),
    ),
    "People": ("preferences", "library"),
    "Notifications": ("push",),
    "Hub": ("hub", "healthz", "machines"),
}
_OF_SESSION: dict[str, tuple[str, ...]] = {
    "Changes": (
        *("diff", "files", "remote", "revert", "stage", "commit", "push", "pull-request"),
        *("worktree", "checkpoints"),
    ),
    "History": ("export",),
    "Access": ("share",),
}
_SENTENCE = re.compile(r"(.+?)(?:\.(?=\s|$)|$)", re.DOTALL)


def tag_of(path: str) -> str:
    """The group of a path. Raises `KeyError` for a part that has none."""
    parts = [part for part in path.split("/") if part not in {"", "api"}]
    if parts[0] == "sessions" and len(parts) > 2:
        return _tag_with(_OF_SESSION, parts[2]) or "Sessions"
    if (found := _tag_with(_PARTS, parts[0])) is None:
        raise KeyError(path)
    return found


def _tag_with(groups: dict[str, tuple[str, ...]], part: str) -> str | None:
    return next((tag for tag, parts in groups.items() if part in parts), None)


def id_of(name: str) -> str:
    """`createSession`, from the framework's `CreateSession`."""
    return name[:1].lower() + name[1:]


def summary_of(description: str) -> str:
    """The first sentence, without its full stop."""
    found = _SENTENCE.match(description.strip())
    return " ".join(found[1].split()) if found else ""


_RULE = '[[rule]]\nname = "tests"\nverdict = "allow"\ncommand = "npm test"\n'
_URL = "https://git.example/shop.git"

EXAMPLES: dict[str, object] = {
    "createSession": {
        "spec": {"directory": "/srv/shop", "name": "checkout", "mode": "plan"},
        "session": "checkout-1",
        "prompt": "The tax is wrong for customers abroad. Fix it.",
    },
    "changeSession": {"name": "checkout", "budget": {"session_usd": 5}},
    "moveSession": {"machine": "build", "directory": "/srv/shop"},
    "forkSession": {"name": "another try", "worktree": "another-try"},
    "rewindSession": {"prompt": "p1", "files": True, "conversation": True, "dry_run": True},
    "control": {"request": {"subtype": "set_model", "model": "sonnet"}},
    "sendPrompt": {"content": "Run the tests again.", "prompt": "p2"},
    "changePrompt": {"content": "Run the tests again, and fix what fails."},
    "answerAsk": {"answer": {"answer": "allow", "scope": "once"}},
    "makeToken": {"name": "ci", "role": "operator", "days": 30},
    "pair": {"code": "K7Q2-9XWD", "label": "telegram:ada"},
    "cancelPairing": {"code": "K7Q2-9XWD"},
    "checkPolicy": {"text": _RULE},
    "explainCall": {"tool": "Bash", "argument": "npm test", "cwd": "/srv/shop"},
    "replayPolicy": {"text": _RULE, "since": 1_790_000_000_000},
    "replacePolicyFile": {"text": _RULE, "version": "3f1c"},
    "addGrant": {"rules": ["Bash(npm test)"], "directory": "/srv/shop", "seconds": 86_400},
    "subscribe": {
        "endpoint": "https://push.example/abc",
        "keys": {"p256dh": "BP4z9Ks", "auth": "q1Xy"},
        "kinds": ["question", "failed"],
    },
    "unsubscribe": {"endpoint": "https://push.example/abc"},
    "addSchedule": {
        "name": "nightly",
        "prompt": "Run the tests, and fix what fails.",
        "directory": "/srv/shop",
        "cron": "0 3 * * *",
        "timezone": "Europe/Berlin",
        "budget_usd": 2,
    },
    "runSchedule": {"id": "now-1"},
    "startLoop": {
        "spec": {"task": "Make the tests pass.", "directory": "/srv/shop", "proof": ["npm test"]},
        "session": {"directory": "/srv/shop"},
    },
    "settleWorktree": {"action": "merge", "message": "Fix the tax", "dry_run": True},
    "putFile": {"path": "uploads/notes.txt", "data": "SGVsbG8="},
    "revertChange": {"path": "src/tax.py"},
    "stageFiles": {"paths": ["src/tax.py"], "staged": True},
    "commitFiles": {"message": "Fix the tax"},
    "pushBranch": {"url": _URL, "commit": "2f" * 20},
    "createPullRequest": {"url": _URL, "title": "Fix the tax", "base": "main", "draft": True},
    "importSessions": {"directory": "/srv/shop", "dry_run": True},
    "applyRetention": {"days": 90, "dry_run": True},
    "changePreferences": {
        "changes": [{"kind": "pin", "key": "checkout-1", "value": True, "at": 1_790_000_000_000}]
    },
    "savePrompt": {"name": "Review", "text": "Review the changes with care."},
    "saveTemplate": {"name": "Plan", "spec": {"directory": "/srv/shop", "mode": "plan"}},
    "makeLogin": {"name": "bob", "role": "viewer"},
    "shareSession": {"hours": 24, "name": "bob"},
    "login": {"code": "the part of the login link after #"},
    "answerNotification": {"token": "the token of the notification", "answer": "deny"},
}
"""A body for each operation that takes one, by the operation's id."""
