"""Cases S01–S10 of Auto Loader: files in SQL text, given to `spark.sql` inside a pipeline, or in a SQL file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelet.base.errors import LakeletError
from lakelet.inspection.inspector import run_sql

A = {"id": 1, "o": {"k": 1}}


def columns(project: Any, name: str) -> dict[str, str]:
    fields = json.loads(DeltaTable(str(project.path(name))).schema().to_json())["fields"]
    return {f["name"]: f["type"] if isinstance(f["type"], str) else f["type"]["type"] for f in fields}


def view(name: str, sql: str) -> str:
    """A dataset with this query; `$IN` is the landing folder."""
    return f'''
@dlt.table
def {name}():
    return spark.sql(f"""{sql.replace("$IN", "{IN}")}""")
'''


HEAD = """
import dlt
from pyspark.sql import SparkSession
spark = SparkSession.getActiveSession()
IN = spark.conf.get("landing")
"""


@pytest.fixture
def pipeline(project: Callable[..., Any]) -> Callable[..., Any]:
    """A project whose datasets are the given queries."""

    def make(**queries: str) -> Any:
        made = project(HEAD + "".join(view(name, sql) for name, sql in queries.items()))
        made.arrive("a.json", A)
        return made

    return make


@pytest.mark.long
def test_S01_S02_S03_S04_S05_batch_reads(pipeline: Callable[..., Any]) -> None:
    project = pipeline(
        s01="SELECT * FROM read_files('$IN')",
        s02="SELECT * FROM read_files('$IN', format => 'json', inferColumnTypes => false)",
        s03="SELECT * FROM read_files('$IN', format => 'json', schemaEvolutionMode => 'none')",
        s04="SELECT * FROM read_files('$IN', format => 'json', schemaHints => 'id INT')",
        s05="SELECT * FROM read_files('$IN/a.json', format => 'json', schema => 'id INT')",
        s05r="SELECT * FROM read_files('$IN/a.json', format => 'json', schema => 'id INT', rescuedDataColumn => '_r')",
        pattern="SELECT r.id, _metadata.file_name AS f FROM read_files('$IN', `fileNamePattern` => concat('a', '*')) AS r",
        inside="WITH x AS (SELECT *, _metadata.file_size AS s FROM read_files('$IN', multiLine => false)) SELECT id, s FROM x",
        direct="SELECT * FROM json.`$IN`",
    ).run()
    assert columns(project, "s01") == {"id": "long", "o": "struct", "_rescued_data": "string"}
    assert columns(project, "s02") == {"id": "string", "o": "string", "_rescued_data": "string"}
    assert columns(project, "s03") == {"id": "long", "o": "struct"}
    assert columns(project, "s04") == {"id": "integer", "o": "struct", "_rescued_data": "string"}
    assert columns(project, "s05") == {"id": "integer"}
    assert project.rows("s01") == project.rows("s04") == [(1, {"k": 1}, None)]
    assert project.rows("s02") == [("1", '{"k": 1}', None)]
    ((id, rescued),) = project.rows("s05r")
    assert (id, json.loads(rescued)["o"]) == (1, {"k": 1})
    assert project.rows("pattern") == [(1, "a.json")]
    assert project.rows("inside") == [(1, (project.landing / "a.json").stat().st_size)]
    assert project.rows("direct", "id") == [1]

    project.arrive("b.json", {"id": 2})
    project.run()
    assert project.rows("s01", "id") == [1, 2], "a batch read of files is never skipped, and reads everything again"
    assert project.rows("pattern", "id") == [1]


@pytest.mark.long
def test_S06_S08_a_stream_of_files_heals_itself_and_its_state_is_a_table(pipeline: Callable[..., Any]) -> None:
    project = pipeline(
        t="SELECT * FROM STREAM read_files('$IN')",
        seen="SELECT * FROM cloud_files_state(TABLE(t))",
    ).run()
    project.arrive("b.json", {"id": 2, "n": 1})
    project.run()
    assert columns(project, "t")["n"] == "long"
    assert project.rows("t", "id", "n") == [(1, None), (2, 1)]
    states = project.table("seen").to_pylist()
    assert sorted((s["path"].rsplit("/", 1)[-1], s["size"], s["source_id"]) for s in states) == [
        (name, (project.landing / name).stat().st_size, "0") for name in ("a.json", "b.json")
    ]
    assert all(s["commit_time"] is not None for s in states)

    def ask(sql: str) -> Any:
        return list(run_sql(project.storage.root, sql, spark=project.spark).rows)

    assert ask("SELECT count(*) AS n, max(flow_name) AS f FROM cloud_files_state(TABLE(t)) AS s") == [{"n": 2, "f": "main.default.t"}]
    assert ask(f"SELECT id FROM read_files('{project.landing}', format => 'json') ORDER BY id") == [{"id": 1}, {"id": 2}]
    with pytest.raises(LakeletError, match="CF_UNSUPPORTED_CLOUD_FILES_SQL_FUNCTION"):
        ask(f"SELECT id FROM STREAM read_files('{project.landing}')")


@pytest.mark.slow
def test_S07_cloud_files_is_a_stream_with_text_columns_unless_told_otherwise(pipeline: Callable[..., Any]) -> None:
    project = pipeline(
        typed='SELECT *, _metadata.file_name f FROM cloud_files("$IN","json",map("cloudFiles.inferColumnTypes","true"))',
        texts='SELECT * FROM cloud_files("$IN", "json")',
        declared='SELECT * FROM cloud_files("$IN", "json", map("schema", "id INT"))',
    ).run()
    assert project.rows("typed", "id", "f") == [(1, "a.json")]
    assert columns(project, "texts") == {"id": "string", "o": "string", "_rescued_data": "string"}
    assert columns(project, "declared") == {"id": "integer"}


def test_xml_has_text_columns_where_infer_schema_is_false(pipeline: Callable[..., Any]) -> None:
    files = "read_files('$IN/x', format => 'xml', rowTag => 'r', {})"
    project = pipeline(
        texts="SELECT zip, n FROM " + files.format("inferSchema => False"),
        typed="SELECT zip, n FROM " + files.format("InferSchema => true"),
        said_twice="SELECT zip, n FROM " + files.format("inferSchema => false, inferColumnTypes => true"),
    )
    project.arrive("x/a.xml", "<rs><r><zip>01234</zip><n>7</n></r></rs>")
    project.run()
    assert columns(project, "texts") == {"zip": "string", "n": "string"}
    assert project.rows("texts") == [("01234", "7")]
    assert columns(project, "typed") == columns(project, "said_twice") == {"zip": "long", "n": "long"}


def test_D17_options_without_effect_make_one_warning_per_flow_and_update(pipeline: Callable[..., Any]) -> None:
    project = pipeline(
        t="""SELECT * FROM cloud_files("$IN", "json", map(
            "cloudFiles.useNotifications", "true", "cloudFiles.region", "x", "cloudFiles.awsSecretKey", "s3cr3t"))""".replace('"', "'"),
        batch="SELECT * FROM read_files('$IN', header => true)",
    ).run()
    assert project.rows("t", "id") == ["1"]
    notices = {e.origin.dataset_name: e for e in project.events if e.event_type == "notice"}
    assert {name.rsplit(".", 1)[-1] for name in notices} == {"t", "batch"}
    assert len([e for e in project.events if e.event_type == "notice"]) == 2
    text = notices["main.default.t"].message
    assert [key for key in ("useNotifications", "region", "awsSecretKey") if key not in text] == []
    assert "s3cr3t" not in str([e.message + str(e.body) for e in project.events if e.event_type == "notice"])
    assert {e.level for e in notices.values()} == {"WARN"}
    assert len(project.pipeline.check().notices) == 4


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        pytest.param("SELECT * FROM STREAM read_files('$IN/a.json', format => 'json')", "CF_PATH_IS_NOT_A_DIRECTORY", id="S09"),
        ("SELECT * FROM read_files('$IN', maxFilesPerTrigger => 1)", "CF_INCONSISTENT_OPTIONS"),
        ("SELECT * FROM read_files('$IN', 'json')", "CF_INCORRECT_SQL_PARAMS"),
        ("SELECT * FROM cloud_files('$IN')", "CF_INCORRECT_SQL_PARAMS"),
        ("SELECT * FROM cloud_files_state('$IN')", "CF_STATE_INVALID_CHECKPOINT_PATH"),
        ("SELECT * FROM cloud_files_state(1)", "CF_STATE_INCORRECT_SQL_PARAMS"),
    ],
)
def test_a_wrong_call_refuses_the_update(pipeline: Callable[..., Any], sql: str, code: str) -> None:
    assert [error.code for error in pipeline(t=sql).refused()] == [code]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM read_files('$IN/nothing')", "CF_PATH_DOES_NOT_EXIST_FOR_READ_FILES"),
        ("SELECT * FROM read_files('$IN')", "CF_UNABLE_TO_DETECT_FILE_FORMAT"),
    ],
)
def test_what_only_the_files_tell_fails_its_own_branch(pipeline: Callable[..., Any], sql: str, code: str) -> None:
    project = pipeline(t=sql, other="SELECT 1 AS one")
    project.arrive("b.csv", "id", "1")
    project.run(expect="FAILED")
    assert project.errors() == {"t": code}
    assert project.rows("other") == [1]


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT * FROM STREAM read_files('${landing}', format=>'json')", id="S06"),
        pytest.param('SELECT *, _metadata.file_name f FROM cloud_files("${landing}","json")', id="S07"),
    ],
)
def test_a_sql_file_reads_files(project: Callable[..., Any], sql: str) -> None:
    made = project()
    made.arrive("a.json", A)
    made.write(f"CREATE OR REFRESH STREAMING TABLE t AS {sql}", "t.sql").run()
    assert len(made.rows("t", "id")) == 1


@pytest.mark.slow
def test_S08_a_sql_file_reads_the_state_of_a_stream(project: Callable[..., Any]) -> None:
    made = project()
    made.arrive("a.json", A)
    made.write("CREATE OR REFRESH STREAMING TABLE t AS SELECT * FROM STREAM read_files('${landing}', format=>'json')", "t.sql")
    made.write("CREATE OR REFRESH MATERIALIZED VIEW seen AS SELECT * FROM cloud_files_state(TABLE(t))", "seen.sql").run()
    assert made.rows("seen", "source_id") == ["0"]
