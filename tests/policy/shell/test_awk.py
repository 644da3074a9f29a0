"""awk programs: which only compute and print, and what the others read, write and run."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.awk import read_awk
from quarterdeck.policy.shell.code import CodeEffects


@pytest.mark.parametrize(
    "program",
    [
        "",
        "1",
        "{print $1}",
        "{sum+=$3} END {print sum}",
        "{print $1/1024, $2/1024}",
        "{print ($1+$2)/2, ($3)/4}",
        "$3 > 2",
        "{print ($3 > 2)}",
        "{ if ($1 > max) max = $1 } END { print max }",
        "{ x = $1 > 2; print x }",
        "NR==FNR{a[$1];next} $1 in a",
        "!seen[$0]++",
        "/foo/{print $2}",
        "/a\\/b/ || /c|d/",
        '/"/ {print} # "',
        "/^\\[section\\]/,/^$/",
        '{gsub(/[[:space:]]+/, " "); print}',
        "{split($0,a,/,/); print a[1]}",
        'BEGIN{FS=":"} {printf "%s > %d | \\"x\\"\\n", $1, $2}',
        "length > 72",
        "{getline; print}",
        "{getline x; print x}",
        'BEGIN{PROCINFO["sorted_in"]="@val_num_desc"}',
        "{n=asort(a)}",
        "{print length($0)} # system(x)",
        '{print "system(\\"id\\")"}',
    ],
)
def test_programs_that_only_compute_have_no_effect(program: str) -> None:
    assert read_awk(program) == CodeEffects()


@pytest.mark.parametrize(
    ("program", "effects"),
    [
        ("{print $3 > 2}", CodeEffects(writes=("2",))),
        ('{print > "a"}', CodeEffects(writes=("a",))),
        ('{printf("%s", $1) >> "a b"}', CodeEffects(writes=("a b",))),
        ('{print (1)(2) > "a"; x = 1 > 2}', CodeEffects(writes=("a",))),
        ('{print > "/dev/stderr"}', CodeEffects(writes=("/dev/stderr",))),
        ('{print > $1".txt"}', CodeEffects(writes=(None,))),
        ('{print > "a" $1}', CodeEffects(writes=(None,))),
        ('{print > "\\056env"}', CodeEffects(writes=(None,))),
        ('{print 1 > 2 ? "a" : "b"}', CodeEffects(writes=(None,))),
        ('{while((getline l < "f")>0) print l}', CodeEffects(reads=("f",))),
        ('{getline a[1] < "f"}', CodeEffects(reads=("f",))),
        ("{getline < f}", CodeEffects(reads=(None,))),
    ],
)
def test_files_in_a_program_are_effects(program: str, effects: CodeEffects) -> None:
    assert read_awk(program) == effects


@pytest.mark.parametrize(
    "program",
    [
        '{system("id")}',
        'BEGIN{system ("id")}',
        '{"id"|getline}',
        '{print|"id"}',
        '{print |& "id"}',
        "BEGIN{for(k in ENVIRON) print ENVIRON[k]}",
        'BEGIN{ARGV[1]="/etc/passwd"}',
        '@include "x"',
        'BEGIN{f="system";@f("id")}',
        'BEGIN{SYMTAB["x"]=1}',
        'BEGIN{asort(a,b,"f")}',
        '{if (1) /x/ 2; /"/}',
        "/[/]/",
        "/a",
        '"a',
        "{print `x`}",
        '/#/0x1system("id")',
        "1" * 30_000,
    ],
)
def test_a_program_that_may_run_something_is_unknown(program: str) -> None:
    assert read_awk(program).runs
