"""Tables and storages of any name: an update, another one, show and sql (docs/semantics/storage.md, ST-11)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from lakelet.config.update_config import load_config
from lakelet.inspection.inspector import list_tables, read_rows, run_sql
from lakelet.pipeline import Pipeline
from lakelet.storage.eventlog.reading import read_events

PIPELINE = """
    import dlt
    from pyspark.sql import functions as F

    def landed():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")).select("id", "op"))

    @dlt.table(name="größe")
    def stream():
        return landed()

    @dlt.table(name="100%25")
    def copy():
        return spark.readStream.table("größe")

    @dlt.table(name="a[b]")
    def view():
        return spark.read.table("größe").groupBy("op").count()

    dlt.create_streaming_table("änd\\\\er", table_properties={"delta.enableChangeDataFeed": "true"})  # so changes are merged
    dlt.apply_changes(target="änd\\\\er", source="größe", keys=["id"], sequence_by=F.col("id"))

    dlt.create_streaming_table("bil\\nd")
    dlt.apply_changes_from_snapshot(target="bil\\nd", source="größe", keys=["id"], stored_as_scd_type=1)

    dlt.create_sink("out", "delta", {"tableName": "`si%20nk`"})

    @dlt.append_flow(target="out")
    def send():
        return spark.readStream.table("größe")
"""
FOLDERS = ["ein%20ort/a[b]/back\\slash/line\nend/größe/%C3", 'a%b/a?b#c/a{b}*/it\'s "q"/a:b/😀']


def run(root: Path, storage: Path, spark) -> list[str]:
    config = load_config(["p.py"], cwd=root, environ={}, storage=str(storage), params={"landing": str(root / "landing")})
    result = Pipeline(replace(config, storage=storage), spark=spark).run()
    return [str(e) for e in result.errors] if result.state != "COMPLETED" else []


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_storage_and_tables_of_hostile_names_are_updated_and_shown(tmp_path, spark, folder):
    root = tmp_path / "project"
    (root / "landing").mkdir(parents=True)
    (root / "p.py").write_text(dedent(PIPELINE))
    storage = root / folder / "s"
    for number in (1, 2):
        (root / "landing" / f"{number}.json").write_text(f'{{"id": {number}, "op": "x"}}\n')
        assert run(root, storage, spark) == []
    made = {p.name for p in root.iterdir()} - {"landing", "p.py", "__pycache__"}
    assert made == {folder.split("/")[0]}, "a folder of another name was made"
    with_ids = {"größe", "100%25", "änd\\er", "bil\nd"}
    held = {t.name.removeprefix("main.default."): t.rows for t in list_tables(storage)}
    assert {name: held[name] for name in (*with_ids, "a[b]")} == {**dict.fromkeys(with_ids, 2), "a[b]": 1}
    for name in (*(f"`{name}`" for name in with_ids), "`si%20nk`"):
        assert sorted(row["id"] for row in read_rows(storage, name).rows) == [1, 2]
        assert list(run_sql(storage, f"SELECT sum(id) AS n FROM {name}", spark=spark).rows) == [{"n": 3}]
    assert len(list(read_rows(storage, "größe").rows)) == 2  # show takes this name without back quotes, SQL does not
    counts = [{"op": "x", "count": 2}]
    assert list(read_rows(storage, "`a[b]`").rows) == list(run_sql(storage, "SELECT * FROM `a[b]`", spark=spark).rows) == counts
    updates = {e["origin"]["update_id"] for e in read_events(storage, every=True)}
    assert len(updates) == 2
