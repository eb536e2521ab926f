"""Tables of a pipeline in a real Hive metastore: rows in, and Spark without Lakelet finds them by name (PB-1 to PB-9)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.spark.launch.environment import jars
from tests.hive import MetastoreServer, hive_metastore
from tests.spark.conftest import Project

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with hive_metastore(tmp_path_factory.mktemp("hive")) as running:
        yield running


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from lakelet.spark.launch.session import start_session

    session = start_session(app_name="publishing", input_bytes=0)
    yield session
    session.stop()


class PublishedProject(Project):
    """A project whose setting `publish` names the metastore."""

    def notices(self) -> list[str]:
        """What the last update said about publishing."""
        return [event.message for event in self.events if event.event_type == "notice" and "atalog" in event.message]


@pytest.fixture
def project(tmp_path: Path, spark: Any, hive: MetastoreServer) -> Iterator[Callable[..., PublishedProject]]:
    def make(source: str) -> PublishedProject:
        made = PublishedProject(tmp_path / "a project", spark)
        made.publish = {"hive": hive.address}
        made.write(source)
        return made

    yield make
    hive.forget()


ORDERS = """
import dlt

SCHEMA = "id BIGINT COMMENT 'of the shop', at TIMESTAMP_NTZ, lines ARRAY<STRUCT<sku: STRING>>"

@dlt.table(name="sales.orders", comment="One row for each order", schema=SCHEMA)
def orders():
    return spark.sql("SELECT 1L AS id, TIMESTAMP_NTZ'2026-01-01 00:00:00' AS at, array(named_struct('sku', 'a')) AS lines")

@dlt.table(name="totals")
def totals():
    return spark.read.table("sales.orders").selectExpr("count(*) AS orders")

@dlt.table(name="scratch", private=True)
def scratch():
    return spark.range(1)

@dlt.view(name="seen")
def seen():
    return spark.range(1)
"""


def test_tables_have_names_columns_comments_and_locations_in_the_metastore(project: Any, hive: MetastoreServer) -> None:
    made = project(ORDERS).run()
    assert (hive.tables("sales"), hive.tables("default")) == (["orders"], ["totals"])
    assert hive.columns("sales", "orders") == [
        ("id", "bigint", "of the shop"),
        ("at", "timestamp", None),
        ("lines", "array<struct<sku:string>>", None),
    ]
    properties = hive.properties("sales", "orders")
    assert properties["comment"] == "One row for each order"
    assert properties["lakelet.pipeline_id"] == made.storage.registry().pipeline_id
    assert hive.location("sales", "orders") == f"file:{made.path('sales.orders')}"
    assert made.notices() == ["Published in the catalog 'hive': 2 tables created."]


READER = """
import sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.jars", sys.argv[1]).config("spark.ui.enabled", "false")
builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
builder.config("spark.hadoop.hive.metastore.uris", sys.argv[2]).config("spark.driver.host", "127.0.0.1")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").enableHiveSupport().getOrCreate()
for query in sys.argv[3:]:
    print("ROWS", [tuple(row) for row in spark.sql(query).collect()])
