"""Pushing a branch and opening a pull request, for a person.

Owns that only what the person has seen is sent, and only there. The push is made from an empty
repository that borrows the objects of the agent's one: the settings and hooks that the agent can
write have no effect. Pull requests are opened by `gh api` and `glab api`, outside of the working
folder, for the same reason. Nothing goes through a shell. `requests` is above; git is below.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.claude.environment import child_environment
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, LaunchError
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.protocol.coded_texts import coded_text
from quarterdeck.protocol.machine_requests import (
    FolderDone,
    OpenPullRequest,
    PushBranch,
    PushProblem,
    RemoteState,
    SeeRemote,
)
from quarterdeck.worktrees.commits import top_of
from quarterdeck.worktrees.git import GitResult, run_program
from quarterdeck.worktrees.remotes import PROBLEM_TEXTS, Address, address_of
from quarterdeck.worktrees.worktrees import HEADS, Worktrees

MOST_SUBJECTS = 50
SECONDS = 120.0
LONGEST_ERROR = 600
_CONFIGURED = ("GH_CONFIG_DIR", "GLAB_CONFIG_DIR")
"""Where `gh` and `glab` keep a login for each host."""
_RECEIVE = (
    "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true -c core.fsmonitor=false"
    " -c receive.autogc=false receive-pack"
)
"""For a repository on this machine, whose hooks an agent may have written."""
_PROTOCOLS = {
    "protocol.allow": "never",
    "protocol.https.allow": "always",
    "protocol.http.allow": "always",
    "protocol.ssh.allow": "always",
    "protocol.file.allow": "always",
}


class _Remote(Value):
    """A remote, with the address as it is and as it is shown."""

    top: str
    branch: str
    commit: str
    name: str
    url: str
    address: Address


async def see_remote(wanted: SeeRemote, worktrees: Worktrees) -> RemoteState:
    """Where a push would go. Raises `LaunchError` or `Conflict`."""
    try:
        found = await _remote(worktrees, wanted.directory, wanted.branch)
    except _NoRemoteError as none:
        return RemoteState(branch=none.branch, commit=none.commit, problem=none.problem)
    git = worktrees.git
    theirs = f"refs/remotes/{found.name}/{found.branch}"
    known = await worktrees.commit_of(found.top, theirs) is not None
    since = (f"^{theirs}",) if known else ("--not", f"--remotes={found.name}")
    listed = await git(
        found.top, "log", "--no-show-signature", "--format=%s", f"--max-count={MOST_SUBJECTS + 1}",
        found.commit, *since, "--", good=(0, 128),
    )  # fmt: skip
    subjects = listed.out.decode(errors="replace").splitlines()
    counted = await git(found.top, "rev-list", "--count", found.commit, *since, "--", good=(0, 128))
    more = int(counted.text) - MOST_SUBJECTS if counted.text.isdigit() else 0
    tool = found.address.tool
    head = await git(
        found.top, "symbolic-ref", "-q", f"refs/remotes/{found.name}/HEAD", good=(0, 1, 128)
    )
    base = None
    if wanted.branch is not None:
        base = (await worktrees.base_of(wanted.directory, wanted.branch)).branch
    if base is None and head.code == 0 and head.text:
        base = head.text.removeprefix(f"refs/remotes/{found.name}/")
    return RemoteState(
        branch=found.branch,
        commit=found.commit,
        remote=found.name,
        url=found.address.shown,
        problem=found.address.problem or "",
        commits=tuple(subjects[:MOST_SUBJECTS]),
        more_commits=max(0, more),
        known=known,
        host=found.address.host,
        repository=found.address.repository,
        tool=tool if tool and _program(tool) else "",
        base=base if base != found.branch else None,
    )


async def push(wanted: PushBranch, worktrees: Worktrees) -> FolderDone:
    """Push the branch, never by force. Raises `Conflict` or `LaunchError`."""
    found = await _same_remote(worktrees, wanted.directory, wanted.branch, wanted.url)
    if found.commit != wanted.commit:
        raise Conflict("changed_meanwhile", "the branch has moved since it was shown: look again")
    git = worktrees.git
    local = (f"--receive-pack={_RECEIVE}",) if found.address.local else ()
    async with clean_repository(worktrees, found.top) as place:
        env = allowed_protocols()
        try:
            await git(
                place, "push", "--no-verify", "--recurse-submodules=no", "--quiet", *local,
                "--", found.url, f"{found.commit}:{HEADS}{found.branch}", env=env,
            )  # fmt: skip
        except LaunchError as error:
            raise Conflict("not_pushed", _without_secret(str(error), found)) from error
    await git(
        found.top, "update-ref", f"refs/remotes/{found.name}/{found.branch}", found.commit,
        good=(0, 1, 128),
    )  # fmt: skip
    shown = found.address.shown
    coded = CodedText(code=TextCode.PUSHED, name=found.branch, commit=found.commit[:12], url=shown)
    return FolderDone(text=coded_text(coded), coded=coded, commit=found.commit, url=shown)


async def open_pull_request(wanted: OpenPullRequest, worktrees: Worktrees) -> FolderDone:
    """Open a pull request. Raises `Conflict` or `LaunchError`."""
    found = await _same_remote(worktrees, wanted.directory, wanted.branch, wanted.url)
    await worktrees.check_name(wanted.directory, wanted.base)
    tool, address = found.address.tool, found.address
    program = _program(tool) if tool else None
    if program is None or "/" not in address.repository:
        text = "pull requests need `gh` for GitHub or `glab` for GitLab on the machine"
        raise Conflict("no_tool", text)
    theirs = f"refs/remotes/{found.name}/{found.branch}"
    if await worktrees.commit_of(found.top, theirs) != found.commit:
        raise Conflict("not_pushed", f"push {found.branch} first: the remote does not have it")
    path, body = _request(tool, wanted, found)
    hostname = ("--hostname", address.host, "--header", "Content-Type: application/json")
    argv = (program, "api", "--method", "POST", path, *hostname, "--input", "-")
    with anyio.CancelScope(shield=True):  # it would not be known whether there is one
        logins = logins_for(tool, address.host, os.environ)
        done = await _outside(argv, msgspec.json.encode(body), logins)
    try:
        answer = msgspec.json.decode(done.out, type=_Opened)
    except msgspec.DecodeError:
        answer = _Opened()
    url = answer.html_url or answer.web_url
    if done.code != 0 or not url.startswith("https://"):
        words = bytes(answer.message).decode(errors="replace").strip('"')
        said = f"{words} {done.err}".strip() or f"code {done.code}"
        raise Conflict("no_pull_request", f"{tool} refused: {said[:LONGEST_ERROR]}")
    coded = CodedText(
        code=TextCode.PULL_REQUEST_OPENED, name=found.branch, other=wanted.base, url=url
    )
    return FolderDone(text=coded_text(coded), coded=coded, commit=found.commit, url=url)


class _Opened(Value):
    html_url: str = ""
    web_url: str = ""
    message: msgspec.Raw = ABSENT
    """A text of GitHub's, or a list of GitLab's."""


class _NoRemoteError(Exception):
    def __init__(
        self, problem: PushProblem, branch: str | None = None, commit: str | None = None
    ) -> None:
        super().__init__(PROBLEM_TEXTS[problem])
        self.problem, self.branch, self.commit = problem, branch, commit


def _request(
    tool: str, wanted: OpenPullRequest, found: _Remote
) -> tuple[str, dict[str, str | bool]]:
    """The path and the body for the API of the host."""
    repository = found.address.repository
    if tool == "gh":
        return f"repos/{quote(repository)}/pulls", {
            "title": wanted.title,
            "head": found.branch,
            "base": wanted.base,
            "body": wanted.body,
            "draft": wanted.draft,
        }
    return f"projects/{quote(repository, safe='')}/merge_requests", {
        "title": f"Draft: {wanted.title}" if wanted.draft else wanted.title,
        "source_branch": found.branch,
        "target_branch": wanted.base,
        "description": wanted.body,
    }


async def _remote(worktrees: Worktrees, directory: str, branch: str | None) -> _Remote:
    """The remote of the branch that is checked out. Raises `_NoRemoteError`."""
    git = worktrees.git
    top = await top_of(worktrees, directory, branch)
    head = (await git(top, "symbolic-ref", "-q", "HEAD", good=(0, 1))).text
    commit = await worktrees.commit_of(top, "HEAD")
    if not head.startswith(HEADS):
        raise _NoRemoteError(PushProblem.NO_BRANCH, commit=commit)
    name = head.removeprefix(HEADS)
    if commit is None:
        raise _NoRemoteError(PushProblem.NO_COMMIT, name)

    async def setting(key: str) -> str:
        found = await git(top, "config", "--get-all", "--end-of-options", key, good=(0, 1, 128))
        return found.text.split("\n")[-1] if found.code == 0 else ""

    remotes = (await git(top, "remote")).text.splitlines()
    chosen = (
        await setting(f"branch.{name}.pushRemote")
        or await setting("remote.pushDefault")
        or await setting(f"branch.{name}.remote")
    )
    if chosen not in remotes:
        chosen = "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else ""
    if not chosen:
        raise _NoRemoteError(PushProblem.NO_REMOTE, name, commit)
    checked = await git(top, "check-ref-format", f"refs/remotes/{chosen}/x", good=(0, 1))
    url = await setting(f"remote.{chosen}.pushurl") or await setting(f"remote.{chosen}.url")
    if checked.code != 0 or not url:
        raise _NoRemoteError(PushProblem.NO_URL, name, commit)
    if url.startswith(("./", "../")):
        url = str((Path(top) / url).resolve())
    return _Remote(
        top=top, branch=name, commit=commit, name=chosen, url=url, address=address_of(url)
    )


async def _same_remote(
    worktrees: Worktrees, directory: str, branch: str | None, seen: str
) -> _Remote:
    """The remote, if it is the one that the person has seen. Raises `Conflict`."""
    try:
        found = await _remote(worktrees, directory, branch)
    except _NoRemoteError as none:
        raise Conflict("no_remote", str(none)) from none
    if found.address.problem is not None:
        text = PROBLEM_TEXTS[found.address.problem]
        raise Conflict("bad_remote", f"{found.address.shown}: {text}")
    if found.address.shown != seen:
        text = f"the remote is now {found.address.shown}: look at it again"
        raise Conflict("changed_meanwhile", text)
    return found


def allowed_protocols() -> dict[str, str]:
    """An environment in which git uses only protocols that start no program of an address."""
    env = {"GIT_CONFIG_COUNT": str(len(_PROTOCOLS))}
    for number, (name, value) in enumerate(_PROTOCOLS.items()):
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = name, value
    return env


@asynccontextmanager
async def clean_repository(worktrees: Worktrees, top: str) -> AsyncIterator[str]:
    """An empty repository that has the objects of another one, and none of its settings."""
    git = worktrees.git
    common = (await git(top, "rev-parse", "--path-format=absolute", "--git-common-dir")).text
    form = (await git(top, "rev-parse", "--show-object-format")).text
    place = await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="quarterdeck-"))
    try:
        options = ("--bare", "--quiet", "--template=", f"--object-format={form}")
        await git(place, "init", *options, ".")
        await anyio.to_thread.run_sync(_borrow, Path(common), Path(place))
        yield place
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(place, ignore_errors=True))


def _borrow(common: Path, place: Path) -> None:
    (place / "objects" / "info").mkdir(parents=True, exist_ok=True)
    objects = os.fsencode(common / "objects") + b"\n"
    (place / "objects" / "info" / "alternates").write_bytes(objects)
    if (common / "shallow").is_file():
        shutil.copyfile(common / "shallow", place / "shallow")


def logins_for(tool: str, host: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables with which `gh` or `glab` log in at this host. No agent gets them.

    An agent can write the address of a remote: a token is for the host that it was made for, also
    where the tool would send it to any host.
    """
    names = [*_CONFIGURED]
    if tool == "gh" and host == "github.com":
        names += ["GH_TOKEN", "GITHUB_TOKEN"]
    elif tool == "gh" and host == environ.get("GH_HOST"):
        names += ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"]
    elif tool == "glab" and host == _host(environ.get("GITLAB_HOST") or "gitlab.com"):
        names += ["GITLAB_TOKEN"]
    return {name: environ[name] for name in names if name in environ}


def _host(place: str) -> str:
    """The host of a setting that may also be an address."""
    return place.partition("://")[2].partition("/")[0] if "://" in place else place


async def _outside(argv: tuple[str, ...], stdin: bytes, logins: Mapping[str, str]) -> GitResult:
    """Run `gh` or `glab` in an empty folder, where there is no repository to read settings from."""
    quiet = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
    place = await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="quarterdeck-"))
    try:
        return await run_program(
            argv, SECONDS, env={**child_environment(), **logins, **quiet}, stdin=stdin,
            name=" ".join((Path(argv[0]).name, "api")), directory=place, limit=1024 * 1024,
        )  # fmt: skip
    finally:
        await anyio.to_thread.run_sync(lambda: shutil.rmtree(place, ignore_errors=True))


def _program(tool: str) -> str | None:
    found = shutil.which(tool, path=child_environment().get("PATH"))
    return found if found is not None and Path(found).is_absolute() else None


def _without_secret(text: str, found: _Remote) -> str:
    """Git names the address with its password."""
    return text.replace(found.url, found.address.shown)
