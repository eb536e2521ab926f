"""`from pyspark import pipelines as dp`: everything that a pipeline on Databricks or Lakelet finds there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, overload

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

_F = TypeVar("_F", bound=Callable[..., Any])
_Query: TypeAlias = Callable[[], DataFrame]
_Texts: TypeAlias = Mapping[str, Any]
_Rules: TypeAlias = Mapping[str, str | Column]
_Columns: TypeAlias = Sequence[str | Column]
_ScdType: TypeAlias = Literal[1, 2, "1", "2", "bitemporal"]
_Snapshots: TypeAlias = str | Callable[[Any], tuple[DataFrame, Any] | None] | tuple[DataFrame, Any]

@overload
def table(query_function: _F, *args: Any, **kwargs: Any) -> _F: ...
@overload
def table(
    query_function: None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: _Texts | None = None,
    table_properties: _Texts | None = None,
    path: str | None = None,
    partition_cols: Sequence[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Sequence[str] | None = None,
    schema: StructType | str | None = None,
    row_filter: str | None = None,
    private: bool = False,
    replace_using: Any = None,
    replace_where: Any = None,
    sequence_by: Any = None,
    format: str | None = None,
    temporary: bool = False,
) -> Callable[[_F], _F]:
    """Declare a streaming table from the streaming query that the decorated function returns.

    A query that is not a stream makes a materialized view. Works with and without parentheses.

    Args:
        name: of the table; the function's name by default. One, two or three parts.
        comment: shown with the table.
        spark_conf: Spark settings of this query.
        table_properties: Delta and `pipelines.*` properties of the table.
        path: where the table's data lies, instead of the pipeline's storage.
        partition_cols: columns to partition by.
        cluster_by_auto: let the platform choose the clustering columns.
        cluster_by: columns of liquid clustering.
        schema: columns as a StructType or as DDL text, which may hold generated columns and constraints.
        row_filter: `ROW FILTER function ON (columns)`.
        private: stored, and not published to the catalog.
    """

@overload
def materialized_view(query_function: _F, *args: Any, **kwargs: Any) -> _F: ...
@overload
def materialized_view(
    query_function: None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: _Texts | None = None,
    table_properties: _Texts | None = None,
    path: str | None = None,
    partition_cols: Sequence[str] | None = None,
    cluster_by_auto: bool = False,
    cluster_by: Sequence[str] | None = None,
    schema: StructType | str | None = None,
    refresh_policy: str | None = None,
    row_filter: str | None = None,
    private: bool = False,
    format: str | None = None,
    temporary: bool = False,
) -> Callable[[_F], _F]:
    """Declare a materialized view: a table that equals the result of its batch query after every update.

    The arguments are those of `table`.
    """

@overload
def view(query_function: _F, *args: Any, **kwargs: Any) -> _F: ...
@overload
def view(
    query_function: None = None, name: str | None = None, comment: str | None = None, spark_conf: _Texts | None = None
) -> Callable[[_F], _F]:
    """Declare a named query of the pipeline that is never stored."""

temporary_view = view
create_view = view

def create_streaming_table(
    name: str,
    comment: str | None = None,
    spark_conf: _Texts | None = None,
    table_properties: _Texts | None = None,
    partition_cols: Sequence[str] | None = None,
    path: str | None = None,
    schema: StructType | str | None = None,
    expect_all: _Rules | None = None,
    expect_all_or_drop: _Rules | None = None,
    expect_all_or_fail: _Rules | None = None,
    cluster_by: Sequence[str] | None = None,
    row_filter: str | None = None,
    cluster_by_auto: bool = False,
    private: bool = False,
    format: str | None = None,
    temporary: bool = False,
) -> None:
    """Declare a streaming table without a query of its own: append flows or a change flow write to it.

    `expect_all`, `expect_all_or_drop`, `expect_all_or_fail`: its expectations, name to constraint.
    """

create_table = create_streaming_table
create_target_table = create_streaming_table
create_streaming_live_table = create_streaming_table

def append_flow(
    target: str | None = None,
    name: str | None = None,
    once: bool = False,
    spark_conf: _Texts | None = None,
    comment: str | None = None,
    import_checkpoint: Any = None,
) -> Callable[[_F], _F]:
    """Declare the decorated function as a flow that appends to the streaming table or sink `target`.

    `once`: its query is a batch, appended one time until a full refresh.
    """

def update_flow(
    target: str | None = None, name: str | None = None, spark_conf: _Texts | None = None, comment: str | None = None
) -> Callable[[_F], _F]:
    """Declare the decorated function as a flow that sends a sink the rows of its result that changed."""

def replace_flow(
    target: str | None = None,
    replace_using: _Columns | None = None,
    sequence_by: str | Column | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: _Texts | None = None,
) -> Callable[[_F], _F]:
    """Declare the decorated function as a flow whose rows replace those of the streaming table `target` with the same `replace_using`."""

def expect(
    name: str | None = None, inv: str | Column | None = None, *, description: str | None = None, constraint: str | Column | None = None
) -> Callable[[_F], _F]:
    """Count the rows that break the constraint and keep them.

    Args:
        name: of the expectation, as reports show it.
        inv: the constraint, a boolean SQL expression over the dataset's columns; a row for which it is NULL breaks it.
        description: what the rule is for.
        constraint: another name of `inv`.
    """

def expect_or_drop(
    name: str | None = None, inv: str | Column | None = None, *, description: str | None = None, constraint: str | Column | None = None
) -> Callable[[_F], _F]:
    """Leave out the rows that break the constraint, and count them. The arguments are those of `expect`."""

def expect_or_fail(
    name: str | None = None, inv: str | Column | None = None, *, description: str | None = None, constraint: str | Column | None = None
) -> Callable[[_F], _F]:
    """Fail the flow when a row breaks the constraint. The arguments are those of `expect`."""

def expect_all(expectations: _Rules) -> Callable[[_F], _F]:
    """Several expectations, name to constraint: count the rows that break one and keep them."""

def expect_all_or_drop(expectations: _Rules) -> Callable[[_F], _F]:
    """Several expectations, name to constraint: leave out the rows that break one, and count them."""

def expect_all_or_fail(expectations: _Rules) -> Callable[[_F], _F]:
    """Several expectations, name to constraint: fail the flow when a row breaks one."""

def apply_changes(
    target: str,
    source: str,
    keys: _Columns,
    sequence_by: str | Column,
    where: str | Column | None = None,
    ignore_null_updates: bool | None = None,
    apply_as_deletes: str | Column | None = None,
    apply_as_truncates: str | Column | None = None,
    column_list: _Columns | None = None,
    except_column_list: _Columns | None = None,
    stored_as_scd_type: _ScdType | None = "1",
    track_history_column_list: _Columns | None = None,
    track_history_except_column_list: _Columns | None = None,
    flow_name: str | None = None,
    once: bool = False,
    ignore_null_updates_column_list: _Columns | None = None,
    ignore_null_updates_except_column_list: _Columns | None = None,
    columns_to_update: Any = None,
    system_sequence_by: str | Column | None = None,
    name: str | None = None,
) -> None:
    """Declare a flow that applies the change events of the stream `source` to the streaming table `target`.

    Args:
        target: a table that `create_streaming_table` declares.
        source: a dataset or table whose rows are change events.
        keys: columns that identify a row.
        sequence_by: what orders the events of a key, whatever their order of arrival.
        where: which events count.
        ignore_null_updates: a NULL in an event keeps the value that is there.
        apply_as_deletes: condition of the events that delete their row.
        apply_as_truncates: condition of the events that empty the table; SCD type 1 only.
        column_list: the columns that the target gets.
        except_column_list: the columns that the target does not get.
        stored_as_scd_type: "1" keeps current rows, "2" keeps history with `__START_AT` and `__END_AT`.
        track_history_column_list: a change in these columns makes a new version; SCD type 2 only.
        track_history_except_column_list: a change in all but these columns makes a new version; SCD type 2 only.
        once: apply what is there at the first update, and nothing after it until a full refresh.
    """

def create_auto_cdc_flow(
    target: str,
    source: str,
    keys: _Columns,
    sequence_by: str | Column,
    system_sequence_by: str | Column | None = None,
    ignore_null_updates: bool = False,
    ignore_null_updates_column_list: _Columns | None = None,
    ignore_null_updates_except_column_list: _Columns | None = None,
    columns_to_update: Any = None,
    apply_as_deletes: str | Column | None = None,
    apply_as_truncates: str | Column | None = None,
    column_list: _Columns | None = None,
    except_column_list: _Columns | None = None,
    stored_as_scd_type: _ScdType | None = "1",
    track_history_column_list: _Columns | None = None,
    track_history_except_column_list: _Columns | None = None,
    name: str | None = None,
    once: bool = False,
    flow_name: str | None = None,
    where: str | Column | None = None,
) -> None:
    """Declare a flow that applies the change events of the stream `source` to the streaming table `target`.

    The newer name of `apply_changes`, with its arguments.
    """

def apply_changes_from_snapshot(
    target: str,
    source: _Snapshots | None = None,
    keys: _Columns | None = None,
    stored_as_scd_type: _ScdType | None = None,
    snapshot_and_version: _Snapshots | None = None,
    track_history_column_list: _Columns | None = None,
    track_history_except_column_list: _Columns | None = None,
    once: bool = False,
) -> None:
    """Declare a flow that compares full copies of a source with `target` and applies the differences.

    Args:
        target: a table that `create_streaming_table` declares.
        source: a table or view, read once per update; a function from the last version to the next (snapshot, version) or None; or one
            snapshot with its version.
        keys: columns that identify a row.
        stored_as_scd_type: "1" keeps current rows, "2" keeps history.
        snapshot_and_version: the old name of `source`.
        once: apply what is there at the first update, and nothing after it until a full refresh.
    """

def create_auto_cdc_from_snapshot_flow(
    target: str,
    source: _Snapshots | None = None,
    keys: _Columns | None = None,
    stored_as_scd_type: _ScdType | None = None,
    track_history_column_list: _Columns | None = None,
    track_history_except_column_list: _Columns | None = None,
    once: bool = False,
    snapshot_and_version: _Snapshots | None = None,
) -> None:
    """Declare a flow that compares full copies of a source with `target` and applies the differences.

    The newer name of `apply_changes_from_snapshot`, with its arguments.
    """

def create_sink(name: str, format: str, options: _Texts | None = None) -> None:
    """Declare a sink that append flows write to.

    Args:
        name: of the sink; flows name it as their target.
        format: `delta` with the option `path` or `tableName`, `kafka`, or any other format that Spark can write streams to.
        options: passed through to Spark's writer.
    """

@overload
def foreach_batch_sink(name: _F) -> _F: ...
@overload
def foreach_batch_sink(name: str | None = None) -> Callable[[_F], _F]:
    """Declare the decorated function as a sink: it is called with each micro-batch and its number.

    The sink's name is the function's, unless one is given.
    """

@overload
def on_event_hook(user_event_hook_fn: _F, max_allowable_consecutive_failures: int | None = None) -> _F: ...
@overload
def on_event_hook(user_event_hook_fn: None = None, max_allowable_consecutive_failures: int | None = None) -> Callable[[_F], _F]:
    """Have the decorated function called with each event of an update, a dictionary.

    `max_allowable_consecutive_failures`: the hook is disabled when it fails more often than this in a row; None means never.
    """

def read(name: str) -> DataFrame:
    """Return the batch DataFrame of a dataset of this pipeline, or of a table from outside."""

def read_stream(name: str) -> DataFrame:
    """Return the streaming DataFrame of a dataset of this pipeline, or of a table from outside."""

readStream = read_stream

def enable_local_execution() -> None:
    """Does nothing: the functions of this module work outside of Databricks here."""
