"""`import dlt`: everything that a Delta Live Tables pipeline on Databricks or Lakelet finds there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, overload

from pyspark.pipelines import (
    apply_changes as apply_changes,
)
from pyspark.pipelines import (
    apply_changes_from_snapshot as apply_changes_from_snapshot,
)
from pyspark.pipelines import (
    create_auto_cdc_flow as create_auto_cdc_flow,
)
from pyspark.pipelines import (
    create_auto_cdc_from_snapshot_flow as create_auto_cdc_from_snapshot_flow,
)
from pyspark.pipelines import (
    create_sink as create_sink,
)
from pyspark.pipelines import (
    create_streaming_live_table as create_streaming_live_table,
)
from pyspark.pipelines import (
    create_streaming_table as create_streaming_table,
)
from pyspark.pipelines import (
    create_target_table as create_target_table,
)
from pyspark.pipelines import (
    create_view as create_view,
)
from pyspark.pipelines import (
    enable_local_execution as enable_local_execution,
)
from pyspark.pipelines import (
    expect as expect,
)
from pyspark.pipelines import (
    expect_all as expect_all,
)
from pyspark.pipelines import (
    expect_all_or_drop as expect_all_or_drop,
)
from pyspark.pipelines import (
    expect_all_or_fail as expect_all_or_fail,
)
from pyspark.pipelines import (
    expect_or_drop as expect_or_drop,
)
from pyspark.pipelines import (
    expect_or_fail as expect_or_fail,
)
from pyspark.pipelines import (
    foreach_batch_sink as foreach_batch_sink,
)
from pyspark.pipelines import (
    materialized_view as materialized_view,
)
from pyspark.pipelines import (
    on_event_hook as on_event_hook,
)
from pyspark.pipelines import (
    read as read,
)
from pyspark.pipelines import (
    read_stream as read_stream,
)
from pyspark.pipelines import (
    readStream as readStream,
)
from pyspark.pipelines import (
    replace_flow as replace_flow,
)
from pyspark.pipelines import (
    temporary_view as temporary_view,
)
from pyspark.pipelines import (
    update_flow as update_flow,
)
from pyspark.pipelines import (
    view as view,
)
from pyspark.sql.types import StructType

_F = TypeVar("_F", bound=Callable[..., Any])
_Texts: TypeAlias = Mapping[str, Any]

@overload
def table(query_function: _F, *args: Any, **kwargs: Any) -> _F: ...
@overload
def table(
    query_function: None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: _Texts | None = None,
    table_properties: _Texts | None = None,
    partition_cols: Sequence[str] | None = None,
    path: str | None = None,
    schema: StructType | str | None = None,
    temporary: bool = False,
    cluster_by: Sequence[str] | None = None,
    row_filter: str | None = None,
    cluster_by_auto: bool = False,
    private: bool = False,
    replace_using: Any = None,
    replace_where: Any = None,
    sequence_by: Any = None,
) -> Callable[[_F], _F]:
    """Declare a table: a streaming table if the decorated function returns a stream, else a materialized view.

    Works with and without parentheses.

    Args:
        name: of the table; the function's name by default. One, two or three parts.
        comment: shown with the table.
        spark_conf: Spark settings of this query.
        table_properties: Delta and `pipelines.*` properties of the table.
        partition_cols: columns to partition by.
        path: where the table's data lies, instead of the pipeline's storage.
        schema: columns as a StructType or as DDL text, which may hold generated columns and constraints.
        temporary: stored for the pipeline only, and not published to the catalog.
        cluster_by: columns of liquid clustering.
        row_filter: `ROW FILTER function ON (columns)`.
        cluster_by_auto: let the platform choose the clustering columns.
        private: the newer name of `temporary`.
    """

@overload
def create_table(query_function: _F, *args: Any, **kwargs: Any) -> _F: ...
@overload
def create_table(
    query_function: None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: _Texts | None = None,
    table_properties: _Texts | None = None,
    partition_cols: Sequence[str] | None = None,
    path: str | None = None,
    schema: StructType | str | None = None,
    temporary: bool = False,
    cluster_by: Sequence[str] | None = None,
    row_filter: str | None = None,
) -> Callable[[_F], _F]:
    """The old name of `table`."""

def append_flow(
    name: str | None = None,
    target: str | None = None,
    comment: str | None = None,
    spark_conf: _Texts | None = None,
    once: bool = False,
    import_checkpoint: Any = None,
) -> Callable[[_F], _F]:
    """Declare the decorated function as a flow that appends to the streaming table or sink `target`.

    `once`: its query is a batch, appended one time until a full refresh.
    """
