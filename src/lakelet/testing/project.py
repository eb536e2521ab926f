"""A pipeline under test: files and rows arrive, updates run, tables and metrics are read. Storage is a folder of the test."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.base.errors import DefinitionErrors, LakeletError, nearest_names
from lakelet.base.names import Namespace, several_names
from lakelet.config.update_config import PipelineConfig
from lakelet.pipeline import Pipeline
from lakelet.plan.selection import Request
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.eventlog.states import UpdateState
from lakelet.storage.root import Storage
from lakelet.storage.rule_counts import RuleCount, summed
from lakelet.testing.row_comparison import Row, Snapshots, canonical, columns_of, difference, rows_of
from lakelet.testing.tables import VARIANT, frame_of, kinds_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


__tracebackhide__ = True

Pairs = Sequence[tuple[str, str]]
Configure = Callable[[Pairs, Pairs], PipelineConfig]
"""Makes the configuration of an update from (prefix, folder) pairs of paths and (name, folder) pairs of tables."""

_FIRST_ARRIVAL = 1_700_000_000  # seconds; each file that arrives is a second younger than the one before


@dataclass(frozen=True)
class Metrics:
    """Metrics of one dataset in the last update. `status` is that of its last flow: COMPLETED, IDLE, EXCLUDED, FAILED …

    `late_records`: rows that came after the watermark had passed them and were left out.
    """

    status: str | None = None
    output_rows: int = 0
    upserted_rows: int = 0
    deleted_rows: int = 0
    dropped_records: int = 0
    quarantined_records: int = 0
    late_records: int = 0
    expectations: Mapping[str, RuleCount] = field(default_factory=dict)


class Rows(list[dict[str, Any]]):
    """The rows of a table, sorted; compares as a list of dictionaries. pytest shows how it differs from another as a table."""

    name = "rows"


class Project:
    """One pipeline with its own storage, landing folder and source tables; the fixture `lakelet` makes it."""

    def __init__(
        self,
        folder: Path,
        configure: Configure,
        spark: SparkSession,
        *,
        landing: str | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        """`landing`: a path of the code that means the landing folder; `snapshots`: those of the test, if it has any."""
        self.folder, self.spark = folder, spark
        self.landing = folder / "landing"
        self.landing.mkdir(parents=True, exist_ok=True)
        self.errors: tuple[LakeletError, ...] = ()
        self._configure, self._snapshots = configure, snapshots
        self._maps: dict[str, str] = {landing: str(self.landing)} if landing else {}
        self._tables: dict[str, str] = {}
        self._events: list[Event] = []
        self.arrived = 0
        """Number of files that have arrived."""

    @property
    def config(self) -> PipelineConfig:
        """The configuration of the next update. Nobody else finds the tables of a test: it publishes nothing, and asks no catalog."""
        return replace(self._configure(tuple(self._maps.items()), tuple(self._tables.items())), publish={}, catalogs={})

    # ------------------------------------------------------------------------------------------------------------ what arrives

    def arrive(self, path: str, *records: Row | str | bytes) -> Path:
        """Write one file where the pipeline looks for it; return its path.

        `path`: as the code names it (`/Volumes/main/raw/orders/1.json`, `s3://…`), or relative to the landing folder, which the pipeline
        knows as its parameter `landing`. Records are dictionaries, as JSON lines or, for `.csv`, below a header; texts are lines as they
        are, bytes the content as it is. Files are younger in the order in which they arrive.
        """
        file = self._landing_place(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.part")
        beside.write_bytes(_file_content(file.suffix, records))
        self.arrived += 1
        os.utime(beside, (_FIRST_ARRIVAL + self.arrived,) * 2)
        beside.replace(file)
        return file

    def _landing_place(self, path: str) -> Path:
        if "://" not in path and not path.startswith(("/", "dbfs:")):
            return self.landing / path
        folder, _, name = path.rpartition("/")
        known = next((prefix for prefix in self._maps if folder == prefix or folder.startswith(f"{prefix}/")), None)
        if known is None:
            known = folder
            self._maps[known] = str(self.folder / "mapped" / str(len(self._maps)))
        inner = folder.removeprefix(known).strip("/")
        return Path(self._maps[known]) / inner / name

    def insert(self, table: str, *rows: Row, schema: Mapping[str, str] | None = None) -> None:
        """Append rows to a table from outside that the pipeline reads; the first call makes it.

        `schema`: Spark's names of types, where the values do not tell; without rows an empty table of these columns.
        """
        from deltalake import DeltaTable, write_deltalake

        place = Path(self._tables.setdefault(table, str(self.folder / "sources" / str(len(self._tables)))))
        given = schema or {}
        if any(kind.lower() == VARIANT for kind in given.values()):
            frame_of(self.spark, rows, given).write.format("delta").mode("append").save(str(place))
            return
        there = {f.name: f.type for f in pa.schema(DeltaTable(str(place)).schema().to_arrow())} if place.exists() else {}
        write_deltalake(str(place), table_of(rows, {**there, **kinds_of(given)}), mode="append", schema_mode="merge")
        write_checksum(place)

    # ---------------------------------------------------------------------------------------------------------------- updates

    def update(
        self,
        *,
        select: str | Sequence[str] = (),
        full_refresh: str | Sequence[str] = (),
        full_refresh_all: bool = False,
        state: str = UpdateState.COMPLETED,
    ) -> Project:
        """Run one update; it must end in `state`. `errors` are those of its flows. Names: `["a", "b"]`, or `"a,b"` as on the command line.

        Raises AssertionError with the errors of an update that ended in a different state, LakeletError for a refused update.
        """
        self._events = []
        request = Request(several_names(select), several_names(full_refresh), full_refresh_all)
        try:
            result = Pipeline(self.config, spark=self.spark).run(request, listeners=[self._events.append])
        except LakeletError as error:  # without the frames below this one: they are Lakelet's
            raise error.with_traceback(None) from None
        self.errors = tuple(result.errors)
        if result.state != state:
            reasons = "\n".join(map(str, self.errors))
            raise AssertionError(f"the update ended {result.state}, not {state}" + (f"\n{reasons}" if reasons else ""))
        return self

    def refused(self) -> list[LakeletError]:
        """Run an update that must be refused before anything is written; return its errors."""
        try:
            Pipeline(self.config, spark=self.spark).run()
        except DefinitionErrors as errors:
            return list(errors.errors)
        except LakeletError as error:
            return [error]
        raise AssertionError("the update was not refused")

    # ------------------------------------------------------------------------------------------------------------- what is there

    @property
    def storage(self) -> Storage:
        return Storage(self.config.storage)

    def table(self, name: str) -> pa.Table:
        """The stored table of a dataset. Raises UNKNOWN_DATASET with the nearest name."""
        from deltalake import DeltaTable, QueryBuilder
        from deltalake.exceptions import DeltaError

        path = self._table_path(name)
        try:
            return pa.table(QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t").read_all())
        except (DeltaError, AttributeError, pa.ArrowException):  # a feature that only Spark reads
            return self.spark.read.format("delta").load(path).toArrow()

    def rows(self, name: str, *columns: str) -> Rows:
        """The rows of a dataset as dictionaries, all columns or the named ones, sorted by their values in order."""
        table = self.table(name)
        unknown = [column for column in columns if column not in table.column_names]
        if unknown:
            near = nearest_names(unknown[0], table.column_names)
            raise LakeletError(
                "USAGE", f"{name} has no column {unknown[0]!r}", nearest=near, todo=f"It has {', '.join(table.column_names)}."
            )
        found = rows_of(table.select(list(columns)) if columns else table)
        rows = Rows(sorted(found, key=lambda row: [_sort_key(value) for value in row.values()]))
        rows.name = name
        return rows

    def matches_snapshot(self, name: str, *columns: str) -> None:
        """Compare a dataset, all columns or the named ones, with the rows in `snapshots/<test file>/<test>-<dataset>.yml`.

        Raises AssertionError with the difference, or if there is no such file; `pytest --lakelet-update-snapshots` writes it.
        """
        if self._snapshots is None:
            raise LakeletError("USAGE", "this project belongs to no test, so it has no snapshots")
        rows, table = self.rows(name, *columns), self.table(name)
        self._snapshots.check(name, table.select(list(columns)) if columns else table, rows)

    def metrics(self, name: str) -> Metrics:
        """Return the metrics of a dataset in the last update, summed over its flows and micro-batches."""
        wanted = self._namespace.resolve(name).key
        updates = reduce_events(event.as_json() for event in self._events).updates
        runs = [run for update in updates for run in update.runs_by_start if run.dataset.lower() == wanted]
        counts = [count for run in runs for count in run.rules]
        return Metrics(
            runs[-1].status if runs else None,
            output_rows=sum(run.written for run in runs),
            upserted_rows=sum(run.upserted for run in runs),
            deleted_rows=sum(run.deleted for run in runs),
            dropped_records=sum(run.dropped for run in runs),
            quarantined_records=sum(run.quarantined for run in runs),
            late_records=sum(run.late for run in runs),
            expectations={rule: count for (_, rule), count in summed(replace(count, dataset=name) for count in counts).items()},
        )

    @property
    def _namespace(self) -> Namespace:
        return self.config.namespace

    def _table_path(self, name: str) -> str:
        key, known = self._namespace.resolve(name).key, self.storage.registry().datasets
        if key not in known:
            short = {full.rsplit(".", 1)[-1]: full for full in known}
            near = nearest_names(name, [*known, *short])
            raise LakeletError("UNKNOWN_DATASET", f"the storage of this test has no table {name!r}", nearest=near)
        return str(self.storage.table_path(self._namespace.resolve(name)))


def explained(rows: Rows, other: Sequence[Row]) -> list[str]:
    """How the rows of a table differ from the expected ones, as lines."""
    columns = columns_of([*other, *rows])
    differing = difference(rows, other, columns)
    if differing:
        return differing.lines(rows.name)
    return [f"{rows.name}: the same rows in another order", "p.rows sorts them by their values, column by column, NULL first"]


def _file_content(suffix: str, records: Sequence[Row | str | bytes]) -> bytes:
    """The file's bytes: dictionaries as CSV with a header or as JSON lines, texts as lines, bytes as they are."""
    header = list(dict.fromkeys(name for record in records if isinstance(record, Mapping) for name in record)) if suffix == ".csv" else []
    lines = [_csv_line(header)] if header else []
    for record in records:
        if isinstance(record, bytes):
            lines.append(record)
        elif isinstance(record, str):
            lines.append(f"{record}\n".encode())
        elif header:
            lines.append(_csv_line([record.get(name) for name in header]))
        else:
            lines.append((json.dumps(record, default=str, ensure_ascii=False) + "\n").encode())
    return b"".join(lines)


