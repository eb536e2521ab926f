"""The notice of a table that got column mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelet.storage.delta import column_mapping
from lakelet.storage.eventlog.events import INFO, WARN

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.flows.context import FlowRun


def emit_mapping(run: FlowRun, schema: StructType) -> None:
    """Report that the flow's table has just got column mapping. One warning per update; the other tables follow from the first one."""
    environment, name = run.environment, str(run.dataset.name)
    if not column_mapping.automatic(run.dataset, [run.flow.flow]):
        return
    names = list(column_mapping.odd_names(schema))
    level = INFO if environment.mapped else WARN
    environment.mapped.append(name)
    body = {"text": "column mapping by name was switched on", "columns": names}
    environment.emit("notice", column_mapping.switched_on(names, name), body, dataset=name, flow=run.name, level=level)
