"""`project`: a tiny pipeline on disk, run in this process on the shared session."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace, TableName
from lakelet.config.named_tables import named_tables
from lakelet.config.path_map import PathMap
from lakelet.config.update_config import PipelineConfig
from lakelet.jvm.sessions import view_names
from lakelet.pipeline import Pipeline
from lakelet.plan.selection import Request
from lakelet.storage.eventlog.events import Event
from lakelet.storage.root import Storage


class Project:
    """A folder with pipeline files, a landing folder and a storage; `run()` is one update."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.folder, self.spark = folder, spark
        self.landing = folder / "landing"
        self.landing.mkdir(parents=True, exist_ok=True)
        self.files: list[Path] = []
        self.parameters: dict[str, str] = {"landing": str(self.landing)}
        self.maps: list[tuple[str, str]] = []
        self.tables: list[tuple[str, str]] = []
        self.moved: list[tuple[str, str]] = []
        self.events: list[Event] = []
        self.result: Any = None
        self.continuous = False
        self.publish: dict[str, str] = {}
        self.catalogs: dict[str, str] = {}
        self.development: bool | None = None
        self.event_log: TableName | None = None
        self._clock = 1_700_000_000

    def write(self, source: str, name: str = "pipeline.py") -> Project:
        """Put one source file into the pipeline (or replace it)."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(source))
        if file not in self.files:
            self.files.append(file)
        return self

    def helper(self, source: str, name: str) -> None:
        """Put a module beside the pipeline that is not a source file of it."""
        (self.folder / name).write_text(textwrap.dedent(source))

    def arrive(self, name: str, *records: Any, folder: str = "") -> None:
        """Land a JSON lines file; a str is written as it is. Modification times ascend in the order of the calls."""
        target = self.landing / folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
        target.write_text("".join(line + "\n" for line in lines))
        self._clock += 10
        os.utime(target, (self._clock, self._clock))

    @property
    def storage(self) -> Storage:
        return Storage(self.folder / "storage")

    @property
    def pipeline(self) -> Pipeline:
        namespace = Namespace("main", "default")
        config = PipelineConfig(
            name="test",
            pipeline_id="00000000-0000-0000-0000-000000000001",
            root=self.folder,
            files=tuple(self.files),
            import_roots=(self.folder,),
            namespace=namespace,
            parameters=self.parameters,
            storage=self.folder / "storage",
            development=self.development,
            event_log=self.event_log,
            continuous=self.continuous,
            publish=self.publish,
            catalogs=self.catalogs,
            paths=replace(
                PathMap.of(self.maps, self.folder),
                kept=(str(self.folder / "storage"),),
                root=str(self.folder),
                moved=tuple(self.moved),
                repository=(self.folder,),
            ),
            tables=named_tables(self.tables, namespace, self.folder),
        )
        return Pipeline(config, spark=self.spark)

    def run(self, *, expect: str = "COMPLETED", **request: Any) -> Project:
        """Run one update and check how it ended."""
        self.events = []
        self.result = self.pipeline.run(Request(**request), listeners=[self.events.append])
        assert self.result.state == expect, "\n".join(map(str, self.result.errors))  # a text, as pytest shortens lists
        return self

    def refused(self) -> list[LakeletError]:
        """Run an update that must not begin; the mistakes found. Nothing may have been written."""
        existed = self.storage.root.exists()
        before = self.snapshot()
        with pytest.raises(LakeletError) as caught:
            self.pipeline.run()
        assert self.snapshot() == before
        assert self.storage.root.exists() == existed
        return list(getattr(caught.value, "errors", [caught.value]))

    def snapshot(self) -> dict[str, bytes]:
        """All files of the storage with their content."""
        root = self.storage.root
        return {str(f.relative_to(root)): f.read_bytes() for f in sorted(root.rglob("*")) if f.is_file()} if root.exists() else {}

    def path(self, name: str) -> Path:
        storage = self.storage
        return storage.table_path(Namespace("main", "default").resolve(name))

    def version(self, name: str) -> int:
        return int(DeltaTable(str(self.path(name))).version())

    def versions(self) -> dict[str, int]:
        return {key.rsplit(".", 1)[-1]: self.version(key) for key in self.storage.registry().datasets}

    def table(self, name: str) -> pa.Table:
        table = DeltaTable(str(self.path(name)))
        if "delta.columnMapping.mode" in table.metadata().configuration:  # its files name the columns otherwise
            return pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t"))
        return table.to_pyarrow_table()

    def rows(self, name: str, *columns: str) -> list[Any]:
        """The table's rows, sorted: tuples of the columns (values if there is only one)."""
        table = self.table(name)
        chosen = [table[c].to_pylist() for c in (columns or table.column_names)]
        rows = list(zip(*chosen, strict=True)) if len(chosen) > 1 else chosen[0]
        return sorted(rows, key=repr)

    def statuses(self) -> dict[str, str]:
        """Last status of each flow in the last update, by unqualified name."""
        found = {}
        for event in self.events:
            if event.event_type == "flow_progress":
                found[str(event.origin.flow_name).rsplit(".", 1)[-1]] = event.body["status"]
        return found

    def quality(self, dataset: str | None = None) -> dict[str, tuple[int, int]]:
        """(passed, failed) per expectation, summed over the last update's events."""
        found: dict[str, tuple[int, int]] = {}
        for event in self.events:
            for e in event.body.get("data_quality", {}).get("expectations", []) if event.event_type == "flow_progress" else []:
                if dataset is None or e["dataset"].endswith(f".{dataset}"):
                    passed, failed = found.get(e["name"], (0, 0))
                    found[e["name"]] = (passed + e["passed_records"], failed + e["failed_records"])
        return found

    def logged(self, **where: Any) -> list[dict[str, Any]]:
        """Rows of the event log table, `details` parsed."""
        rows = DeltaTable(str(self.storage.events)).to_pyarrow_table().to_pylist()
        for row in rows:
            row["details"] = json.loads(row["details"])
        return [r for r in rows if all(r[k] == v for k, v in where.items())]

    def errors(self) -> dict[str, str]:
        """Code of each failed dataset of the last update."""
        return {str(e.dataset).rsplit(".", 1)[-1]: e.code for e in self.result.errors}


