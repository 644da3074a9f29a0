"""Write the web deck's types from the hub's schema: `python tools/write_web_types.py [DEST]`.

The hub's OpenAPI document has every event, command and answer. A test writes the types anew and
fails when they are not those in the repository.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from quarterdeck.fronts.http.app import openapi_document

WEB = Path(__file__).parent.parent / "web"
SECONDS = 120

HEADER = """\
// Every event, command and answer of the hub, for the compiler. `make types` writes this file from
// the hub's OpenAPI document, and a test fails when it differs: so it is one file, however long.
// People read `types.ts`, which has the names that the web app uses.
"""


def main(arguments: list[str]) -> int:
    """Write the types into the file given, or where the deck has them."""
    destination = Path(arguments[0]) if arguments else WEB / "src" / "api" / "schema.ts"
    beside_python = Path(sys.executable).parent
    search = f"{beside_python}{os.pathsep}{os.environ.get('PATH', '')}"
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "openapi.json"
        document.write_bytes(openapi_document())
        subprocess.run(
            [
                beside_python / "node",
                WEB / "node_modules" / "openapi-typescript" / "bin" / "cli.js",
                document,
                "--default-non-nullable=false",
                "--output",
                destination.resolve(),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PATH": search},
            timeout=SECONDS,
        )
    destination.write_text(HEADER + destination.read_text())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
