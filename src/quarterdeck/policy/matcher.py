"""Which needs a rule matches. Pure: a rule, a request and its context in, the matches out.

A rule is compared with a need in one of two senses. To allow, it must name what is done: the
command that really runs, and every option that makes it do more than its name says. To stop, it
only has to fit, however the command is written.
"""

from __future__ import annotations

from enum import StrEnum

from quarterdeck.domain.structs import Value
from quarterdeck.policy.hosts import is_meant, may_mean
from quarterdeck.policy.needs import Context, Need, NeedKind, Request
from quarterdeck.policy.paths import catches, covers, is_protected, names_protected
from quarterdeck.policy.shell import Part, git_without_options
from quarterdeck.policy.shell.aliases import other_names
from quarterdeck.policy.specifiers import COMMANDS, EDITING, READING, CommandPattern, Rule
from quarterdeck.policy.written_files import WRITTEN

MOST_WORDS = 32
"""The number of words of a command that are compared with a pattern that it may match."""


class Sense(StrEnum):
    """The purpose of a match. To allow, a rule must name what is done; to stop, it only has to
    fit.
    """

    ALLOW = "allow"
    STOP = "stop"


class Match(Value):
    """A rule that hits, and the needs that it hits."""

    rule: Rule
    needs: tuple[Need, ...]
    sure: bool = True
    """False: it is not known before the call runs whether the rule applies."""


def match(rule: Rule, request: Request, context: Context, sense: Sense) -> Match | None:
    """Compare a rule with a request: the needs that it covers (ALLOW) or catches (STOP).

    Unknown parts may be what a rule would stop. They are caught if nothing else is.
    """
    perhaps: list[Need] = []
    if rule.command is not None:
        if rule.tool != request.tool and (sense is Sense.ALLOW or not _is_shell(rule, request)):
            return None
        found = _command(rule.command, request, sense)
        if not found and sense is Sense.STOP:
            perhaps = [need for need in request.needs if _may_stop(rule.command, need)]
    elif rule.path is not None:
        found, perhaps = _path(rule, request, context, sense)
    elif rule.domain is not None:
        found, perhaps = _hosts(rule.domain, request, sense)
    elif rule.name is not None:
        named = request.name is not None and rule.name.matches(request.name)
        found = list(request.needs) if named and rule.tool == request.tool else []
    elif _means(rule, request.tool):
        found = list(request.needs)
    else:
        found = _whole(rule, request, sense)
    if found:
        return Match(rule=rule, needs=tuple(found))
    return Match(rule=rule, needs=tuple(perhaps), sure=False) if perhaps else None


def _is_shell(rule: Rule, request: Request) -> bool:
    """Is it a rule for a tool that runs commands, and does the call run one, by whatever tool?"""
    return rule.tool in COMMANDS and (request.command is not None or request.tool in COMMANDS)


def _hosts(domain: str, request: Request, sense: Sense) -> tuple[list[Need], list[Need]]:
    """The needs whose host certainly matches, and those whose host may."""
    fetches = [need for need in request.needs if need.kind is NeedKind.FETCH]
    if sense is Sense.ALLOW:
        return [n for n in fetches if n.host is not None and is_meant(domain, n.host)], []
    meanings = [(need, may_mean(domain, need.host)) for need in fetches]
    return (
        [need for need, meant in meanings if meant],
        [need for need, meant in meanings if meant is None]
        + [need for need in request.needs if need.kind is NeedKind.UNKNOWN],
    )


def _means(rule: Rule, tool: str) -> bool:
    return rule.tool == tool or (rule.tools is not None and rule.tools.matches(tool))


def _whole(rule: Rule, request: Request, sense: Sense) -> list[Need]:
    """A rule for a whole tool, compared with another tool: Read and Edit apply there, to stop, and
    Bash to every tool that runs a command.
    """
    if sense is Sense.STOP and _is_shell(rule, request):
        return list(request.needs)
    if sense is Sense.ALLOW or request.tool not in COMMANDS | READING | EDITING:
        return []
    if rule.tool == "Edit":
        return [need for need in request.needs if need.kind is NeedKind.EDIT]
    if rule.tool == "Read":
        return [need for need in request.needs if need.kind is NeedKind.READ]
    return []


