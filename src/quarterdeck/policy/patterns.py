"""Commands as rules name them: by their words, such as `git push`.

To stop, options may stand between the words, and a program may be called by its full names. To
allow, the same is a rule in Claude Code's syntax (`Pattern.rule`). `rules` decides which is meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from quarterdeck.domain.structs import Value
from quarterdeck.policy import specifiers
from quarterdeck.policy.facts import Tri
from quarterdeck.policy.shell import Part
from quarterdeck.policy.shell.aliases import other_names


@lru_cache(maxsize=4_096)
def is_plain(word: str) -> bool:
    """Whether a word has no wildcards."""
    return not set(word) & set("*?[")


def _fits(text: str, word: str) -> bool:
    """Whether a text is a word of a pattern, which may have wildcards."""
    return text == word if is_plain(word) else fnmatchcase(text, word)


class Pattern(Value):
    """A command by its words, such as `git push`. A word may have wildcards."""

    words: tuple[str, ...]
    rule: specifiers.Rule
    """The same for allowing: `Bash(git push:*)`."""

    def place(self, part: Part) -> int | None:
        """The index of the word of a part that the pattern's last word matches; None if none does.

        Options may be between the words, each with a value: `git -C there push`.
        """
        name = part.name
        if name is None or not (
            _fits(name, self.words[0]) or part.words[0].literal == self.words[0]
        ):
            return None
        at, after_option = 0, False
        wanted = list(self.words[1:])
        for index, word in enumerate(part.words[1:], 1):
            if not wanted:
                break
            text = word.literal
            if text is None:
                return None
            if _fits(text, wanted[0]):
                at, after_option = index, False
                del wanted[0]
            elif text.startswith("-"):
                after_option = True
            elif after_option:
                after_option = False
            else:
                return None
        return None if wanted else at

    def goes_on(self, seconds: Iterable[str]) -> bool:
        """Whether its second word is one of these."""
        for each in seconds:  # noqa: SIM110 - for every command: `any` would take twice as long
            if _fits(each, self.words[1]):
                return True
        return False

    def _is_called(self, part: Part) -> bool:
        """Whether a part begins with its words by its full or other names: `npm publish` for
        `npm publ`, `docker push` for `docker image push`.
        """
        return any(
            len(called) >= len(self.words)
            and all(_fits(text, word) for text, word in zip(called, self.words, strict=False))
            for called in (part.called, *part.same)
        )

    def begins(self, part: Part) -> bool:
        """Whether a part certainly begins with its words, with nothing between them."""
        if part.name is None or len(part.words) < len(self.words):
            return False
        texts = [part.name, *(word.literal for word in part.words[1 : len(self.words)])]
        return all(
            text is not None and _fits(text, word)
            for text, word in zip(texts, self.words, strict=True)
        )

    def fits(self, part: Part) -> Tri:
        """Whether a part is such a command."""
        if not part.words:
            return False  # a redirection with no command
        name, first = part.name, self.words[0]
        # Most rules are about other programs: this is asked for each of them.
        other = name is not None and name != first and is_plain(first)
        if (
            other
            and part.words[0].literal != first
            and not (part.called and part.called[0] == first)
            and not any(each[0] == first for each in part.same)
        ):
            return False
        if self.place(part) is not None or self._is_called(part):
            return True
        if name is None:
            return None
        if not _fits(name, first):
            return False
        if part.known == len(part.words) and not part.open_ended:
            return False
        return None if any(_may_follow(each, part) for each in self._names(first)) else False

    def _names(self, first: str) -> list[tuple[str, ...]]:
        """Its words, and those of the same command of the program under other names."""
        return [self.words, *(each for each in other_names(self.words) if each[0] == first)]


def _may_follow(words: tuple[str, ...], part: Part) -> bool:
    """May the remaining words of a pattern be among the unknown words of a part?"""
    wanted, after_option = 1, False
    for word in part.words[1:]:
        text = word.literal
        if text is None:
            return wanted < len(words)
        if wanted < len(words) and _fits(text, words[wanted]):
            wanted, after_option = wanted + 1, False
        elif text.startswith("-"):
            after_option = True
        elif after_option:
            after_option = False
        else:
            return False
    return part.open_ended and wanted < len(words)
