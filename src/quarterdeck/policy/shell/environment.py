"""Variables: which may be set for a command without changing what it does."""

from __future__ import annotations

import re

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.script import Assignment, Effect, EffectKind, Part

SAFE = name_set(
    "LANG LANGUAGE TZ TERM COLUMNS LINES CI NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM"
    " NODE_ENV RUST_BACKTRACE RUST_LOG PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING"
    " PYTEST_DISABLE_PLUGIN_AUTOLOAD GOOS GOARCH CGO_ENABLED GO111MODULE GOEXPERIMENT"
    " GIT_TERMINAL_PROMPT GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME"
    " GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE CHARSET TIME_STYLE BLOCKSIZE"
    " SOURCE_DATE_EPOCH DEBIAN_FRONTEND LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME"
    " LC_MONETARY"
)
"""They change colours, languages, dates: never which program runs, nor which file is used."""

_HARMLESS_VALUES = {
    **dict.fromkeys(("PAGER", "GIT_PAGER", "MANPAGER"), frozenset({"", "cat"})),
    **dict.fromkeys(("EDITOR", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"), frozenset({":", "true"})),
}
"""Programs that other programs are told to use, and that do nothing."""

_LASTING = re.compile(
    r"PATH|CDPATH|IFS|ENV|HOME|SHELL|SHELLOPTS|BASHOPTS|BASH_.*|PS[0-4]|PROMPT_COMMAND|GLOBIGNORE"
    r"|FUNCNEST|FPATH|ZDOTDIR|NULLCMD|READNULLCMD|HISTFILE|TMPDIR|PAGER|EDITOR|VISUAL|BROWSER"
    r"|LESS.*|MAN.*|LD_.*|DYLD_.*|GIT_.*|SSH_.*|RSYNC_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|NPM_.*"
    r"|npm_.*|JAVA_.*|_JAVA_.*|JDK_.*|MAVEN_.*|GRADLE_.*|CARGO.*|RUSTC.*|GO.*|CC|CXX|LDFLAGS"
    r"|CFLAGS|MAKE.*|TAR_.*|GREP_.*|DOCKER_.*|KUBE.*|AWS_.*|HTTP_.*|HTTPS_.*|http_.*|https_.*"
    r"|ALL_PROXY|PIP_.*|UV_.*|GCONV_PATH|LOCPATH|TERMINFO.*|EXINIT|VIMINIT|MYVIMRC|OPENSSL_.*"
    r"|TZDIR|MALLOC_.*|POSIXLY_CORRECT|path|cdpath|fpath|precmd|preexec|chpwd",
    re.DOTALL,
)
"""Names that are likely in the environment already, so that setting them alone reaches programs."""


def lasting_doubt(name: str) -> str | None:
    """Why an assignment with no command is a matter for a person; None if it is not."""
    if name in SAFE or not _LASTING.fullmatch(name):
        return None
    return f"{name} changes the effect of later commands"


def assignment_effect(assignment: Assignment) -> Effect | None:
    """The effect of an assignment before a command; None if it is harmless."""
    if assignment.name in SAFE:
        return None
    if assignment.value.literal in _HARMLESS_VALUES.get(assignment.name, ()):
        return None
    return Effect(
        kind=EffectKind.ALTERS,
        why=f"{assignment.name} in its environment may change its effect",
        token=f"{assignment.name}=",
    )


def export_effect(word: str) -> Effect | None:
    """What `export NAME=value`, or `NAME=value` given to env or sudo, does."""
    name, equals, _ = word.partition("=")
    if name in SAFE or (not equals and not _LASTING.fullmatch(name)):
        return None
    return Effect(
        kind=EffectKind.ALTERS,
        why=f"{name} in the environment may change the effect of commands",
        token=f"{name}=" if equals else name,
    )


_SETS_OPTIONS = name_set("shopt setopt unsetopt emulate source . set bash zsh ksh sh")
_PLAIN_OPTIONS = re.compile(r"[-+][abefhkmnptuvxBCEHPTc]*o?|errexit|nounset|pipefail|xtrace|--")
_OPTIONS_NAMED = frozenset({"BASHOPTS", "SHELLOPTS", "GLOBIGNORE"})


def finds_hidden(part: Part) -> bool:
    """May patterns find names that begin with a dot, from this part of a script on?"""
    if any(each.name in _OPTIONS_NAMED for each in part.assignments):
        return True
    if part.name not in _SETS_OPTIONS:
        return False
    if part.name in {"set", "bash", "sh", "zsh", "ksh"}:
        options = [word for word in part.words[1:] if word.prefix[:1] in {"-", "+", ""}]
        return any(
            word.literal is None or not _PLAIN_OPTIONS.fullmatch(word.literal) for word in options
        ) or (part.name == "set" and not all(_is_plain(word.literal) for word in part.words[1:]))
    return True


def _is_plain(text: str | None) -> bool:
    return text is not None and _PLAIN_OPTIONS.fullmatch(text) is not None
