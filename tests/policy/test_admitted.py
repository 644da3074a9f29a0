"""Calls that rules let pass although they look dangerous: the sandbox of the same rules stops what
they would do. And calls that look dangerous and do nothing: they do nothing there, too.

The calls are in `tests/fixtures/policy/admitted.toml`. Each is run in bubblewrap and on Landlock,
in the sandbox that a session with this policy has. Those that would do harm are also run without
one: else the test would show nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import posixpath
import sys
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import anyio
import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions.disk import looking_here
from quarterdeck.hub.permissions.sandbox import sandbox_request
from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset
from quarterdeck.policy.tries import outcome
from quarterdeck.protocol.sandbox import SandboxMode, SandboxOptions
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runner.launch import Prepared
from quarterdeck.runner.sandbox import OwnPaths, spec_for, with_paths
from quarterdeck.sandbox import Connection, Kind, open_sandbox
from support.bounds import SECONDS
from support.boxes import EVIL, KINDS, PATH, SECRET, Done, has, require
from support.repositories import git

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "policy" / "admitted.toml"
PAGE = ROOT / "docs" / "explanation" / "security-model.md"

MAKES_CACHES = ("home/.cache", "home/.npm", "home/.claude", "home/.claude.json")
"""What opening a sandbox, or a build, makes in the home folder."""


class Case(Value):
    """A call, and what may come of it. The fixture explains the members."""

    policy: str
    says: Literal["allow", "refused"]
    call: str = ""
    write: str = ""
    remote: bool = False
    changes: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    harms: bool = False
    mode: SandboxMode = "protect"
    model: bool = False
    contacts: str = ""

    @property
    def name(self) -> str:
        """The call as the page has it."""
        text = self.call or f"Write {self.write}"
        return text.replace("@outside@", "/outside").replace("@project@/", "")


class Fixture(Value):
    """The whole file."""

    policies: dict[str, str]
    case: tuple[Case, ...]


DATA = msgspec.convert(tomllib.loads(FIXTURE.read_text(encoding="utf-8")), type=Fixture)
CASES = DATA.case
ADMITTED = [case for case in CASES if case.says == "allow"]
HARMFUL = [case for case in CASES if case.harms]


def _id(value: object) -> str:
    return value.name if isinstance(value, Case) else str(value)


PAYLOAD = f"""
echo {EVIL} >> "$HOME/.bashrc"
echo {EVIL} > "$PROJECT/.git/hooks/pre-commit"
echo {EVIL} > "$OUTSIDE/pwned"
cat "$HOME/.ssh/id_rsa" "$PROJECT/.env" "$PROJECT/secret/key" > "$PROJECT/evil/found"
"""
"""What the code of a package tries, by any installer that runs it."""

FILES = {
    "home/.ssh/id_rsa": SECRET,
    "home/.bashrc": "alias a=b\n",
    "home/.docker/config.json": SECRET,
    "home/elsewhere/secret.txt": SECRET,
    "outside/secret.txt": SECRET,
    "outside/CMakeLists.txt": f"file(WRITE pwned {EVIL})\n",
    "project/README.md": "readme\n",
    "project/.env": f"KEY={SECRET}\n",
    "project/secret/key": SECRET,
    "project/src/a": "a\n",
    "project/src/t.js": "1\n",
    "project/package.json": '{"name": "x", "version": "1.0.0"}',
    "project/Makefile": "test:\n\ttrue\n",
    "project/evil/payload.sh": PAYLOAD,
    "project/evil/package.json": '{"name": "evil", "version": "1.0.0",'
    ' "scripts": {"install": "sh ./payload.sh", "prepare": "sh ./payload.sh"}}',
    "project/evil/pyproject.toml": "[build-system]\nrequires = []\n"
    'build-backend = "backend"\nbackend-path = ["."]\n',
    "project/evil/backend.py": 'import os\nos.system("sh ./payload.sh")\nraise SystemExit(1)\n',
    "project/evil/sh": '#!/bin/sh\nsh "$PROJECT/evil/payload.sh"\n',
    "project/evil/x": "",
    "project/evil/x.c": "int main(void) { return 0; }\n",
    "project/evil/x.cnf": "",
    "project/evil/ed.patch": "1c\nx\n.\n",
    "project/evil/list": "--checkpoint=1\n--checkpoint-action=exec=touch pwned\nREADME.md\n",
    "tools/pip": '#!/bin/sh\nexec "$PYTHON" -m pip "$@"\n',
}
RUN = ("project/evil/sh", "tools/pip")


class Scene:
    """A home, a project and a folder beside it, on the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.project = folder / "home", folder / "project"
        self.outside, self.temporary = folder / "outside", folder / "session"
        self.connections: list[Connection] = []
        for name, text in FILES.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in RUN:
            (folder / name).chmod(0o755)
        git(folder, "init", "-q", "-b", "main", str(self.project))
        git(folder, "init", "-q", "--bare", str(self.project / "bare"))
        (self.project / "lnk").symlink_to("../home/elsewhere")
        self.temporary.mkdir()

    def fill(self, text: str) -> str:
        """A text of the fixture, with the folders of this scene."""
        return text.replace("@outside@", str(self.outside)).replace("@project@", str(self.project))

    @property
    def env(self) -> dict[str, str]:
        """The environment of a command. Installers find nothing on the network, nor ask there."""
        return {
            "PATH": f"{self.folder / 'tools'}:{PATH}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PROJECT": str(self.project),
            "OUTSIDE": str(self.outside),
            "PYTHON": sys.executable,
            "EDITOR": "true",
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "npm_config_audit": "false",
            "npm_config_fund": "false",
            "npm_config_offline": "true",
            "npm_config_update_notifier": "false",
        }

    def command(self, case: Case) -> list[str]:
        """What runs: bash with the call, or a program that writes as the CLI's tool does."""
        if case.call:
            return ["bash", "-c", self.fill(case.call)]
        path = posixpath.join(str(self.project), self.fill(case.write))
        code = (
            "import os, sys; path = os.path.normpath(sys.argv[1]);"
            " os.makedirs(os.path.dirname(path), exist_ok=True); open(path, 'w').write('x')"
        )
        return [sys.executable, "-I", "-c", code, path]

    async def run(self, case: Case, kind: Kind | None) -> Done:
        """Run a case in the sandbox of its policy, or in none."""
        command = self.command(case)
        if kind is None:
            return await _run(command, self.env, self.project)
        await asyncio.to_thread(require, kind)
        spec = SessionSpec(
            directory=str(self.project),
            sandbox=case.mode,
            sandbox_options=SandboxOptions(network="model") if case.model else None,
        )
        request = sandbox_request(spec, Rules(policies=(_policy(case.policy),)))
        ready = Prepared(
            command=tuple(command),
            argv=(),
            env=self.env,
            directory=str(self.project),
            version=None,
            mark="",
        )
        request, _ = with_paths(request, str(self.project))
        made = spec_for(request, ready, OwnPaths(), str(self.temporary))
        box = await open_sandbox(
            made,
            command,
            self.env,
            cwd=str(self.project),
            kind=kind,
            on_connection=self.connections.append,
        )
        try:
            return await _run(box.command, box.env, self.project)
        finally:
            box.close()

    def seen(self) -> dict[str, str]:
        """Everything but temporary files and caches: each path, with a digest of what it is."""
        found: dict[str, str] = {}
        for part in (self.home, self.project, self.outside):
            for path in sorted(part.rglob("*")):
                name = str(path.relative_to(self.folder))
                if name.startswith(MAKES_CACHES):
                    continue
                what = b""
                if path.is_symlink():
                    what = os.fsencode(path.readlink())
                elif path.is_file():
                    what = path.read_bytes()
                found[name] = f"{path.lstat().st_mode:o} {hashlib.sha256(what).hexdigest()}"
        return found

    def changed(self, before: Mapping[str, str]) -> list[str]:
        """The paths that are not as they were."""
        after = self.seen()
        return [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]

    def harm(self, case: Case, done: Done, before: Mapping[str, str]) -> list[str]:
        """What a case has done that it must not do."""
        changed = self.changed(before)
        found = [name for name in changed if not _may_change(name, case.changes)]
        if SECRET in done.all:
            found.append("a secret was shown")
        files = [name for name in changed if (self.folder / name).is_file()]
        found += [
            f"a secret is in {name}"
            for name in files
            if SECRET.encode() in (self.folder / name).read_bytes()
        ]
        return found


