"""The notice of a table that got column mapping."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from lakelet.storage.delta import column_mapping
from lakelet.storage.eventlog.states import Level

if TYPE_CHECKING:
    from lakelet.flows.context import FlowTask


def emit_mapping(task: FlowTask, schema: StructType) -> None:
    """Report that the flow's table has just got column mapping. One warning per update; the other tables follow from the first one."""
    environment, name = task.environment, str(task.dataset.name)
    if not column_mapping.automatic(task.dataset):
        return
    names = list(column_mapping.odd_names(schema))
    level = Level.INFO if environment.memory.mapped else Level.WARN
    environment.memory.mapped.append(name)
    message, text = column_mapping.switched_on(names, name), "column mapping by name was switched on"
    environment.reporter.notice(message, text=text, columns=names, dataset=name, flow=task.name, level=level)


def emit_first_odd_names(task: FlowTask, columns: StructType) -> None:
    """Report that a change table has got column mapping since the registry recorded its columns; `columns`: those that it has now."""
    noted = task.stored().columns
    before = StructType.fromJson(json.loads(noted)) if noted else StructType()
    odd_now, odd_before = (next(column_mapping.odd_names(schema), None) for schema in (columns, before))
    if odd_now is not None and odd_before is None and str(task.dataset.name) not in task.environment.memory.mapped:
        emit_mapping(task, columns)
