"""The shapes of answers that frontends send: one that allows and one that denies, for each."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
INPUT = {"command": "npm test"}


def standard(body: object) -> Json:
    return {"response": {"subtype": "success", "request_id": "q1", "response": body}}


SHAPES: dict[str, tuple[Json, Json]] = {
    "the one that the CLI accepts": (
        standard({"behavior": "allow", "updatedInput": INPUT}),
        standard({"behavior": "deny", "message": "no"}),
    ),
    "without an input": (
        standard({"behavior": "allow"}),
        standard({"behavior": "deny", "message": "no"}),
    ),
    "the subtype decides, the id is outside": (
        {"request_id": "q1", "response": {"subtype": "allow"}},
        {"request_id": "q1", "response": {"subtype": "deny", "message": "no"}},
    ),
    "the subtype decides, the id is inside": (
        {"response": {"subtype": "allow", "request_id": "q1", "updatedInput": INPUT}},
        {"response": {"subtype": "deny", "request_id": "q1", "message": "no"}},
    ),
    "the inner subtype decides": (
        standard({"subtype": "allow"}),
        standard({"subtype": "deny", "message": "no"}),
    ),
    "approved": (
        {"request_id": "q1", "approved": True},
        {"request_id": "q1", "approved": False, "denial_message": "no"},
    ),
    "approved, inside": (
        standard({"approved": True}),
        standard({"approved": False, "denial_message": "no"}),
    ),
    "permission": (
        {"request_id": "q1", "permission": {"allow": True}},
        {"request_id": "q1", "permission": {"allow": False, "message": "no"}},
    ),
    "a good body with the id outside": (
        {
            "request_id": "q1",
            "response": {"subtype": "success", "response": {"behavior": "allow"}},
        },
        {
            "request_id": "q1",
            "response": {
                "subtype": "success",
                "response": {"behavior": "deny", "message": "no"},
            },
        },
    ),
    "the behaviour beside the id": (
        {"response": {"subtype": "success", "request_id": "q1", "behavior": "allow"}},
        {
            "response": {
                "subtype": "success",
                "request_id": "q1",
                "behavior": "deny",
                "message": "no",
            }
        },
    ),
}
