"""Spark's Python daemon, whose workers read the schemas that Spark sends them as they were sent.

pyspark 4.2.0 lower-cases every setting of a Python function, and the schema of its state is one of them: `elementType` becomes
`elementtype`, and an array or map in the state of `applyInPandasWithState` fails with a KeyError. On a local master Spark starts this
module in the place of `pyspark.daemon` (`session`), whether its processes are forks of the fork server or interpreters of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark import daemon

# Schemas as JSON, and the path of a Unix socket.
_CASE_MATTERS = frozenset({"state_value_schema", "grouping_key_schema", "state_server_socket_port"})


def mended(worker: Callable[..., int]) -> Callable[..., int]:
    """Return the daemon's function that a worker process runs, after it has corrected how the process reads its settings."""

    @functools.wraps(worker)
    def run(*arguments: Any, **named: Any) -> int:
        from pyspark.worker_util import Conf  # in the worker alone: what it imports may start threads, and a fork does not take them along

        Conf.get = _as_sent(Conf.get)
        return worker(*arguments, **named)

    return run


def _as_sent(get: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(get)
    def read(self: Any, key: str, default: Any = "", *, lower_str: bool = True) -> Any:
        return get(self, key, default, lower_str=lower_str and key not in _CASE_MATTERS)

    return read


if __name__ == "__main__":
    daemon.worker = mended(daemon.worker)
    daemon.manager()
