"""Tables get what is declared about them also where nothing new is to be written (docs/semantics/table-properties.md, TP-1 ff)."""

from __future__ import annotations

from dataclasses import replace

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException

from lakelet.base.errors import LakeletError
from lakelet.cdc import guarding
from lakelet.flows.context import FlowRun
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.storage.delta import column_mapping, schemas, tables


def refresh(run: FlowRun) -> None:
    """Give the table of a flow comment, properties, clustering and NOT NULL as declared, unless the registry says that it has them.

    Raises NOT_NULL_VIOLATED, SCHEMA_INCOMPATIBLE for other partition columns, and FLOW_FAILED for what Delta refuses.
    """
    environment = run.environment
    known = environment.storage.registry().datasets.get(run.dataset.name.key)
    wanted = run.description()
    if run.dataset.sink is not None or known is None or known.described == wanted:
        return
    spec, path = column_mapping.without_automatic(run.dataset, run.table_spec(run.analyzed.schema)), run.path()
    change = guarding.redescribe if run.flow.flow.changes is not None else tables.redescribe
    try:
        described = change(environment.spark, path, spec)
    except (LakeletError, schemas.Incompatible, PySparkException, Py4JJavaError) as problem:
        what = "its table could not be described as declared"
        raise run_failure(problem, dataset=str(run.dataset.name), where=run.dataset.where, what=what) from None
    if described:
        environment.storage.remember(replace(run.stored(), described=wanted))
