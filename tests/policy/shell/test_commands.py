"""One simple command: its wrappers peeled, its parts named, its doubts told."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.commands import (
    INNER,
    LAYERS,
    RESERVED,
    Analysis,
    Simple,
    analyze,
)
from quarterdeck.policy.shell.script import Assignment, Form, Part, Word
from quarterdeck.policy.shell.word_reader import read_word
from quarterdeck.policy.shell.working_dir import locate
from support.shell_words import HERE, paths, said, words


def simple(given: tuple[Word, ...], *assigned: tuple[str, str]) -> Simple:
    return Simple(
        words=given,
        assignments=tuple(
            Assignment(name=name, value=read_word(value)) for name, value in assigned
        ),
        reads=(),
        writes=(),
        here=HERE,
        span=(0, 9),
    )


def understood(text: str, *more: str) -> Analysis:
    return analyze(simple(words(text, *more)))


def only(found: Analysis) -> Part:
    (part,) = found.parts
    return part


def forms(part: Part) -> list[tuple[str, str]]:
    """The texts by which a rule may know a part, and how much of each it must write out."""
    return [(form.text, form.text[: form.named]) for form in part.forms]


def test_wrappers_are_remembered_and_name_what_they_run() -> None:
    part = only(understood("timeout 5 nice a b"))
    assert part.via == ("timeout", "nice")
    assert part.text == "a b"
    assert forms(part)[-1] == ("timeout 5 nice a b", "timeout 5 nice a")


def test_a_wrapper_that_changes_what_its_command_means_is_a_part_itself() -> None:
    found = understood("sudo -u me rm a")
    assert sorted(part.text for part in found.parts) == ["rm a", "sudo -u me rm a"]
    by_text = {part.text: part for part in found.parts}
    assert by_text["rm a"].via == ("sudo",)
    # A rule for `*` is none for one who runs other commands.
    assert forms(by_text["sudo -u me rm a"])[0] == ("sudo -u me rm a", "sudo")
    assert by_text["rm a"].forms[0] == Form(text="rm a", named=0)


def test_a_script_within_a_command_is_handed_back_with_all_that_is_around_it() -> None:
    (inner,) = understood("timeout 5 bash -c", "'a; b'").scripts
    assert inner.text == "a; b"
    assert inner.via == ("timeout", "bash")
    assert inner.outer == "timeout 5 bash -c 'a; b'"
    part = Part(words=words("a"), text="a", forms=(Form(text="a", named=0),), span=(0, 1))
    wrapped = inner.wrap(part)
    assert wrapped.via == ("timeout", "bash")
    assert wrapped.forms[-1] == Form(text=inner.outer, named=len(inner.outer))


def test_variables_before_a_command_are_effects_and_a_form() -> None:
    part = only(analyze(simple(words("make all"), ("PATH", "/x"), ("LANG", "C"))))
    assert said(part.effects) == ["alters PATH="]
    assert forms(part)[-1] == ("PATH=/x LANG=C make all", "PATH=/x LANG=C make")


def test_a_quoted_name_is_known_by_what_it_means() -> None:
    part = only(understood("'rm' \\x"))
    assert "rm x" in [form.text for form in part.forms]
    assert part.name == "rm"


def test_a_cd_moves_the_script_also_within_its_own_wrappers_and_in_no_other() -> None:
    for text, folders in (
        ("cd a", ["/w/a"]),
        ("command cd a", ["/w/a"]),
        ("time cd a", ["/w/a"]),
    ):
        moves = understood(text).moves
        assert moves is not None
        assert [path for path, _ in moves.dirs] == folders
    assert understood("sudo cd a").moves is None
    assert understood("ls a").moves is None


@pytest.mark.parametrize(
    "text", ["$x a", "a* b", "~/a b", *(f"{each} x" for each in sorted(RESERVED))]
)
def test_a_command_without_a_known_name_is_a_problem(text: str) -> None:
    assert understood(text).problems != ()


def test_words_that_are_not_known_count_where_they_could_be_options() -> None:
    assert said(only(understood("unheard-of $x a")).effects) == ["runs $x"]
    assert said(only(understood("echo $x a")).effects) == []


def test_wrappers_in_wrappers_have_an_end() -> None:
    assert understood("nice " * LAYERS + "a").problems == ()
    (problem,) = understood("nice " * (LAYERS + 1) + "a").problems
    assert "nested too deep" in problem.why


def test_commands_in_one_command_have_an_end() -> None:
    assert understood("find . " + "-exec a \\; " * INNER).problems == ()
    found = understood("find . " + "-exec a \\; " * (INNER + 1))
    assert [problem.why for problem in found.problems] == [f"it runs more than {INNER} commands"]
    assert len(found.parts) == INNER + 1


def test_redirections_belong_to_the_command_and_stand_alone_without_one() -> None:
    target = locate(read_word("out"), "/w")
    given = simple(words("a"))
    found = analyze(
        Simple(
            words=given.words,
            assignments=(),
            reads=(),
            writes=(target,),
            here=HERE,
            span=given.span,
        )
    )
    assert paths(only(found).writes) == [("/w/out",)]
    bare = analyze(
        Simple(words=(), assignments=(), reads=(target,), writes=(), here=HERE, span=(0, 1))
    )
    assert paths(only(bare).reads) == [("/w/out",)]
    assert only(bare).name is None
    assert analyze(simple(())).parts == ()


def test_the_work_is_counted_by_words() -> None:
    assert understood("a b c").steps == 3
    assert understood("nice a b c").steps == 4 + 3
