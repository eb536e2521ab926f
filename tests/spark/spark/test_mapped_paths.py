"""Every way in which code names a path, with a map (`--map`). One volume, one folder of this machine."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakelet.cli.main import main

HEAD = """
    import dlt
    from pyspark.sql import functions as F
"""


def volume(p):
    """Two JSON files, one CSV file, a Parquet-like Delta folder below `data`, which stands for /Volumes/main/shop/raw."""
    data = p.folder / "data"
    for day in ("2024-01-01 00", "2024-01-01 01"):
        (data / "in" / day).mkdir(parents=True)
        (data / "in" / day / "a.json").write_text(f'{{"id": {int(day[-1]) + 1}}}\n')
    (data / "flat").mkdir()
    (data / "flat" / "a.json").write_text('{"id": 1}\n{"id": 2}\n')
    (data / "csv").mkdir()
    (data / "csv" / "a.csv").write_text("id\n1\n2\n")
    write_deltalake(data / "delta", pa.table({"id": [1, 2]}))
    p.maps = [("/Volumes/main/shop/raw", "data"), ("s3a://bucket/one.json", "data/flat/a.json"), ("dbfs:/out", "out")]
    return data


@pytest.mark.slow
def test_readers_in_python_find_their_files_in_every_spelling(project):
    p = project(
        HEAD
        + """
    import helper

    RAW = "/Volumes/main/shop/raw"
    assert sorted(f.name for f in dbutils.fs.ls(f"dbfs:{RAW}/in/")) == ["2024-01-01 00/", "2024-01-01 01/"]
    assert spark.read.json(f"{RAW}/flat").count() == spark.table(f"json.`{RAW}/flat`").count() == 2
    assert spark.sparkContext.textFile(f"dbfs:{RAW}/flat/a.json").count() == 2
    assert [r.id for r in spark.sql(f"SELECT id FROM json.`{RAW}/flat` ORDER BY id").collect()] == [1, 2]

    BATCHES = {
        "load": lambda: spark.read.format("json").load(f"{RAW}/flat"),
        "load_by_name": lambda: spark.read.load(path=f"dbfs:{RAW}/flat/", format="json"),
        "load_list": lambda: spark.read.format("json").load([f"{RAW}/in/2024-01-01 00", f"file:{RAW}/in/2024-01-01 01"]),
        "option": lambda: spark.read.format("json").option("path", f"{RAW}/flat").load(),
        "options": lambda: spark.read.format("json").options(path=f"{RAW}//flat").load(),
        "json": lambda: spark.read.json(f"/dbfs{RAW}/in/*/*.json"),
        "json_list": lambda: spark.read.json([f"{RAW}/in/{{2024-01-01 00,2024-01-01 01}}/a.json"]),
        "csv": lambda: spark.read.csv(path=f"dbfs://{RAW}/csv", header=True),
        "text": lambda: spark.read.text(f"{RAW}/csv/a.csv").where("value != 'id'"),
        "parquet": lambda: spark.read.parquet(f"{RAW}/delta", f"{RAW}/delta").distinct(),
        "delta": lambda: spark.read.format("delta").load(f"{RAW}/delta"),
        "one_file": lambda: spark.read.json("s3://bucket/one.json"),
        "table": lambda: spark.read.table(f"delta.`dbfs:{RAW}/delta`"),
        "helper": lambda: helper.rows(spark),
    }
    STREAMS = {
        "stream_load": lambda: spark.readStream.schema("id INT").format("json").load(f"{RAW}/flat"),
        "stream_option": lambda: spark.readStream.schema("id INT").format("json").option("path", f"{RAW}/flat").load(),
        "stream_json": lambda: spark.readStream.schema("id INT").json(f"dbfs:{RAW}/flat/"),
        "stream_table": lambda: spark.readStream.table(f"delta.`{RAW}/delta`"),
        "stream_delta": lambda: spark.readStream.format("delta").load(f"{RAW}/delta"),
        "cloud": lambda: spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .option("cloudFiles.schemaLocation", "/Volumes/not/mapped/at/all").load(f"{RAW}/in/*/"),
        "cloud_option": lambda: spark.readStream.format("cloudFiles")
            .options(**{"cloudFiles.format": "json", "path": f"dbfs:{RAW}/flat"}).load(),
    }
    for name, query in {**BATCHES, **STREAMS}.items():
        dlt.table(query, name=name)
