"""Real records in every mode: each value of each record is found again in a column or in the rescued column (FS-32).

Read without Spark, by the program of tests/autoloading.py; test_autoloader_real_data.py does the same through a stream.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from autoloading import INFER, Program
from lakelet.autoloader.schema_growth import UnknownFieldException
from tests.paths import SHARED_DATA, unpack

DATA = SHARED_DATA
pytestmark = [pytest.mark.real_data, pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not on this machine")]
RESCUED = "_rescued_data"
LINES_OF_EACH = 2500  # records of each recording: the traps of the data are all among them, and a test takes seconds


def text_of(value: Any) -> str:
    """One text per JSON value, the same for a value and for its text in a STRING column; NULL members say nothing."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            return value
        return text_of(inner) if isinstance(inner, dict | list) else value
    return json.dumps(without_nulls(value), sort_keys=True, separators=(",", ":"))


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every scalar of a value with its path. A text counts as the JSON value that it is the text of; arrays add nothing to a path."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, path)
    elif value is not None:
        yield path, value if isinstance(value, str) else json.dumps(float(value) if type(value) in (int, float) else value)


def pairs_of(line: str) -> list[tuple[str, Any]]:
    """The members of a record, repeated names included."""
    found: list[tuple[str, Any]] = json.loads(line, object_pairs_hook=_keep_repeated)
    return found


def _keep_repeated(pairs: list[tuple[str, Any]]) -> Any:
    return [(key, dict(value) if value and isinstance(value, list) and isinstance(value[0], tuple) else value) for key, value in pairs]


def recordings(folder: Path) -> list[Path]:
    """The first lines of each recording of windows-events."""
    found = []
    for at, archive in enumerate(sorted((DATA / "windows-events").glob("*.zip"))):
        with zipfile.ZipFile(archive) as packed:
            name = next(n for n in packed.namelist() if n.endswith(".json") and not n.startswith("__MACOSX"))
            with packed.open(name) as lines:
                content = b"".join(line for _, line in zip(range(LINES_OF_EACH), lines, strict=False))
        found.append(folder / f"{at}.json")
        found[-1].write_bytes(content)
    return found


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "stops"),
    [({}, True), (INFER, True), ({**INFER, "cloudFiles.schemaEvolutionMode": "rescue"}, False)],
    ids=["texts", "inferred", "rescue"],
)
def test_every_value_of_windows_events_is_found_again(options: Mapping[str, str], stops: bool, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "staged").mkdir()
    one = Program(tmp_path / "in", tmp_path, options)
    expected: Counter[frozenset[tuple[str, str]]] = Counter()
    for path in recordings(tmp_path / "staged"):
        for line in path.read_text().splitlines():
            expected[frozenset((key, text_of(value)) for key, value in pairs_of(line) if value is not None)] += 1
        one.put(path.name, path.read_bytes())
        if stops and one.batches:
            one.stops()
        one.run()
    assert len(one.changes) == (2 if stops else 0)
    found: Counter[frozenset[tuple[str, str]]] = Counter()
    for row in (row for batch in one.batches for row in batch):
        kept = json.loads(row.pop(RESCUED) or "{}")
        kept.pop("_file_path", None)
        assert "_corrupt_record" not in kept
        found[frozenset((key, text_of(value)) for key, value in [*row.items(), *kept.items()] if value is not None)] += 1
    assert sum(found.values()) == sum(expected.values()) == 3 * LINES_OF_EACH
    missing = expected - found
    assert not missing, next(iter(missing))


@pytest.fixture(scope="module")
def trail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the CloudTrail files."""
    folder = tmp_path_factory.mktemp("cloudtrail")
    unpack(DATA / "cloudtrail" / "cloudtrail.tar.gz", folder)
    return folder / "CloudTrail"


def expected_of(folder: Path) -> Counter[frozenset[tuple[tuple[str, ...], str]]]:
    """The leaves of each record."""
    records = [record for path in folder.iterdir() for record in json.loads(path.read_bytes())["Records"]]
    assert len(records) == 2900
    return Counter(frozenset(leaves(record)) for record in records)


def by_event(documents: list[tuple[Any, Any]]) -> Counter[frozenset[tuple[tuple[str, ...], str]]]:
    """The leaves of each record of (column, rescued) pairs."""
    found: Counter[frozenset[tuple[tuple[str, ...], str]]] = Counter()
    for column, rescued in documents:
        records = json.loads(column) if isinstance(column, str) else column
        others = json.loads(rescued)["Records"] if rescued else None
        assert others is None or len(others) == len(records), "an array is rescued whole"
        for at, record in enumerate(records):
            found[frozenset([*leaves(record), *(leaves(others[at]) if others else ())])] += 1
    return found


@pytest.mark.parametrize("infer", ["true", "false"], ids=["inferred", "texts"])
def test_every_value_of_cloudtrail_is_found_again(infer: str, trail: Path, tmp_path: Path) -> None:
    one = Program(trail, tmp_path, {"cloudFiles.inferColumnTypes": infer, "multiLine": "true"}).run()
    rows = one.rows("Records", RESCUED)
    assert len(rows) == 55
    assert one.types()["Records"].startswith("array<struct<" if infer == "true" else "string")
    assert not expected_of(trail) - by_event(rows)


def test_every_value_of_cloudtrail_is_in_one_variant(trail: Path, tmp_path: Path) -> None:
    one = Program(trail, tmp_path, {"singleVariantColumn": "v", "multiLine": "true"}).run()
    assert one.types()["v"] == "variant"
    documents = [(json.loads(text)["Records"], None) for text in one.rows("v")]
    assert not expected_of(trail) - by_event(documents)


@pytest.mark.slow
def test_files_of_cloudtrail_that_come_one_after_the_other_grow_the_schema(trail: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    one = Program(tmp_path / "in", tmp_path, {**INFER, "multiLine": "true"})
    for at, path in enumerate(sorted(trail.iterdir())):
        one.put(path.name, path.read_bytes())
        if at % 11 == 10:
            with contextlib.suppress(UnknownFieldException):
                one.run()
            one.run()
    assert one.log() >= 1
    assert not expected_of(trail) - by_event(one.rows("Records", RESCUED))
