"""From the entries of a session file to the conversation.

Owns the selection and order of messages. Pure: it sees the links between entries, not their texts;
`history` reads the file.

A session file is a tree, not a list. Each entry names its parent, and a file holds abandoned
branches (an edited prompt, a rewind). The conversation is the path from the newest leaf to the
root. The CLI writes one entry for each content block of a response, and attaches each tool result
to the entry of its call. So a response with parallel calls branches too, and the path from the leaf
misses all results but one. Those are added here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry of the tree, without its text: `start` and `size` say where that is."""

    kind: str
    uuid: str
    parent: str | None = None
    start: int = 0
    size: int = 0
    timestamp: str = ""
    aside: bool = False
    """Not part of the conversation as a person sees it: meta, of a subagent, or of a team."""
    sidechain: bool = False
    agent_id: str | None = None
    response: str | None = None
    """The id of the API response, for an assistant's entry."""
    calls: tuple[str, ...] = ()
    """The ids of the tool calls in it."""
    returns: bool = False
    """Whether it brings back a tool's result,"""
    answers: tuple[str, ...] = ()
    """… and of which calls,"""
    source: str | None = None
    """… and from which entry it says they came."""

    @property
    def is_message(self) -> bool:
        return self.kind in {"user", "assistant"}


def conversation(entries: Sequence[Entry]) -> list[Entry]:
    """The conversation that a session file holds, hidden entries included, oldest first."""
    by_uuid = {entry.uuid: entry for entry in entries}
    leaf = _newest_leaf(entries, by_uuid)
    return _with_parallel_results(by_uuid, path_to(leaf, by_uuid)) if leaf else []


def path_to(leaf: Entry, by_uuid: Mapping[str, Entry]) -> list[Entry]:
    """The way from the root to `leaf`. A ring of parents, which only damage makes, ends it."""
    way: dict[str, Entry] = {}
    step: Entry | None = leaf
    while step is not None and step.uuid not in way:
        way[step.uuid] = step
        step = by_uuid.get(step.parent) if step.parent else None
    return list(reversed(way.values()))


def _newest_leaf(entries: Sequence[Entry], by_uuid: Mapping[str, Entry]) -> Entry | None:
    """The last message of those that end a branch; hidden entries count only if there is no
    other.
    """
    place = {entry.uuid: number for number, entry in enumerate(entries)}
    parents = {entry.parent for entry in entries}
    leaves: list[Entry] = []
    seen: set[str] = set()
    for entry in entries:
        if entry.uuid in parents:
            continue
        step: Entry | None = by_uuid[entry.uuid]
        # Where an earlier branch has passed, its leaf has been taken already.
        while step is not None and step.uuid not in seen:
            seen.add(step.uuid)
            if step.is_message:
                leaves.append(step)
                break
            step = by_uuid.get(step.parent) if step.parent else None
    return max(leaves, key=lambda leaf: (not leaf.aside, place[leaf.uuid]), default=None)


def _with_parallel_results(by_uuid: Mapping[str, Entry], way: list[Entry]) -> list[Entry]:
    """Add the missing entries after each response on the path."""
    last_of = {entry.response: entry.uuid for entry in way if entry.response}
    if not last_of:
        return way
    tools = _Tools(by_uuid)
    done = {entry.uuid for entry in way}
    answered = {call for entry in way for call in entry.answers}
    inserts: dict[str, list[Entry]] = {}
    for response in dict.fromkeys(entry.response for entry in way if entry.response):
        missing = tools.missing_entries(response, done, answered)
        done.update(entry.uuid for entry in missing)
        inserts[last_of[response]] = missing
    return [entry for step in way for entry in (step, *inserts.get(step.uuid, ()))]


class _Tools:
    """Which entry made which call, and which result may belong to which entry."""

    def __init__(self, by_uuid: Mapping[str, Entry]) -> None:
        self._by_uuid = by_uuid
        self._place = {uuid: number for number, uuid in enumerate(by_uuid)}
        self._members: dict[str, list[Entry]] = {}
        self._caller: dict[str, Entry | None] = {}
        for entry in by_uuid.values():
            if entry.response:
                self._members.setdefault(entry.response, []).append(entry)
                for call in entry.calls:
                    self._claim(call, entry)
        self._results: dict[str, list[Entry]] = {}
        for entry in by_uuid.values():
            if entry.returns and entry.parent:
                for owner in self._owners(entry):
                    self._results.setdefault(owner, []).append(entry)

    def missing_entries(
        self, response: str, done: set[str], answered: Iterable[str]
    ) -> list[Entry]:
        """The entries of `response` that are not `done`: calls first, then their results."""
        members = self._members[response]
        inside = {member.uuid for member in members}
        results = {
            result.uuid: result
            for member in members
            for result in self._results.get(member.uuid, ())
            if result.uuid not in done
        }
        own = [result for result in results.values() if result.parent in inside]
        strays = [result for result in results.values() if result.parent not in inside]
        own += self._stray_results(
            strays, inside, {*answered, *(c for r in own for c in r.answers)}
        )
        calls = [member for member in members if member.uuid not in done]
        return sorted(calls, key=_time) + sorted(own, key=_time)

    def _stray_results(
        self, strays: list[Entry], inside: set[str], answered: set[str]
    ) -> list[Entry]:
        """Of results that hang elsewhere in the tree, those that answer a call still open."""
        wanted: list[Entry] = []
        for stray in sorted(strays, key=lambda entry: self._place[entry.uuid]):
            for call in stray.answers:
                caller = self._caller.get(call)
                if call not in answered and caller is not None and caller.uuid in inside:
                    answered.update(stray.answers)
                    wanted.append(stray)
                    break
        return wanted

    def _claim(self, call: str, entry: Entry) -> None:
        """Note which entry made a call. A call that two responses claim belongs to neither."""
        if call in self._caller:
            before = self._caller[call]
            alike = before is not None and before.response == entry.response
            self._caller[call] = entry if alike else None
        else:
            self._caller[call] = entry

    def _owners(self, result: Entry) -> Iterable[str]:
        """The entries that a result may belong to: by its parent, its source, and its call."""
        assert result.parent is not None
        owners = {result.parent: None}
        callers = [self._by_uuid.get(result.source or "")]
        callers += [self._caller.get(call) for call in result.answers]
        for caller in callers:
            if caller is not None and _same_writer(caller, result):
                owners[caller.uuid] = None
        return owners


def _same_writer(one: Entry, other: Entry) -> bool:
    return (one.sidechain, one.agent_id) == (other.sidechain, other.agent_id)


def _time(entry: Entry) -> str:
    return entry.timestamp
