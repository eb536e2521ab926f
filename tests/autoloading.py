"""`Program`: one reading program over one folder, started as often as a case says, without Spark; `SparkProgram`: the same on Spark.

Spark's part in a run is small and fixed. It makes the reader from the one option that the source sets, and asks it for offsets and
partitions. It sends the pickled reader to a worker, takes the Arrow batches that `read` returns, and keeps two logs (offsets before a
batch, commits after it). `Program` makes the same calls on the same objects in the same order, and keeps the same two numbers; so it
returns what the code that Spark runs returns. The tests marked `both` run on Spark too and show that nothing is lost on the way.
"""

from __future__ import annotations

import io
import json
import os
import pickle
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as t

from lakelet.autoloader import AutoLoaderSource, SchemaEvolution, SourceSpec, register
from lakelet.autoloader.data_source import CloudFilesDataSource
from lakelet.autoloader.source_spec import LINE_INTERNAL, METADATA_INTERNAL, SPEC_OPTION

INFER = {"cloudFiles.inferColumnTypes": "true"}
RESCUED = "_rescued_data"
_TYPES = {"INT": t.IntegerType(), "BIGINT": t.LongType(), "STRING": t.StringType(), "DOUBLE": t.DoubleType()}

Row = dict[str, Any]
Hook = Callable[[], None]


class Boom(Exception):
    """A death that the test makes."""


def schema_of(ddl: str | t.StructType | None) -> t.StructType | None:
    """A schema from flat DDL text."""
    if not isinstance(ddl, str):
        return ddl
    return t.StructType([t.StructField(name, _TYPES[kind]) for name, kind in (column.split() for column in ddl.split(","))])


