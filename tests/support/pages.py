"""The pages of the documentation, and their examples, run as a reader would run them.

A page is cut into its headings, links and fenced blocks. `run_example` plays the reader: an empty
folder, a home with nothing in it but settings that point the real CLI to the scripted model, and
`python example.py`. The code is not touched.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import anyio
from msgspec import Struct

from quarterdeck.testing.clis import RealCli, isolated_env
from support.bounds import SECONDS
from support.clis import PROJECT

_FENCE = re.compile(
    r"^(?P<fence>```+)(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\[[^\]\[]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<text>.+?) *$", re.MULTILINE)


_TO_THE_MODEL = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")
"""What an `Agent` does not pass on by itself. The reader's CLI has it in its settings."""


class Block(Struct, frozen=True):
    """A fenced block. `line` is the number of the line on its page where the code begins."""

    language: str
    code: str
    line: int


class Page(Struct, frozen=True):
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        """Its path from the project's root."""
        return self.path.relative_to(PROJECT).as_posix()

    @property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The page without its fenced blocks, in which links and headings are none."""
        return _FENCE.sub("", self.text)

    def blocks(self, language: str) -> list[Block]:
        """The fenced blocks of a language, in order."""
        text = self.text
        return [
            Block(found["language"], found["code"], text.count("\n", 0, found.start("code")) + 1)
            for found in _FENCE.finditer(text)
            if found["language"] == language
        ]

    @property
    def links(self) -> list[str]:
        """Where its links lead, as they are written."""
        return [found["target"] for found in _LINK.finditer(self.prose)]

    @property
    def anchors(self) -> set[str]:
        """The names by which its headings can be linked to, as the usual renderers make them."""
        return {_anchor(found["text"]) for found in _HEADING.finditer(self.prose)}


def _anchor(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def page(name: str) -> Page:
    """The page at this path from the project's root."""
    return Page(PROJECT / name)


def all_pages() -> list[Page]:
    """Every page: those at the root, and all under `docs`."""
    return [
        Page(path)
        for path in (*sorted(PROJECT.glob("*.md")), *sorted(PROJECT.glob("docs/**/*.md")))
    ]


class Reader:
    """Somebody who tries the examples: a home and a folder of their own, and one CLI."""

    def __init__(self, folder: Path, model_url: str, cli: RealCli) -> None:
        self.cwd = folder / "work"
        home = folder / "home"
        env = isolated_env(home, model_url)
        settings = {"env": {name: env.pop(name) for name in _TO_THE_MODEL}}
        # The CLI is found as any reader's is: by its name, on the PATH.
        commands = folder / "bin"
        for made in (self.cwd, home / ".claude", commands):
            made.mkdir(parents=True)
        (commands / "claude").symlink_to(cli.command[-1])
        (home / ".claude" / "settings.json").write_text(json.dumps(settings))
        self.env = {**env, "PATH": f"{commands}:{env['PATH']}"}

    async def run(self, code: str) -> str:
        """Run an example as it is written; gives what it printed, and fails if it does."""
        return await self.shell([sys.executable, str(self.save(code))])

    def save(self, code: str, name: str = "example.py") -> Path:
        """Put an example into a file, as a reader would."""
        file = self.cwd / name
        file.write_text(code)
        return file

    async def shell(self, command: list[str]) -> str:
        """Run a command to its end; gives what it printed."""
        with anyio.fail_after(SECONDS):
            ended = await anyio.run_process(command, cwd=self.cwd, env=self.env, check=False)
        said = ended.stdout.decode()
        assert ended.returncode == 0, f"{said}\n{ended.stderr.decode()}"
        return said