def _csv_line(cells: Iterable[Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode()


def _sort_key(value: Any) -> tuple[bool, str, Any]:
    """Sorts NULL first, values of one type by themselves, others by their text."""
    kind = "number" if isinstance(value, int | float) else type(value).__name__
    return (value is not None, kind, repr(canonical(value)) if isinstance(value, Mapping | list) else (value if value is not None else 0))


_APPENDING = frozenset({"commitInfo", "protocol", "metaData", "add"})


def write_checksum(table: Path) -> None:
    """Write `_delta_log/<newest version>.crc` of a local table without checkpoint; none where others did more than append rows.

    Delta writes it beside each of its commits, delta-rs does not. With it Spark knows protocol and schema of the table without a job, which
    would be the first one of the session. Delta's protocol document describes the file ("Version Checksum File").
    """
    log = table / "_delta_log"
    commits = sorted(log.glob("*.json"))
    found: dict[str, Any] = {}
    sizes = []
    for kind, action in _log_actions(commits):
        if kind not in _APPENDING:
            return
        if kind == "add":
            sizes.append(action["size"])
        found[kind] = action
    checksum = {
        "tableSizeBytes": sum(sizes),
        "numFiles": len(sizes),
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": found["metaData"],
        "protocol": found["protocol"],
    }
    beside = log / f".{commits[-1].stem}.crc.part"
    beside.write_text(json.dumps(checksum), encoding="utf-8")
    beside.replace(commits[-1].with_suffix(".crc"))


def _log_actions(commits: list[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    for commit in commits:
        for line in commit.read_text(encoding="utf-8").splitlines():
            yield from json.loads(line).items()