"""


def test_spark_without_lakelet_reads_the_tables_by_name(project: Any, hive: MetastoreServer, tmp_path: Path) -> None:
    project(ORDERS).run()
    (tmp_path / "reader.py").write_text(READER)
    queries = ["SELECT id, lines[0].sku FROM sales.orders", "SELECT orders FROM totals"]
    command = [sys.executable, str(tmp_path / "reader.py"), ",".join(map(str, jars().paths)), hive.address, *queries]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert [line for line in done.stdout.splitlines() if line.startswith("ROWS")] == ["ROWS [(1, 'a')]", "ROWS [(1,)]"], done.stderr[-3000:]


def test_a_second_update_changes_nothing_and_a_new_column_is_registered(project: Any, hive: MetastoreServer) -> None:
    made = project("import dlt\n@dlt.table\ndef orders():\n    return spark.sql('SELECT 1L AS id')").run()
    assert made.notices() == ["Published in the catalog 'hive': 1 table created."]
    assert made.run().notices() == []
    made.write("import dlt\n@dlt.table\ndef orders():\n    return spark.sql('SELECT 1L AS id, 2 AS number')").run()
    assert made.notices() == ["Published in the catalog 'hive': 1 table updated."]
    assert [name for name, _, _ in hive.columns("default", "orders")] == ["id", "number"]
    assert hive.properties("default", "orders")["lakelet.pipeline_id"] == made.storage.registry().pipeline_id


def test_columns_of_other_types_in_another_order_are_registered(project: Any, hive: MetastoreServer) -> None:
    made = project("import dlt\n@dlt.table\ndef orders():\n    return spark.sql(\"SELECT 'a' AS id, array(1) AS n, 1 AS m\")").run()
    made.write("import dlt\n@dlt.table\ndef orders():\n    return spark.sql(\"SELECT 1 AS m, 2 AS id, 'b' AS n\")").run()
    assert made.result.unpublished == ()
    assert hive.columns("default", "orders") == [("m", "int", None), ("id", "int", None), ("n", "string", None)]


def test_a_table_of_somebody_else_stays_and_the_others_are_published(project: Any, hive: MetastoreServer) -> None:
    theirs = hive.somebody_makes("sales", "orders")
    made = project(ORDERS).run()
    assert [(e.code, e.dataset) for e in made.result.unpublished] == [("PUBLISH_REFUSED", "main.sales.orders")]
    assert hive.location("sales", "orders") == theirs
    assert hive.columns("sales", "orders") == [("theirs", "string", None)]
    assert hive.tables("default") == ["totals"]
    assert made.rows("totals") == [1]
    hive.client.dropTable("sales", "orders", False, True)
    assert made.run().result.unpublished == ()
    assert hive.location("sales", "orders") == f"file:{made.path('sales.orders')}"


def test_a_dataset_that_is_removed_is_removed_and_its_files_stay(project: Any, hive: MetastoreServer) -> None:
    made = project(ORDERS).run()
    made.write("import dlt\n@dlt.table\ndef totals():\n    return spark.range(3)").run()
    assert (hive.tables("sales"), hive.tables("default")) == ([], ["totals"])
    assert made.path("sales.orders").is_dir()


def test_a_table_that_somebody_registered_meanwhile_is_not_removed(project: Any, hive: MetastoreServer) -> None:
    made = project(ORDERS).run()
    hive.client.dropTable("sales", "orders", False, True)
    theirs = hive.somebody_makes("sales", "orders")
    made.write("import dlt\n@dlt.table\ndef totals():\n    return spark.range(3)").run()
    assert hive.location("sales", "orders") == theirs
    assert made.result.unpublished == ()


def test_two_tables_that_would_have_one_name_are_an_error_of_the_second(project: Any, hive: MetastoreServer) -> None:
    tables = """
    import dlt

    @dlt.table(name="a.sales.t")
    def t():
        return spark.range(1)

    @dlt.table(name="b.sales.t")
    def u():
        return spark.range(2)
    """
    made = project(tables).run()
    assert [(e.code, e.dataset) for e in made.result.unpublished] == [("PUBLISH_REFUSED", "b.sales.t")]
    assert hive.location("sales", "t").endswith("/a/sales/t")


def test_a_metastore_that_does_not_answer_fails_publishing_and_not_the_update(project: Any) -> None:
    made = project(ORDERS)
    made.publish = {"hive": "thrift://127.0.0.1:1"}
    made.run()
    assert [e.code for e in made.result.unpublished] == ["CATALOG_UNREACHABLE"]
    assert "127.0.0.1:1" in str(made.result.unpublished[0])
    assert made.rows("totals") == [1]
    levels = [(row["level"], row["error"] is not None) for row in made.logged(event_type="notice")]
    assert levels == [("ERROR", True)]


def test_a_server_that_is_no_metastore_is_as_one_that_does_not_answer(project: Any) -> None:
    def refuse(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                server.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=refuse, args=(server,), daemon=True).start()
        made = project(ORDERS)
        made.publish = {"hive": f"thrift://127.0.0.1:1, thrift://127.0.0.1:{server.getsockname()[1]}"}
        made.run()
    assert [e.code for e in made.result.unpublished] == ["CATALOG_UNREACHABLE"]
    assert made.rows("totals") == [1]


def test_comments_and_types_that_the_metastore_has_no_room_for_are_cut(project: Any, hive: MetastoreServer) -> None:
    wide = ", ".join(f"column_number_{number}: INT" for number in range(300))
    source = f"""
    import dlt

    @dlt.table(schema="id BIGINT COMMENT '{"x" * 300}', v STRUCT<{wide}>")
    def orders():
        return spark.sql("SELECT 1L AS id, from_json('{{}}', 'STRUCT<{wide}>') AS v")
    """
    made = project(textwrap.dedent(source)).run()
    assert made.result.unpublished == ()
    (id, kind, comment), (_, wide_type, _) = hive.columns("default", "orders")
    assert (id, kind, len(str(comment)), wide_type) == ("id", "bigint", 256, "string")


ONE = "import dlt\n@dlt.table\ndef orders():\n    return spark.sql('SELECT 1L AS id')\n"


@pytest.fixture
def command(tmp_path: Path, hive: MetastoreServer, project: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A project on disk whose pyproject.toml names the metastore; the function runs one command in it."""
    (tmp_path / "pyproject.toml").write_text(f'[tool.lakelet]\npublish = {{ hive = "{hive.address}" }}\n')
    (tmp_path / "pipeline.py").write_text(ONE)

    def run(*words: str, expect: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lakelet.cli.main", *words]
        own = {**os.environ, **environment}
        # A failpoint kills the group of the process.
        done = subprocess.run(
            command, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=600, check=False, start_new_session=True
        )
        assert done.returncode == expect, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
        return done

    return run


def test_the_command_registers_what_somebody_has_removed(command: Any, hive: MetastoreServer) -> None:
    command("run")
    assert "Published in the catalog 'hive': 1 table created." in command("events").stdout
    hive.client.dropTable("default", "orders", False, True)
    (done,) = json.loads(command("publish", "--json").stdout)
    assert done == {"name": "main.default.orders", "catalog": "hive", "entry": "default.orders", "action": "created", "error": None}
    assert "1 table: 1 unchanged" in command("publish").stderr
    assert "Nothing new" in command("run").stderr
    assert "removed" in command("publish", "--remove").stdout
    assert hive.tables("default") == []


@pytest.mark.slow
def test_after_a_death_between_catalog_and_record_each_table_is_there_once(command: Any, hive: MetastoreServer) -> None:
    command("run", expect=-9, LAKELET_FAILPOINT="publish.begun")
    assert hive.tables("default") == []
    command("run", expect=-9, LAKELET_FAILPOINT="publish.registered")
    assert hive.tables("default") == ["orders"]
    command("run")
    assert "1 table: 1 unchanged" in command("publish").stderr
    assert hive.tables("default") == ["orders"]


@pytest.mark.slow
def test_an_environment_publishes_nothing(command: Any, hive: MetastoreServer) -> None:
    command("run")
    command("publish", "--remove")
    command("run", "--env", "try")
    assert hive.tables("default") == []


def test_a_refused_table_ends_a_run_with_exit_code_1_and_says_what_to_do(command: Any, hive: MetastoreServer) -> None:
    hive.somebody_makes("default", "orders")
    done = command("run", expect=1)
    assert "COMPLETED" in done.stderr
    assert "[PUBLISH_REFUSED] main.default.orders: the catalog `hive` has another table default.orders, which stays as it is" in done.stderr
    assert "Lakelet did not register it." in done.stderr
    assert command("publish", expect=1).stderr.count("PUBLISH_REFUSED") == 1


# --- tables of others ---------------------------------------------------------------------------------------------------------------------


READS = """
import dlt

rows_while_loading = spark.sql("SELECT * FROM theirs.customers").count()

@dlt.table
def batch():
    return spark.read.table("theirs.customers")

@dlt.table
def stream():
    return spark.readStream.table("main.theirs.customers")

@dlt.table
def by_sql():
    assert rows_while_loading == spark.table("theirs.customers").count()
    return spark.sql("SELECT id FROM hive_metastore.theirs.customers")
"""
READS_IN_SQL = """
CREATE OR REFRESH STREAMING TABLE sql_stream AS SELECT * FROM STREAM(theirs.customers);
CREATE OR REFRESH MATERIALIZED VIEW sql_batch AS SELECT * FROM main.theirs.customers;
"""


@pytest.fixture
def another_spark(hive: MetastoreServer, tmp_path: Path) -> Callable[..., list[str]]:
    """Run statements in Spark that has no Lakelet, with the metastore; the rows of each."""
    (tmp_path / "reader.py").write_text(READER)

    def run(*statements: str) -> list[str]:
        command = [sys.executable, str(tmp_path / "reader.py"), ",".join(map(str, jars().paths)), hive.address, *statements]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return [line for line in done.stdout.splitlines() if line.startswith("ROWS")]

    return run


def test_a_table_that_another_spark_makes_is_read_by_its_name_as_batch_and_stream_in_python_and_sql(
    project: Any, hive: MetastoreServer, another_spark: Any, tmp_path: Path
) -> None:
    folder, managed = tmp_path / "of others", tmp_path / "made by saveAsTable"
    another_spark(
        f"CREATE DATABASE IF NOT EXISTS theirs LOCATION 'file:{managed}'",
        f"CREATE TABLE theirs.customers (id BIGINT, name STRING) USING delta LOCATION 'file:{folder}'",
        "INSERT INTO theirs.customers VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE theirs.managed USING delta AS SELECT 3 AS id",
        "CREATE TABLE theirs.files USING parquet AS SELECT 4 AS id",
        "CREATE TABLE theirs.days USING parquet PARTITIONED BY (day) AS SELECT 5 AS id, '2026-01-01' AS day",
        "CREATE VIEW theirs.recent AS SELECT 6 AS id",
        "CREATE TABLE theirs.notes USING csv AS SELECT 7 AS id",
    )
    made = project(READS)
    made.catalogs, made.publish = made.publish, {}
    made.write(READS_IN_SQL, "more.sql").run()
    names = ("batch", "stream", "sql_stream", "sql_batch")
    assert [made.rows(name, "id", "name") for name in names] == [[(1, "a"), (2, "b")]] * 4
    assert made.rows("by_sql") == [1, 2]

    made.write(
        "import dlt\n@dlt.table\ndef others():\n    return spark.table('theirs.managed').union(spark.table('theirs.files'))", "more.py"
    )
    assert made.run().rows("others") == [3, 4]

    says = {"days": "parquet, partitioned by day", "recent": "a view", "notes": "csv"}
    for name, text in says.items():
        made.write(f"import dlt\n@dlt.table\ndef others():\n    return spark.table('theirs.{name}')", "more.py")
        (error,) = made.refused()
        assert (error.code, error.what.partition(": it says: ")[2]) == ("CATALOG_TABLE_REFUSED", text)
        assert hive.address in error.what


def test_a_table_that_the_metastore_client_registers_is_read_by_its_name(project: Any, hive: MetastoreServer) -> None:
    place = hive.somebody_makes("theirs", "customers").removeprefix("file:")
    made = project("import dlt\n@dlt.table\ndef copy():\n    return spark.read.table('theirs.customers')")
    made.catalogs = made.publish
    (error,) = made.refused()
    assert (error.code, error.what.partition(": it says")[2]) == ("CATALOG_TABLE_REFUSED", ": no format")
    hive.says_delta("theirs", "customers")
    write_deltalake(place, pa.table({"id": [1]}))
    assert made.run().rows("copy") == [1]
    assert hive.tables("theirs") == ["customers"]


def test_a_name_in_no_catalog_is_an_error_that_says_which_were_asked(project: Any, hive: MetastoreServer) -> None:
    made = project("import dlt\n@dlt.table\ndef copy():\n    return spark.read.table('nowhere.customers')")
    made.catalogs = made.publish
    (error,) = made.refused()
    assert error.code == "UNKNOWN_DATASET"
    assert f"neither the pipeline nor the storage nor the Hive metastore {hive.address} knows" in error.what


def test_two_names_that_differ_in_their_catalog_only_are_not_one_table_of_a_metastore(project: Any, hive: MetastoreServer) -> None:
    write_deltalake(hive.somebody_makes("theirs", "t").removeprefix("file:"), pa.table({"id": [1]}))
    hive.says_delta("theirs", "t")
    made = project("import dlt\n@dlt.table\ndef copy():\n    return spark.table('a.theirs.t').union(spark.table('b.theirs.t'))")
    made.catalogs = made.publish
    (error,) = made.refused()
    assert error.code == "CATALOG_TABLE_REFUSED"
    assert "it has one table for both b.theirs.t and a.theirs.t" in error.what


def test_what_the_pipeline_has_published_in_the_metastore_is_not_read_as_a_table_of_others(project: Any, hive: MetastoreServer) -> None:
    made = project(ORDERS)
    made.catalogs = made.publish
    made.run()
    made.write("import dlt\n@dlt.table\ndef copy():\n    return spark.read.table('other.sales.orders')", "more.py")
    assert [error.code for error in made.refused()] == ["UNKNOWN_DATASET"]


def test_a_metastore_that_is_away_fails_what_it_must_be_asked_for_and_nothing_else(project: Any) -> None:
    made = project("import dlt\n@dlt.table\ndef copy():\n    return spark.read.table('theirs.customers')")
    made.publish, made.catalogs = {}, {"hive": "thrift://127.0.0.1:1"}
    made.write("import dlt\n@dlt.table\ndef numbers():\n    return spark.range(1)", "more.py").run(expect="FAILED")
    assert made.errors() == {"copy": "CATALOG_UNREACHABLE"}
    assert made.rows("numbers") == [0]


@pytest.mark.slow
def test_commands_read_tables_of_others_and_start_spark_as_only_the_catalog_knows_their_location(
    command: Any, hive: MetastoreServer, tmp_path: Path
) -> None:
    command("run")
    assert "Nothing new" in command("run").stderr
    place = hive.somebody_makes("theirs", "clients").removeprefix("file:")
    hive.says_delta("theirs", "clients")
    write_deltalake(place, pa.table({"id": [1]}))
    (tmp_path / "copy.sql").write_text("CREATE OR REFRESH MATERIALIZED VIEW copy AS SELECT * FROM theirs.clients;\n")
    command("validate")
    assert "copy" in command("plan").stdout
    command("run")
    assert json.loads(command("show", "copy", "--json").stdout) == [{"id": 1}]
    assert "only a catalog knows where that lies" in command("run").stderr
    hive.says_delta("theirs", "clients", location=f"file:{tmp_path / 'moved'}")
    write_deltalake(str(tmp_path / "moved"), pa.table({"id": [2]}))
    command("run")
    assert json.loads(command("show", "copy", "--json").stdout) == [{"id": 2}]
