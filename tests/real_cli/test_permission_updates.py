"""Permission updates: an allow that also changes what is asked about the next time."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck import Agent, Allow, ToolAsk
from quarterdeck.agent.asks import AnyAsk
from quarterdeck.domain.errors import UsageError
from quarterdeck.testing import ToolUse
from quarterdeck.wire.base import UnknownPart
from quarterdeck.wire.permissions import (
    AddDirectories,
    AddRules,
    Destination,
    PermissionBehavior,
    PermissionMode,
    PermissionUpdate,
    RemoveDirectories,
    RemoveRules,
    ReplaceRules,
    SetMode,
)
from quarterdeck.wire.rawjson import dump
from quarterdeck.wire.system import Status
from quarterdeck.wire.values import PermissionRule
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.scenes import (
    Decider,
    Probe,
    bash,
    mode_shown,
    read,
    result_of,
    tool_results,
    turn,
    write,
)
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

ALLOW, DENY, ASK = PermissionBehavior.ALLOW, PermissionBehavior.DENY, PermissionBehavior.ASK
SESSION = Destination.SESSION


def rules(*contents: str | None) -> tuple[PermissionRule, ...]:
    return tuple(PermissionRule(tool_name="Bash", rule_content=each) for each in contents)


def allow(*updates: PermissionUpdate | UnknownPart) -> Allow:
    return Allow(updates=updates)


def set_mode(mode: PermissionMode) -> SetMode:
    return SetMode(mode=mode, destination=SESSION)


def as_suggested(ask: AnyAsk) -> Allow:
    assert isinstance(ask, ToolAsk)
    assert ask.suggestions
    return ask.always()


async def test_updates_take_effect_with_the_allow_that_brings_them(seat: Seat) -> None:
    decide = Decider()
    async with seat.agent(decide=decide) as agent:
        await directories_and_modes_change_with_an_allow(seat, agent, decide)
        with anyio.fail_after(SECONDS):
            await agent.set_permission_mode("default")
        await what_a_version_would_choke_on_or_misuse_does_not_reach_it(seat, agent, decide)
        with anyio.fail_after(SECONDS):
            await agent.set_permission_mode("default")
        await a_suggestion_sent_back_spares_the_question(seat, agent, decide)
        await rules_for_the_settings_are_written_into_their_files(seat, agent, decide)
        # At the end of it every command is allowed.
        await rules_for_the_session_take_effect_at_once(seat, agent, decide)


async def rules_for_the_session_take_effect_at_once(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    probe, other = Probe(seat, "one"), Probe(seat, "other")
    decide.will(
        allow(AddRules(rules=rules(f"{probe.program}:*"), behavior=ALLOW, destination=SESSION))
    )
    await turn(agent, probe.call("1"), probe.call("2"), other.call("1"), "done")
    assert decide.asked() == 2
    assert (probe.runs, other.runs) == (["1", "2"], ["1"])
    seat.found("Add a rule: allow")

    decide.will(
        allow(ReplaceRules(rules=rules(f"{other.program}:*"), behavior=ALLOW, destination=SESSION))
    )
    # Asked about `other`, which the new rule allows from then on; `probe` has lost its rule.
    await turn(agent, other.call("2"), other.call("3"), probe.call("3"), "done")
    assert decide.asked() == 2
    seat.found("Replace rules")

    decide.will(
        allow(RemoveRules(rules=rules(f"{other.program}:*"), behavior=ALLOW, destination=SESSION))
    )
    await turn(agent, probe.call("4"), other.call("4"), "done")
    assert decide.asked() == 2
    seat.found("Remove a rule")

    decide.will(
        allow(AddRules(rules=rules(f"{probe.program}:*"), behavior=DENY, destination=SESSION)),
    )
    messages = await turn(agent, other.call("5"), probe.call("5"), "done")
    assert decide.asked() == 1
    denied = result_of(messages).permission_denials
    assert [each.tool_use_id for each in denied] == [tool_results(messages)[1].tool_use_id]
    seat.found("Add a rule: deny", "denied without asking")

    prefix = rules(f"{other.program}:*")
    decide.will(
        allow(
            AddRules(rules=prefix, behavior=ALLOW, destination=SESSION),
            AddRules(rules=prefix, behavior=ASK, destination=SESSION),
        )
    )
    await turn(agent, other.call("6"), other.call("7"), "done")
    assert decide.asked() == 2
    seat.found("Add a rule: ask", "outranks allow")

    third = Probe(seat, "third")
    decide.will(allow(AddRules(rules=rules(None), behavior=ALLOW, destination=SESSION)))
    await turn(agent, third.call("1"), third.call("2"), "done")
    assert decide.asked() == 1
    assert third.runs == ["1", "2"]
    seat.found("Add a rule: a whole tool")
    assert probe.runs == ["1", "2", "3", "4"]
    assert other.runs == ["1", "2", "3", "4", "5", "6", "7"]


async def a_suggestion_sent_back_spares_the_question(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    probe = Probe(seat, "suggested")
    decide.will(as_suggested)
    await turn(agent, probe.call("same"), probe.call("same"), probe.call("else"), "done")
    assert decide.asked() == 2
    assert probe.runs == ["same", "same", "else"]
    seat.found("Allow as suggested, not asked again")

    decide.will(
        allow(AddRules(rules=rules("touch:*"), behavior=ALLOW, destination=SESSION)),
    )
    await turn(agent, bash("touch one"), bash("touch two"), "done")
    again = decide.asked() == 2
    assert again is (seat.version < release(325))
    seat.found("A rule for a command that writes files", "asked again" if again else "yes")
    assert (seat.cwd / "two").exists()


async def rules_for_the_settings_are_written_into_their_files(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    places = {
        Destination.LOCAL_SETTINGS: seat.cwd / ".claude" / "settings.local.json",
        Destination.PROJECT_SETTINGS: seat.cwd / ".claude" / "settings.json",
        Destination.USER_SETTINGS: seat.home / ".claude" / "settings.json",
    }
    for number, (destination, path) in enumerate(places.items()):
        probe = Probe(seat, f"probe{number}")
        rule = rules(f"{probe.program}:*")
        decide.will(
            allow(AddRules(rules=rule, behavior=ALLOW, destination=destination)),
        )
        await turn(agent, probe.call("1"), "done")
        assert decide.asked() == 1
        await written_into(path, f"Bash({probe.program}:*)")
        await turn(agent, probe.call("2"), "done")
        again = decide.asked() == 1
        late = destination is Destination.PROJECT_SETTINGS and seat.version >= release(325)
        assert late or not again  # how much later depends on how busy the machine is
        seat.found(
            f"A rule for {destination.value}",
            "written, in effect later" if late else "written and in effect",
        )
        assert probe.runs == ["1", "2"]

    kept = [path.read_text() for path in places.values()]
    probe = Probe(seat, "probe-by-flag")
    rule = rules(f"{probe.program}:*")
    decide.will(allow(AddRules(rules=rule, behavior=ALLOW, destination=Destination.CLI_ARG)))
    await turn(agent, probe.call("1"), probe.call("2"), "done")
    assert decide.asked() == 1
    assert probe.runs == ["1", "2"]
    assert [path.read_text() for path in places.values()] == kept
    seat.found("A rule for cliArg", "in effect, and not written")


class Permissions(msgspec.Struct):
    """What a settings file says of permissions."""

    allow: list[str]


class SettingsFile(msgspec.Struct):
    """A settings file, as far as it matters here."""

    permissions: Permissions


async def written_into(path: Path, rule: str) -> None:
    """Wait for a rule at the end of a settings file: 2.1.325 may write it after the turn."""
    with anyio.fail_after(SECONDS):
        await until(lambda: allowed_in(path)[-1:] == [rule])


def allowed_in(path: Path) -> list[str]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SettingsFile).permissions.allow
    except (FileNotFoundError, msgspec.DecodeError):
        return []  # it is not there yet, or being written


async def directories_and_modes_change_with_an_allow(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    probe = Probe(seat)
    far = seat.home / "far"
    far.mkdir()
    for name in "abc":
        (far / name).write_text(f"text {name}\n")
    folder = (str(far),)
    decide.will(Allow(), allow(AddDirectories(directories=folder, destination=SESSION)))
    await turn(agent, read(far / "a"), probe.call("1"), read(far / "b"), "done")
    assert decide.asked() == 2
    seat.found("Add a directory")
    decide.will(allow(RemoveDirectories(directories=folder, destination=SESSION)))
    await turn(agent, probe.call("2"), read(far / "c"), "done")
    assert decide.asked() == 2
    seat.found("Remove a directory")

    made = seat.cwd / "made.txt"
    decide.will(allow(set_mode(PermissionMode.ACCEPT_EDITS)))
    messages = await turn(agent, probe.call("3"), write(made), "done")
    assert decide.asked() == 1
    assert made.exists()
    modes = [m.permission_mode for m in messages if isinstance(m, Status)]
    assert PermissionMode.ACCEPT_EDITS in modes
    for mode in (PermissionMode.PLAN, PermissionMode.DEFAULT, PermissionMode.DONT_ASK):
        decide.will(allow(set_mode(mode)))
        await turn(agent, probe.call(mode.value), "done")
        assert await mode_shown(agent) is mode
    assert decide.asked() == 3
    seat.found("Set the mode: acceptEdits, plan, default, dontAsk")

    messages = await turn(agent, probe.call("not asked"), "done")
    assert decide.asked() == 0
    assert len(result_of(messages).permission_denials) == 1
    assert "not asked" not in probe.runs
    seat.found("In dontAsk what no rule allows", "denied without asking")


async def what_a_version_would_choke_on_or_misuse_does_not_reach_it(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    probe = Probe(seat, "odd")

    async def mode_after(call: ToolUse) -> tuple[str, PermissionMode]:
        (answer,) = tool_results(await turn(agent, call, "done"))
        return answer.text, await mode_shown(agent)

    unknown = UnknownPart(kind="nonsense", json=dump({"type": "nonsense", "x": 1}))
    decide.will(allow(unknown))
    text, mode = await mode_after(probe.call("1"))
    assert text == "ran 1"
    assert mode is PermissionMode.DEFAULT
    seat.found("An update of an unknown kind", "left out, the tool runs")

    decide.will(allow(set_mode(PermissionMode.BYPASS_PERMISSIONS)))
    text, mode = await mode_after(probe.call("2"))
    assert "not started with permission to bypass" in text
    assert mode is PermissionMode.DEFAULT
    seat.found("Set the mode: bypassPermissions, without permission", "refused by Quarterdeck")
    with pytest.raises(UsageError):
        await agent.set_permission_mode("bypassPermissions")
    seat.theme = "Switches"
    seat.found("Change the mode to bypassPermissions, without permission", "refused by Quarterdeck")
    seat.theme = ""

    decide.will(allow(set_mode(PermissionMode.AUTO)))
    text, mode = await mode_after(probe.call("3"))
    if seat.version >= release(120):
        assert text == "ran 3"
        assert mode is PermissionMode.AUTO
        seat.found("Set the mode: auto")
    else:
        assert "does not know the mode 'auto'" in text
        assert mode is PermissionMode.DEFAULT
        seat.found("Set the mode: auto", "refused by Quarterdeck")
    assert probe.runs == (["1", "3"] if seat.version >= release(120) else ["1"])
    assert decide.asked() == 3
