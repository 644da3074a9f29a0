"""The hub's policy, for commands: what is in force, tried, explained, granted; the audit's chain.

Owns the requests. What is printed is known by the commands above; below is `client`.
"""

from __future__ import annotations

from urllib.parse import quote

from quarterdeck.cli.hub.target import Target, connect
from quarterdeck.client.blocking_client import BlockingClient
from quarterdeck.client.calls import get, send
from quarterdeck.fronts.http.policy_shapes import PolicyGrants, SuggestionList
from quarterdeck.hub.permissions.service import PolicyView
from quarterdeck.policy.explain import Explanation
from quarterdeck.policy.grants import Grant
from quarterdeck.policy.replay import Replay
from quarterdeck.policy.suggest import Suggestion
from quarterdeck.protocol.audit import Checked
from quarterdeck.protocol.shapes import CallQuestion, NewPolicyGrant, PolicyTrial


class PolicyClient(BlockingClient):
    """A hub's client for what agents may do without a question."""

    def policy(self) -> PolicyView:
        """What is in force."""
        return self.call(get("/api/policy", PolicyView))

    def explain(self, question: CallQuestion) -> Explanation:
        """What becomes of a call, and why."""
        return self.call(send("POST", "/api/policy/explain", Explanation, question))

    def replay(self, trial: PolicyTrial) -> Replay:
        """What a policy would have done with the calls of the past."""
        return self.call(send("POST", "/api/policy/replay", Replay, trial))

    def suggestions(self, since: int, least: int) -> tuple[Suggestion, ...]:
        """Rules that people's answers support."""
        call = get("/api/policy/suggestions", SuggestionList, {"since": since, "least": least})
        return self.call(call).suggestions

    def policy_grants(self) -> tuple[Grant, ...]:
        """What people have granted, oldest first."""
        return self.call(get("/api/policy/grants", PolicyGrants)).grants

    def grant(self, new: NewPolicyGrant) -> Grant:
        """Allow something without a question."""
        return self.call(send("POST", "/api/policy/grants", Grant, new))

    def revoke(self, grant: str) -> Grant:
        """Take a grant back."""
        return self.call(send("DELETE", f"/api/policy/grants/{quote(grant, safe='')}", Grant))

    def verify_audit(self, head: str | None = None) -> Checked:
        """Check that nobody has changed the audit log."""
        return self.call(get("/api/audit/verify", Checked, {"head": head}))


def policy_of(target: Target) -> PolicyClient:
    """A client. Raises `LinkRefused` where no hub runs."""
    return PolicyClient(connect(target).where)
