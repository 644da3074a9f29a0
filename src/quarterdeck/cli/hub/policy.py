"""`quarterdeck policy …` and `quarterdeck audit verify`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from msgspec.structs import replace
from rich.text import Text

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.policy_client import policy_of
from quarterdeck.cli.hub.target import Target, find_session
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.explanation import COLOURS, show_explanation
from quarterdeck.cli.terminal.output import print_json, print_line
from quarterdeck.cli.terminal.text import count, moment, plain
from quarterdeck.domain.errors import UsageError
from quarterdeck.hub.permissions.service import Question, question_facts
from quarterdeck.hub.permissions.trials import check_text
from quarterdeck.policy.calls import input_of
from quarterdeck.policy.decide import Call, Rules
from quarterdeck.policy.explain import Explanation, explain
from quarterdeck.policy.file import Loaded, read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.parity import ClaudeRule
from quarterdeck.policy.presets import PARTS, PRESETS, preset, preset_text
from quarterdeck.policy.settings import import_settings
from quarterdeck.policy.specifiers import Source
from quarterdeck.policy.toml import LIMIT
from quarterdeck.policy.toml_values import seconds_of
from quarterdeck.protocol.shapes import CallQuestion, NewPolicyGrant, PolicyTrial

MOST_SHOWN = 20


def _print(text: str) -> None:
    """Print a line on stdout. It may contain text from outside."""
    print_line(plain(text))


def read_file(file: Path) -> str:
    """A policy's text. Raises `UsageError`."""
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read(4 * LIMIT).decode()
        with file.open("rb") as stream:
            return stream.read(4 * LIMIT).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error


def _load(file: Path) -> Loaded:
    return read_policy(read_file(file), file.name, preset=preset)


def run_check(file: Path, *, strict: bool, json_output: bool) -> int:
    """Print whether a policy is valid, and which of its rules never do what they say."""
    loaded = _load(file)
    if json_output:
        print_json([check_text(loaded)])
    elif loaded.policy is not None:
        rules, examples = count(loaded.rules, "rule"), count(loaded.examples, "example")
        warnings = f", {count(len(loaded.warnings), 'warning')}" if loaded.warnings else ""
        _print(f"{file} is valid: {rules}, {examples}{warnings}.")
        for warning in loaded.warnings:
            _print(f"{file}:{warning.line}: warning: {warning.text}")
    else:
        for flaw in loaded.flaws:
            _print(f"{file}:{flaw.line}: {flaw.text}")
    good = loaded.policy is not None and not (strict and loaded.warnings)
    return Exit.SUCCESS if good else Exit.FAILED


# --- explain --------------------------------------------------------------------------------------


def run_explain(
    question: CallQuestion, file: Path | None, target: Target, *, json_output: bool
) -> int:
    """Print the decision about a call, and its reasons."""
    if question.session is None and question.cwd is None:
        question = replace(question, cwd=str(Path.cwd()))
    if file is not None:
        explanation = _by_file(question, file)
    else:
        client = policy_of(target)
        if question.session is not None:
            question = replace(question, session=find_session(client, question.session))
        explanation = client.explain(question)
    if json_output:
        print_json([explanation])
    else:
        show_explanation(explanation, consoles.stdout())
    return Exit.SUCCESS


def _by_file(question: CallQuestion, file: Path) -> Explanation:
    loaded = _load(file)
    if loaded.policy is None:
        raise UsageError(f"{file}:{loaded.flaws[0].line}: {loaded.flaws[0].text}")
    policies = [loaded.policy]
    if question.policy is not None:
        named = preset(question.policy)
        if named is None:
            raise UsageError(f"--policy: there is no preset {question.policy!r}")
        policies.append(named)
    given = {name: getattr(question, name) for name in CallQuestion.__struct_fields__}
    call = Call(
        tool=question.tool,
        input=input_of(question.tool, question.argument),
        facts=question_facts(Question(**given), int(time.time() * 1000)),
        context=Context(cwd=question.cwd, home=str(Path.home())),
    )
    return explain(call, Rules(policies=tuple(policies)))


