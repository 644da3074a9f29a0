"""Schedules and inbound webhooks in the configuration, and who may start sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.config import parse
from quarterdeck.domain.errors import ConfigError
from quarterdeck.fronts.http import Access, Role
from quarterdeck.protocol.schedules import InboundHook, Schedule
from quarterdeck.service.schedules import jobs_of, owners_of
from quarterdeck.service.settings import CHECKS

JOB = 'name = "one"\nprompt = "Go."\ndirectory = "work"\n'
HOOK = 'name = "two"\nprompt = "Go."\ndirectory = "~/work"\nsecret_file = "two.secret"\n'


def read(text: str) -> tuple[object, ...]:
    loaded = parse(text, name="q.toml", folder="/data", home="/home/ada", checks=CHECKS)
    return jobs_of(loaded.settings)


def test_schedules_and_webhooks_are_read_with_their_paths_and_a_loop() -> None:
    text = f'[[schedules]]\n{JOB}every = "6h"\n[schedules.loop]\nturns = 3\n[[inbound]]\n{HOOK}'
    schedule, hook = read(text)
    assert isinstance(schedule, Schedule)
    assert schedule.directory == "/data/work"
    assert schedule.loop is not None
    assert schedule.loop.turns == 3
    assert isinstance(hook, InboundHook)
    assert (hook.directory, hook.secret_file) == ("/home/ada/work", "/data/two.secret")
    assert (hook.auth, hook.overlap) == ("hmac", "wait")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f'[[schedules]]\n{JOB}cron = "61 * * * *"', "one: cron: not a cron expression"),
        (f'[[schedules]]\n{JOB}every = "1h"\ntimezone = "Mars/Base"', "there is no time zone"),
        (f"[[schedules]]\n{JOB}", "one of cron, every and at"),
        (f'[[schedules]]\n{JOB}every = "1h"\nproject = "x"', "one: unknown project 'x'"),
        (f'[[schedules]]\n{JOB}every = "1h"\nmode = "bypassPermissions"', "never used without a"),
        (f'[[schedules]]\n{JOB}every = "1h"\nskip_permissions = true', "there is no such setting"),
        (f'[[schedules]]\n{JOB}every = "1h"\n[[schedules]]\n{JOB}every = "2h"', "is used twice"),
        (f"[[inbound]]\n{HOOK}per_minute = 0", "from 1 to 600"),
        (f'[[inbound]]\n{HOOK}auth = "none"', "one of hmac, bearer"),
        (f'[[inbound]]\n{HOOK}secret = "abc"', "there is no such setting"),
        (f'[[inbound]]\n{HOOK}machine = "far"\n[inbound.loop]\nturns = 2', "a loop works on the"),
    ],
)
def test_what_is_not_valid_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(text)
    found = "\n".join(refused.value.problems)
    assert says in found
    assert found.startswith("q.toml:")
    assert "abc" not in found


def test_only_owners_whose_access_is_valid_may_start_sessions(tmp_path: Path) -> None:
    access = Access(tmp_path)
    access.make_token("ada", Role.OWNER)
    access.make_token("bob", Role.OPERATOR)
    access.make_token("old", Role.OWNER, seconds=-1.0)
    access.make_code("eve")
    assert owners_of(access) == {"ada"}
    (ada,) = [grant for grant in access.grants() if grant.name == "ada"]
    access.revoke(ada.id)
    assert owners_of(access) == frozenset()
