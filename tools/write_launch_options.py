"""Write what has a field or a row for each launch option: `python tools/write_launch_options.py`.

The table is `quarterdeck.domain.launch_options`. Written from it are classes, so that type checkers
and editors know their fields, and tables of the documentation. A test writes them anew and fails
when they are not those in the repository.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from quarterdeck.domain.launch_options import CARRIED, OPTIONS, SECTIONS, Kind, Offer, Option

PROJECT = Path(__file__).parents[1]
SECONDS = 60

_WRITTEN = "Written by tools/write_launch_options.py from `domain.launch_options`: do not edit."
_START, _END = f"<!-- {_WRITTEN} -->\n", "<!-- end -->"


def main() -> int:
    """Write all of them."""
    for path, text in classes().items():
        path.write_text(text, encoding="utf-8")
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


def classes() -> dict[Path, str]:
    """The modules, as they should be."""
    source = PROJECT / "src" / "quarterdeck"
    return {
        source / "claude" / "launch_fields.py": _module(
            "The fields of `Launch`.",
            "from typing import Literal\nimport msgspec\n"
            "from quarterdeck.domain.launch_options import AnyPath",
            "class LaunchFields(msgspec.Struct, frozen=True, kw_only=True):",
            "The options that are flags of the CLI.",
            _launch_fields(),
        ),
        source / "protocol" / "launch_fields.py": _module(
            "The members of `SessionSpec` that are launch options.",
            "from typing import Literal\nfrom msgspec import Raw, field\n"
            "from quarterdeck.domain.structs import Value",
            "class LaunchMembers(Value):",
            "What a session's CLI is started with.",
            (_spec_member(member, option) for member, option in CARRIED),
        ),
        source / "cli" / "local" / "launch_texts.py": _module(
            "The launch options that commands share, as they are kept.",
            "from quarterdeck.domain.structs import Value",
            "class LaunchTexts(Value):",
            "What was said on the command line.",
            (_text_field(option) for option, _ in _offers(shared=True)),
        ),
        source / "cli" / "commands" / "launch_options.py": _module(
            "The launch options of commands.",
            "from typing import Annotated, NamedTuple\nimport typer",
            "class LaunchOptions(NamedTuple):",
            "What an agent is started with: by `run` here, and by `new` in the hub.",
            (_declared(option, offer) for option, offer in _offers(shared=True)),
            "",
            "class NewOptions(NamedTuple):",
            '    """What only `new` can say."""',
            "",
            *(_declared(option, offer) for option, offer in _offers(shared=False)),
        ),
    }  # fmt: skip


def _module(
    about: str, imports: str, head: str, doc: str, fields: Iterable[str], *more: str
) -> str:
    text = "\n".join(
        [
            f'"""{about}\n\n{_WRITTEN}\n"""',
            "from __future__ import annotations",
            imports,
            head,
            f'    """{doc}"""\n',
            *fields,
            *more,
            "",
        ]
    )
    for command in (["check", "--select=I", "--fix-only", "--quiet"], ["format", "--quiet"]):
        text = subprocess.run(
            [Path(sys.executable).parent / "ruff", *command, "--stdin-filename=written.py", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=PROJECT,
            timeout=SECONDS,
        ).stdout
    return text


# --- classes -------------------------------------------------------------------------------------


def _launch_fields() -> Iterable[str]:
    for about, options in SECTIONS:
        yield f"\n    # {about}"
        for option in options:
            yield f"    {option.name}: {_type(option, 'AnyPath' if option.paths else 'str')}"


def _spec_member(member: str, option: Option) -> str:
    kind = option.spec_type
    default = None if kind is None else "None" if "None" in kind else "field(default_factory=dict)"
    declared = f"{kind} = {default}" if kind else _type(option, "str")
    return f"    {member}: {declared}{_doc(option)}"


def _type(option: Option, text: str) -> str:
    """The type of an option and its default."""
    match option.kind:
        case Kind.SWITCH:
            return f"bool = {option.on}"
        case Kind.SWITCH_OFF:
            return "bool = True"
        case Kind.NUMBER:
            return f"{'float' if option.fraction else 'int'} | None = None"
        case Kind.COMMAS | Kind.EACH:
            return f"tuple[{text}, ...] = ()"
        case Kind.COMMAS_OR_NONE:
            return f"tuple[{text}, ...] | None = None"
        case Kind.VALUE:
            choices = ", ".join(f'"{choice}"' for choice in option.choices)
            return f"{f'Literal[{choices}]' if choices else text} | None = None"


def _doc(option: Option) -> str:
    if option.doc is None:
        return ""
    lines = textwrap.wrap(f'"""{option.doc}"""', 96, break_long_words=False)
    return "".join(f"\n    {line}" for line in lines)


def _offers(*, shared: bool) -> list[tuple[Option, Offer]]:
    return [
        (option, option.offer)
        for option in OPTIONS
        if option.offer is not None and option.offer.shared == shared
    ]


def _text_field(option: Option) -> str:
    return (
        f"    {option.member}: {'tuple[str, ...] = ()' if option.several else _type(option, 'str')}"
    )


def _declared(option: Option, offer: Offer) -> str:
    flags = ", ".join(f'"{flag}"' for flag in offer.flags or (option.flag,))
    metavar = f', metavar="{offer.metavar}"' if offer.metavar else ""
    if option.several:
        kind, default = "str | None" if offer.commas else "list[str] | None", "None"
    else:
        kind, _, default = _type(option, "str").partition(" = ")
    return (
        f"    {option.member or option.command}: Annotated[{kind},"
        f' typer.Option({flags}{metavar}, help="{offer.help}")] = {default}'
    )


# --- pages ---------------------------------------------------------------------------------------


def pages() -> dict[Path, str]:
    """The pages with tables of options, as they should be."""
    folder = PROJECT / "docs" / "reference"
    return {
        folder / "links.md": _with_tables(folder / "links.md", _flag_rows()),
        folder / "client.md": _with_tables(folder / "client.md", _carried_rows(), _refused_rows()),
    }


def _with_tables(page: Path, *tables: list[str]) -> str:
    texts = iter(tables)
    return re.sub(
        f"{re.escape(_START)}.*?{_END}",
        lambda _: "".join([_START, "\n", *(f"{row}\n" for row in next(texts)), "\n", _END]),
        page.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )


def _flag_rows() -> list[str]:
    from quarterdeck.claude.flags import SINCE, UNTIL

    def works(name: str) -> str:
        return f"up to {UNTIL[name]}" if name in UNTIL else SINCE.get(name, "all")

    rows = (f"| `{each.name}` | `{each.flag}` | {works(each.name)} |" for each in OPTIONS)
    return ["| option | flag | works from |", "|---|---|---|", *rows]


def _carried_rows() -> list[str]:
    same = ", ".join(f"`{option.name}`" for option in OPTIONS if _becomes(option) == "")
    others = [option for option in OPTIONS if _becomes(option)]
    return [
        "| option | becomes |",
        "|---|---|",
        f"| {same} | the member of the same name |",
        *(f"| `{option.name}` | {_becomes(option)} |" for option in others),
    ]


def _becomes(option: Option) -> str | None:
    """What an option becomes in a session; empty: the same. None: it is refused."""
    if option.refused is not None:
        return None
    if option.command is not None:
        return f"`{option.command}` of the command"
    if option.becomes is not None or option.spec is not None:
        return option.becomes or f"`{option.spec}`"
    if option.paths:
        how = "absolute paths" if option.several else "an absolute path"
        return f"`{option.name}`, as {how}"
    return ""


def _refused_rows() -> list[str]:
    from quarterdeck.agent.hub_options import NOT_CARRIED  # late: it needs the written classes

    rows = (f"| `{name}` | {reason} |" for name, reason in NOT_CARRIED.items())
    return ["| option | why |", "|---|---|", *rows]


if __name__ == "__main__":
    raise SystemExit(main())