def _may_change(name: str, patterns: Sequence[str]) -> bool:
    inside = name.removeprefix("project/")
    return inside != name and any(
        fnmatchcase(inside, each) or inside.startswith(f"{each}/") for each in patterns
    )


async def _run(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> Done:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
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


def _policy(name: str) -> Policy:
    loaded = read_policy(DATA.policies[name], name, preset=preset)
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


def _needs(case: Case) -> None:
    program = case.call.partition(" ")[0]
    installed = {"npm", "docker", "sqlite3", "node", "cmake", "gcc", "openssl", "curl", "yq", "rev"}
    if program in installed and not has(program):
        pytest.skip(f"{program} is not installed")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A scene in which nothing is run."""
    return Scene(tmp_path_factory.mktemp("looked_at"))


@pytest.mark.process
@pytest.mark.parametrize("case", CASES, ids=_id)
def test_the_engine_says_what_the_list_says(case: Case, looked_at: Scene) -> None:
    scene = looked_at
    given = {"command": scene.fill(case.call)}
    if case.write:
        given = {"file_path": scene.fill(case.write), "content": "x"}
    folder = str(scene.project)
    context = Context(cwd=folder, home=str(scene.home), settings=folder)
    call = Call(
        tool="Bash" if case.call else "Write",
        input=Raw(msgspec.json.encode(given)),
        facts=Facts(mode="default", origin="main", machine="local", project="", directory=folder),
        context=context if case.remote else looking_here(context),
    )
    verdict = decide(call, Rules(policies=(_policy(case.policy),)))
    code, reasons = outcome(verdict, needs_of(call.tool, call.input, call.context))
    assert ("allow" if code in {"allow", "free"} else "refused") == case.says, reasons


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="Linux")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES, ids=_id)
async def test_the_sandbox_stops_the_effect(case: Case, kind: Kind, scene: Scene) -> None:
    _needs(case)
    before = scene.seen()
    done = await scene.run(case, kind)
    assert scene.harm(case, done, before) == [], done
    assert "the sandbox could not be made" not in done.err
    if kind is Kind.BUBBLEWRAP:  # Landlock lets nothing new be made in the top folder
        assert {f"project/{name}" for name in case.traces} <= {*scene.changed(before)}, done
    refused = [each.host for each in scene.connections if not each.allowed]
    assert not case.contacts or case.contacts in refused, (done, scene.connections)


@pytest.mark.process
@pytest.mark.parametrize("case", HARMFUL, ids=_id)
async def test_the_same_call_does_harm_without_a_sandbox(case: Case, scene: Scene) -> None:
    _needs(case)
    before = scene.seen()
    done = await scene.run(case, None)
    assert scene.harm(case, done, before), done


@pytest.mark.parametrize("case", ADMITTED, ids=_id)
def test_the_page_explains_each_call_that_passes(case: Case) -> None:
    assert f"`{case.name}`" in PAGE.read_text(encoding="utf-8")
