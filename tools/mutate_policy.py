"""Mutates the policy, one change at a time, and says which changes no test notices.

    .venv/bin/python tools/mutate_policy.py                      # the four modules below
    .venv/bin/python tools/mutate_policy.py policy.paths --seconds 1200

A mutant is a module with one operator, constant or call replaced. The code of its functions is put
into the loaded module, in a fork of this process that has the tests loaded, and the quick tests of
the policy are run until one fails. A mutant that survives is an assertion that is missing, or code
that makes no difference: look at each. Tools such as mutmut copy the sources and start Python for
every mutant; here one takes a few seconds of the processor.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("policy.decide", "policy.needs", "policy.wildcards", "protocol.modes")
TESTS = (
    "test_decide", "test_wildcards", "test_tools", "test_unknown", "test_odd_inputs",
    "test_cli_files", "test_written_files", "test_protected_files", "test_other_names",
    "test_moves", "test_places", "test_dashes", "test_hosts", "test_trees", "test_builtin",
    "test_doubts",
)  # fmt: skip
"""Of `tests/policy`; the corpora of hostile and ordinary calls take longer."""
OTHER_TESTS = ("tests/hub/test_switches.py",)
OPTIONS = ("-x", "-q", "-n", "0", "--no-cov", "-p", "no:cacheprovider", "--quick", "--grouped")
MUTANT_SECONDS = 60
"""A mutant that runs for longer never ends: the tests have noticed it."""

_SWAPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_CALLS = {"any": "all", "all": "any", "min": "max", "max": "min"}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """The node with one change, for each change that is known."""
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in _SWAPS:
            yield ast.Compare(node.left, [_SWAPS[type(op)](), *node.ops[1:]], node.comparators)
        case ast.BoolOp(op=op):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int(number)):
            yield ast.Constant(number + 1)
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield ast.Call(ast.Name(_CALLS[name], ast.Load()), node.args, node.keywords)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.If():
            yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)


def mutants(tree: ast.Module) -> Iterator[tuple[int, str, ast.Module]]:
    """Each mutant, with its line and the change in words."""
    places = [
        (path, new)
        for path, node in _walk(tree, ())
        for new in variants(node)
        if not isinstance(node, ast.If) or not any(True for _ in variants(node.test))
    ]
    for path, new in places:
        mutant = copy.deepcopy(tree)
        parent: ast.AST = mutant
        for name, index in path[:-1]:
            found = getattr(parent, name)
            parent = found if index is None else found[index]
        name, index = path[-1]
        old = getattr(parent, name) if index is None else getattr(parent, name)[index]
        ast.copy_location(new, old)
        if index is None:
            setattr(parent, name, new)
        else:
            getattr(parent, name)[index] = new
        ast.fix_missing_locations(mutant)
        before, after = (ast.unparse(each).split("\n")[0] for each in (old, new))
        yield old.lineno, f"{before}  ->  {after}", mutant


_Path = tuple[tuple[str, int | None], ...]


def _walk(node: ast.AST, path: _Path, *, inside: bool = False) -> Iterator[tuple[_Path, ast.AST]]:
    """The nodes in the bodies of functions, each with the way to it."""
    within = isinstance(node, ast.FunctionDef)
    for name, value in ast.iter_fields(node):
        each = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in each:
            if not isinstance(child, ast.AST):
                continue
            way = (*path, (name, index))
            now = inside or (within and name == "body")
            if now:
                yield way, child
            yield from _walk(child, way, inside=now)


def functions(owner: ModuleType | type, module: str) -> Iterator[tuple[str, FunctionType]]:
    """The functions of a module and its classes, by qualified name."""
    for value in vars(owner).values():
        found = getattr(value, "fget", None) or getattr(value, "func", None) or value
        found = getattr(found, "__wrapped__", found)
        if isinstance(found, FunctionType) and found.__module__ == module:
            yield found.__qualname__, found
        elif isinstance(value, type) and value.__module__ == module and value is not owner:
            yield from functions(value, module)


def codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """The code of every function of a module or class."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each.co_qualname, each
            if "<locals>" not in each.co_qualname and not each.co_flags & 2:  # a class
                yield from codes(each)


def install(mutant: ast.Module, module: ModuleType) -> bool:
    """Put the code of a mutant into the loaded module; whether a function has changed."""
    new = dict(codes(compile(mutant, module.__file__ or "", "exec")))
    changed = False
    for name, function in functions(module, module.__name__):
        code = new.get(name)
        if code is not None and code.co_freevars == function.__code__.co_freevars:
            changed = changed or code != function.__code__
            function.__code__ = code
    return changed


def survives(mutant: ast.Module, module: ModuleType, tests: list[str]) -> bool | None:
    """Whether all tests pass with a mutant; None if it cannot be put in place."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(MUTANT_SECONDS)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os._exit(int(pytest.main([*OPTIONS, *tests])) if install(mutant, module) else 100)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if status == 100 else status == 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--seconds", type=float, default=600, help="of processor time; 600")
    parser.add_argument("--seed", type=int, default=1, help="of the order; 1")
    given = parser.parse_args()
    os.chdir(ROOT)
    tests = [*(f"tests/policy/{name}.py" for name in TESTS), *OTHER_TESTS]
    if code := pytest.main([*OPTIONS, *tests]):
        print("the tests fail without a mutant", file=sys.stderr)
        return int(code)
    waiting = []
    for name in given.modules:
        module = importlib.import_module(f"quarterdeck.{name}")
        tree = ast.parse(Path(module.__file__ or "").read_text())
        waiting += [(module, *each) for each in mutants(tree)]
    random.Random(given.seed).shuffle(waiting)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    tried = killed = 0
    for module, line, change, mutant in waiting:
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime
        if used > given.seconds:
            break
        found = survives(mutant, module, tests)
        if found is None:
            continue
        tried += 1
        killed += not found
        if found:
            print(f"{module.__name__}:{line}: {change}", flush=True)
    elapsed = time.monotonic() - begun
    print(f"{killed} of {tried} mutants were noticed, of {len(waiting)}, in {elapsed:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
