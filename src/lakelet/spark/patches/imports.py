"""What pyspark imports only to see whether it is there."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from lakelet.base.patching import Patch, without_context


def _found_only(original: Callable[[], None]) -> Callable[[], None]:
    def require() -> None:
        if importlib.util.find_spec("pandas") is None:
            original()  # says what is missing

    return require


PANDAS_UNTOUCHED: tuple[Patch, ...] = (
    Patch(
        "pyspark.sql.pandas.utils",
        "require_minimum_pandas_version",
        without_context(_found_only),
        "whether pandas is there can be seen without importing it; Lakelet's own requirements name its versions",
        "2.4.0",
    ),
)

__all__ = ["PANDAS_UNTOUCHED"]
