"""The mutator of the policy: what it changes, and that a changed function is the one that runs."""

from __future__ import annotations

import ast
import sys
from types import ModuleType

from tools.mutate_policy import install, mutants

SOURCE = """
LIMIT = 3

def may(a, b):
    return a < b and not b == LIMIT

class Rule:
    @property
    def strict(self):
        return any([True])
"""


def changes() -> list[str]:
    return [change for _, change, _ in mutants(ast.parse(SOURCE))]


def test_each_mutant_has_one_change() -> None:
    assert changes() == [
        "a < b and (not b == LIMIT)  ->  a < b or not b == LIMIT",
        "a < b  ->  a <= b",
        "not b == LIMIT  ->  b == LIMIT",
        "b == LIMIT  ->  b != LIMIT",
        "any([True])  ->  all([True])",
        "True  ->  False",
    ]


def test_a_mutant_is_what_the_loaded_module_does() -> None:
    module = ModuleType("mutated")
    module.__file__ = "mutated.py"
    sys.modules["mutated"] = module
    try:
        exec(compile(SOURCE, "mutated.py", "exec"), module.__dict__)
        may, rule = module.__dict__["may"], module.__dict__["Rule"]()
        assert (may(1, 1), rule.strict) == (False, True)
        made = list(mutants(ast.parse(SOURCE)))
        assert install(made[1][2], module)
        assert may(1, 1)
        assert install(made[5][2], module)
        assert not rule.strict
        assert not install(ast.parse(SOURCE), module) or not may(1, 1)
    finally:
        del sys.modules["mutated"]
