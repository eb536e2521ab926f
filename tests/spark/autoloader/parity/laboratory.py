"""`Laboratory`: what Spark's reader and what Auto Loader make of a combination, as values that can be compared."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from lakelet.autoloader.source_spec import LINE_INTERNAL
from lakelet.spark.launch.environment import cache_folder, fetch, spark_version
from tests.autoloading import Program
from tests.spark.autoloader.parity import avro_files, text_files, typed_files
from tests.spark.autoloader.parity.combinations import Reading

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows in the order of the file, and the columns' types by name."""

    types: Mapping[str, str]
    rows: tuple[Row, ...]

    def without(self, *names: str) -> Table:
        return self.of(name for name in self.types if name not in names)

    def of(self, names: Iterable[str]) -> Table:
        kept = list(names)
        return Table({n: self.types[n] for n in kept}, tuple({n: row[n] for n in kept} for row in self.rows))

    def __str__(self) -> str:
        head = ", ".join(f"{name} {kind}" for name, kind in self.types.items())
        return "\n".join([head, *("  " + ", ".join(f"{n}={shown(v)}" for n, v in row.items() if v is not None) for row in self.rows)])


@dataclass(frozen=True)
class Failure:
    """The read did not come to an end."""

    text: str

    def __str__(self) -> str:
        return f"failure: {self.text}"


Outcome = Table | Failure


def same(one: Outcome, other: Outcome) -> bool:
    """Two failures are the same outcome; tables have the same columns by name, with the same types, and the same rows in any order."""
    if isinstance(one, Failure) or isinstance(other, Failure):
        return isinstance(one, Failure) and isinstance(other, Failure)
    return dict(one.types) == dict(other.types) and _in_order(one) == _in_order(other)


def _in_order(table: Table) -> list[list[str]]:
    return sorted([shown(row[name]) for name in sorted(table.types)] for row in table.rows)


_TEXT = {"json": text_files.JSON, "csv": text_files.CSV, "xml": text_files.XML, "text": text_files.TEXT}
_BYTES: Mapping[str, Callable[[], dict[str, bytes]]] = {
    "parquet": typed_files.parquet_files,
    "orc": typed_files.orc_files,
    "avro": avro_files.avro_files,
    "binaryFile": typed_files.binary_files,
}


@cache
def _typed(format: str) -> dict[str, bytes]:
    return _BYTES[format]()


def avro_jar() -> Path:
    """Spark's reader of Avro, which pyspark does not hold; fetched once. Raises JARS_MISSING."""
    module = "spark-avro_2.13"
    jar = cache_folder() / "jars" / f"{module}-{spark_version()}.jar"
    if not jar.exists():
        fetch("Spark's reader of Avro", {jar.name: ("org.apache.spark", module, spark_version())})
    return jar


