"""The envelopes of the control protocol, as a CLI sends them.

Owns request, response and cancellation; their bodies are in `requests` and `commands`. The
envelope is read first and the body on demand, so that a body which we cannot read still has its
`request_id` and can be answered. Above it `peer` matches ids.
"""

from __future__ import annotations

from functools import cached_property

import msgspec
from msgspec import Raw, Struct, field

from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS
from quarterdeck.wire.base import Message, OpenEnum, Part
from quarterdeck.wire.rawjson import always
from quarterdeck.wire.requests import CliRequest, UnknownRequest, decode_request

_NULL = Raw(b"null")


class Outcome(OpenEnum):
    """How a request ended."""

    SUCCESS = "success"
    ERROR = "error"


class ControlRequest(Message, tag="control_request"):
    """The CLI asks something. It waits for the answer, most often without limit."""

    request_id: str = always("")
    request_json: Raw = field(name="request", default=_NULL)

    @cached_property
    def request(self) -> CliRequest | UnknownRequest:
        """The body, typed by its subtype. Never raises."""
        return decode_request(self.request_json)


class Reply(Part):
    """The answer to one request, in either direction.

    `error_code` and `model` come with errors of newer versions. The pending requests come with the
    answer to `initialize`, also when that is an error: they are whole control requests that are
    still open, and the only way to learn of those that a broken link has swallowed. `error` is set
    exactly when the request did not succeed.
    """

    subtype: Outcome = always(Outcome.ERROR)
    request_id: str = always("")
    body_json: Raw = field(name="response", default=ABSENT)
    error: str | None = None
    error_code: str | None = None
    model: str | None = None
    pending_permission_requests: tuple[Raw, ...] | None = None
    pending_user_dialog_requests: tuple[Raw, ...] | None = None
    pending_elicitation_requests: tuple[Raw, ...] | None = None

    @property
    def response_json(self) -> Raw | None:
        """The body of the answer; many a success has none."""
        return self.body_json or None

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.subtype == Outcome.SUCCESS

    def pending_requests(self) -> tuple[ControlRequest, ...]:
        """The requests of the CLI that are still open. Never raises."""
        return tuple(
            _decode_pending(part)
            for parts in (
                self.pending_permission_requests,
                self.pending_user_dialog_requests,
                self.pending_elicitation_requests,
            )
            for part in parts or ()
        )


class ControlResponse(Message, tag="control_response"):
    """The CLI's answer to a request of ours."""

    response_json: Raw = field(name="response", default=_NULL)

    @cached_property
    def response(self) -> Reply:
        """The answer. Never raises: one that cannot be read is an error that keeps its id."""
        return decode_reply(self.response_json)


class ControlCancel(Message, tag="control_cancel_request"):
    """The CLI withdraws one of its requests."""

    request_id: str = always("")


class _Id(Struct):
    request_id: str = ""


_decode_id = msgspec.json.Decoder(_Id).decode
_decode_reply = msgspec.json.Decoder(Reply).decode
_decode_control_request = msgspec.json.Decoder(ControlRequest).decode


def decode_reply(json: Raw) -> Reply:
    """Type the body of a control response. Never raises."""
    try:
        reply = _decode_reply(json)
    except DECODE_ERRORS as error:
        try:
            request_id = _decode_id(json).request_id
        except DECODE_ERRORS:
            request_id = ""
        # The id is what matters: with it the request ends here and not at its time limit.
        return Reply(request_id=request_id, error=f"the answer cannot be decoded: {error}")
    if not reply.ok and reply.error is None:
        return msgspec.structs.replace(reply, error=f"an answer of subtype {reply.subtype!s}")
    return reply


def _decode_pending(json: Raw) -> ControlRequest:
    line = bytes(json)
    try:
        request = _decode_control_request(line)
    except DECODE_ERRORS:
        request = ControlRequest(request_json=json)
    request.__dict__["raw"] = line
    return request
