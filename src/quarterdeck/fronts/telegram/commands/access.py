"""Commands about the person: pairing, and help."""

from __future__ import annotations

from contextlib import suppress

from quarterdeck.client.calls import HubRefused
from quarterdeck.domain.errors import QuarterdeckError, UsageError
from quarterdeck.fronts.telegram.display import safe_line
from quarterdeck.fronts.telegram.jobs import Job

WRONG = (
    "This code is wrong, was used already, or is older than ten minutes. Make a new one with"
    " «quarterdeck telegram pair» or in the web app."
)
READ_BY_OTHERS = (
    "Others can read a code here, so this one does not work any more. Make a new one, and send it"
    " in a private chat with me."
)
LONGEST_CODE = 64
"""What the hub takes; no code is longer."""


async def pair(job: Job, rest: str) -> None:
    """Become a person of the hub here, with a code from the web app or the terminal."""
    code = rest.strip()
    if code == "off":
        await _unpair(job)
        return
    if not job.private:
        if code:
            await job.services.people.cancel_code(code[:LONGEST_CODE])
        raise UsageError(READ_BY_OTHERS)
    if not code:
        raise UsageError(
            "make a code with «quarterdeck telegram pair» or in the web app: /pair CODE"
        )
    if job.begun and job.messenger.state.paired_person(job.user) is not None:
        return  # the code works once, and has worked
    before = job.messenger.state.paired_person(job.user)
    try:
        paired = await job.services.people.pair(job.user, code)
    except HubRefused as error:  # it says nothing about who this person was before
        raise UsageError(WRONG if error.problem.code == "bad_code" else str(error)) from error
    job.messenger.state.pair(paired, job.messenger.clock.now())
    if before is not None and before.person != paired.person:  # else the hub has ended it
        with suppress(QuarterdeckError):  # an owner sees it in the web app, and can revoke it there
            await job.services.people.end(before.token)
    job.services.reporter.asks(await (await job.services.people.bot()).asks())
    job.say(f"🤝 You are {safe_line(paired.person, 60)}, {paired.role}. Send a prompt, or /help.")


async def _unpair(job: Job) -> None:
    """End the access that the person has here."""
    paired = job.messenger.state.paired_person(job.user)
    if paired is not None:
        await job.services.people.end(paired.token)
        job.messenger.state.unpair(job.user)
    job.say("You are not paired any more. The token that you had here has ended.")


async def start(job: Job, rest: str) -> None:
    """The first message of a person; a link to the bot may have a code in it."""
    if rest:
        await pair(job, rest)
        return
    if job.messenger.state.paired_person(job.user) is None:
        job.say("Hello. Make a code with «quarterdeck telegram pair» or in the web app: /pair CODE")
    else:
        job.say("Hello. Send a prompt, or /help.")