# --- replay and suggest ---------------------------------------------------------------------------


def _since(duration: str) -> int:
    seconds = seconds_of(duration)
    if seconds is None:
        raise UsageError("--since: a duration is required, as in 12h or 30d")
    return max(0, int((time.time() - seconds) * 1000))


def run_replay(
    file: Path, since: str, session: str | None, target: Target, *, json_output: bool
) -> int:
    """Print the decisions that a policy would change."""
    client = policy_of(target)
    id_ = find_session(client, session) if session else None
    result = client.replay(PolicyTrial(text=read_file(file), since=_since(since), session=id_))
    if json_output:
        print_json([result])
        return Exit.SUCCESS
    console = consoles.stdout()
    calls = count(result.calls, "call")
    _print(f"{calls}: {result.same} unchanged, {result.calls - result.same} different.")
    for name, number in result.counts.items():
        console.print(Text(f"  {number:>6}  {name}"), soft_wrap=True)
    for change in result.changes[:MOST_SHOWN]:
        line = Text(f"{moment(change.at)}  {change.session}  ", "dim")
        line.append(change.now, COLOURS.get(change.now, ""))
        line.append(plain(f"  {change.tool}: {change.call}"))
        line.append(f"  (then: {change.then}, by {change.by or 'nobody'})", "dim")
        console.print(line, soft_wrap=True)
        for reason in change.reasons:
            console.print(Text(plain(f"    {reason}"), "dim"), soft_wrap=True)
    if len(result.changes) > MOST_SHOWN:
        _print(f"… and {len(result.changes) - MOST_SHOWN} more; --json has them.")
    if result.truncated:
        _print("There are more calls than were checked; the oldest are left out.")
    return Exit.SUCCESS


def run_suggest(since: str, least: int, target: Target, *, json_output: bool) -> int:
    """Print rules that people's answers suggest."""
    found = policy_of(target).suggestions(_since(since), least)
    if json_output:
        print_json(found)
        return Exit.SUCCESS
    for each in found:
        people = ", ".join(each.people)
        _print(f"# {each.allowed} times allowed, {each.denied} times denied, by {people};")
        _print(f"# from {moment(each.first)} to {moment(each.last)}, such as:")
        for example in each.examples:
            _print(f"#   {example}")
        _print(f"# It means {each.means}.")
        if each.admits:
            _print("# It would also have decided:")
            for other in each.admits:
                _print(f"#   {other}")
        _print(f"{each.toml}\n")
    if not found:
        _print("# No question was answered often enough in the same way.")
    return Exit.SUCCESS


# --- what is in force -----------------------------------------------------------------------------


def run_show(target: Target, *, json_output: bool) -> int:
    """Print the policies in force."""
    view = policy_of(target).policy()
    wrong = any(state.flaws for state in view.files) or view.grants_flaw is not None
    if json_output:
        print_json([view])
        return Exit.FAILED if wrong else Exit.SUCCESS
    if not any(state.name == "policy.toml" for state in view.files):
        _print("There is no global policy: everything that the CLI asks is asked.")
    words = {
        "file": "in force",
        "kept": "REFUSED; its last valid version is in force",
        "asking": "REFUSED, and there is no valid version: every call is asked about",
    }
    for state in view.files:
        rules = count(state.rules, "rule")
        _print(f"{state.name}: {words[state.in_force]} since {moment(state.since)}, {rules}")
        for flaw in state.flaws:
            _print(f"  {state.path}:{flaw.line}: {flaw.text}")
        for warning in state.warnings:
            _print(f"  {state.path}:{warning.line}: warning: {warning.text}")
    _print(f"Policies that a session can use: {', '.join(view.names)}")
    _print(f"{count(len(view.grants), 'grant')}; `quarterdeck policy grants` lists them")
    if view.grants_flaw is not None:
        _print(f"  {view.grants_flaw}")
    return Exit.FAILED if wrong else Exit.SUCCESS


