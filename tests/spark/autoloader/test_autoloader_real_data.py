"""Real Windows event logs through a stream with inferred types and new columns: nothing of any record is lost (FS-32)."""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from autoloading import SparkProgram
from lakelet.autoloader import AutoLoaderSource, SourceSpec, register
from tests.paths import SHARED_DATA, unpack

DATA = SHARED_DATA / "windows-events"
pytestmark = [pytest.mark.real_data, pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not on this machine")]


def unpacked_events(folder: Path) -> list[Path]:
    """The JSON files of the archives, in the order of the archives' names."""
    found = []
    for at, archive in enumerate(sorted(DATA.glob("*.zip"))):
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                if name.endswith(".json") and not name.startswith("__MACOSX"):
                    found.append(folder / f"{at}_{Path(name).name}")
                    found[-1].write_bytes(packed.read(name))
    return found


def text_of(value: Any) -> str:
    """One text per JSON value, the same for a number and for its text in a STRING column."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))


def facts(pairs: Any) -> frozenset[tuple[str, str]]:
    """Key and value of everything in a record that is not null."""
    return frozenset((key, text_of(value)) for key, value in pairs if value is not None)


def expected(path: Path) -> Counter[frozenset[tuple[str, str]]]:
    records: Counter[frozenset[tuple[str, str]]] = Counter()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                pairs = json.loads(line, object_pairs_hook=lambda found: found)
                records[facts((key, dict(value) if _is_object(value) else value) for key, value in pairs)] += 1
    return records


def _is_object(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, tuple) for item in value)


def read_back(folder: Path) -> Counter[frozenset[tuple[str, str]]]:
    records: Counter[frozenset[tuple[str, str]]] = Counter()
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path)
        rescued = [None if text is None else json.loads(text) for text in table.column("_rescued_data").to_pylist()]
        columns = {name: table.column(name).to_pylist() for name in table.column_names if name != "_rescued_data"}
        for at in range(len(table)):
            pairs = [(name, values[at]) for name, values in columns.items() if values[at] is not None]
            kept = {key: value for key, value in (rescued[at] or {}).items() if key != "_file_path"}
            assert "_corrupt_record" not in kept
            records[facts([*pairs, *kept.items()])] += 1
    return records


@pytest.mark.slow
def test_every_value_of_every_record_is_found_again(spark: Any, tmp_path: Path) -> None:
    landing, staged = tmp_path / "in", tmp_path / "staged"
    landing.mkdir()
    staged.mkdir()
    register(spark, wrap=False)
    spec = SourceSpec(str(landing), {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"})
    total: Counter[frozenset[tuple[str, str]]] = Counter()
    versions = []
    for path in unpacked_events(staged):
        total += expected(path)
        os.rename(path, landing / path.name)
        for _ in range(3):
            source = AutoLoaderSource.open(spec, state=str(tmp_path / "state"))
            frame = source.read_stream(spark, name="seen")
            writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
            query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
            try:
                query.awaitTermination()
                break
            except Exception as failure:
                change = source.evolve(failure)
                if change is None:
                    raise
                versions.append(change.version_after)
    assert versions == [1, 2]  # one restart per later file, whatever the number of new columns
    found = read_back(tmp_path / "out")
    assert sum(found.values()) == sum(total.values()) == 103_591
    missing = total - found
    assert not missing, next(iter(missing))
    per_key = Counter(key for record, count in total.items() for key, _ in record for _ in range(count))
    per_column = Counter(key for record, count in found.items() for key, _ in record for _ in range(count))
    assert per_column == per_key


def test_every_record_of_cloudtrail_is_in_one_variant(spark: Any, tmp_path: Path) -> None:
    """The case of tests/unit/autoloader/test_autoloader_real_values.py that only Spark can make: text that becomes a VARIANT (FF-10)."""
    unpack(DATA.parent / "cloudtrail" / "cloudtrail.tar.gz", tmp_path)
    trail = tmp_path / "CloudTrail"
    one = SparkProgram(spark, trail, tmp_path, {"cloudFiles.format": "json", "singleVariantColumn": "v", "multiLine": "true"})
    found = one.run("to_json(v) AS v").rows("v")
    records = Counter(text_of(record) for text in found for record in json.loads(text)["Records"])
    expected_records = Counter(text_of(record) for path in trail.iterdir() for record in json.loads(path.read_bytes())["Records"])
    assert sum(expected_records.values()) == 2900
    assert not expected_records - records
