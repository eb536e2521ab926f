"""Tables with odd column names (Delta column mapping) as every reader without Spark sees them, compared with Spark (SC-12)."""

from __future__ import annotations

import pytest

from lakelet.dashboard.tables import StoredTables
from lakelet.inspection.inspector import duck_table, list_tables, read_arrow, read_rows
from lakelet.inspection.json_values import json_rows

PIPELINE = r"""
import dlt
from pyspark.sql import functions as F

ODD = ["a b", "c,d", "e;f", "g{h}", "i(j)", "k=l", "m\tn", "o\np", "q.r", "größe", "日本", 'quo"te', " lead", "%20", "it's"]

def rows(number):
    odd = [F.when(F.col("id") != 1, F.col("id") * 10 + at).alias(name) for at, name in enumerate(ODD)]
    return spark.range(number).select("id", *odd, F.struct(F.col("id").alias("in ner")).alias("st ruct"))

VECTORS = {"delta.enableDeletionVectors": "true"}
TABLES = {"whole": (3, [], {}), "empty": (0, [], {}), "parted": (4, ["a b", "c,d"], {}), "altered": (4, [], VECTORS)}
for mode in ("name", "id"):
    for name, (number, parts, more) in TABLES.items():
        def made(number=number):
            return rows(number)
        properties = {"delta.columnMapping.mode": mode, **more}
        dlt.table(made, name=f"{name}_{mode}", partition_cols=parts, table_properties=properties)
"""
ALTERED = (
    "DELETE FROM {t} WHERE id = 2",
    "ALTER TABLE {t} RENAME COLUMN `a b` TO old",
    "ALTER TABLE {t} RENAME COLUMN `c,d` TO `a b`",
    "ALTER TABLE {t} RENAME COLUMN old TO `c,d`",
    "ALTER TABLE {t} DROP COLUMN `k=l`",
    "ALTER TABLE {t} ADD COLUMN `k=l` STRING",
    "ALTER TABLE {t} RENAME COLUMN `st ruct`.`in ner` TO `in newer`",
)


def as_texts(found):
    return sorted(repr(sorted(row.items())) for row in found)


@pytest.mark.long
def test_every_reader_without_spark_sees_the_values_of_odd_columns(project):
    p = project(PIPELINE).run()
    for mode in ("name", "id"):
        for text in ALTERED:
            p.spark.sql(text.replace("{t}", f"delta.`{p.path(f'altered_{mode}')}`"))
    storage = p.storage.root
    names = [f"{name}_{mode}" for name in ("whole", "empty", "parted", "altered") for mode in ("name", "id")]
    counted = {info.name.rsplit(".", 1)[-1]: info.rows for info in list_tables(storage)}
    looked = StoredTables(storage, sample_rows=50).facts([f"main.default.{name}" for name in names])
    for name in names:
        frame = p.spark.read.format("delta").load(str(p.path(name)))
        wanted = as_texts(row.asDict(recursive=True) for row in frame.collect())
        assert as_texts(read_rows(storage, name, limit=50).rows) == wanted, name
        for table in (read_arrow(storage, name).read_all(), duck_table(storage, f"SELECT * FROM {name}")):
            assert table.column_names == frame.columns
            assert as_texts(row for batch in table.to_batches() for row in json_rows(batch)) == wanted, name
        assert (counted[name], looked[f"main.default.{name}"].sample.columns) == (len(wanted), tuple(frame.columns))
        nulls = [cell is None for row in looked[f"main.default.{name}"].sample.rows for cell in row]
        assert sum(nulls) == sum(value is None for row in frame.collect() for value in row), name
    query = "SELECT `a b`, `c,d`, `q.r` + 1 AS `x y`, `größe`, `it's` FROM {} WHERE `e;f` > 2 ORDER BY `c,d` DESC"
    assert duck_table(storage, query.format("altered_id")).to_pylist() == [
        {"a b": 31, "c,d": 30, "x y": 39, "größe": 39, "it's": 44},
    ]
