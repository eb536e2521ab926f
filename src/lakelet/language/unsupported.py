"""Refusals of what this version knows of the DLT language and does not execute."""

from __future__ import annotations

from typing import NoReturn

from lakelet.base.errors import LakeletError, Location
from lakelet.base.user_code import caller_location


def unsupported(feature: str, where: Location | None = None) -> NoReturn:
    """Raise NOT_SUPPORTED_YET for a part of the language: silence would change the result."""
    raise LakeletError(
        "NOT_SUPPORTED_YET",
        f"{feature} is part of the DLT language, but this version of Lakelet does not execute it",
        where=where or caller_location(),
        todo="Leave it out, or run this pipeline on Databricks until a later version supports it.",
    )