def _path(
    rule: Rule, request: Request, context: Context, sense: Sense
) -> tuple[list[Need], list[Need]]:
    """`Edit(path)` applies to all writes, `Read(path)` to all reads, by commands too.

    Returns the needs that certainly match, and those that may. The CLI has no rules such as
    `Write(path)`: they allow nothing. Here they stop.
    """
    pattern = rule.path
    if pattern is None:
        return [], []
    kind = NeedKind.EDIT if rule.tool in EDITING else NeedKind.READ
    if sense is Sense.ALLOW:
        if rule.tool not in {"Edit", "Read"}:
            return [], []
        return [
            need
            for need in request.needs
            if need.kind is kind
            and need.target is not None
            and covers(pattern, need.target, context.folders)
            and (kind is NeedKind.READ or not is_protected(need.target) or names_protected(pattern))
        ], []
    sure: list[Need] = []
    perhaps: list[Need] = []
    for need in request.needs:
        if need.kind is kind and need.target is not None:
            caught = catches(pattern, need.target, context.folders, edit=kind is NeedKind.EDIT)
            if caught:
                sure.append(need)
            elif caught is None:
                perhaps.append(need)
    return sure, perhaps


# --- commands ----------------------------------------------------------------------------------


def _command(pattern: CommandPattern, request: Request, sense: Sense) -> list[Need]:
    if pattern.exact and request.command is not None and request.command.strip() == pattern.text:
        # The rule is the whole command, which is the clearest form of naming it. But it does not
        # name the contents of a file that the agent has written.
        return [need for need in request.needs if sense is Sense.STOP or not _is_own_code(need)]
    if sense is Sense.STOP:
        if request.command is not None and pattern.matches(request.command.strip()):
            return list(request.needs)
        return [
            need
            for need in request.needs
            if need.kind is NeedKind.COMMAND and need.part is not None and stops(pattern, need.part)
        ]
    named: dict[int, bool] = {}
    for need in request.needs:
        part = need.part
        if part is not None and need.kind is NeedKind.COMMAND:
            literally = _names_part(pattern, part)
            if literally is not None:
                named[id(part)] = literally
    if not named:
        return []
    redirected = _redirection_files(request)
    return [
        need
        for need in request.needs
        if need.part is not None
        and id(need.part) in named
        and (
            need.kind is NeedKind.COMMAND
            or named[id(need.part)]
            or (need.own and pattern.literal.strip())
        )
        and id(need) not in redirected
    ]


def _redirection_files(request: Request) -> set[int]:
    """The files of redirections, by their ids. The name of a command says nothing about those."""
    files = {
        id(part): {target.source for target in (*part.reads, *part.writes)}
        for part in [need.part for need in request.needs if need.kind is NeedKind.COMMAND]
        if part is not None and (part.reads or part.writes)
    }
    if not files:
        return set()
    return {
        id(need)
        for need in request.needs
        if need.part is not None
        and need.kind in {NeedKind.EDIT, NeedKind.READ}
        and need.what in files.get(id(need.part), ())
    }


def _is_own_code(need: Need) -> bool:
    """Does a command run a file that the agent has written?"""
    part = need.part
    return part is not None and any(effect.token == WRITTEN for effect in part.effects)


def _names_part(pattern: CommandPattern, part: Part) -> bool | None:
    """Does the pattern name everything that a part does? True: literally. None: no."""
    # Most patterns do not match: that is found out first.
    matching = [form for form in part.forms if pattern.matches(form.text)]
    if not matching or any(effect.token == WRITTEN for effect in part.effects):
        return None
    if pattern.exact:
        return True
    for form in matching:
        if len(pattern.literal) < form.named:
            continue
        program = part.words[0].literal if part.words else None
        if all(
            effect.target is not None or pattern.names(effect.token, program)
            for effect in part.effects
        ):
            return False
    return None


