"""The rules about calls of the hub's own tools, by agents and by people.

The rules for an agent's call are those of its session, with what is known of that. The rules for a
person's call are those for all sessions: which session it is about does not matter, since the rules
of a session are about what its own agent does. A rule can name the person (`user`).
"""

from __future__ import annotations

from msgspec import Raw

from quarterdeck.hub.permissions.context import context_of, facts_of
from quarterdeck.policy.decide import Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.needs import Context
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import LOCAL


def rule_on_agent(
    caller: SessionView, tool: str, given: bytes, rules: Rules, now: float
) -> Verdict:
    """What the rules of an agent's session say about its call. Reads the disk if it runs here."""
    mode = caller.mode or caller.spec.mode or "default"
    facts = facts_of(caller, int(now * 1000), mode, agent=None, subagent=None)
    context = context_of(caller, None)
    return decide(Call(tool=tool, input=Raw(given), facts=facts, context=context), rules)


def rule_on_person(name: str, tool: str, given: bytes, rules: Rules, now: float) -> Verdict:
    """What the rules for all sessions say about the call of a person."""
    facts = Facts(
        now=int(now * 1000),
        machine=LOCAL,
        project="",
        directory="",
        branch="",
        user=name,
        mode="default",
        origin="main",
        agent="",
        cost_usd=0.0,
    )
    return decide(Call(tool=tool, input=Raw(given), facts=facts, context=Context(cwd="/")), rules)