ADAPTIVE = "spark.sql.adaptive.enabled"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is marked `adaptive_too` runs with adaptive execution off and on; in an adaptive session (make test-adaptive) once."""
    if metafunc.definition.get_closest_marker("adaptive_too"):
        metafunc.fixturenames.append("adaptive")
        modes = ["true"] if os.environ.get("LAKELET_TEST_ADAPTIVE") else ["false", "true"]
        metafunc.parametrize("adaptive", modes, ids=[f"adaptive={mode}" for mode in modes], indirect=True)


@pytest.fixture
def adaptive(request: pytest.FixtureRequest, spark: Any) -> Iterator[None]:
    """Switch adaptive execution for one test; updates work on clones of the session, settings included."""
    before = spark.conf.get(ADAPTIVE)
    spark.conf.set(ADAPTIVE, request.param)
    yield
    spark.conf.set(ADAPTIVE, before)


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """After each file: drop Delta's cache of tables, refuse views that are left.

    The folders of the tables are gone, and each entry keeps a session alive. A view is a table that the next file's pipelines see, unless
    it has a name that Lakelet or Great Expectations (`tmp_view`) gives.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    yield
    context: Any = SparkContext._active_spark_context
    if context is None:
        return
    context._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    shared: Any = SparkSession._instantiatedSession
    left = [name for name in view_names(shared) if not name.startswith("lakelet_") and name != "tmp_view"] if shared is not None else []
    for name in left:
        shared.catalog.dropTempView(name)
    assert not left, f"the tests of this file left views in the shared session: {left}"


@pytest.fixture
def project(tmp_path: Path, spark: Any) -> Callable[..., Project]:
    """Make a project from the text of its pipeline file."""

    def make(source: str = "", **files: str) -> Project:
        made = Project(tmp_path / "project", spark)
        if source:
            made.write(source)
        for name, text in files.items():
            made.write(text, f"{name}.py")
        return made

    return make


def codes(errors: Sequence[LakeletError]) -> list[str]:
    return sorted(e.code for e in errors)


def by_code(errors: Sequence[LakeletError]) -> Mapping[str, LakeletError]:
    return {e.code: e for e in errors}
