"""`quarterdeck token`: access to the hub. Works on the data folder, with or without a hub."""

from __future__ import annotations

import os
import shlex
import sys

from rich.text import Text

from quarterdeck.agent.listen import TOKEN_VARIABLE
from quarterdeck.claude.launch import Launch, to_argv
from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.target import Target, connect, find_session
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_line
from quarterdeck.cli.terminal.text import moment
from quarterdeck.domain.errors import LinkRefused, NotFound, UsageError
from quarterdeck.domain.ids import is_id
from quarterdeck.fronts.http import Access, Role, login_link
from quarterdeck.hub.cli_tokens import ROOT, CliTokens, session_of, token_id
from quarterdeck.hub.inbound_clis import OWN_PATH
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.runtime.files import replace_file
from quarterdeck.service.local_hub import CLI_SECRET, CLI_TOKENS, live_hub
from quarterdeck.wire.tools import one_line

DIALLING = "cli"
"""Stands for the tokens of all CLIs that dial the hub: they have no grants."""


def run_token(role: str, name: str | None, *, login: bool, days: float | None) -> int:
    """Create a token or a login link, and print it. It is not shown again."""
    wanted = _role(role)
    access = Access(data_home())
    if login:
        if wanted is Role.RUNNER:
            raise UsageError("a runner does not log in; omit --login")
        hub = live_hub(data_home())
        if hub is None:
            raise LinkRefused("no hub runs on this machine; start one with: quarterdeck serve")
        code = access.make_code(name or wanted.value, wanted)
        print_line(login_link(hub.address, code))
        if sys.stdout.isatty():
            from quarterdeck.service.service import far_login  # it loads all that serving needs

            print_line(far_login(hub.far, code).rstrip("\n"))
        return Exit.SUCCESS
    seconds = None if days is None else days * 86400.0
    print_line(access.make_token(name or wanted.value, wanted, seconds=seconds))
    return Exit.SUCCESS


def run_token_cli(session: str | None) -> int:
    """Print the command line with which a CLI up to 2.1.120 dials the hub."""
    from quarterdeck.service.service import cli_secret  # it loads everything that serving needs

    home = data_home()
    client = connect(Target())
    base = "ws" + client.where.base.removeprefix("http")
    tokens = CliTokens(cli_secret(home), home / CLI_TOKENS)
    token, launch = tokens.token(ROOT), Launch(sdk_url=base + "/")
    if session is not None:
        found = client.session(find_session(client, session))
        token = tokens.token(found.session)
        # It goes on with the conversation, in the way that holds for it now. What the API masks
        # cannot be in this line.
        spec = found.spec
        launch = Launch(
            sdk_url=f"{base}{OWN_PATH}{found.session}",
            resume=found.cli_session,
            model=spec.model,
            effort=spec.effort,
            permission_mode=spec.mode,
            tools=spec.tools,
            allowed_tools=spec.allowed_tools,
            disallowed_tools=spec.disallowed_tools,
            add_dirs=spec.add_dirs,
        )
    print_line(shlex.join(["env", f"{TOKEN_VARIABLE}={token}", "claude", *to_argv(launch)]))
    return Exit.SUCCESS


def run_token_list() -> int:
    """Print who has access, oldest first; never a token."""
    console = consoles.stdout()
    for grant in Access(data_home()).grants():
        line = Text.assemble((grant.id, "cyan"), f"  {grant.role.value:<8}  {grant.kind.value:<7}")
        line.append(f"  {one_line(grant.name, 64)}")
        if grant.label:
            line.append(f"  {one_line(grant.label, 64)}")
        line.append(f"  made {moment(int(grant.made * 1000))}", "dim")
        if grant.expires is not None:
            line.append(f", until {moment(int(grant.expires * 1000))}", "dim")
        console.print(line, soft_wrap=True)
    for session, since in CliTokens(b"", data_home() / CLI_TOKENS).used_tokens().items():
        line = Text.assemble((token_id(session), "cyan"), "  cli       token  ")
        line.append(f"  used since {moment(int(since * 1000))}", "dim")
        console.print(line, soft_wrap=True)
    if (data_home() / CLI_SECRET).exists():
        line = Text.assemble(
            (f"{DIALLING:<12}", "cyan"), "  cli       token    CLIs that dial the hub"
        )
        console.print(line, soft_wrap=True)
    return Exit.SUCCESS


def run_token_revoke(grant: str) -> int:
    """Revoke access, for open connections too.

    `cli` is every token of dialling CLIs, `cli.SESSION` that of one.
    """
    session = session_of(grant)
    if grant == DIALLING:
        replace_file(data_home() / CLI_SECRET, os.urandom(32))
    elif session is not None:
        if session != ROOT and not is_id(session):
            raise NotFound("token", grant)
        CliTokens(b"", data_home() / CLI_TOKENS).revoke(session)
    else:
        Access(data_home()).revoke(grant)
    return Exit.SUCCESS


def _role(given: str) -> Role:
    try:
        return Role(given)
    except ValueError as error:
        known = ", ".join(role.value for role in Role)
        raise UsageError(f"--role: one of {known}") from error
