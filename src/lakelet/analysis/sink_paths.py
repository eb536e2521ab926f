"""Where the rows of a sink go, and what the event log says of it. No Spark calls but one about schemes of paths.

A Delta sink names a path or a table. A table is the first of these that there is: the one that the user gave a path (`--table`), or the
one that the storage has and the pipeline does not define. Else the sink gets a table below the storage, which later pipelines can read by
its name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.redaction import shown_options
from lakelet.files.stores import scheme_of
from lakelet.language.model import Dataset, Sink
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.names.outside import outside_tables
from lakelet.spark.names.paths import located
from lakelet.storage.root import new_table_path


def sink_path(dataset: Dataset, catalog: Catalog) -> str:
    """Path of a Delta sink's table, relative to the storage where it lies below it; empty for every other sink.

    Raises PATH_NOT_MAPPED for it and for a folder of files, and TARGET_KIND for a table that flows of the pipeline write to or compute.
    """
    sink = dataset.sink
    if sink is None or not (sink.is_delta or sink.is_files):
        return ""
    if sink.table is None:
        path = located_folder(dataset, sink)
        return path if sink.is_delta else ""
    known = catalog.datasets.get(sink.table.key)
    if known is not None and known.sink is None:
        raise LakeletError(
            "TARGET_KIND",
            f"the sink writes to {sink.table}, which is a table of this pipeline",
            where=dataset.where,
            dataset=str(dataset.name),
            todo="Let a flow write to the table itself, or name another table.",
        )
    named = outside_tables().by_key(sink.table.key)
    if named is not None:
        return named.path
    own, other = new_table_path(sink.table), catalog.other_tables.get(sink.table.key)
    return own if other is None or other.endswith(f"/{own}") else other


def located_folder(dataset: Dataset, sink: Sink) -> str:
    """Where the option `path` of a sink lies here; empty where there is none. Raises PATH_NOT_MAPPED at the line of the sink."""
    path = next((value for key, value in sink.options.items() if key.lower() == "path"), "")
    try:
        found = located(path, writing=True) if path else ""
    except LakeletError as problem:
        problem.where, problem.dataset = dataset.where, str(dataset.name)
        raise
    return found if not found or scheme_of(found) is not None else os.path.abspath(found)


def sink_definition(dataset: Dataset) -> Mapping[str, Any]:
    """The `sink_definition` of the event log (EL-6); no secret is shown."""
    assert dataset.sink is not None
    return {"format": dataset.sink.format, "options": shown_options(dataset.sink.options)}
