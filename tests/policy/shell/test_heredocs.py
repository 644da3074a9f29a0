"""Here-documents: they end where bash ends them, or they are doubted."""

from __future__ import annotations

import pytest
import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from quarterdeck.policy.shell.heredocs import check_heredoc

PARSER = Parser(Language(tree_sitter_bash.language()))


def documents(node: Node) -> list[Node]:
    found = [node] if node.type == "heredoc_redirect" else []
    return found + [each for child in node.children for each in documents(child)]


def doubt(text: str) -> str | None:
    """Why the only here-document of a text is doubtful."""
    source = text.encode()
    (found,) = documents(PARSER.parse(source).root_node)
    return check_heredoc(found, source)


@pytest.mark.parametrize(
    "text",
    [
        "cat <<E\na\nE\n",
        "cat <<E\na\nE",
        "cat <<'E'\n$(a)\nE\n",
        'cat <<"E"\n`a`\nE\n',
        "cat <<\\E\n$(a)\nE\n",
        "cat <<-E\n\ta\n\tE\n",
        "cat <<E\n$(a) ${b}\nE\n",
        "cat <<E\n\\$(a) \\`b\nE\n",
        "cat <<E | sort\na\nE\n",
    ],
)
def test_a_document_that_is_what_it_seems_is_not_doubted(text: str) -> None:
    assert doubt(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cat <<E$x\na\nE$x\n", "delimiter is unusual"),
        ("cat <<'E'x\na\nEx\n", "end elsewhere"),
        ("cat <<E\na\n", "end elsewhere"),
        # The parser takes the first line for the end of the document; bash does not.
        ("cat <<E\nEE\n E\nE\n", "end elsewhere"),
    ],
)
def test_a_document_whose_end_is_not_plain_is_doubted(text: str, why: str) -> None:
    found = doubt(text)
    assert found is not None
    assert why in found


def test_a_tree_that_ends_a_document_elsewhere_than_its_text_does_is_doubted() -> None:
    # The tree of one text, held against another of the same length in which the end comes earlier.
    told, real = b"cat <<E\na\nb\nE\n", b"cat <<E\na\nE\nE\n"
    (found,) = documents(PARSER.parse(told).root_node)
    assert check_heredoc(found, told) is None
    assert check_heredoc(found, real) == "the here-document may end elsewhere"


def test_a_substitution_that_the_tree_does_not_show_is_doubted() -> None:
    told, real = b"cat <<E\naa bc\nE\n", b"cat <<E\n$(b) \nE\n"
    (found,) = documents(PARSER.parse(told).root_node)
    assert check_heredoc(found, told) is None
    assert check_heredoc(found, real) == "the here-document may substitute commands"
