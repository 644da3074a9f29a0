"""`read`: from a command's text to its `Script`."""

from __future__ import annotations

from quarterdeck.policy.shell.script import Form, Part, Problem, Script, Word

LIMIT = 16_384
"""Characters of a command that is looked into. A longer one is asked about as a whole."""


def read(command: str, *, cwd: str | None = None, limit: int = LIMIT) -> Script:
    """Tell what a command does. `cwd` is the folder that it would start in. Never raises."""
    whole = (0, len(command))
    if len(command) > limit:
        why = f"it is {len(command)} characters long; {limit} are looked into"
        return Script(source=command, problems=(Problem(source="", why=why, span=whole),))
    texts = command.split()
    if not texts or any(not text.replace("-", "").isalnum() for text in texts):
        problem = Problem(source=command, why="it is not understood", span=whole)
        return Script(source=command, problems=(problem,))
    text = " ".join(texts)
    part = Part(
        words=tuple(Word(source=each, text=each, prefix=each) for each in texts),
        text=text,
        forms=(Form(text=text, named=len(texts[0])),),
        span=whole,
    )
    return Script(source=command, parts=(part,))