"""
    )
    p.helper('def rows(spark):\n    return spark.read.json("/Volumes/main/shop/raw/flat")\n', "helper.py")
    volume(p)
    p.run()
    assert {str(len(p.rows(name.rsplit(".", 1)[-1]))) for name in p.storage.registry().datasets} == {"2"}
    assert len(p.storage.registry().datasets) == 21


@pytest.mark.slow
def test_sql_finds_its_files(project):
    p = project("")
    p.files.clear()
    p.write(
        """
        SET raw = dbfs:/Volumes/main/shop/raw;
        CREATE MATERIALIZED VIEW of_json AS SELECT * FROM json.`/Volumes/main/shop/raw/in/*`;
        CREATE MATERIALIZED VIEW of_delta AS SELECT d.id FROM delta.`${raw}/delta` AS d JOIN json.`${raw}/flat` f ON d.id = f.id;
        CREATE MATERIALIZED VIEW of_files AS SELECT id FROM read_files('${raw}/csv', format => 'csv');
        CREATE STREAMING TABLE stream_of_delta AS SELECT * FROM STREAM delta.`/Volumes/main/shop/raw/delta`;
        CREATE STREAMING TABLE stream_of_files AS SELECT id FROM STREAM read_files('${raw}/flat', format => 'json');
        CREATE STREAMING TABLE cloud AS SELECT id FROM cloud_files('/Volumes/main/shop/raw/flat', 'json');
        """,
        "pipeline.sql",
    )
    volume(p)
    p.run()
    assert {key: len(p.rows(key)) for key in p.storage.registry().datasets} == {
        f"main.default.{name}": 2 for name in ("of_json", "of_delta", "of_files", "stream_of_delta", "stream_of_files", "cloud")
    }


@pytest.mark.long
def test_what_code_writes_goes_to_the_mapped_place_also_at_the_end_of_a_stream(project):
    p = project(
        HEAD
        + """
    from delta.tables import DeltaTable

    spark.range(2).write.mode("overwrite").json("dbfs:/out/json")
    spark.range(2).write.format("delta").mode("overwrite").option("path", "/out/delta").save()
    spark.range(2).write.save("/dbfs/out/parquet", format="parquet", mode="overwrite")
    assert DeltaTable.isDeltaTable(spark, "dbfs:/out/delta") and not DeltaTable.isDeltaTable(spark, "dbfs:/out/json")
    DeltaTable.forPath(spark, "dbfs:/out/delta").delete("id = 0")
    spark.sql("CREATE TABLE IF NOT EXISTS located USING delta LOCATION '/out/delta'")
    assert spark.table("located").count() == 1
    spark.sql("DROP TABLE located")

    @dlt.table
    def rows():
        return spark.read.json("/out/json").unionByName(spark.read.parquet("dbfs:/out/parquet"))
"""
    )
    volume(p)
    p.run()
    assert sorted(p.rows("rows")) == [0, 0, 1, 1]
    assert sorted(f.name for f in (p.folder / "out").iterdir()) == ["delta", "json", "parquet"]
    assert DeltaTable(p.folder / "out" / "delta").to_pyarrow_table()["id"].to_pylist() == [1]


def test_all_paths_without_a_place_are_told_at_once_with_the_flag_of_each(project, monkeypatch):
    monkeypatch.setattr("lakelet.spark.names.paths.is_set_up", lambda scheme: False)
    p = project(
        HEAD
        + """
    @dlt.table
    def reader():
        return spark.read.json("/Volumes/other/shop/raw/in/*.json")

    @dlt.table
    def option():
        return spark.readStream.format("json").schema("id INT").option("path", "dbfs:/mnt/option").load()

    @dlt.table
    def cloud():
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load("/mnt/cloud/")

    @dlt.table
    def text():
        return spark.sql("SELECT * FROM csv.`abfss://c@a.dfs.core.windows.net/x`")

    @dlt.table
    def files():
        return spark.sql("SELECT * FROM STREAM read_files('/databricks-datasets/x', format => 'json')")

    @dlt.table
    def bucket():
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load("s3a://bucket/two/")

    @dlt.table
    def moving():
        return spark.read.json("/Volumes/gone/x")