class Program:
    """One source folder, one state, one table. `run` is one start of the same program with trigger availableNow.

    Args:
        folder: what is loaded; a text may be a pattern.
        root: where the state is kept.
        options: the reader's options; the format is json where they do not say.
        schema: an explicit schema.
        confs: session settings.
    """

    def __init__(
        self,
        folder: Path | str,
        root: Path,
        options: Mapping[str, str],
        schema: str | t.StructType | None = None,
        confs: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.root, self.confs = folder, root, dict(confs or {})
        self.options = {"cloudFiles.format": "json", **options}
        self.schema = schema_of(schema)
        self.batches: list[list[Row]] = []
        self.files: list[list[str]] = []  # names of the files of each committed batch
        self.changes: list[SchemaEvolution] = []
        self.marks: list[int] = []  # of the rows that are counted as not clean, see `mark_of`
        self.start: dict[str, Any] = {}  # what the next start tells the readers besides: fields of ReaderSpec
        self._clock = 1_700_000_000
        self._logged: list[Any] = []  # Spark's offset log
        self._committed = 0  # Spark's commit log: how many of them are done

    # --- files ---

    def put(self, name: str, content: str | bytes, modified: int | None = None) -> Program:
        """Write a file into the folder; later calls give later modification times."""
        path = Path(self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self._clock += 1
        moment = self._clock if modified is None else modified
        os.utime(path, (moment, moment))
        return self

    def remove(self, name: str) -> None:
        (Path(self.folder) / name).unlink()

    # --- running ---

    def open(self) -> AutoLoaderSource:
        """The definition of the DataFrame: options are checked here."""
        return AutoLoaderSource.open(
            SourceSpec(str(self.folder), self.options, self.schema), state=str(self.root / "state"), confs=self.confs
        )

    def run(
        self, *select: str, planned: Hook = lambda: None, spread: Hook = lambda: None, part: Hook = lambda: None, read: Hook = lambda: None
    ) -> Program:
        """Start the program once.

        Args:
            select: what is selected: `*` (default), column names; SparkProgram takes any expression.
            planned: called when a batch is planned and logged, before its files are read.
            spread: called when the work of a batch is spread over tasks, before the first one reads; not on Spark.
            part: called after each task; not on Spark.
            read: called when a batch was read, before it is committed.

        Raises:
            whatever ends the query; a schema change was stored before.
        """
        source = self.open()
        try:
            self._query(source, select or ("*",), planned, spread, part, read)
        except Exception as failure:
            change = source.evolve(failure)
            if change is not None:
                self.changes.append(change)
            raise
        return self

    def _query(self, source: AutoLoaderSource, select: tuple[str, ...], planned: Hook, spread: Hook, part: Hook, read: Hook) -> None:
        description = source.reader_spec(parallelism=2, **self.start).to_json()
        reader = CloudFilesDataSource({SPEC_OPTION: description}).streamReader(t.StructType([]))
        reader.prepareForTriggerAvailableNow()
        while True:
            start = self._logged[self._committed - 1] if self._committed else reader.initialOffset()
            if len(self._logged) == self._committed:
                end = reader.latestOffset(start, reader.getDefaultReadLimit())
                if end == start:
                    return
                self._logged.append(end)
            end = self._logged[self._committed]
            planned()
            partitions = pickle.loads(pickle.dumps(reader.partitions(start, end)))
            worker = pickle.loads(pickle.dumps(reader))
            spread()
            rows = []
            for partition in partitions:
                rows += [row for batch in worker.read(partition) for row in self._rows(batch)]
                part()
            read()
            reader.commit(end)
            self._committed += 1
            self.files.append([Path(part.path).name for partition in partitions for part in partition.parts])
            self.batches.append([_selected(row, select) for row in rows])

    def _rows(self, batch: Any) -> list[Row]:
        rows = _listed(batch)
        for row in rows:
            mark = row.pop(LINE_INTERNAL)
            self.marks += [mark] if mark is not None else []
            for name, value in row.items():
                row[name] = _plain(value)
        found: list[Row] = rows
        return found

    def fails(self, *texts: str, **hooks: Hook) -> str:
        """Run once; the run must fail with a message that has all of the texts. Returns it."""
        try:
            self.run(**hooks)
        except Exception as failure:
            message = str(failure)
        else:
            pytest.fail("the run did not fail")
        assert all(text in message for text in texts), message
        return message

    def stops(self, kind: str = "", blob: str = "", *, retry: bool = True) -> str:
        """Run once; the run must end with UNKNOWN_FIELD_EXCEPTION (FAIL+ of the spec, FAIL- with `retry` off)."""
        head = f"[UNKNOWN_FIELD_EXCEPTION.{kind}" if kind else "[UNKNOWN_FIELD_EXCEPTION."
        return self.fails(head, f"during parsing: {blob}", f"which can be fixed by an automatic retry: {str(retry).lower()}")

    # --- results ---

    def rows(self, *names: str) -> list[Any]:
        """All rows of the table, sorted: tuples of these columns (a value where it is one, the whole row where there is none)."""
        rows = [row for batch in self.batches for row in batch]
        picked = [tuple(row.get(n) for n in names) if len(names) > 1 else row.get(names[0]) for row in rows] if names else rows
        return sorted(picked, key=repr)

    def last(self) -> Row:
        """The one row of the last batch."""
        (row,) = self.batches[-1]
        return row

    def types(self) -> dict[str, str]:
        """The columns of the stream by name."""
        return {field.name: field.dataType.simpleString() for field in self.open().schema().fields}

    def log(self) -> int:
        """The newest version of the schema log."""
        return max(int(path.name) for path in (self.root / "state" / "_schemas").iterdir() if path.name.isdigit())


class SparkProgram(Program):
    """The same program as a query of Spark with `foreachBatch`."""

    def __init__(
        self,
        spark: Any,
        folder: Path | str,
        root: Path,
        options: Mapping[str, str],
        schema: str | t.StructType | None = None,
        confs: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(folder, root, options, schema, confs)
        self.spark = spark
        self.seen: Row = {}  # the observation of the last run

    def _query(self, source: AutoLoaderSource, select: tuple[str, ...], planned: Hook, spread: Hook, part: Hook, read: Hook) -> None:
        register(self.spark, wrap=False)
        frame = source.read_stream(self.spark, name="seen").selectExpr(*select)

        def take(rows: Any, _: int) -> None:
            planned()
            taken = [row.asDict(recursive=True) for row in rows.collect()]
            read()
            if taken:
                self.batches.append(taken)

        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(self.root / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        found = [p.observedMetrics["seen"].asDict() for p in query.recentProgress if "seen" in (p.observedMetrics or {})]
        self.seen = found[-1] if found else {}


def parquet(**columns: Any) -> bytes:
    """A Parquet file of these Arrow columns."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def rescued(text: str | None, file: str | None = None) -> Any:
    """The rescued column as an object without its path, which must end with the name `file`; None where nothing was rescued."""
    if text is None:
        return None
    found = json.loads(text)
    path = found.pop("_file_path")
    assert path.startswith("file:/")
    assert file is None or path.endswith("/" + file)
    return found


def _listed(batch: Any) -> list[Row]:
    """The rows of a batch. Bytes that are not UTF-8 in a text column of a Parquet file come through as they are, to Spark too."""
    try:
        rows: list[Row] = batch.to_pylist()
    except UnicodeDecodeError:
        columns = [c.cast(pa.binary()) if pa.types.is_string(c.type) else c for c in batch.columns]
        texts = {f.name for f in batch.schema if pa.types.is_string(f.type)}
        rows = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
        for row in rows:
            row.update({name: row[name].decode(errors="replace") for name in texts if row[name] is not None})
    return rows


def _plain(value: Any) -> Any:
    """An Arrow value as Spark returns it: maps as dicts, moments without zone."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):
            return {key: _plain(item) for key, item in value}
        return [_plain(item) for item in value]
    return value


def _selected(row: Row, names: tuple[str, ...]) -> Row:
    everything = {key: value for key, value in row.items() if key != METADATA_INTERNAL}
    hidden = {"_metadata": row[METADATA_INTERNAL], METADATA_INTERNAL: row[METADATA_INTERNAL]}
    columns = {**hidden, **everything}  # a data column hides the hidden one of its name
    return {key: value for name in names for key, value in (everything if name == "*" else {name: columns[name]}).items()}


_SPARK = pytest.param("spark", marks=pytest.mark.spark)
both = pytest.mark.parametrize("make", ["reader", _SPARK], indirect=True)
"""A case that runs on the reader alone and on Spark."""
on_spark = pytest.mark.parametrize("make", [_SPARK], indirect=True)
"""A case that only Spark can answer."""
