"""`quarterdeck policy try`: one call for a person, or a corpus of calls for a program.

It needs no hub. It reads policy files, and looks at the disk as the hub does for a session on this
machine: where links lead, and which branch is checked out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import msgspec

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.local.sandbox_says import answers
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.explanation import show_sandbox, show_tried
from quarterdeck.cli.terminal.output import print_json
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions.disk import looking_here
from quarterdeck.hub.permissions.policies import GLOBAL
from quarterdeck.policy.calls import input_of
from quarterdeck.policy.decide import Call, Rules
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import Loaded, read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import PRESETS, preset
from quarterdeck.policy.toml import LIMIT
from quarterdeck.policy.tries import (
    Case,
    CaseError,
    CaseResult,
    case_id,
    read_case,
    try_call,
    try_case,
)
from quarterdeck.protocol.sessions import LOCAL
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.runtime.git_head import branch_of
from quarterdeck.service.local_hub import private_in

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line of a corpus."""

POLICIES = 256
"""The number of policies of a corpus that are kept, so that each text is read once."""


class TryOptions(Value):
    """What `policy try` was given."""

    command: str | None = None
    tool: str = "Bash"
    argument: str | None = None
    policy: str | None = None
    cwd: Path | None = None
    home: Path | None = None
    mode: str = "default"


def run_try(options: TryOptions, *, json_output: bool) -> int:
    """Print how a call is read, what it needs, and what the rules decide."""
    argument = _argument(options)
    cwd = str((options.cwd or Path.cwd()).absolute())
    home = str((options.home or Path.home()).absolute())
    call = Call(
        tool=options.tool,
        input=input_of(options.tool, argument),
        facts=Facts(
            now=int(time.time() * 1000),
            mode=options.mode,
            origin="main",
            machine=LOCAL,
            project="",
            directory=cwd,
            branch=branch_of(cwd),
        ),
        context=looking_here(Context(cwd=cwd, home=home, settings=cwd)),
    )
    rules = _rules(options.policy)
    tried, boxed = try_call(call, rules), answers(call, rules)
    if json_output:
        print_json([{**msgspec.structs.asdict(tried), "sandbox": boxed}])
    else:
        show_tried(tried, consoles.stdout())
        show_sandbox(boxed, consoles.stdout())
    return Exit.SUCCESS


def _argument(options: TryOptions) -> str:
    command, argument = options.command, options.argument
    if (command is None) is (argument is None):
        raise UsageError("give a command, or --tool and --input")
    if command is None:
        return argument or ""
    if options.tool != "Bash":
        raise UsageError(f"give the input of {options.tool} with --input")
    if command == "-":
        try:
            command = sys.stdin.buffer.read(LIMIT).decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"the command is not UTF-8: {error}") from error
        # A file ends with a newline that is not part of the command.
        command = command.removesuffix("\n")
    if not command.strip():
        raise UsageError("the command is empty")
    return msgspec.json.encode({"command": command}).decode()


def _rules(name: str | None) -> Rules:
    """The rules of a policy, with the built-in ones of a hub on this machine."""
    home = data_home(create=False)
    private = private_in(home)
    if name is None:
        file = home / GLOBAL
        if not file.exists():
            return Rules(private=private)
    elif name in PRESETS:
        found = preset(name)
        return Rules(policies=(found,) if found is not None else (), private=private)
    else:
        file = Path(name)
    try:
        text = file.read_bytes()[: 4 * LIMIT].decode()
    except FileNotFoundError:
        known = ", ".join(PRESETS)
        raise UsageError(f"--policy: there is no file and no preset {name!r}: {known}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error
    policy = _valid(read_policy(text, file.name, preset=preset), str(file))
    return Rules(policies=(policy,), private=private)


def _valid(loaded: Loaded, where: str) -> Policy:
    if loaded.policy is None:
        flaw = loaded.flaws[0]
        raise UsageError(f"{where}:{flaw.line}: {flaw.text}")
    return loaded.policy


# --- many cases -----------------------------------------------------------------------------------


def run_batch(given: tuple[object, ...] = ()) -> int:
    """Try the cases on stdin, and print a line for each as soon as it is decided."""
    if any(each is not None for each in given):
        raise UsageError("--batch takes no other options: each line has its own")
    failed = False
    for number, line in _lines(sys.stdin.buffer):
        result = _try_line(number, line)
        failed = failed or isinstance(result, CaseError)
        print_json([result])
    return Exit.FAILED if failed else Exit.SUCCESS


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each line with its number. One that is too long is cut."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(LONGEST_LINE)):
            pass
        if line.strip():
            yield number, line


def _try_line(number: int, line: bytes) -> CaseResult | CaseError:
    if len(line) > LONGEST_LINE:
        text = f"the line has more than {LONGEST_LINE:,} bytes"
        return CaseError(id=msgspec.Raw(b"null"), line=number, error=text)
    try:
        case = read_case(line)
        call = _call(case)
        policy = _policy(case.policy)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UsageError) as error:
        return CaseError(id=case_id(line), line=number, error=str(error) or type(error).__name__)
    return try_case(case, call, Rules(policies=(policy,)))


@lru_cache(maxsize=POLICIES)
def _policy(text: str) -> Policy:
    return _valid(read_policy(text, "policy", preset=preset), "policy")


def _call(case: Case) -> Call:
    for name, folder in (("cwd", case.cwd), ("home", case.home)):
        if folder is not None and not folder.startswith("/"):
            raise UsageError(f"{name}: expected an absolute path")
    branch = case.branch
    if branch is None and case.local and case.cwd is not None:
        branch = branch_of(case.cwd)
    origin, _, agent = case.origin.partition(":")
    context = Context(cwd=case.cwd, home=case.home, settings=case.cwd)
    return Call(
        tool=case.tool,
        input=case.input,
        facts=Facts(
            now=int(time.time() * 1000),
            mode=case.mode,
            origin=origin,
            agent=agent or None,
            machine=LOCAL if case.local else None,
            project=case.project,
            user=case.user,
            directory=case.cwd,
            branch=branch,
        ),
        context=looking_here(context) if case.local else context,
    )
