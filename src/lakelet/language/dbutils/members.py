"""Shared base of all parts of `dbutils`: unknown members, refusals, notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.locations import caller_location
from lakelet.language.registry import Notice

Note = Callable[[Notice], None]


class UnknownMember(LakeletError, AttributeError):
    """DBUTILS_UNKNOWN; an AttributeError too, so that `hasattr` answers."""


class Group:
    """A part of `dbutils`; asking for what it does not have names what is near."""

    _name = "dbutils"

    def __init__(self, note: Note) -> None:
        self._note = note

    def __getattr__(self, member: str) -> Any:
        if member.startswith("_"):
            raise AttributeError(member)
        known = [name for name in dir(self) if not name.startswith("_")]
        raise UnknownMember(
            "DBUTILS_UNKNOWN",
            f"{self._name} has no {member!r}",
            where=caller_location(),
            nearest=nearest_names(member, known),
            todo=f"Here it has {', '.join(known)}.",
        )

    def __reduce__(self) -> Any:
        raise LakeletError(
            "DBUTILS_REFUSED",
            f"{self._name} is used in a function that runs on Spark's workers",
            why="It is there where the files are loaded only.",
            todo="Ask outside of the function and use the value in it.",
        )

    def help(self, *_: Any) -> None:
        """Shows nothing in a pipeline."""
        self._without_effect("help")

    def _without_effect(self, call: str, why: str = "nothing is shown in a pipeline") -> None:
        self._note(Notice(f"{self._name}.{call} has no effect here: {why}", caller_location()))

    def _refused(self, call: str, why: str, todo: str) -> LakeletError:
        return LakeletError("DBUTILS_REFUSED", f"{self._name}.{call} is not executed", where=caller_location(), why=why, todo=todo)
