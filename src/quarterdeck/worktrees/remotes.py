"""Addresses of remotes: which of them a push may go to, and what they say about a host.

Pure. An agent can write the settings of a repository: an address of it must not start a program.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.machine_requests import PushProblem

_SCHEMES = frozenset({"https", "http", "ssh", "git+ssh"})
_SCP = re.compile(r"(?:([\w.+-]+)@)?([A-Za-z0-9][\w.-]*):(?!//)([^\s:][^\s]*)")
_TOOLS = {"github": "gh", "gitlab": "glab"}

PROBLEM_TEXTS = {
    PushProblem.NO_BRANCH: "no branch is checked out",
    PushProblem.NO_COMMIT: "there is no commit yet",
    PushProblem.NO_REMOTE: "the repository has no remote to push to",
    PushProblem.NO_URL: "the remote has no address",
    PushProblem.INVALID_URL: "it is no address",
    PushProblem.PROGRAM_URL: "it names a program, which is not run",
    PushProblem.UNKNOWN_URL: "it is no address that is known here",
    PushProblem.PROTOCOL: "nothing is pushed by this protocol",
}
"""For the errors of requests. The web app has its own words."""


class Address(Value):
    """The address of a remote. `shown` has no password in it."""

    shown: str
    host: str = ""
    repository: str = ""
    local: bool = False
    problem: PushProblem | None = None
    """Why nothing is pushed there."""

    @property
    def tool(self) -> str:
        """The program that opens pull requests at this host; empty if it is not known."""
        return next((tool for name, tool in _TOOLS.items() if name in self.host.lower()), "")


def address_of(url: str) -> Address:
    """Read an address."""
    if url != "".join(char for char in url if char.isprintable()) or url.startswith("-"):
        return Address(shown=url.encode("unicode_escape").decode(), problem=PushProblem.INVALID_URL)
    if "::" in url.partition("/")[0]:
        return Address(shown=url, problem=PushProblem.PROGRAM_URL)
    if url.startswith("/"):
        return Address(shown=url, local=True)
    if "://" not in url:
        found = _SCP.fullmatch(url)
        if found is None:
            return Address(shown=url, problem=PushProblem.UNKNOWN_URL)
        return Address(shown=url, host=found[2], repository=_repository(found[3]))
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return Address(shown=url, problem=PushProblem.INVALID_URL)
    if parts.scheme == "file":
        return Address(shown=url, local=True)
    user = f"{parts.username}@" if parts.username and "ssh" in parts.scheme else ""
    shown = urlunsplit((parts.scheme, f"{user}{host}{port}", parts.path, "", ""))
    if parts.scheme not in _SCHEMES or not host or host.startswith("-"):
        return Address(shown=shown, problem=PushProblem.PROTOCOL)
    return Address(shown=shown, host=host, repository=_repository(parts.path))


def _repository(path: str) -> str:
    return path.strip("/").removesuffix(".git")
