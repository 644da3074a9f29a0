"""Names that one command gives to another have bounds where the first one is understood."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell import EffectKind, read


def reached(script: str) -> list[str] | None:
    """The paths that `cat` reads in a script; None if they are not known."""
    found: list[str] = []
    for part in read(script, cwd="/w").parts:
        for effect in part.effects if part.name == "cat" else ():
            if effect.kind is EffectKind.READS and effect.target is not None:
                if not effect.target.paths:
                    return None
                found.extend(effect.target.paths)
    return sorted(set(found))


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("find . -name '*.py' | xargs cat", ["/w/**/*.py"]),
        (
            "find src tests -type f -name '*.py' -print0 | xargs -0 cat",
            ["/w/src/**/*.py", "/w/src", "/w/tests/**/*.py", "/w/tests"],
        ),
        ("find . -name '*.py' -not -path './x/*' | head -3 | xargs cat", ["/w/**/*.py"]),
        (
            "find . \\( -name '*.a' -o -name '*.b' \\) -print | sort -u | xargs cat",
            ["/w/**/*.a", "/w/**/*.b"],
        ),
        ("find . -path ./x -prune -o -name '*.js' -print | xargs cat", ["/w/**/*.js"]),
        ("find . -iname '*.Py' | xargs cat", ["/w/**/*.??"]),
        ("find . -type f | xargs cat", ["/w/**"]),
        ("find /etc -name '*.conf' -exec cat {} +", ["/etc", "/etc/**/*.conf"]),
        ("find . -name '*.ts' -exec cat {} \\;", ["/w/**/*.ts"]),
        ("find . -name '*.ts' | xargs -I{} cat {}", ["/w/**/*.ts"]),
        ("git ls-files '*.ts' | xargs cat", ["/w/**/*.ts"]),
        ("git ls-files src | xargs cat", ["/w/src/**"]),
        ("git ls-files 'src/*.py' | grep -v x | xargs cat", ["/w/src/**/*.py"]),
        ("git ls-files | tr '\\n' '\\0' | xargs -0 cat", ["/w/**"]),
        ("git diff --name-only main | xargs cat", ["/w/**"]),
        ("grep -rl foo src | xargs cat", ["/w/src/**"]),
        ("grep -rl foo --include='*.py' . | xargs cat", ["/w/**/*.py"]),
        ("echo .env | xargs cat", ["/w/.env"]),
        ("cat $(git ls-files '*.md')", ["/w/**/*.md"]),
        ("for f in $(find src -name '*.c'); do cat $f; done", ["/w/src", "/w/src/**/*.c"]),
        ("ls src | xargs cat", ["/w/**"]),
    ],
)
def test_names_from_a_search_are_bounded_by_it(script: str, paths: list[str]) -> None:
    assert reached(script) == sorted(paths)


@pytest.mark.parametrize(
    "script",
    [
        "t | xargs cat",
        "cat list | xargs cat",
        "find . -name '*.py' | sed s/x/y/ | xargs cat",
        "find . -name '*.py' -printf x | xargs cat",
        "find . -name '*.py' | xargs -a other cat",
        "find . -name '*.py' | xargs cat < other",
        "find . -name '*.py' | xargs -I{} cat {}.env",
        "find $d -name '*.py' | xargs cat",
        "find . -name '*.py' -execdir cat {} +",
        "(find . -name '*.py'; t) | xargs cat",
        "find() { echo .env; }; find . -name '*.py' | xargs cat",
        "git ls-files -X f | xargs cat",
        "git ls-files ':(top)*.py' | xargs cat",
        "git ls-files ../x | xargs cat",
        "git -C x ls-files | xargs cat",
        "grep -o foo f | xargs cat",
        "find . -name '*.py' | grep -o .env | xargs cat",
        "echo -e a | xargs cat",
        "printf x%s a | xargs cat",
        "ls /etc | xargs cat",
        "cat $(t)",
        'cat "$(git ls-files x)"',
    ],
)
def test_other_names_are_not_known(script: str) -> None:
    assert reached(script) is None


@pytest.mark.parametrize(
    "tests",
    [
        "-print -name '*.py'",
        "! -path -name -type f",
        "-not -name '*.py'",
        "! \\( -name '*.py' \\)",
        "-name '*.py' -o -print",
        "-newer -name",
        "-name '*.py' , -print",
        "-unheard-of -name '*.py'",
        "-path -prune -o -name '*.py'",
        '-name "$x"',
    ],
)
def test_a_name_that_does_not_hold_for_all_files_bounds_nothing(tests: str) -> None:
    assert reached(f"find . {tests} | xargs cat") in (None, ["/w/**"])


def test_a_command_that_find_runs_before_its_tests_gets_every_file() -> None:
    assert reached("find . -exec cat {} \\; -name '*.py'") == ["/w/**"]
