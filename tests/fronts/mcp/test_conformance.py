"""The official conformance runner against `/mcp`: what applies passes, and the rest is listed.

`docs/reference/mcp.md` has the list of scenarios that do not apply, with the reasons.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT

import anyio
import pytest

from quarterdeck.fronts.http import Access, Listen, Role, make_app, serve
from quarterdeck.fronts.http.asgi import Receive, Scope, Send
from quarterdeck.fronts.mcp import McpEndpoint, PeopleTools
from quarterdeck.policy.decide import Rules
from quarterdeck.service.agents import _visitor_of
from support.agent_family import Family
from support.bounds import SECONDS
from support.clis import PROJECT

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PACKAGE = PROJECT / ".cache/mcp-conformance/node_modules/@modelcontextprotocol/conformance"
APPLICABLE = {
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-error",
    "dns-rebinding-protection",
}
PAGE = (PROJECT / "docs/reference/mcp.md").read_text()


async def test_the_scenarios_that_apply_pass_and_all_others_are_documented(
    family: Family, tmp_path: Path
) -> None:
    access = Access(tmp_path)
    people = PeopleTools(family.hub, changes=family._changes, search=family._search)
    endpoint = McpEndpoint(
        family.hub, family.tools, lambda _: Rules(), people=people, visitor_of=_visitor_of
    )
    app = make_app(family.hub, access, mcp=endpoint)
    bearer = (b"authorization", f"Bearer {access.make_token('eve', Role.OWNER)}".encode())

    async def with_token(scope: Scope, receive: Receive, send: Send) -> None:
        """The runner can send no token, so it gets one here; the rest is the hub's own."""
        await app({**scope, "headers": [*scope.get("headers", ()), bearer]}, receive, send)

    async with endpoint.run(), serve(with_token, Listen(port=0)) as url:
        said = await _run("server", "--url", f"{url}/mcp", "--suite", "all")
    outcomes = {
        name: (int(passed), int(failed))
        for name, passed, failed in re.findall(
            r"^[^\w\s] ([\w-]+): (\d+) passed, (\d+) failed", said, re.MULTILINE
        )
    }
    assert outcomes.keys() >= APPLICABLE, said
    for name in APPLICABLE:
        passed, failed = outcomes[name]
        assert passed, (name, said)
        assert not failed, (name, said)
    documented = set(re.findall(r"`([a-z][\w-]+)`", PAGE.partition("## Conformance")[2]))
    assert outcomes.keys() == documented
    # A scenario that needs more than we have is a failure of the runner's, except where it skips.
    assert {name for name, (passed, _) in outcomes.items() if passed} == APPLICABLE | {
        "tools-call-simple-text"  # any text is one, also that there is no such tool
    }


async def _run(*arguments: str) -> str:
    script = PACKAGE / "dist" / "index.js"
    assert script.is_file(), "run: make .cache/mcp-conformance/.installed"
    node = str(Path(sys.executable).with_name("node"))
    with anyio.fail_after(SECONDS):
        done = await anyio.run_process(
            [node, str(script), *arguments], stdout=PIPE, stderr=STDOUT, check=False
        )
    return done.stdout.decode()
