"""Columns chosen, renamed and computed, and those that are added: when and where a row comes from, and what to partition by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from .applied import OneToOne, transform
from .columns import change_columns, column, find, listed, place, renamed_fields, require_new, require_string, same
from .errors import TransformError, argument_error


@transform
def select(*columns: str) -> OneToOne:
    """Keep these columns, in this order.

    >>> from lakelet.transforms import select
    >>> spark.range(1).selectExpr("id", "1 AS a", "2 AS b").transform(select("b", "ID")).columns
    ['b', 'id']
    """
    wanted = listed("select", columns)
    return lambda frame: frame.select(*(column(find(frame.columns, name, "select")) for name in wanted))


@transform
def drop(*columns: str, missing_ok: bool = False) -> OneToOne:
    """Leave out these columns. A missing column is an error, unless `missing_ok`.

    >>> from lakelet.transforms import drop
    >>> spark.range(1).selectExpr("id", "1 AS a", "2 AS b").transform(drop("A")).columns
    ['id', 'b']
    """
    unwanted = listed("drop", columns)

    def run(frame: DataFrame) -> DataFrame:
        present = [name for name in unwanted if not missing_ok or any(same(name, one) for one in frame.columns)]
        gone = {find(frame.columns, name, "drop") for name in present}
        return frame.select(*(column(name) for name in frame.columns if name not in gone))

    return run


@transform
def rename(names: Mapping[str, str]) -> OneToOne:
    """Rename columns: old name to new name, all at once, so that two columns may change names.

    >>> from lakelet.transforms import rename
    >>> spark.range(1).selectExpr("1 AS a", "2 AS b").transform(rename({"a": "b", "b": "c.d"})).columns
    ['b', 'c.d']
    """
    wanted = dict(names)
    listed("rename", tuple(wanted.values()), "new names")

    def run(frame: DataFrame) -> DataFrame:
        new = {find(frame.columns, old, "rename"): name for old, name in wanted.items()}
        after = [new.get(name, name) for name in frame.columns]
        require_new([name for name in frame.columns if name not in new], new.values(), "rename")
        return frame.select(*(column(old).alias(name) for old, name in zip(frame.columns, after, strict=True)))

    return run


@transform
def with_columns(columns: Mapping[str, str | Column]) -> OneToOne:
    """Add or replace columns: name to an SQL expression or a Column. All see the frame as it was.

    A replaced column keeps its place and the spelling of its name; new ones come last, in this order.

    >>> from lakelet.transforms import with_columns
    >>> spark.range(1).transform(with_columns({"next": "id + 1", "ID": F.lit(7)})).first()
    Row(id=7, next=1)
    """
    wanted = dict(columns)
    listed("with_columns", tuple(wanted))
    require_new([], wanted, "with_columns")
    values = {name: F.expr(value) if isinstance(value, str) else value for name, value in wanted.items()}

    def run(frame: DataFrame) -> DataFrame:
        replaced = {find(frame.columns, name, "with_columns"): name for name in values if any(same(name, one) for one in frame.columns)}
        kept = (values[replaced[one]].alias(one) if one in replaced else column(one) for one in frame.columns)
        added = (value.alias(name) for name, value in values.items() if name not in replaced.values())
        return frame.select(*kept, *added)

    return run


@transform
def filter_rows(condition: str | Column, *, keep_null: bool = False) -> OneToOne:
    """Keep the rows for which the condition (SQL text or Column) is true; with `keep_null` also those for which it is NULL.

    >>> from lakelet.transforms import filter_rows
    >>> numbers = spark.createDataFrame([(1,), (5,), (None,)], "n INT")
    >>> numbers.transform(filter_rows("n > 3", keep_null=True)).collect()
    [Row(n=5), Row(n=None)]
    """
    if isinstance(condition, str) and not condition.strip():
        raise argument_error("filter_rows", "the condition is empty")
    test = F.expr(condition) if isinstance(condition, str) else condition
    return lambda frame: frame.where(F.coalesce(test, F.lit(True)) if keep_null else test)


DEFAULT_NAMES = dict.fromkeys(" ,;{}()\n\t=", "_")
"""The characters that Delta refuses in column names without column mapping, and what replaces them."""


@transform
def replace_in_names(characters: Mapping[str, str] = DEFAULT_NAMES) -> OneToOne:
    """Replace texts in column names, those of fields in structs, arrays and maps included; each key by its value, in their order.

    Two columns, or two fields of one struct, that would get one name are an error (TRANSFORM_COLUMN_EXISTS).

    >>> from lakelet.transforms import replace_in_names
    >>> spark.sql("SELECT 1 AS `unit price`, named_struct('a b', 2) AS s").transform(replace_in_names()).schema.simpleString()
    'struct<unit_price:int,s:struct<a_b:int>>'
    """
    wanted = _replacements("replace_in_names", characters)

    def run(frame: DataFrame) -> DataFrame:
        schema = renamed_fields(frame.schema, lambda name: _replaced(name, wanted), "replace_in_names")
        pairs = zip(frame.schema.fields, schema.fields, strict=True)
        return frame.select(
            *(
                (column(old.name) if old.dataType == new.dataType else column(old.name).cast(new.dataType)).alias(new.name)
                for old, new in pairs
            )
        )

    return run


@transform
def replace_in_values(columns: str | Sequence[str], characters: Mapping[str, str]) -> OneToOne:
    """Replace texts, literally, in columns of strings (or fields of structs by path); each key by its value, in their order.

    >>> from lakelet.transforms import replace_in_values
    >>> prices = spark.createDataFrame([("1.234,50",), (None,)], "price STRING")
    >>> prices.transform(replace_in_values("price", {".": "", ",": "."})).collect()
    [Row(price='1234.50'), Row(price=None)]
    """
    names = listed("replace_in_values", columns)
    wanted = _replacements("replace_in_values", characters)

    def run(frame: DataFrame) -> DataFrame:
        def change(value: Column, data_type: object) -> Column:
            require_string(data_type, "replace_in_values")
            for old, new in wanted.items():
                value = F.replace(value, F.lit(old), F.lit(new))
            return value

        return change_columns(frame, names, "replace_in_values", change)

    return run


def _replacements(name: str, characters: Mapping[str, str]) -> dict[str, str]:
    found = dict(characters)
    if not found or not all(isinstance(k, str) and k and isinstance(v, str) for k, v in found.items()):
        raise argument_error(name, f"characters must map texts that are not empty to texts, not {characters!r}")
    return found


def _replaced(name: str, wanted: Mapping[str, str]) -> str:
    for old, new in wanted.items():
        name = name.replace(old, new)
    return name


_PARTS = {"date": F.to_date, "year": F.year, "quarter": F.quarter, "month": F.month, "day": F.dayofmonth, "hour": F.hour}
_USUAL = ("year", "month", "day")


@transform
def add_current_timestamp(name: str = "_processed_at") -> OneToOne:
    """Add the time at which Spark began to work on the batch or micro-batch, as TIMESTAMP.

    >>> from lakelet.transforms import add_current_timestamp
    >>> spark.range(1).transform(add_current_timestamp()).schema.simpleString()
    'struct<id:bigint,_processed_at:timestamp>'
    """
    listed("add_current_timestamp", name, "name")

    def run(frame: DataFrame) -> DataFrame:
        require_new(frame.columns, [name], "add_current_timestamp")
        return frame.select("*", F.current_timestamp().alias(name))

    return run


@transform
def add_source_file(*, name: str | None = "_file_name", path: str | None = "_file_path") -> OneToOne:
    """Add the name and the whole path of the file that a row was read from, from `_metadata`; None leaves one out.

    Both are spelled as in an address there: a space is `%20`.

    It must be applied to what a reader of files gives, before joins and aggregations.

    Raises:
        TransformError: TRANSFORM_NO_METADATA if the frame was not read from files.

    >>> from lakelet.transforms import add_source_file
    >>> spark.read.text("README.md").transform(add_source_file(path=None)).select("_file_name").first()
    Row(_file_name='README.md')
    """
    wanted = {new: source for new, source in ((name, "file_name"), (path, "file_path")) if new}
    if not wanted:
        raise argument_error("add_source_file", "both columns are left out")

    def run(frame: DataFrame) -> DataFrame:
        require_new(frame.columns, wanted, "add_source_file")
        try:
            found = frame.select("*", *(F.col(f"_metadata.{source}").alias(new) for new, source in wanted.items()))
            _ = found.columns
        except AnalysisException as error:
            raise TransformError(
                "TRANSFORM_NO_METADATA",
                "add_source_file: the frame has no _metadata",
                why="It was not read from files, or a join, union or aggregation came before",
                todo="Apply it directly to what spark.read or spark.readStream gives",
            ) from error
        return found

    return run


@transform
def add_partition_columns(source: str, parts: Sequence[str] = _USUAL, *, prefix: str = "") -> OneToOne:
    """Add parts of a date or timestamp to partition by: date, year, quarter, month, day, hour. Timestamps in the session's time zone.

    A NULL has NULL parts. The columns are called after their part, with the `prefix`.

    >>> from lakelet.transforms import add_partition_columns
    >>> days = spark.sql("SELECT DATE '2026-03-01' AS day_of_order")
    >>> days.transform(add_partition_columns("day_of_order", ["year", "month"], prefix="p_")).first()
    Row(day_of_order=datetime.date(2026, 3, 1), p_year=2026, p_month=3)
    """
    wanted = _parts("add_partition_columns", parts)

    def run(frame: DataFrame) -> DataFrame:
        found = place(frame.schema, source, "add_partition_columns")
        if not isinstance(found.data_type, DateType | TimestampType | TimestampNTZType):
            what = f"add_partition_columns: {source!r} is {found.data_type.simpleString()}, neither date nor timestamp"
            raise TransformError("TRANSFORM_TYPE", what, todo="Cast it first, with alter_types")
        require_new(frame.columns, [prefix + part for part in wanted], "add_partition_columns")
        return frame.select("*", *(_PARTS[part](found.value).alias(prefix + part) for part in wanted))

    return run


@transform
def drop_partition_columns(parts: Sequence[str] = _USUAL, *, prefix: str = "") -> OneToOne:
    """Leave out what `add_partition_columns` with the same arguments added.

    >>> from lakelet.transforms import drop_partition_columns
    >>> spark.sql("SELECT 1 AS id, 2026 AS year").transform(drop_partition_columns(["year"])).columns
    ['id']
    """
    wanted = [prefix + part for part in _parts("drop_partition_columns", parts)]
    return lambda frame: drop(*wanted).run(frame)


def _parts(name: str, parts: Sequence[str]) -> tuple[str, ...]:
    wanted = listed(name, parts, "parts")
    for part in wanted:
        if part not in _PARTS:
            raise argument_error(name, f"{part!r} is none of {', '.join(_PARTS)}")
    if len(set(wanted)) < len(wanted):
        raise argument_error(name, "a part is named twice")
    return wanted
