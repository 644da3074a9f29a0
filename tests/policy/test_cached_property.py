"""A property that is worked out once for each object."""

from __future__ import annotations

from quarterdeck.domain.structs import Value
from quarterdeck.policy.cached_property import cached

worked_out: list[str] = []


class Thing(Value, dict=True):
    name: str

    @cached
    def shout(self) -> str:
        """Loudly."""
        worked_out.append(self.name)
        return self.name.upper()


def test_it_is_worked_out_once_for_each_object() -> None:
    worked_out.clear()
    one, other = Thing(name="a"), Thing(name="b")
    assert [one.shout, one.shout, other.shout, one.shout] == ["A", "A", "B", "A"]
    assert worked_out == ["a", "b"]
    assert Thing.shout.__doc__ == "Loudly."


def test_what_is_kept_is_no_part_of_the_value() -> None:
    one, other = Thing(name="a"), Thing(name="a")
    assert one.shout
    assert one == other
    assert hash(one) == hash(other)
