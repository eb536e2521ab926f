"""Notices of what user code asks for: with the flow whose function runs, or with the source file that is being loaded."""

from __future__ import annotations

from lakelet.base.user_code import caller_location
from lakelet.language.registry import Notice, active_reader
from lakelet.spark import settings


def tell(text: str) -> None:
    """Report a notice once for a flow, or at the line of a source file."""
    notices: list[Notice] | None = getattr(active_reader(), "notices", None)
    if notices is None:
        settings.note(text)
    elif all(notice.text != text for notice in notices):
        notices.append(Notice(text, caller_location()))


__all__ = ["tell"]
