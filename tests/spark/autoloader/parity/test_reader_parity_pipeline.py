"""The session settings of a pipeline's dataset reach Auto Loader as they reach Spark's readers.

What the settings do to values is tried in `test_reader_parity.py`, without Spark in between; here they go the whole way: from `spark_conf`
a dataset through the update to the rows of its table. Each table reads a folder with a file of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.spark.autoloader.parity.combinations import Part, Reading, reading
from tests.spark.autoloader.parity.laboratory import Laboratory, Table, listed, same
from tests.spark.autoloader.parity.rules import expected

_ZONE = {"spark.sql.session.timeZone": "America/New_York"}
_SETTINGS = {
    "zone": Part(settings=_ZONE),
    "zone-and-option": Part(settings=_ZONE, options={"timeZone": "Asia/Tokyo"}),
    "without-zone": Part(settings={"spark.sql.timestampType": "TIMESTAMP_NTZ"}),
    "corrupt": Part(settings={"spark.sql.columnNameOfCorruptRecord": "_broken"}, more="_broken STRING"),
    "ansi-off": Part(settings={"spark.sql.ansi.enabled": "false"}),
}
_COLUMNS = {
    "json": "id BIGINT, t TIMESTAMP, day DATE, d DOUBLE",
    "csv": "id BIGINT, t TIMESTAMP",
    "xml": "id BIGINT, t TIMESTAMP, day DATE",
}
_KINDS = ("plain", "moments", "only-moments", "days", "wrong-types")
HEAD = "import dlt\nfrom pyspark.sql import SparkSession\nspark = SparkSession.getActiveSession()\n"


def reading_of(format: str, setting: str) -> Reading:
    options = {"csv": {"header": "true"}, "xml": {"rowTag": "row"}}.get(format, {})
    return reading(format, [("", Part(schema=_COLUMNS[format], options=options)), (setting, _SETTINGS[setting])])


def dataset(made: Reading, folder: Any) -> str:
    """The dataset that reads the folder so, and names the file of each row."""
    pattern = f"{folder}/{{{','.join(_KINDS)}}}"
    options = {"cloudFiles.format": made.format, **dict(made.options), **dict(made.loader)}
    return f"""
@dlt.table(name="{name_of(made)}", spark_conf={dict(made.settings)!r})
def _():
    frame = spark.readStream.format("cloudFiles").options(**{options!r}).schema({made.schema!r}).load({pattern!r})
    return frame.selectExpr("*", "_metadata.file_name AS file_of_the_row")
"""


def name_of(made: Reading) -> str:
    return f"{made.format}_{made.name}".replace("-", "_")


def check(make: Callable[..., Any], spark: Any, root: Any, made: Sequence[Reading]) -> None:
    laboratory = Laboratory(spark, root)
    project = make(HEAD + "".join(dataset(one, laboratory.folder(one)) for one in made)).run()
    differences = []
    for one in made:
        rows = listed(project.table(name_of(one)))
        for kind in _KINDS:
            wanted = expected(laboratory, one, kind)
            assert isinstance(wanted, Table), wanted
            part = [{name: row[name] for name in wanted.types} for row in rows if row["file_of_the_row"] == kind]
            found = Table(wanted.types, tuple(part))
            if not same(wanted, found):
                differences.append(f"{name_of(one)} {kind}\nexpected: {wanted}\ntable: {found}")
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("format", _COLUMNS)
def test_session_settings_of_a_dataset_reach_its_source(format: str, project: Any, spark: Any, tmp_path: Any) -> None:
    check(project, spark, tmp_path, [reading_of(format, "zone"), reading_of(format, "corrupt")])


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize("format", _COLUMNS)
def test_every_session_setting_of_a_dataset_reaches_its_source(format: str, project: Any, spark: Any, tmp_path: Any) -> None:
    check(project, spark, tmp_path, [reading_of(format, setting) for setting in _SETTINGS])
