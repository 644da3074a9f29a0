"""The policies in force: which files there are, what they say, and what people have granted.

Owns the folder. `policy.toml` holds for all sessions; `policies/NAME.toml` are policies that a
session may name, as are the presets. A file that is wrong, or gone, changes nothing: the last good
text of it is kept beside it, and stays in force over restarts. Where there was never a good one,
everything is asked. Grants are in `grants.json`, which is written before what it allows is allowed.

Above are `context`, which decides, and `service`, which explains; below is `policy`, which does no
I/O.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from quarterdeck.domain.errors import NotFound, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.policy.dead_rules import unanswerable
from quarterdeck.policy.decide import Rules
from quarterdeck.policy.facts import Private
from quarterdeck.policy.file import Loaded, read_policy
from quarterdeck.policy.grants import Grant, policy_of, read_grants
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import PRESETS, preset
from quarterdeck.policy.specifiers import RuleError, parse_rule
from quarterdeck.policy.toml import LIMIT, Flaw
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runtime.files import replace_file

log = logging.getLogger(__name__)

GLOBAL = "policy.toml"
NAMED = "policies"
GRANTS = "grants.json"
KEPT = ".good"
"""What is put behind the name of a file for its last good text."""

MOST_GRANTS = 2000

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")


class PolicyState(Value, omit_defaults=False):
    """A policy file, and what became of it."""

    name: str
    path: str
    in_force: str
    """`file`: as it is. `kept`: it is wrong, and its last good text holds. `asking`: it is wrong,
    there was no good text, and everything is asked."""
    rules: int = 0
    examples: int = 0
    default: str = "cli"
    since: int = 0
    """When what is in force was loaded, in ms."""
    flaws: tuple[Flaw, ...] = ()
    warnings: tuple[Flaw, ...] = ()
    """Rules of the file in force that never do what they say."""


class _Known(Value):
    """A file as it was when it was last read."""

    stamp: tuple[int, int, int]
    policy: Policy
    state: PolicyState


class Policies:
    """All policies. Without a folder there are presets only, and grants end with the program."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        file: Path | None = None,
        clock: Callable[[], float] = time.time,
        private: Private | None = None,
        far: Callable[[str], Private] = lambda _: Private(),
        people: Callable[[], Iterable[tuple[str, str]]] = tuple,
    ) -> None:
        """`file`: where the policy for all sessions is, if not in the folder.

        `private` is what no agent may touch, and `far` tells more of that for another machine.
        `people` tells who has access, each with a role: rules may name people that there are not.
        """
        self._people = people
        self._private = private or Private()
        self.far = far
        self._folder = folder
        self._file = file or (folder / GLOBAL if folder is not None else None)
        self._clock = clock
        self._files: dict[str, _Known] = {}
        self._grants: tuple[Grant, ...] = ()
        self._granted: Policy | None = None
        self._granted_in: dict[str, Policy] = {}
        """The grants of each session."""
        self._grants_flaw: str | None = None
        self._writing = threading.Lock()
        self.load()

    # --- what holds ----------------------------------------------------------------------------

    def rules_for(self, spec: SessionSpec, session: str | None = None) -> Rules:
        """All that holds for a session; with its own grants if its id is given."""
        rules = self.rules_named(spec.policy, machine=spec.machine)
        private = rules.private
        if private is not None and spec.launch_paths:
            # What its CLI is started with: an agent that could change it would get more.
            private = replace(private, fixed=(*private.fixed, *spec.launch_paths))
        own = self._granted_in.get(session or "")
        return replace(
            rules,
            policies=rules.policies if own is None else (*rules.policies, own),
            private=private,
            auto_approve=spec.auto_approve,
            skip_permissions=spec.skip_permissions,
        )

    def rules_named(self, name: str | None, *, machine: str | None = None) -> Rules:
        """All that holds for a session that names this policy, or none."""
        found: list[Policy] = []
        if GLOBAL in self._files:
            found.append(self._files[GLOBAL].policy)
        if name is not None:
            found.append(self.find(name) or _ask_policy(name))
        if self._granted is not None:
            found.append(self._granted)
        return Rules(policies=tuple(found), private=self._private_on(machine))

    def _private_on(self, machine: str | None) -> Private:
        """What is private where a session runs: what is so here, and what its machine tells."""
        here = self._private
        if self._file is not None:
            here = replace(here, fixed=(*here.fixed, str(self._file)))
        if machine is None:
            return here
        far = self.far(machine)
        return Private(
            folders=(*here.folders, *far.folders),
            open=(*here.open, *far.open),
            fixed=(*here.fixed, *far.fixed),
        )

    def find(self, name: str) -> Policy | None:
        """A policy that a session may name: a file's, or a preset."""
        known = self._files.get(name)
        return known.policy if known is not None and name != GLOBAL else preset(name)

    def check(self, name: str | None) -> None:
        """Raise `UsageError` unless a session may name this policy."""
        if name is not None and self.find(name) is None:
            names = ", ".join(self.names)
            raise UsageError(f"policy: there is no policy {name!r}; there are {names}")

    @property
    def names(self) -> tuple[str, ...]:
        """The policies that a session may name."""
        return tuple(sorted({*PRESETS, *self._files} - {GLOBAL}))

    @property
    def states(self) -> tuple[PolicyState, ...]:
        """The files, the one for all sessions first."""
        known = sorted(self._files.values(), key=lambda known: known.state.name != GLOBAL)
        people = tuple(self._people())
        return tuple(
            replace(one.state, warnings=(*one.state.warnings, *unanswerable(one.policy, people)))
            for one in known
        )

    @property
    def grants(self) -> tuple[Grant, ...]:
        """What people have granted, oldest first; what is over is among it."""
        return self._grants

    @property
    def grants_flaw(self) -> str | None:
        """Why the grants cannot be read, if they cannot: none of them holds then."""
        return self._grants_flaw

    def read(self, text: str, name: str = "policy") -> Loaded:
        """Read a policy as if it were a file."""
        return read_policy(text, name, preset=preset)

    def use(self, file: Path | None) -> None:
        """Have the policy for all sessions in another file; None: in the folder. Blocks."""
        wanted = file or (self._folder / GLOBAL if self._folder is not None else None)
        if wanted != self._file:
            self._file = wanted
            self._files.pop(GLOBAL, None)
            self.load()

    # --- files ---------------------------------------------------------------------------------

    def path_of(self, name: str) -> Path:
        """Where the file of this name is, or would be. Raises `UsageError`."""
        if name == GLOBAL and self._file is not None:
            return self._file
        if name != GLOBAL and self._folder is not None and _NAME.fullmatch(name):
            if name in PRESETS and name not in self._files:
                raise UsageError(f"policy: {name!r} is built in: choose another name")
            return self._folder / NAMED / f"{name}.toml"
        raise UsageError(f"policy: there can be no policy file {name!r}")

    def load(self) -> bool:
        """Look at the files, and take up what has changed; gives whether anything has. Blocks."""
        if self._folder is None and self._file is None:
            return False
        paths = self._paths()
        changed = False
        for name, path in paths.items():
            changed = self._load_one(name, path) or changed
        if not self._grants:
            changed = self._load_grants() or changed
        return changed

    async def refresh(self) -> bool:
        """Look at the files again, in a thread."""
        if self._folder is None and self._file is None:
            return False
        return await to_thread.run_sync(self.load)

    def _paths(self) -> dict[str, Path]:
        """The files that there are, and those that there were: none goes by being deleted."""
        found = {name: Path(known.state.path) for name, known in self._files.items()}
        if self._file is not None and (self._file.exists() or _kept_path(self._file).exists()):
            found[GLOBAL] = self._file
        if self._folder is not None and (self._folder / NAMED).is_dir():
            folder = self._folder / NAMED
            kept = [path.name[1:].removesuffix(KEPT) for path in folder.glob(f".*.toml{KEPT}")]
            for name in sorted({*kept, *(path.name for path in folder.glob("*.toml"))}):
                path = folder / name
                if _NAME.fullmatch(path.stem):
                    found[path.stem] = path
        return found

    def _load_one(self, name: str, path: Path) -> bool:
        stamp = _stamp(path)
        known = self._files.get(name)
        if known is not None and known.stamp == stamp:
            return False
        loaded = self._read_file(path, name)
        now = int(self._clock() * 1000)
        state = PolicyState(name=name, path=str(path), in_force="file", since=now)
        policy = loaded.policy
        if policy is not None:
            self._keep(path)
            state = replace(state, warnings=loaded.warnings)
        else:
            log.error("the policy %s is refused: %s", path, loaded.flaws[0])
            state = replace(state, flaws=loaded.flaws)
            kept = _kept_path(path)
            if known is not None and known.state.in_force != "asking":
                policy = known.policy
                state = replace(state, in_force="kept", since=known.state.since)
            elif kept.exists() and (good := self._read_file(kept, name)).policy is not None:
                policy, loaded = good.policy, good
                state = replace(state, in_force="kept")
            else:
                policy, state = _ask_policy(name), replace(state, in_force="asking")
        state = replace(
            state,
            rules=len(policy.rules) + len(policy.claude),
            examples=loaded.examples,
            default=policy.default,
        )
        self._files[name] = _Known(stamp=stamp, policy=policy, state=state)
        return True

    def _read_file(self, path: Path, name: str) -> Loaded:
        try:
            with path.open("rb") as file:
                data = file.read(4 * LIMIT)
        except FileNotFoundError:
            text = "the file is gone; for no policy, leave an empty file"
            return Loaded(policy=None, flaws=(Flaw(line=1, text=text),))
        except OSError as error:
            return Loaded(policy=None, flaws=(Flaw(line=1, text=f"{error.strerror}"),))
        try:
            return self.read(data.decode(), name)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            return Loaded(policy=None, flaws=(Flaw(line=line, text="it is not UTF-8"),))

    def _keep(self, path: Path) -> None:
        """Keep a good text for the day when the file is wrong. It holds also without this."""
        try:
            replace_file(_kept_path(path), path.read_bytes())
        except OSError as error:
            log.warning("the last good text of %s cannot be kept: %s", path, error)

    def digest(self) -> str:
        """The texts of all files, in short: the same for hubs that have the same files. Blocks."""
        made = hashlib.sha256()
        for name, path in sorted(self._paths().items()):
            try:
                text = path.read_bytes()
            except OSError:
                text = b""
            made.update(f"{name} {len(text)}\n".encode() + text)
        return made.hexdigest()

    # --- grants --------------------------------------------------------------------------------

    async def grant(self, grant: Grant) -> Grant:
        """Allow something from now on. Raises `UsageError` for what is no rule."""
        if not grant.rules:
            raise UsageError("this call cannot be named by a rule: allow it once, or write a rule")
        for text in grant.rules:
            try:
                parse_rule(text)
            except RuleError as error:
                raise UsageError(str(error)) from error
        made = replace(grant, id=grant.id or new_id())
        await to_thread.run_sync(self._change_grants, lambda known: (*known, made))
        return made

    async def revoke(self, id_: str) -> Grant:
        """Take a grant back. Raises `NotFound`."""
        found = next((grant for grant in self._grants if grant.id == id_), None)
        if found is None:
            raise NotFound("grant", id_)
        await to_thread.run_sync(
            self._change_grants, lambda known: tuple(g for g in known if g.id != id_)
        )
        return found

    async def forget(self, session: str) -> None:
        """A session was deleted: nothing is granted in it any more."""
        if any(grant.session == session for grant in self._grants):
            await to_thread.run_sync(
                self._change_grants,
                lambda known: tuple(grant for grant in known if grant.session != session),
            )

    @property
    def write_lock(self) -> Callable[[], threading.Lock]:
        """The lock that is held while grants are written."""
        return lambda: self._writing

    def note_change(self, name: str) -> None:
        """Another hub has changed a file. Of these, grants are held in memory."""
        if name == GRANTS and not self._load_grants():
            self._use_grants(())

    def _change_grants(self, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]) -> None:
        with self._writing:
            now = self._clock() * 1000
            old = [grant for grant in self._grants if grant.until is None or grant.until > now]
            grants = change(tuple(old))
            if len(grants) > MOST_GRANTS:
                raise UsageError(f"there are {MOST_GRANTS} grants: revoke some, or write rules")
            if self._grants_flaw is not None:
                raise UsageError(f"grants: {self._grants_flaw}")
            if self._folder is not None:
                try:
                    replace_file(self._folder / GRANTS, msgspec.json.encode(grants))
                except OSError as error:
                    raise UsageError(f"grants: they cannot be written: {error}") from error
            self._use_grants(grants)

    def _use_grants(self, grants: tuple[Grant, ...]) -> None:
        by_session: dict[str | None, list[Grant]] = {}
        for grant in grants:
            by_session.setdefault(grant.session, []).append(grant)
        self._granted = policy_of(by_session.pop(None, ()))
        self._granted_in = {
            session: policy
            for session, own in by_session.items()
            if session is not None and (policy := policy_of(own)) is not None
        }
        self._grants = grants

    def _load_grants(self) -> bool:
        path = self._folder / GRANTS if self._folder is not None else None
        if path is None or not path.exists():
            return False
        try:
            grants = read_grants(path.read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            flaw = f"{path} cannot be read: {error}"
            if flaw != self._grants_flaw:
                log.error("%s; none of the grants holds", flaw)
            self._grants_flaw = flaw
            return False
        self._grants_flaw = None
        self._use_grants(grants)
        return bool(grants)


def _ask_policy(name: str) -> Policy:
    """What holds in the place of a policy that there is not."""
    return Policy(name, default="ask")


def _kept_path(path: Path) -> Path:
    return path.with_name(f".{path.name}{KEPT}")


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
