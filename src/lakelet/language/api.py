"""The names of `import dlt` (`DLT`) and of `from pyspark import pipelines as dp` (`DP`).

Declaring does nothing but declare: a decorator checks its arguments, records a frozen value in the active registry and returns a
callable that still is the user's function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakelet.language.change_flows import (
    apply_changes,
    apply_changes_from_snapshot,
    create_auto_cdc_flow,
    create_auto_cdc_from_snapshot_flow,
)
from lakelet.language.datasets import create_streaming_table, create_table_decorator, materialized_view, streaming_table, table, view
from lakelet.language.event_hooks import on_event_hook
from lakelet.language.expectations import expect, expect_all, expect_all_or_drop, expect_all_or_fail, expect_or_drop, expect_or_fail
from lakelet.language.flows import append_flow, append_flow_into, update_flow
from lakelet.language.reads import enable_local_execution, read, read_stream
from lakelet.language.replacing import replace_flow
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
