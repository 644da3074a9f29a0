"""Tokens with which the agent of a run acts on the hub, in the name of its session. Pure.

Each run has its own, so that a caller is known by its connection and never by what it says. A token
is made from the hub's secret: it is stored nowhere, and is worth nothing when its run has ended. It
has the form of the hub's other tokens, so that it is masked wherever those are.
The `Hub` is above, and knows which run a session has.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

from quarterdeck.domain.structs import Value

_FORM = re.compile(r"qd_[0-9a-f]{12}_([\w-]{8,1024})", re.ASCII)


class AgentRun(Value):
    """Whose token it is."""

    session: str
    run: str


def agent_token(secret: bytes, session: str, run: str) -> str:
    """The token of a run."""
    seal = _seal(secret, session, run)
    body = urlsafe_b64encode(f"{session}\n{run}\n{seal}".encode()).decode().rstrip("=")
    return f"qd_{hashlib.sha256(f'{session} {run}'.encode()).hexdigest()[:12]}_{body}"


def is_agent_form(token: str) -> bool:
    """Whether it has the form of a run's token. A person's token has not."""
    return _parts(token) is not None


def read_agent_token(secret: bytes, token: str) -> AgentRun | None:
    """Whose token it is; None if the hub did not make it."""
    parts = _parts(token)
    if parts is None:
        return None
    session, run, seal = parts
    if not hmac.compare_digest(seal.encode(), _seal(secret, session, run).encode()):
        return None
    return AgentRun(session=session, run=run)


def _parts(token: str) -> tuple[str, str, str] | None:
    """Session, run and seal, as the token has them; nothing is checked."""
    found = _FORM.fullmatch(token)
    if found is None:
        return None
    body = found[1]
    try:
        parts = urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode().split("\n")
    except ValueError:
        return None
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else None


def _seal(secret: bytes, session: str, run: str) -> str:
    # The same secret makes the tokens of CLIs that dial: the text before the ids keeps them apart.
    return hmac.new(secret, f"agent\n{session}\n{run}".encode(), hashlib.sha256).hexdigest()