"""
    )
    volume(p)
    p.maps.append(("/Volumes/gone", "nowhere"))
    errors = {str(e.dataset).rsplit(".", 1)[-1]: e for e in p.refused()}
    assert {name: error.code for name, error in errors.items()} == {
        **dict.fromkeys(("reader", "option", "cloud", "text", "files", "bucket"), "PATH_NOT_MAPPED"),
        "moving": "MAP_TARGET_MISSING",
    }
    flags = {name: str(error.todo).split("--map ")[1].split("=")[0] for name, error in errors.items()}
    assert flags == {
        "reader": "/Volumes/other/shop/raw/in",
        "option": "dbfs:/mnt/option",
        "cloud": "/mnt/cloud",
        "text": "abfss://c@a.dfs.core.windows.net/x",
        "files": "/databricks-datasets/x",
        "bucket": "s3a://bucket/two",
        "moving": "/Volumes/gone",
    }
    assert str(errors["reader"].where) == f"{p.files[0]}, line 7"


def test_a_place_for_a_stream_that_is_never_started_need_not_be_here(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def rows():
        found = spark.readStream.format("delta").load("/Volumes/main/shop/raw/delta")
        found.writeStream.option("checkpointLocation", "/Volumes/other/_ops/rows").trigger(availableNow=True)
        return found
"""
    )
    volume(p)
    p.run()
    assert p.rows("rows") == [1, 2]
    for start in (
        'option("checkpointLocation", "/Volumes/other/_ops/rows").start()',
        'start(checkpointLocation="/Volumes/other/_ops/rows")',
        'toTable("copy", checkpointLocation="/Volumes/other/_ops/rows")',
    ):
        p.write(f"{HEAD}\n    spark.readStream.format('delta').load('/Volumes/main/shop/raw/delta').writeStream.{start}\n")
        (error,) = p.refused()
        assert "--map /Volumes/other/_ops/rows=" in str(error), start


def test_python_itself_and_libraries_open_files_at_their_mapped_place(project):
    p = project(
        HEAD
        + """
    import fileinput, os
    from pathlib import Path
    import helper
    import pandas as pd

    RAW = "/Volumes/main/shop/raw"
    lines = [open(f"{RAW}/csv/a.csv").read(), helper.text(f"/dbfs{RAW}/csv/a.csv"), Path(f"{RAW}/csv/a.csv").read_text()]
    assert lines == ["id\\n1\\n2\\n"] * 3
    assert os.listdir(f"{RAW}/csv") == ["a.csv"]
    assert os.path.exists(f"{RAW}/csv") and os.path.isdir(RAW) and os.path.isfile(f"{RAW}/csv/a.csv")
    assert not os.path.exists("/Volumes/main/shop/other") and os.path.exists(os.getcwd()) and os.listdir()
    with fileinput.input(f"{RAW}/csv/a.csv") as lines:  # a library opens it
        told = next(lines).strip()

    @dlt.table
    def rows():
        with open(f"{RAW}/csv/a.csv") as file:
            return spark.createDataFrame([(line.strip(), told) for line in file], "id string, told string")

    @dlt.table
    def by_pandas():
        return spark.createDataFrame(pd.read_csv(f"{RAW}/csv/a.csv"))
"""
    )
    p.helper("def text(path):\n    with open(path) as file:\n        return file.read()\n", "helper.py")
    volume(p)
    p.run()
    assert p.rows("rows") == [("1", "id"), ("2", "id"), ("id", "id")]
    assert p.rows("by_pandas") == [1, 2]


@pytest.mark.slow
def test_files_that_were_read_are_moved_to_the_mapped_place(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def rows():
        return (
            spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.cleanSource", "MOVE")
            .option("cloudFiles.cleanSource.retentionDuration", "0 seconds")
            .option("cloudFiles.cleanSource.moveDestination", "dbfs:/out/done")
            .load("/Volumes/main/shop/raw/flat")
        )
"""
    )
    data = volume(p)
    p.run()
    p.run()
    assert not list((data / "flat").glob("*.json"))
    assert (p.folder / "out" / "done" / "a.json").is_file()
    assert len(p.rows("rows")) == 2


def test_the_command_line_names_the_flag_and_takes_it(project, monkeypatch, capsys):
    p = project(
        HEAD
        + """
    @dlt.table
    def rows():
        return spark.read.json("/Volumes/main/shop/raw/in/*").join(spark.table("a.b.c"), "id")
"""
    )
    volume(p)
    monkeypatch.chdir(p.folder)
    assert main(["validate", "pipeline.py", "--table", "a.b.c=data/delta"]) == 2
    assert "Say where it lies: --map /Volumes/main/shop/raw/in=FOLDER." in capsys.readouterr().err
    assert main(["validate", "pipeline.py", "--map", "/Volumes/main/shop/raw/in=data/in"]) == 2
    assert "say where its folder or file lies: --table a.b.c=PATH." in capsys.readouterr().err
    options = ["--map", "/Volumes/main/shop/raw/in=data/in", "--table", "a.b.c=data/delta"]
    assert main(["graph", "pipeline.py", "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["datasets"][0]["external"] == ["a.b.c"]
    assert not (p.folder / ".lakelet").exists()
