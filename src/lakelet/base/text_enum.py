"""Enumerations whose members are texts."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class TextEnum(str, Enum):
    """A set of words that are stored and shown: a member equals its text, and is written as it by `json`, `str` and `format`.

    `TextEnum(text)` gives the member. Raises ValueError for a text that is none of them.
    """

    @classmethod
    def read(cls, text: str) -> Self | str:
        """The member of a stored text; the text itself where a newer Lakelet has written one that is not known here."""
        try:
            return cls(text)
        except ValueError:
            return text

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, format_spec: str) -> str:
        return format(self.value, format_spec)