class Laboratory:
    """Writes each file once and reads it as it is asked for; results are kept.

    A read of all files at once, told apart by their names, takes little longer than one of a single file. So where the columns are declared
    and no file can stop the read, the first question about a reading answers the ones about its other files, too.
    """

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root = spark.newSession(), root
        self._known: dict[tuple[str, Reading, str], Outcome] = {}
        self._alone: set[tuple[str, Reading]] = set()
        self._runs = count()

    def learn_avro(self) -> None:
        """Let Spark read Avro. Raises JARS_MISSING."""
        self.spark.sql(f"ADD JAR '{avro_jar()}'")

    def spark_reads(self, reading: Reading, kind: str) -> Outcome:
        return self._answer("spark", reading, kind, self._spark)

    def loader_reads(self, reading: Reading, kind: str) -> Outcome:
        return self._answer("loader", reading, kind, self._loader)

    @staticmethod
    def kinds(format: str) -> list[str]:
        """The kinds of files of a format."""
        return list(_TEXT[format] if format in _TEXT else _typed(format))

    # --- files ---

    def folder(self, reading: Reading) -> Path:
        """The folder with one folder for each kind, which holds one file of the kind's name."""
        ends = reading.ends.encode().hex()
        folder = self.root / "files" / f"{reading.format}-{reading.charset}-{ends}"
        if not folder.exists():
            for kind in self.kinds(reading.format):
                (folder / kind).mkdir(parents=True)
                content = (
                    text_files.text_file(_TEXT[reading.format][kind], reading.charset, reading.ends)
                    if reading.format in _TEXT
                    else _typed(reading.format)[kind]
                )
                (folder / kind / kind).write_bytes(content)
                os.utime(folder / kind / kind, (1_700_000_000, 1_700_000_000))
        return folder

    # --- reading ---

    def _answer(self, who: str, reading: Reading, kind: str, read: Callable[[Reading, str], dict[str, Table]]) -> Outcome:
        if (who, reading, kind) not in self._known:
            together = reading.schema is not None and reading.format in _TEXT and reading.get("mode") != "FAILFAST"
            for kinds in ["*"] * (together and (who, reading) not in self._alone) + [kind]:
                try:
                    found = read(reading, kinds)
                except Exception as failure:
                    if kinds == "*":
                        self._alone.add((who, reading))
                        continue
                    found = {kind: Failure(str(failure).strip()[:600])}  # type: ignore[dict-item]
                self._known.update({(who, reading, name): outcome for name, outcome in found.items()})
                break
        return self._known[who, reading, kind]

    def _with_settings(self, reading: Reading, do: Callable[[], Any]) -> Any:
        sessions = self.spark._jvm.org.apache.spark.sql.classic.SparkSession
        before = sessions.getActiveSession()
        sessions.setActiveSession(self.spark._jsparkSession)
        for key, value in reading.settings:
            self.spark.conf.set(key, value)
        try:
            return do()
        finally:
            for key, _ in reading.settings:
                self.spark.conf.unset(key)
            if before.isDefined():
                sessions.setActiveSession(before.get())

    def schema(self, reading: Reading) -> Any:
        """The declared schema as this session's settings understand it."""
        parse = self.spark._jsparkSession.sessionState().sqlParser().parseTableSchema
        if reading.schema is None:
            return None
        return StructType.fromJson(json.loads(self._with_settings(reading, lambda: parse(reading.schema).json())))

    def _spark(self, reading: Reading, kinds: str) -> dict[str, Table]:
        schema = self.schema(reading)
        paths = [str(path) for path in sorted(self.folder(reading).glob(f"{kinds}/*"))]

        def read() -> tuple[Any, pa.Table]:
            reader = self.spark.read.format(reading.format).options(**dict(reading.options))
            frame = (reader.schema(schema) if schema else reader).load(paths)
            named = frame.selectExpr("*", "_metadata.file_name AS `file of the row`")
            return frame.schema, named.toArrow()

        found, rows = self._with_settings(reading, read)
        return _by_file(found, listed(rows), "file of the row", self._names(reading, kinds), str)

    def _loader(self, reading: Reading, kinds: str) -> dict[str, Table]:
        root = self.root / "runs" / str(next(self._runs))
        folder = self.folder(reading) / ("" if kinds == "*" else kinds)
        options = {"cloudFiles.format": reading.format, **dict(reading.options), **dict(reading.loader)}
        program = _Loading(folder, root, options, self.schema(reading), dict(reading.settings))
        try:
            program.run("*", "_metadata")
            rows = [row for batch in program.batches for row in batch]
            return _by_file(program.open().schema(), rows, "_metadata", self._names(reading, kinds), lambda value: value["file_name"])
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def _names(self, reading: Reading, kinds: str) -> list[str]:
        return self.kinds(reading.format) if kinds == "*" else [kinds]


class _Loading(Program):
    """The program with its values as they are in Arrow."""

    def _rows(self, batch: Any) -> list[dict[str, Any]]:
        rows = listed(pa.Table.from_batches([batch]))
        for row in rows:
            row.pop(LINE_INTERNAL)
        return rows


def _by_file(schema: Any, rows: list[dict[str, Any]], column: str, kinds: list[str], name: Callable[[Any], str]) -> dict[str, Table]:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    parted: dict[str, list[Row]] = {kind: [] for kind in kinds}
    for row in rows:
        parted[name(row[column])].append({key: row[key] for key in types})
    return {kind: Table(types, tuple(part)) for kind, part in parted.items()}


def listed(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of an Arrow table."""
    columns = [_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    """Python's values; where it has no such text, the bytes as far as they are none, and no such moment, the number."""
    try:
        values: list[Any] = column.to_pylist()
    except (UnicodeDecodeError, ValueError, OverflowError):
        return [_value(item) for item in column]
    return values


def _value(item: Any) -> Any:
    try:
        return item.as_py()
    except UnicodeDecodeError:
        return item.cast(pa.binary()).as_py().decode("utf-8", "surrogateescape") if pa.types.is_string(item.type) else repr(item)
    except (ValueError, OverflowError):
        return item.value


def shown(value: Any) -> str:
    """A value as a text that tells values of other types apart; a moment in UTC, with its zone if it has one."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z" if value.tzinfo else value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):
            return shown(dict(sorted(value)))
        return "[" + ", ".join(map(shown, value)) + "]"
    return repr(value)
