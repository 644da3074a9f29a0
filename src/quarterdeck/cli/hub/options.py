"""Options that several of the hub's commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Hub = Annotated[
    str | None,
    typer.Option("--hub", metavar="URL", help="A hub elsewhere; else the one of this machine."),
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="Holds the token for it.")
]
Json = Annotated[bool, typer.Option("--json", help="For machines: one object a line.")]
Session = Annotated[
    str, typer.Argument(metavar="SESSION", help="Its id, as much as is unique, or its name.")
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration; else quarterdeck.toml in the data folder.",
    ),
]
