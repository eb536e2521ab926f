"""Spark's Python processes: how its daemon and workers read their settings, and what pyspark imports when it starts.

The replacements of a daemon or worker last as long as its process. The release 4.2.0 of pyspark lower-cases every setting of a Python
function, and the schema of its state is one of them. `elementType` becomes `elementtype`, and an array or map in the state of
`applyInPandasWithState` fails with a KeyError.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

from lakelet.base.patching import Patch, put_on, without_context

# Schemas as JSON, and the path of a Unix socket.
_CASE_MATTERS = frozenset({"state_value_schema", "grouping_key_schema", "state_server_socket_port"})


def _worker_with_exact_settings(worker: Callable[..., int]) -> Callable[..., int]:
    def run(*arguments: Any, **named: Any) -> int:
        _read_exact_settings()  # in the worker alone: what it imports may start threads, and a fork does not take them along
        return worker(*arguments, **named)

    return run


@functools.cache
def _read_exact_settings() -> None:
    """Replace what a worker reads settings by: once, as the daemon calls `worker` again for each task of a process that is reused."""
    put_on(WORKER)


def _setting_as_sent(get: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: Any, key: str, default: Any = "", *, lower_str: bool = True) -> Any:
        return get(self, key, default, lower_str=lower_str and key not in _CASE_MATTERS)

    return read


_EXACT_SETTINGS_WHY = "the schema of a state keeps upper and lower case"

DAEMON: tuple[Patch, ...] = (Patch("pyspark.daemon", "worker", without_context(_worker_with_exact_settings), _EXACT_SETTINGS_WHY, "1.1.0"),)
"""For the process that forks the workers."""

WORKER: tuple[Patch, ...] = (Patch("pyspark.worker_util.Conf", "get", without_context(_setting_as_sent), _EXACT_SETTINGS_WHY, "4.2.0"),)
"""For one worker process."""


# ------------------------------------------------------------------------------------------------------------- what pyspark imports


def _found_without_import(original: Callable[[], None]) -> Callable[[], None]:
    def require() -> None:
        if importlib.util.find_spec("pandas") is None:
            original()  # says what is missing

    return require


PANDAS_UNTOUCHED: tuple[Patch, ...] = (
    Patch(
        "pyspark.sql.pandas.utils",
        "require_minimum_pandas_version",
        without_context(_found_without_import),
        "whether pandas is there can be seen without importing it; Lakelet's own requirements name its versions",
        "2.4.0",
    ),
)

__all__ = ["DAEMON", "PANDAS_UNTOUCHED", "WORKER"]
