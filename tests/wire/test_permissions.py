import msgspec
import pytest
from msgspec import Raw

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
    suggestions,
)
from quarterdeck.wire.values import PermissionRule

RULES = '"rules":[{"toolName":"Bash","ruleContent":"git status:*"},{"toolName":"Read"}]'


@pytest.mark.parametrize(
    ("json", "kind"),
    [
        (f'{{"type":"addRules",{RULES},"behavior":"allow","destination":"session"}}', AddRules),
        (
            f'{{"type":"replaceRules",{RULES},"behavior":"ask","destination":"cliArg"}}',
            ReplaceRules,
        ),
        (
            f'{{"type":"removeRules",{RULES},"behavior":"deny","destination":"userSettings"}}',
            RemoveRules,
        ),
        ('{"type":"setMode","mode":"acceptEdits","destination":"session"}', SetMode),
        (
            '{"type":"addDirectories","directories":["/a","/b"],"destination":"localSettings"}',
            AddDirectories,
        ),
        (
            '{"type":"removeDirectories","directories":["/a"],"destination":"projectSettings"}',
            RemoveDirectories,
        ),
    ],
)
def test_every_kind_of_update_is_read_and_written_as_it_came(
    json: str, kind: type[PermissionUpdate]
) -> None:
    (update,) = suggestions((Raw(json.encode()),))

    assert type(update) is kind
    assert msgspec.json.encode(update).decode() == json


def test_a_suggestion_of_a_new_kind_hides_no_other() -> None:
    new = Raw(b'{"type":"addTools","tools":["X"]}')
    known = Raw(b'{"type":"setMode","mode":"plan","destination":"session"}')

    unknown, update = suggestions((new, known))

    assert isinstance(unknown, UnknownPart)
    assert unknown.kind == "addTools"
    assert unknown.json == new
    assert update == SetMode(mode=PermissionMode.PLAN, destination=Destination.SESSION)


def test_a_mode_that_we_do_not_know_is_kept() -> None:
    (update,) = suggestions((Raw(b'{"type":"setMode","mode":"wild","destination":"session"}'),))

    assert isinstance(update, SetMode)
    assert update.mode == "wild"
    assert not update.mode.known


def test_a_rule_reads_as_people_write_it() -> None:
    assert str(PermissionRule(tool_name="Read")) == "Read"
    assert str(PermissionRule(tool_name="Bash", rule_content="ls:*")) == "Bash(ls:*)"
    assert PermissionBehavior("allow") is PermissionBehavior.ALLOW
