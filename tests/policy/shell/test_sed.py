"""sed scripts: which only change text, and what the others read, write and run."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from quarterdeck.policy.shell.code import CodeEffects
from quarterdeck.policy.shell.sed import read_sed


@pytest.mark.parametrize(
    "script",
    [
        "",
        "p",
        "1,3d",
        "10,20p",
        "$!d",
        "/def login/,/^def /p",
        "1,/x/I!d",
        "0~3p",
        "2~4d",
        "/a/,+3p",
        "\\,a/b,p",
        "s/a/b/g",
        "s/^/  /",
        "s|/[^/]*$||",
        "s/[^\\/]*$//",
        "s#a#b#;p",
        "s/a/b/2gI;p",
        "s/a\\/b/c/",
        "s/x/a\\\nb/",
        "s/[[:space:]]*$//",
        "s;a;b;",
        "y/ab/ba/",
        "1q",
        "$=",
        "p;d",
        "/x/{s/a/b/;p}",
        "/x/!{p}",
        ":a;N;$!ba;s/\\n/ /g",
        "$!{N;ba};P;D",
        "$a some text; e id",
        "/x/i\\\nhello\\\ne id\np",
        "# e id\np # w x\nd",
        "l 5;q5",
    ],
)
def test_scripts_that_only_change_text_have_no_effect(script: str) -> None:
    assert read_sed(script).none


@pytest.mark.parametrize(
    ("script", "effects"),
    [
        ("w x", CodeEffects(writes=("x",))),
        ("/a/w x;p\nd", CodeEffects(writes=("x;p",))),
        ("W x}", CodeEffects(writes=("x}",))),
        ("1r /etc/passwd", CodeEffects(reads=("/etc/passwd",))),
        ("R x", CodeEffects(reads=("x",))),
        ("s/a/b/gw x", CodeEffects(writes=("x",))),
        ("s@a@b@w x", CodeEffects(writes=("x",))),
        ("p;y/a/b/;w x", CodeEffects(writes=("x",))),
        ("/x/i\\\nhello\nw x", CodeEffects(writes=("x",))),
        ("1e id", CodeEffects(runs=("sed's `e` runs id",), scripts=("id",))),
        ("e", CodeEffects(runs=("sed's `e` runs its input",))),
        ("1{e id\n}", CodeEffects(runs=("sed's `e` runs id",), scripts=("id",))),
        ("s/a/b/e", CodeEffects(runs=("sed's `s///e` runs what it makes",))),
        ("s/a/b/ge", CodeEffects(runs=("sed's `s///e` runs what it makes",))),
        ("s/a/b/epw x", CodeEffects(writes=("x",), runs=("sed's `s///e` runs what it makes",))),
    ],
)
def test_files_and_commands_in_a_script_are_effects(script: str, effects: CodeEffects) -> None:
    assert read_sed(script) == effects


@pytest.mark.parametrize(
    "script",
    [
        "s/a/b",
        "s/[/]/g;s/e;#/x/",
        "s/[]/]/x/",
        "s/[[:alpha:]/]/x/",
        "s/[\\]/]/x/",
        "{p",
        "p}",
        "k",
        "a",
        "a text\\",
        "a\\\\\ne id",
        "s/a/b/k",
        "s\na\nb\n",
        "y/[/]/;e id",
        "v 4.2",
        ":a b",
        "b a;b\r",
        "1,p",
        "p d",
        "p" * 30_000,
    ],
)
def test_a_script_that_is_not_understood_is_unknown(script: str) -> None:
    assert read_sed(script).runs


_PIECES = [
    *"s/|,#[]^\\;\n}{!1$~+ aicbtTp:=ewrRWqylgIMm-.&x",
    *("\\\n", "[/]", "[^/]", "[[:alpha:]", "s/a/b/", "s|a|b|", "$!", "a\\", "a foo", "\\/", "\\]"),
    *(
        "y/a/b/",
        "e id",
        "w x",
        "/x/",
        "\\cxc",
        ":a",
        "ba",
        "i\\",
        "c\\\n",
        "/g",
        "/e",
        "0,/x/",
        ";e",
    ),
]


@pytest.mark.process
def test_a_script_without_effects_is_one_that_sed_itself_runs_in_its_sandbox() -> None:
    sed = shutil.which("sed")
    if (
        sed is None
        or "GNU"
        not in subprocess.run(
            [sed, "--version"], capture_output=True, text=True, check=False
        ).stdout
    ):
        pytest.skip("this is not GNU sed")
    chance = random.Random(11)
    tried = 0
    while tried < 60:
        script = "".join(chance.choices(_PIECES, k=chance.randint(2, 9)))
        script += chance.choice(["", ";e", "\ne id", ";w x", "/e", "}e"])
        if not read_sed(script).none:
            continue
        tried += 1
        done = subprocess.run(
            [sed, "--sandbox", "--", script], input=b"", capture_output=True, check=False
        )
        assert b"sandbox" not in done.stderr, script
