"""A person as the server knows them, by the token that let them in."""

from __future__ import annotations

from quarterdeck.domain.errors import Forbidden
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.roles import RIGHTS, Right, Role


class Person(Value):
    """The sender of a request. `name` is the `by` of their commands."""

    name: str
    role: Role
    grant: str
    """The id of the token that let them in."""
    expires: float | None = None

    def may(self, right: Right) -> bool:
        """Whether they have a right."""
        return right in RIGHTS[self.role]

    def need(self, right: Right) -> None:
        """Raise `Forbidden` unless they have a right."""
        if not self.may(right):
            raise Forbidden(f"{self.name} is {_article(self.role)} and may not {right.value}")


def _article(role: Role) -> str:
    return f"an {role.value}" if role.value[0] in "aeiou" else f"a {role.value}"