def run_preset(name: str | None) -> int:
    """Print a preset."""
    if name is None:
        for each in PRESETS + PARTS:
            first = (preset_text(each) or "").partition("\n")[0]
            _print(f"{each:<14}{first.removeprefix('# ')}")
        return Exit.SUCCESS
    text = preset_text(name)
    if text is None:
        known = ", ".join(PRESETS + PARTS)
        raise UsageError(f"there is no preset {name!r}; known presets: {known}")
    print_line(text.rstrip())
    return Exit.SUCCESS


def run_import(files: list[Path]) -> int:
    """Print settings files as a policy."""
    placed: list[ClaudeRule] = []
    for file in files:
        imported = import_settings({Source.PROJECT: read_file(file)})
        placed += imported.rules
        for wrong in imported.wrong:
            consoles.stderr().print(f"{file}: {wrong.where}: {wrong.why}", soft_wrap=True)
    _print("[claude]")
    for behavior in ("deny", "ask", "allow"):
        rules = dict.fromkeys(one.rule.text for one in placed if one.behavior.value == behavior)
        if rules:
            listed = "".join(f"  {json.dumps(rule)},\n" for rule in rules)
            _print(f"{behavior} = [\n{listed}]")
    return Exit.SUCCESS


# --- grants ---------------------------------------------------------------------------------------


def run_grants(target: Target, *, json_output: bool) -> int:
    """List the grants."""
    grants = policy_of(target).policy_grants()
    if json_output:
        print_json(grants)
        return Exit.SUCCESS
    now = time.time() * 1000
    for grant in grants:
        until = "always" if grant.until is None else f"until {moment(grant.until)}"
        if grant.until is not None and grant.until <= now:
            until = "over"
        where = grant.project or grant.directory or "everywhere"
        if grant.session is not None:
            where = f"session {grant.session}"
        rules = ", ".join(grant.rules)
        _print(f"{grant.id}  {rules}  {until}  {where}  by {grant.by}, {moment(grant.at)}")
    return Exit.SUCCESS


def run_grant(
    rules: list[str],
    duration: str | None,
    directory: Path | None,
    project: str | None,
    target: Target,
) -> int:
    """Create a grant, and print its id."""
    seconds = seconds_of(duration) if duration is not None else None
    if duration is not None and seconds is None:
        raise UsageError("--for: a duration is required, as in 30m or 8h")
    new = NewPolicyGrant(
        rules=tuple(rules),
        seconds=seconds,
        directory=str(directory.absolute()) if directory is not None else None,
        project=project,
    )
    _print(policy_of(target).grant(new).id)
    return Exit.SUCCESS


def run_revoke(grant: str, target: Target) -> int:
    """Revoke a grant, by its id or a unique prefix."""
    client = policy_of(target)
    ids = [known.id for known in client.policy_grants() if known.id.startswith(grant)]
    if grant and len(ids) > 1:
        raise UsageError(f"{grant!r} is a prefix of {len(ids)} grants")
    client.revoke(ids[0] if ids and grant else grant)
    return Exit.SUCCESS


# --- the audit log --------------------------------------------------------------------------------


def run_verify(head: str | None, target: Target, *, json_output: bool) -> int:
    """Check the audit log's chain."""
    client = policy_of(target)
    result = client.verify_audit(head)
    if json_output:
        print_json([result])
    else:
        for flaw in result.flaws:
            _print(f"position {flaw.position}, session {flaw.session or '?'}: {flaw.text}")
        forgotten = f", {result.forgotten} of deleted sessions" if result.forgotten else ""
        records = count(result.entries, "record")
        word = "The audit log is unchanged" if result.good else "THE AUDIT LOG WAS CHANGED"
        _print(f"{word}: {records}{forgotten}.")
        _print(f"head {result.head}")
    return Exit.SUCCESS if result.good else Exit.FAILED
