"""A small world for the tests of the sandbox: a home, a project, a hub's folder, a stranger.

Commands run in it with or without a sandbox. Without one they show that an attempt would do harm:
else a test that finds no harm would show nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.sandbox import (
    Connection,
    Kind,
    Limits,
    Network,
    Sandbox,
    SandboxMode,
    SandboxSpec,
    find_repository,
    open_sandbox,
    plan,
    probe,
)
from support.bounds import SECONDS
from support.repositories import git, make_repository

SECRET = "a-secret-that-nobody-may-read"
EVIL = "evil-was-here"
KINDS = (Kind.BUBBLEWRAP, Kind.LANDLOCK)
PATH = os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])


def require(kind: Kind) -> None:
    """Skip where a kind does not work, unless QUARTERDECK_REQUIRE_SANDBOX is set."""
    found = next((each for each in probe() if each.kind is kind), None)
    if found is None or not found.works:
        why = found.why if found else "it is for another platform"
        if os.environ.get("QUARTERDECK_REQUIRE_SANDBOX"):
            pytest.fail(f"{kind} must work in the checks: {why}")
        pytest.skip(f"{kind} does not work here: {why}")


class Done(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        """What it wrote."""
        return self.out + self.err


class World:
    """The files of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "home" / "project"
        self.other = folder / "home" / "other"
        self.data = folder / "home" / ".local" / "share" / "quarterdeck"
        self.temporary = folder / "session"
        self.connections: list[Connection] = []
        for name, text in {
            ".ssh/id_rsa": SECRET,
            ".aws/credentials": SECRET,
            ".bashrc": "alias a=b\n",
            ".profile": "\n",
            ".claude/settings.json": "{}\n",
            ".claude/shell-snapshots/snapshot-of-another.sh": "true\n",
            ".claude/projects/other.jsonl": "{}\n",
            ".claude.json": "{}\n",
            ".config/app/file": "text\n",
        }.items():
            _write(self.home / name, text)
        _write(self.data / "cli.token", SECRET)
        _write(self.data / "spool" / "run-1" / "1.ndjson", SECRET)
        _write(self.other / "file", "text\n")
        make_repository(self.project)
        for name, text in {
            ".claude/settings.json": "{}\n",
            "config/deep/prod.toml": "safe\n",
            "keys/a.pem": SECRET,
            ".env": SECRET,
            "src/main.py": "print('hello')\n",
            "src/deep/file": "text\n",
        }.items():
            _write(self.project / name, text)
        (self.project / ".gitignore").write_text(".env\n*.pem\n*.log\n")
        self.temporary.mkdir()

    def worktree(self) -> Path:
        """A work tree of the project, in the hub's folder, as the runner makes it."""
        made = self.data / "worktrees" / "one"
        git(self.project, "add", "--force", "src")
        git(self.project, "commit", "-q", "-m", "src")
        git(self.project, "worktree", "add", "-q", "-b", "one", str(made))
        return made

    def spec(
        self,
        mode: SandboxMode = SandboxMode.PROTECT,
        *,
        project: Path | None = None,
        network: Network | None = None,
        limits: Limits | None = None,
        allow_edit: Sequence[str] = (),
        model_url: str | None = None,
    ) -> SandboxSpec:
        """The spec of a session in the project."""
        at = project or self.project
        return plan(
            mode,
            project=str(at),
            home=str(self.home),
            temporary=str(self.temporary),
            repository=find_repository(at),
            private=[str(self.data)],
            open_folders=[str(self.data / "worktrees")],
            deny_read=["./.env", "./**/*.pem"],
            deny_edit=["./config/deep/prod.toml"],
            allow_edit=allow_edit,
            network=network,
            limits=limits,
            model_url=model_url,
            user=os.geteuid(),
        )

    @property
    def env(self) -> dict[str, str]:
        """The environment of a command."""
        identity = {
            f"GIT_{who}_{what}": "someone@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        return {
            "PATH": PATH,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "DATA": str(self.data),
            "OTHER": str(self.other),
            "PYTHON": sys.executable,
            **identity,
        }

    async def open(
        self,
        kind: Kind,
        command: Sequence[str],
        spec: SandboxSpec | None = None,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Sandbox:
        """A sandbox for a command. Who opens it closes it."""
        await asyncio.to_thread(require, kind)
        return await open_sandbox(
            spec or self.spec(project=cwd),
            command,
            {**self.env, **(env or {})},
            cwd=str(cwd or self.project),
            kind=kind,
            on_connection=self.connections.append,
        )

    async def run(
        self,
        kind: Kind | None,
        script: str,
        spec: SandboxSpec | None = None,
        *,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        user: int | None = None,
        **env: str,
    ) -> Done:
        """Run a script of a shell in a sandbox of this kind, or in none."""
        command = ["sh", "-c", script]
        if kind is None:
            return await _run(command, {**self.env, **env}, cwd or self.project, stdin)
        box = await self.open(kind, command, spec, cwd=cwd, env=env)
        try:
            return await _run(box.command, box.env, cwd or self.project, stdin, user)
        finally:
            box.close()

    def listing(self) -> dict[str, tuple[int, int]]:
        """Everything in the project: its path, kind and size."""
        found = {}
        for path in sorted(self.project.rglob("*")):
            known = path.lstat()
            size = known.st_size if path.is_file() else 0
            found[str(path.relative_to(self.project))] = (known.st_mode, size)
        return found


async def _run(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    stdin: int,
    user: int | None = None,
) -> Done:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        user=user,
        group=user,
    )
    try:
        with anyio.fail_after(SECONDS):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    assert process.returncode is not None
    return Done(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def python(code: str) -> str:
    """A command that runs Python code. It has no single quotes in it."""
    assert "'" not in code
    return f"\"$PYTHON\" -I -c '{code}'"


def has(program: str) -> bool:
    """Whether a program is installed."""
    return shutil.which(program, path=PATH) is not None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


Harm = Callable[[World, Done], bool]


def said(text: str) -> Harm:
    """The attempt has written this."""
    return lambda _, done: text in done.all


def made(*names: str) -> Harm:
    """There are such files below the world's folder, with the mark of an attempt in one."""

    def look(world: World, _: Done) -> bool:
        paths = [world.folder / name for name in names]
        return any(path.is_file() and EVIL in path.read_text(errors="replace") for path in paths)

    return look