def stops(pattern: CommandPattern, part: Part) -> bool:
    """May the pattern mean this part, however it is written?"""
    return any(pattern.matches(text) for text in spellings(part)) or with_flags(pattern, part)


def _may_stop(pattern: CommandPattern, need: Need) -> bool:
    """May a pattern match a command with unknown words?"""
    part = need.part
    if need.kind is not NeedKind.COMMAND or part is None:
        return False
    if part.known == len(part.words) and not part.open_ended:
        return False
    texts = [word.literal or "" for word in part.words[: min(part.known, MOST_WORDS)]]
    if not texts:
        return True
    if part.name == "git" and len(texts) > 1:
        texts = ["git", *git_without_options(texts)]
    else:
        texts[0] = texts[0].rpartition("/")[2]
    # The pattern starts with the known words, and the unknown ones may be the rest.
    before = " ".join(texts) + " "
    if f"{pattern.literal} ".startswith(before):
        return True
    others = other_names(tuple(pattern.literal.split()))
    if any(f"{' '.join(other)} ".startswith(before) for other in others):
        return True
    return not pattern.exact and pattern.bare is None and before.startswith(pattern.literal)


_LONG = {"--force": "f", "--recursive": "r", "--verbose": "v", "--all": "a", "--delete": "d"}
"""Long options that commonly have a short one of the same meaning."""


def spellings(part: Part) -> list[str]:
    """Every text that a rule may know a part by."""
    texts = [form.text for form in part.forms]
    words = _words(part)
    if words:
        texts.append(" ".join(words))
        name = words[0].rpartition("/")[2]
        texts.append(" ".join((name, *words[1:])))
        if name == "git":
            texts.append(" ".join(("git", *git_without_options(words))))
        if part.called:
            texts.append(" ".join(part.called))
        texts += [" ".join(other) for other in part.same]
    return texts


def first_spellings(part: Part) -> set[str]:
    """The first word of each of these texts but the forms."""
    found: set[str] = set()
    if part.words:
        first = part.words[0]
        text = first.source if first.text is None else first.text
        name = text.rpartition("/")[2]
        if name.split() != [name] or text.split() != [text]:
            return {word for each in spellings(part) for word in each.split(None, 1)[:1]}
        found.add(text)
        found.add(name)
        found.update(part.called[:1])
        found.update([other[0] for other in part.same])
    return found


def _words(part: Part) -> list[str]:
    return [word.text if word.text is not None else word.source for word in part.words]


def with_flags(pattern: CommandPattern, part: Part) -> bool:
    """Does the part do what the pattern says, with its flags in another order or form?"""
    wanted = pattern.literal.split()
    if len(wanted) < 2 or pattern.text.count("*") > 1 or not part.words:
        return False
    if not any(word.startswith("-") for word in wanted):
        return False
    words = _words(part)
    words[0] = words[0].rpartition("/")[2]
    if words[0] == "git":
        words = ["git", *git_without_options(words)]
    return any(_with_flags(pattern, wanted, each) for each in (words, *map(list, part.same)))


def _with_flags(pattern: CommandPattern, wanted: list[str], words: list[str]) -> bool:
    if words[0] != wanted[0]:
        return False
    flags, others = _split(words[1:])
    need, positional = _split(wanted[1:])
    if pattern.exact and (need != flags or positional != others):
        return False
    return need <= flags and others[: len(positional)] == positional


def _split(words: list[str]) -> tuple[set[str], list[str]]:
    """Flags in a canonical form, and the other words in their order."""
    flags: set[str] = set()
    others: list[str] = []
    for word in words:
        if word.startswith("--"):
            name = word.partition("=")[0]
            flags.add(_LONG.get(name, name))
        elif word.startswith("-") and len(word) > 1:
            flags.update("r" if letter == "R" else letter for letter in word[1:])
        else:
            others.append(word)
    return flags, others
