"""Who may label, where several people do: each has a token."""

from __future__ import annotations

from superarm.errors import InvalidInput
from superarm.label.names import FILE, check_person
from superarm.service.http.tokens import Tokens


class People(Tokens):
    """Tokens of people: in the file, one a line, each after its person's name. All may do the same.

    Args:
        file: the file.
    """

    line = f"a name without spaces and commas, not {FILE!r}, and a token"
    owner = "superarm label"

    def is_holder(self, word: str) -> bool:
        try:
            check_person(word)
        except InvalidInput:
            return False
        return True

    def role(self, header: bytes) -> str | None:
        return None if self._holder(header) is None else "person"

    def person(self, header: bytes) -> str:
        return self._holder(header) or ""
