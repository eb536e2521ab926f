"""How Spark's Python workers read their settings. The replacements last as long as the process of the daemon or worker.

pyspark 4.2.0 lower-cases every setting of a Python function, and the schema of its state is one of them: `elementType` becomes
`elementtype`, and an array or map in the state of `applyInPandasWithState` fails with a KeyError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakelet.base.patching import Patch, put_on, without_context

# Schemas as JSON, and the path of a Unix socket.
_CASE_MATTERS = frozenset({"state_value_schema", "grouping_key_schema", "state_server_socket_port"})


def _mended(worker: Callable[..., int]) -> Callable[..., int]:
    def run(*arguments: Any, **named: Any) -> int:
        put_on(WORKER)  # in the worker alone: what it imports may start threads, and a fork does not take them along
        return worker(*arguments, **named)

    return run


def _as_sent(get: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: Any, key: str, default: Any = "", *, lower_str: bool = True) -> Any:
        return get(self, key, default, lower_str=lower_str and key not in _CASE_MATTERS)

    return read


_WHY = "the schema of a state keeps upper and lower case"

DAEMON: tuple[Patch, ...] = (Patch("pyspark.daemon", "worker", without_context(_mended), _WHY, "1.1.0"),)
"""For the process that forks the workers."""

WORKER: tuple[Patch, ...] = (Patch("pyspark.worker_util.Conf", "get", without_context(_as_sent), _WHY, "4.2.0"),)
"""For one worker process."""

__all__ = ["DAEMON", "WORKER"]
