"""What is said of an effect: its kind, what a rule must write out, which file it is about."""

from __future__ import annotations

from quarterdeck.policy.shell.effects import ProgramEffects, alters, reads, runs, writes
from quarterdeck.policy.shell.script import EffectKind
from quarterdeck.policy.shell.working_dir import locate
from support.shell_words import words

FILE = locate(words("a")[0], "/w")


def test_code_and_settings_are_told_by_what_a_rule_must_write_out() -> None:
    for made, kind in ((runs, EffectKind.RUNS), (alters, EffectKind.ALTERS)):
        effect = made("why", "--token")
        assert (effect.kind, effect.why, effect.token) == (kind, "why", "--token")
        assert effect.target is None


def test_files_are_told_by_their_path_and_need_no_token() -> None:
    assert reads(FILE, "why").kind is EffectKind.READS
    assert writes(FILE, "why").kind is EffectKind.WRITES
    for effect in (reads(FILE, "why"), writes(FILE, "why")):
        assert effect.target == FILE
        assert effect.token == ""


def test_a_write_is_a_commands_own_only_where_that_is_said() -> None:
    assert not writes(FILE, "why").own
    assert writes(FILE, "why", own=True).own


def test_a_program_of_which_nothing_is_known_does_nothing_and_stays_where_it_is() -> None:
    nothing = ProgramEffects()
    assert (nothing.effects, nothing.doubts, nothing.scripts) == ((), (), ())
    assert nothing.moves is None
