"""Policy's seat in a session: the rules that hold now, and the facts that they are about.

Above is `judge`, which decides; below are the policies and what the journal says of the session. It
looks at the disk of this machine for two things, and only for sessions that run here: which branch
is checked out, and where a link leads. Of a session on another machine neither is known.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.runners import LOCAL
from quarterdeck.journal.views import SessionView
from quarterdeck.policy.decide import Rules
from quarterdeck.policy.facts import MAIN, SUBAGENT, Facts
from quarterdeck.policy.needs import Context
from quarterdeck.protocol.sessions import SessionSpec

MOST_LEVELS = 64
"""So many folders up a repository is looked for."""
MOST_BYTES = 4096
"""Of git's small files that say where things are."""


class PolicyContext:
    """What holds for one session, and what is known of it."""

    def __init__(self, policies: Policies, view: Callable[[], SessionView]) -> None:
        self._policies = policies
        self._view = view

    def rules_for(self, spec: SessionSpec) -> Rules:
        """The rules in force."""
        return self._policies.rules_for(spec)

    def facts(self, now: int, mode: str, *, agent: str | None, subagent: bool | None) -> Facts:
        """What is known. `subagent` None: this version does not tell; `agent` is its type."""
        view = self._view()
        spec = view.spec
        origin = None if subagent is None else SUBAGENT if subagent else MAIN
        return Facts(
            now=now,
            machine=view.machine or spec.machine or LOCAL,
            project=spec.project or "",
            directory=spec.directory,
            branch=branch_of(self._folder(view)) if self._here(view) else None,
            user=view.by,
            mode=mode,
            origin=origin,
            agent=agent,
            cost_usd=view.cost_usd,
        )

    def context(self, cwd: str | None) -> Context:
        """The place where a call would run."""
        view = self._view()
        here = self._here(view)
        home = view.spec.env.get("HOME") or (str(Path.home()) if here else None)
        return Context(
            cwd=cwd or self._folder(view),
            home=home,
            directories=view.spec.add_dirs,
            settings=self._folder(view),
            resolve=os.path.realpath if here else None,
        )

    @staticmethod
    def _here(view: SessionView) -> bool:
        return (view.machine or view.spec.machine or LOCAL) == LOCAL

    @staticmethod
    def _folder(view: SessionView) -> str:
        return view.directory or view.spec.directory


def branch_of(folder: str) -> str | None:
    """The branch that is checked out in a folder of this machine; None where it is not known.

    A detached head and a folder without a repository have none that a rule could be about.
    """
    place = Path(folder)
    for _ in range(MOST_LEVELS):
        git = place / ".git"
        if git.is_file():
            pointer = _first_line(git)
            if not pointer.startswith("gitdir: "):
                return None
            git = (place / pointer.removeprefix("gitdir: ")).resolve()
        if git.is_dir():
            head = _first_line(git / "HEAD")
            return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else None
        if place.parent == place:
            return None
        place = place.parent
    return None


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline(MOST_BYTES).strip()
    except (OSError, UnicodeDecodeError):
        return ""
