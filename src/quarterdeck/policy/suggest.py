"""Rules derived from people's answers. Pure.

A suggestion is about something that people were asked about and always answered alike: a command, a
folder, a domain, a tool. It comes with the history that supports it, and with what else it would
decide, as examples from the same history and in words, so that people can check it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from quarterdeck.domain.structs import Value
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context, NeedKind, Request, needs_of
from quarterdeck.policy.replay import PastCall
from quarterdeck.policy.rules import Rule
from quarterdeck.policy.shell import Part

LEAST = 3
"""So many times the same must have been answered."""
LONGEST = 16_384
"""Bytes of the input of a call that is looked at: a rule names the first words of a command."""
MOST_EXAMPLES = 5
MOST_SUGGESTIONS = 50
"""The number of suggestions. Each is compared with all past calls."""

# fmt: off
WITH_SUBCOMMAND = frozenset({
    "git", "npm", "npx", "pnpm", "yarn", "bun", "cargo", "go", "docker", "podman", "kubectl",
    "make", "pip", "pip3", "uv", "poetry", "gh", "glab", "apt", "apt-get", "brew", "systemctl",
    "terraform", "helm", "aws", "gcloud", "az", "dotnet", "mvn", "gradle", "bundle", "rails",
    "composer", "deno", "just", "tox", "nox", "hatch", "mix",
})
# fmt: on
"""Programs whose second word is a subcommand."""
WITH_SCRIPT = frozenset({("npm", "run"), ("pnpm", "run"), ("yarn", "run"), ("bun", "run")})


class Key(Value):
    """The subject of a suggestion."""

    kind: str
    """`command`, `path`, `domain` or `tool`."""
    value: str
    verb: str = ""


class Suggestion(Value, omit_defaults=False):
    """A rule that people's answers support."""

    verdict: str
    toml: str
    """The rule, as in a policy file."""
    allowed: int
    denied: int
    people: tuple[str, ...]
    first: int
    last: int
    examples: tuple[str, ...]
    """Calls that people were asked about, and that support it."""
    admits: tuple[str, ...]
    """Other calls in the history that it would decide, and that no person was asked about."""
    means: str
    """A description of what else it would decide."""


def suggest(calls: Iterable[PastCall], *, least: int = LEAST) -> tuple[Suggestion, ...]:
    """The suggestions from the answers in these calls, the best supported first."""
    known = list(_read(calls))
    support: dict[Key, list[PastCall]] = {}
    for past, request in known:
        if past.by_person:
            for key in dict.fromkeys(_keys(past, request)):
                support.setdefault(key, []).append(past)
    alike = [
        (key, answers)
        for key, answers in support.items()
        if len(answers) >= least and len({past.done for past in answers}) == 1
    ]
    alike.sort(key=lambda each: -len(each[1]))
    found = [_suggestion(key, answers, known) for key, answers in alike[:MOST_SUGGESTIONS]]
    return tuple(sorted(found, key=lambda each: (-len(each.examples), -each.allowed, each.toml)))


def _read(calls: Iterable[PastCall]) -> Iterator[tuple[PastCall, Request]]:
    """The calls, taken apart: each once, however often it was made, and none that is very long."""
    seen: dict[tuple[str, bytes, Context], Request] = {}
    for past in calls:
        call = past.call
        given = bytes(call.input)
        if len(given) > LONGEST:
            continue
        key = (call.tool, given, call.context)
        if key not in seen:
            seen[key] = needs_of(call.tool, call.input, call.context)
        yield past, seen[key]


def _keys(past: PastCall, request: Request) -> Iterator[Key]:
    for need in request.needs:
        match need.kind:
            case NeedKind.COMMAND if need.part is not None:
                if not need.free and (words := prefix_of(need.part)):
                    yield Key(kind="command", value=words)
            case NeedKind.EDIT if need.target is not None and need.part is None:
                if folder := _folder(past, need.target.paths):
                    yield Key(kind="path", value=folder)
            case NeedKind.FETCH if need.host and need.part is None:
                yield Key(kind="domain", value=need.host)
            case NeedKind.TOOL:
                yield Key(kind="tool", value=request.tool)
            case _:
                pass


def prefix_of(part: Part) -> str:
    """The words that identify what a command does: `npm run build`, `git push`, `pytest`."""
    words: list[str] = []
    for word in part.words[:3]:
        text = word.literal
        if text is None or not text.replace("-", "").replace("_", "").replace(":", "").isalnum():
            break
        if words and text.startswith("-"):
            break
        words.append(text)
        if len(words) == 1 and text not in WITH_SUBCOMMAND:
            break
        if len(words) == 2 and (words[0], text) not in WITH_SCRIPT:
            break
    return " ".join(words)


def _folder(past: PastCall, paths: tuple[str, ...]) -> str:
    """The project's folder that a path is in, one level deep."""
    cwd = past.call.context.cwd
    if not paths or cwd is None:
        return ""
    inside = paths[0].removeprefix(f"{cwd.rstrip('/')}/")
    if inside == paths[0] or set(inside) & set("*?[!()"):
        return ""
    first, slash, _ = inside.partition("/")
    return f"./{first}/**" if slash else f"./{first}"


def _suggestion(
    key: Key, answers: Sequence[PastCall], known: Sequence[tuple[PastCall, Request]]
) -> Suggestion:
    verdict = answers[0].done
    toml, rule = _rule(key, verdict, answers)
    supporting = {id(past) for past in answers}
    others: Counter[str] = Counter()
    for past, request in known:
        if id(past) in supporting or rule is None:
            continue
        if rule.hit(request, past.call.context, past.call.facts) is not None:
            others[f"{past.text} ({past.then})"] += 1
    return Suggestion(
        verdict=verdict,
        toml=toml,
        allowed=sum(past.done == "allow" for past in answers),
        denied=sum(past.done == "deny" for past in answers),
        people=tuple(sorted({past.by for past in answers})),
        first=min(past.at for past in answers),
        last=max(past.at for past in answers),
        examples=tuple(dict.fromkeys(past.text for past in answers))[:MOST_EXAMPLES],
        admits=tuple(text for text, _ in others.most_common(MOST_EXAMPLES)),
        means=_meaning(key),
    )


def _rule(key: Key, verdict: str, answers: Sequence[PastCall]) -> tuple[str, Rule | None]:
    lines = [
        "[[rule]]",
        f"name = {json.dumps(f'{verdict} {key.value}')}",
        f"verdict = {json.dumps(verdict)}",
        f"{key.kind} = {json.dumps(key.value)}",
    ]
    if key.kind == "path":
        lines.insert(3, 'tool = "Edit"')
    text = "\n".join(lines)
    loaded = read_policy(text, "suggestion")
    rule = loaded.policy.rules[0] if loaded.policy is not None else None
    if key.kind == "command" and rule is not None:
        # Only calls that the rule alone decides are examples of it.
        examples = [past.text for past in answers if "…" not in past.text]
        listed = ", ".join(json.dumps(each) for each in dict.fromkeys(examples[:2]))
        checked = f"{text}\nmatch = [{listed}]"
        if listed and read_policy(checked, "suggestion").policy is not None:
            text = checked
    return text, rule


def _meaning(key: Key) -> str:
    match key.kind:
        case "command":
            return f"`{key.value}` with any arguments; what it writes or runs needs separate rules"
        case "path":
            return f"every edit of files that match {key.value}, in every session"
        case "domain":
            return f"every page of {key.value}"
        case _:
            return f"every call of {key.value}, whatever its input"
