"""Why JSON was refused, in plain words: `spec.model: expected text, got a whole number`.

msgspec says what is wrong first and where last, in the words of Python. People and scripts that
send JSON know the names of its members: those come first here.
"""

from __future__ import annotations

import re

import msgspec

_PLACE = re.compile(r"(?P<what>.*) - at `(?:key in )?\$\.?(?P<place>[^`]*)`", re.DOTALL)
_FIELD = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<name>.*)`")
_OWN = re.compile(r"(?P<name>[a-z_]\w*): (?P<why>.*)", re.DOTALL)
_KIND = re.compile(r"`([^`]*)`")
_VALUE = re.compile(r"Invalid (?:enum )?value (?P<value>.*)", re.DOTALL)
_MALFORMED = "JSON is malformed: "
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_BOUNDS = (
    (" of length >= ", " with a length of at least "),
    (" of length <= ", " with a length of at most "),
    (" >= ", " of at least "),
    (" <= ", " of at most "),
    (" > ", " above "),
    (" < ", " below "),
    (" matching regex ", " that matches "),
)


LONGEST = 2000
"""An error quotes names and values, which may be as long as a body: the middle of a longer one is
left out."""


def describe(error: msgspec.DecodeError) -> str:
    """The error in plain words, after the name of the member that it is about."""
    text = _short(str(error))
    if text.startswith(_MALFORMED):
        return f"not JSON: {text.removeprefix(_MALFORMED)}"
    if text == "Input data was truncated":
        return "not JSON: it is not complete"
    found = _PLACE.fullmatch(text)
    place, what = (found["place"], found["what"]) if found is not None else ("", text)
    if (field := _FIELD.fullmatch(what)) is not None:
        why = "missing" if field["how"].startswith("missing") else "unknown field"
        return f"{_member(place, field['name'])}: {why}"
    if what.startswith("Expected "):
        what = _expectation(what)
    elif (value := _VALUE.fullmatch(what)) is not None:
        what = f"{value['value']} is not one of its values"
    elif (own := _OWN.fullmatch(what)) is not None:
        # An error of ours about one of several members names that.
        return f"{_member(place, own['name'])}: {own['why']}"
    return f"{place}: {what}" if place else what


def _short(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def _member(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _expectation(what: str) -> str:
    for sign, words in _BOUNDS:
        what = what.replace(sign, words, 1)
    return _KIND.sub(lambda found: _kinds(found[1]), what[0].lower() + what[1:])


def _kinds(text: str) -> str:
    kinds = [_KINDS.get(each, each) for each in text.split(" | ")]
    return ", ".join(kinds[:-1]) + " or " + kinds[-1] if len(kinds) > 1 else kinds[0]
