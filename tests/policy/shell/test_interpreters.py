"""Interpreters: scripts, code in the command, modules and code from the input."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.programs import look_up
from support.shell_words import HERE, said, words


def known(text: str, *more: str) -> ProgramEffects:
    return look_up(words(text, *more), HERE, None)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("python -c a", ["runs -c"]),
        ("python3.11 -c a", ["runs -c"]),
        ("python3 -IBc a", ["runs -IBc"]),
        ("python a.py", ["reads /w/a.py"]),
        ("python3 a.py --verbose", ["reads /w/a.py"]),
        ("python3 /x/a.py -- y", ["reads /x/a.py"]),
        ("python a.py -c b", ["reads /w/a.py"]),
        ("python -X dev -W ignore a.py --flag", ["reads /w/a.py"]),
        ("python -m pytest -q", []),
        ("python", ["runs -"]),
        ("python -", ["runs -"]),
        ("python3 --", ["runs -"]),
        ("python3 -u", ["runs -"]),
        ("python3 --check-hash-based-pycs default", ["runs -"]),
        ("python3 /dev/stdin", ["runs /dev/stdin"]),
        ("node a.js", ["reads /w/a.js"]),
        ("node --no-warnings a.js", ["reads /w/a.js"]),
        ("node --no-warnings", ["runs -"]),
        ("node --", ["runs -"]),
        ("node --eval=a", ["runs --eval"]),
        ("node -p a", ["runs -p"]),
        ("node -pe a", ["runs -p"]),
        ("node --test a.js", ["reads /w/a.js"]),
        ("node --test", []),
        ("node inspect a.js", ["reads /w/inspect", "runs inspect"]),
        ("node --cpu-prof-dir=/x a.js", ["writes /x", "reads /w/a.js"]),
        (
            "node --no-such-option a.js",
            ["runs --no-such-option", "reads /w/a.js", "writes /w/a.js"],
        ),
        ("nodejs a.js", ["reads /w/a.js"]),
        ("perl /x/a.pl --x", ["reads /x/a.pl", "reads /w/--x"]),
        ("perl --", ["runs -"]),
        ("perl -w", ["runs -"]),
        ("perl -ne a .env", ["runs -n", "runs -ne", "reads /w/.env"]),
        ("perl -pi -e a b", ["runs -p", "runs -pi", "runs -e", "reads /w/b", "writes /w/b"]),
        ("perl -le a", ["runs -l"]),
        ("perl -0777pe a", ["runs -0"]),
        ("perl -MFoo a.pl", ["runs -M", "reads /w/a.pl"]),
        ("ruby /x/a.rb --x", ["reads /x/a.rb", "reads /w/--x"]),
        ("ruby -run -e httpd", ["runs -r", "runs -e"]),
        ("php a.php", ["reads /w/a.php"]),
        ("php -r a", ["runs -r"]),
        ("lua a.lua", ["reads /w/a.lua"]),
        ("lua5.4 -e a", ["runs -e"]),
        ("deno eval a", ["runs eval", "reads /w/eval", "reads /w/a"]),
        ("deno run https://host/a.ts", ["runs https://host/a.ts"]),
        ("deno run -A a.ts", ["runs -A", "reads /w/a.ts"]),
        ("bun run a.ts", ["reads /w/a.ts"]),
        ("bun -e a", ["runs -e"]),
        ("Rscript -e a", ["runs -e"]),
    ],
)
def test_what_an_interpreter_runs_is_told(text: str, effects: list[str]) -> None:
    assert set(effects) <= set(said(known(text).effects))
    if not any(each.startswith(("runs", "writes")) for each in effects):
        assert sorted(said(known(text).effects)) == sorted(effects)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("python3 -m json.tool a", ["reads /w/a"]),
        ("python3 -m json.tool a /x", ["reads /w/a", "writes /x"]),
        ("python3 -m timeit a", ["runs timeit", "reads /w/a", "writes /w/a"]),
        ("python3 -m pdb -c a b.py", ["runs pdb"]),
        ("python3 -m code", ["runs code"]),
        ("python3 -m trace --count /x/a.py", ["runs trace", "reads /x/a.py"]),
        ("python3 -m doctest /x/a.py", ["runs doctest", "reads /x/a.py"]),
        ("python3 -m cProfile /x/a.py", ["runs cProfile", "reads /x/a.py"]),
        ("python3 -m zipfile -e a.zip /x", ["writes /x"]),
        ("python3 -m gzip .env", ["reads /w/.env"]),
        ("python3 -m zipfile -c a.zip .env", ["writes /w/a.zip", "reads /w/.env"]),
        ("python3 -m tarfile -e a.tar /x", ["writes /x"]),
        ("python3 -m venv /x", ["writes /x"]),
        ("python3 -mjson.tool a /x", ["writes /x"]),
        ("python3 -m http.server", ["runs http.server"]),
        ("python3 -m $x", ["runs $x"]),
    ],
)
def test_modules_of_python_are_judged_by_their_own_options(text: str, effects: list[str]) -> None:
    found = known(text)
    assert set(effects) <= set(said(found.effects))
    assert not found.looks


@pytest.mark.parametrize("text", ["python3 --version", "node -v", "perl -v", "ruby --version"])
def test_the_version_of_an_interpreter_may_be_looked_at(text: str) -> None:
    assert known(text).looks


@pytest.mark.parametrize("text", ["python3 a.py", "node a.js", "python3 --version -m x a"])
def test_an_interpreter_that_runs_something_does_not_just_look(text: str) -> None:
    assert not known(text).looks
