"""The syntax tree of a pipeline is made from the text and a newline. It is the same tree."""

from __future__ import annotations

import pytest
import tree_sitter_bash
from hypothesis import given
from hypothesis import strategies as st
from tree_sitter import Language, Node, Parser

from quarterdeck.policy.shell.syntax import syntax_tree

PARSER = Parser(Language(tree_sitter_bash.language()))
_LISTED = (
    "a b.txt -n -5 2>&1 > >> &> >| >& >&- ! x=1 ~ *.py a=b if then fi for do done case in esac"
    ' while function time [ ] [[ ]] { } : . -- == =~ += , ^ 1 3- coproc select \'x\' "q" "a|b"'
    " '|' # \\ <x <<E $x $(b) `c` (d) é ; & && || |& ;;"
)
WORDS = st.lists(st.sampled_from(_LISTED.split()), min_size=1, max_size=4).map(" ".join)
TEXTS = st.lists(WORDS, min_size=2, max_size=4).map(" | ".join)


def shape(node: Node, end: int) -> list[object]:
    """A tree as values, without a newline behind the end of the text."""
    inside = [shape(child, end) for child in node.children if child.start_byte < end]
    return [
        node.type,
        node.start_byte,
        min(node.end_byte, end),
        node.is_named,
        node.is_missing,
        node.has_error,
        *inside,
    ]


def is_same(text: str) -> bool:
    data = text.encode()
    plain = PARSER.parse(data).root_node
    return shape(syntax_tree(data), len(data)) == shape(plain, len(data))


@given(text=TEXTS)
def test_the_tree_is_that_of_the_text(text: str) -> None:
    assert is_same(text)


@pytest.mark.parametrize(
    "text",
    [
        "cat a.txt | grep -n foo | head -5",
        "npm run build 2>&1 | tee build.log | tail -20",
        "git ls-files '*.ts' | xargs wc -l | tail -1",
        "a | b | c &",
        "a | b | c;",
        "a | b |",
        "a || b | c && d | e | f",
    ],
)
def test_the_tree_of_a_pipeline_is_that_of_the_text(text: str) -> None:
    assert is_same(text)
    assert syntax_tree(text.encode()).end_byte >= len(text)
