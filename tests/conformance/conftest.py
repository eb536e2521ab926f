"""`case`: one of other people's pipelines, unmodified, in a folder of its own; skipped where its sources are not on this machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakelet.config.update_config import load_config
from lakelet.inspection.inspector import list_tables
from lakelet.pipeline import Pipeline
from lakelet.plan.selection import Request
from lakelet.storage.eventlog.events import Event
from lakelet.storage.root import Storage
from tests.conformance.corpus import SOURCES, Source

Row = Mapping[str, Any]


class Case:
    """A pipeline of the corpus with its inputs and its storage. `update()` is one `lakelet run` in the project's folder.

    `params`, `maps` and `tables` are what `--param`, `--map` and `--table` say. Inputs lie below `inputs`.
    """

    def __init__(self, source: Source, folder: Path, spark: Any) -> None:
        self.source, self.spark = source, spark
        self.project, self.inputs = folder / "project", folder / "inputs"
        self.storage = folder / "storage"
        self.params: dict[str, str] = {}
        self.maps: dict[str, str] = {}
        self.tables: dict[str, str] = {}
        self.catalog: str | None = None
        self.schema: str | None = None
        self.events: list[Event] = []
        self.result: Any = None
        for path in source.paths:
            _copy(source.folder / path, self.project / path)

    # --- inputs ----------------------------------------------------------------------------------------------------------------------

    def arrive(self, path: str | Path, text: str, *, encoding: str = "utf-8") -> None:
        """A file below `inputs` (or at an absolute path)."""
        file = self.inputs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding=encoding)

    def arrive_json(self, path: str | Path, rows: Iterable[Row]) -> None:
        """A file of JSON lines."""
        self.arrive(path, "".join(json.dumps(row) + "\n" for row in rows))

    def arrive_csv(self, path: str | Path, header: str, lines: Iterable[str], *, encoding: str = "utf-8") -> None:
        """A CSV file with a header line; `utf-8-sig` puts a byte order mark in front."""
        self.arrive(path, "\n".join([header, *lines]) + "\n", encoding=encoding)

    def arrive_delta(self, path: str | Path, rows: pa.Table, *, mode: Any = "append") -> Path:
        """Rows for a Delta folder below `inputs`."""
        folder = self.inputs / path
        folder.parent.mkdir(parents=True, exist_ok=True)
        write_deltalake(str(folder), rows, mode=mode)
        return folder

    # --- updates ---------------------------------------------------------------------------------------------------------------------

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as `lakelet run` configures it, on the session of the tests."""
        config = load_config(
            [str(self.project / path) for path in self.source.files],
            params=self.params,
            maps=tuple(self.maps.items()),
            tables=tuple(self.tables.items()),
            storage=str(self.storage),
            catalog=self.catalog,
            schema=self.schema,
        )
        return Pipeline(config, spark=self.spark)

    def update(self, *, expect: str = "COMPLETED") -> Case:
        """Run one update and check how it ended."""
        self.events = []
        self.result = self.pipeline.run(Request(), listeners=[self.events.append])
        assert self.result.state == expect, [str(e) for e in self.result.errors]
        return self

    def nothing_new(self) -> None:
        """Run an update without new input: it completes, no table has another number of rows, no stream reads a row."""
        before = self.counts()
        self.update()
        assert self.counts() == before, "an update without new input changes numbers of rows"
        written = {name: n for name, n in self.stream_rows().items() if n}
        assert not written, f"streams read again in an update without new input: {written}"

    def stream_rows(self) -> dict[str, int]:
        """Rows that each streaming table's flows wrote in the last update."""
        streaming = {t.name.lower() for t in list_tables(self.storage, private=True) if t.kind == "streaming_table"}
        found: dict[str, int] = {}
        for event in self.events:
            dataset = str(event.origin.dataset_name).lower()
            if event.event_type == "flow_progress" and dataset in streaming:
                rows = event.body.get("metrics", {}).get("num_output_rows") or 0
                found[dataset] = found.get(dataset, 0) + rows
        return found

    # --- results ---------------------------------------------------------------------------------------------------------------------

    def published(self) -> set[str]:
        """Names, without catalog and schema, of what `lakelet show` lists."""
        return {table.name.rsplit(".", 1)[-1] for table in list_tables(self.storage)}

    def counts(self) -> dict[str, int]:
        """Number of rows of every stored table."""
        return {table.name: len(self.table(table.name)) for table in list_tables(self.storage, private=True)}

    def table(self, name: str) -> pa.Table:
        """A stored table by its name (one part is completed by the pipeline's catalog and schema)."""
        storage = Storage(self.storage)
        full = storage.registry().namespace.resolve(name)
        assert full.key in storage.registry().datasets, f"{name} is not stored; stored are {sorted(storage.registry().datasets)}"
        return DeltaTable(str(storage.table_path(full))).to_pyarrow_table()

    def columns(self, name: str) -> list[str]:
        return list(self.table(name).column_names)

    def count(self, name: str) -> int:
        return len(self.table(name))

    def rows(self, name: str, *columns: str) -> list[Any]:
        """The rows, sorted: tuples of the columns (values if there is only one)."""
        table = self.table(name)
        chosen = [table[column].to_pylist() for column in (columns or table.column_names)]
        return sorted(zip(*chosen, strict=True) if len(chosen) > 1 else chosen[0], key=repr)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


@pytest.fixture
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Case]:
    """Make the case of a number (`case("V01")`). Skips where its sources are absent."""

    def make(number: str) -> Case:
        source = SOURCES[number]
        if not source.present:
            pytest.skip(f"{source.repository}@{source.commit[:8]} is not in {source.folder}; fetch it: make corpus")
        made = Case(source, tmp_path, request.getfixturevalue("spark"))
        monkeypatch.chdir(made.project)
        return made

    return make


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder that runs a case is a conformance test; it needs the session, too."""
    for item in items:
        if "case" in getattr(item, "fixturenames", ()) and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.conformance)
            item.add_marker(pytest.mark.spark)
