"""`quarterdeck policy`, `quarterdeck audit verify`, and the how-to about them as it is written."""

from __future__ import annotations

import json
import shlex

import pytest

from quarterdeck.policy.file import read_policy
from quarterdeck.policy.presets import preset
from quarterdeck.testing import fake
from support.pages import page
from support.served_deck import ServedDeck, until_true

pytestmark = pytest.mark.anyio

HOW_TO = page("docs/how-to/write-a-policy-for-a-team.md")
(TEAM,) = HOW_TO.blocks("toml")


def save(deck: ServedDeck, text: str = TEAM.code) -> None:
    """The policy of the page, or another, where its reader has saved it."""
    (deck.command.work / "team.toml").write_text(text)


async def test_the_commands_of_the_page_that_need_no_hub_print_what_it_says(
    deck: ServedDeck,
) -> None:
    save(deck)
    blocks = HOW_TO.blocks("console")
    assert len(blocks) == 3
    for block in blocks:
        command, _, wanted = block.code.partition("\n")
        words = shlex.split(command.removeprefix("$ quarterdeck "))
        assert (await deck(*words)).out == wanted


async def test_the_commands_of_the_page_that_need_a_hub_run(deck: ServedDeck) -> None:
    save(deck)
    deck.command.play_fake(fake.Serve())
    await deck.serve()
    said: list[str] = []
    for block in HOW_TO.blocks("bash"):
        for line in block.code.splitlines():
            words = shlex.split(line)
            if words[0] == "cp":
                (deck.data / "policy.toml").write_text(TEAM.code)
                continue
            assert words[0] == "quarterdeck"
            said.append((await deck(*words[1:])).out)
    replayed, shown, grant, grants, suggested, audit, verified = said
    assert replayed == "0 calls: 0 unchanged, 0 different.\n"
    assert "policy.toml: in force since" in shown
    assert f"{read_policy(TEAM.code, 'team', preset=preset).rules} rules" in shown
    assert grants.startswith(f"{grant.strip()}  Bash(npm audit:*)  until ")
    assert suggested.startswith("# No question was answered often enough")
    # No call was decided yet, but a person has granted something.
    (change,) = audit.splitlines()
    assert "  changes-of-the-hub  grant  " in change
    assert change.endswith(" granted Bash(npm audit:*) in /srv/shop.")
    assert verified.startswith("The audit log is unchanged: 1 record.\nhead ")

    # A wrong edit is refused, and the text before it stays in force.
    (deck.data / "policy.toml").write_text(TEAM.code + "\n[[rule]]\nverdct = 'deny'\n")
    refused = (await deck("policy", "show", code=1)).out
    assert "REFUSED; its last valid version is in force" in refused
    assert "did you mean 'verdict'?" in refused
    explained = await deck("policy", "explain", "Bash", "git push", "--branch", "main", "--json")
    assert json.loads(explained.out)["rule"] == "main is for people"
    (deck.data / "policy.toml").write_text("")
    await until_true(lambda: deck.client.policy().files[0].rules == 0)

    await deck("policy", "revoke", grant.strip()[:20])
    assert (await deck("policy", "grants")).out == ""
    assert "no grant" in (await deck("policy", "revoke", "nothing", code=1)).err
    assert "no policy 'nope'" in (await deck("new", ".", "--policy", "nope", code=1)).err
    head = f"5:{'0' * 64}"
    assert "cut off" in (await deck("audit", "verify", "--head", head, code=1)).out


async def test_what_cannot_be_right_is_said_before_anything_is_asked(
    deck: ServedDeck,
) -> None:
    save(deck, "default = 'sometimes'\n")
    wrong = (await deck("policy", "check", "team.toml", code=1)).out
    assert (
        wrong == "team.toml:1: default: expected one of cli, ask, deny; there are ask, cli, deny\n"
    )
    result = json.loads((await deck("policy", "check", "team.toml", "--json", code=1)).out)
    assert result["flaws"][0]["line"] == 1
    await deck("policy", "check", "nothing.toml", code=2)
    assert (
        "team.toml:1" in (await deck("policy", "explain", "X", "--file", "team.toml", code=2)).err
    )


async def test_presets_and_settings_are_printed_as_policies(deck: ServedDeck) -> None:
    assert "read-only" in (await deck("policy", "preset")).out
    save(deck, (await deck("policy", "preset", "careful")).out)
    assert "is valid" in (await deck("policy", "check", "team.toml")).out
    settings = deck.command.work / "settings.json"
    rules = {"allow": ["Bash(npm test:*)"], "deny": ["Read(./.env)"]}
    settings.write_text(json.dumps({"permissions": rules}))
    save(deck, (await deck("policy", "import", "settings.json")).out)
    assert (await deck("policy", "check", "team.toml")).out.startswith(
        "team.toml is valid: 2 rules"
    )


async def test_dead_rules_are_warnings_of_check_and_show(deck: ServedDeck) -> None:
    text = "[[rule]]\nverdict = 'deny'\ntool = 'Bsh'\n"
    said = "warning: tool: Claude Code has no tool 'Bsh': did you mean 'Bash'?\n"
    save(deck, text)
    checked = await deck("policy", "check", "team.toml")
    assert checked.out == (
        f"team.toml is valid: 1 rule, 0 examples, 1 warning.\nteam.toml:3: {said}"
    )
    await deck("policy", "check", "team.toml", "--strict", code=1)
    found = json.loads((await deck("policy", "check", "team.toml", "--json")).out)
    assert [one["line"] for one in found["warnings"]] == [3]

    deck.command.play_fake(fake.Serve())
    await deck.serve()
    (deck.data / "policy.toml").write_text(text)
    shown = (await deck("policy", "show")).out
    assert f"policy.toml:3: {said}" in shown
    (deck.data / "policy.toml").write_text("[[rule]]\nverdict = 'ask'\nanswered_by = 'zoe'\n")
    assert "nobody who has access to the hub" in (await deck("policy", "show")).out
