"""The names of `import dlt` (`DLT`) and of `from pyspark import pipelines as dp` (`DP`), and their modules.

Declaring does nothing but declare: a decorator checks its arguments, records a frozen value in the active registry and returns a callable
that still is the user's function. Lakelet does not own the name `dlt`: another project does, and Databricks ships a stub under it. So the
modules are put in place for a while and taken away again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.patching import Patch, patched_with
from lakelet.language.change_flows import (
    apply_changes,
    apply_changes_from_snapshot,
    create_auto_cdc_flow,
    create_auto_cdc_from_snapshot_flow,
)
from lakelet.language.datasets import create_streaming_table, create_table_decorator, materialized_view, streaming_table, table, view
from lakelet.language.event_hooks import on_event_hook
from lakelet.language.expectations import expect, expect_all, expect_all_or_drop, expect_all_or_fail, expect_or_drop, expect_or_fail
from lakelet.language.flows import append_flow, append_flow_into, replace_flow, update_flow
from lakelet.language.reads import enable_local_execution, read, read_stream
from lakelet.language.sinks import create_sink, foreach_batch_sink

_SHARED: Mapping[str, Any] = {
    "append_flow": append_flow,
    "apply_changes": apply_changes,
    "apply_changes_from_snapshot": apply_changes_from_snapshot,
    "create_auto_cdc_flow": create_auto_cdc_flow,
    "create_auto_cdc_from_snapshot_flow": create_auto_cdc_from_snapshot_flow,
    "create_sink": create_sink,
    "create_streaming_live_table": create_streaming_table,
    "create_streaming_table": create_streaming_table,
    "create_target_table": create_streaming_table,
    "create_view": view,
    "enable_local_execution": enable_local_execution,
    "expect": expect,
    "expect_all": expect_all,
    "expect_all_or_drop": expect_all_or_drop,
    "expect_all_or_fail": expect_all_or_fail,
    "expect_or_drop": expect_or_drop,
    "expect_or_fail": expect_or_fail,
    "foreach_batch_sink": foreach_batch_sink,
    "materialized_view": materialized_view,
    "on_event_hook": on_event_hook,
    "read": read,
    "readStream": read_stream,
    "read_stream": read_stream,
    "replace_flow": replace_flow,
    "temporary_view": view,
    "update_flow": update_flow,
    "view": view,
}

DLT: Mapping[str, Any] = {**_SHARED, "table": table, "create_table": create_table_decorator}
"""Names of `import dlt`."""

DP: Mapping[str, Any] = {**_SHARED, "table": streaming_table, "create_table": create_streaming_table, "append_flow": append_flow_into}
"""Names of `from pyspark import pipelines as dp`; `table` is a streaming table if its query streams, else a materialized view;
`create_table` is a plain function."""


# ------------------------------------------------------------------------------------------------------------- modules


_ABSENT = object()

MODULES: tuple[Patch, ...] = (
    Patch("pyspark", "pipelines", lambda _, module: module, "`from pyspark import pipelines` means Lakelet", "4.1.0", optional=True),
)
"""The attribute of pyspark that goes with the modules; the context is the module."""


@contextmanager
def dlt_modules() -> Iterator[None]:
    """`import dlt` and `from pyspark import pipelines` mean Lakelet inside the block.

    Raises FOREIGN_DLT if another package's `dlt` has been imported already: user code may hold names of it.
    """
    foreign = sys.modules.get("dlt")
    if foreign is not None:
        raise LakeletError(
            "FOREIGN_DLT",
            f"the module dlt of another package is already imported ({getattr(foreign, '__file__', 'unknown file')})",
            todo="Do not import dlt before the pipeline is loaded; see `lakelet doctor` for the package that owns it.",
        )
    replaced = {name: sys.modules.get(name, _ABSENT) for name in ("dlt", "pyspark.pipelines", "databricks.pipelines")}
    pipelines = _module_of("pyspark.pipelines", DP)
    sys.modules["dlt"] = _module_of("dlt", DLT)
    sys.modules["pyspark.pipelines"] = pipelines
    sys.modules["databricks.pipelines"] = pipelines  # its name in some runtimes of Databricks
    try:
        with patched_with(MODULES, pipelines):
            yield
    finally:
        for name, module in replaced.items():
            if module is _ABSENT:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module  # type: ignore[assignment]


def _module_of(name: str, names: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name, "Lakelet's replacement; see lakelet.language.api.")
    vars(module).update(names)
    vars(module)["__all__"] = list(names)
    return module
