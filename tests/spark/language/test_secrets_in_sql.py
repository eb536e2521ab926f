"""`secret` and `try_secret` in SQL text (docs/semantics/language.md, LG-28)."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from lakelet.storage.eventlog.reading import read_events

TABLE = "CREATE MATERIALIZED VIEW seen AS "


def test_sql_reads_secrets_of_the_environment(project, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_KV_PROD_DB_PASSWORD", "Hunter2 of 'db'")
    p = project()
    p.write(
        TABLE + "SELECT md5(secret('kv-prod', 'db.password')) = md5(\"Hunter2 of 'db'\") AS known, try_secret('kv', 'none') AS missing",
        "seen.sql",
    )

    p.run()

    assert p.rows("seen") == [(True, None)]
    assert "Hunter2" not in json.dumps(read_events(p.storage.root))


def test_a_secret_is_blotted_out_of_errors_and_is_the_only_one_in_a_plan(project, monkeypatch, capfd):
    secret, other = "Hunter's \\ ${spark.app.name} pepper", "never asked for"
    monkeypatch.setenv("LAKELET_SECRET_KV_SALT", secret)
    monkeypatch.setenv("LAKELET_SECRET_OTHER_TEAM", other)
    p = project("""
        import dlt

        @dlt.table
        def whole():
            rows = spark.sql("SELECT length(secret('kv', 'salt')) AS n")
            rows.explain(True)
            return rows
    """)
    p.run()
    assert p.rows("whole") == [len(secret)]
    out = capfd.readouterr().out
    assert "Physical Plan" in out
    assert other not in out
    assert base64.b64encode(other.encode()).decode() not in out

    p.write("""
        import dlt
        dlt.table(lambda: spark.sql("SELECT CAST(concat(secret('kv', 'salt'), id) AS INT) AS n FROM range(1)"), name="broken")
    """)
    p.run(expect="FAILED")

    shown = "".join(map(str, p.result.errors)) + json.dumps(read_events(p.storage.root))
    assert "[REDACTED]" in shown
    assert "pepper" not in shown


def test_functions_of_the_pipeline_s_own_that_are_called_secret_stay(project):
    p = project("""
        import dlt
        spark.udf.register("secret", lambda a, b: a + b, "string")
        dlt.table(lambda: spark.sql("SELECT secret('a', 'b') AS s"), name="own")
    """)

    p.run()

    assert p.rows("own") == ["ab"]


def test_text_in_python_reads_secrets_too(project, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_KV_SALT", "pepper and salt")
    p = project("""
        import dlt
        from pyspark.sql import functions as F

        @dlt.table
        def seen():
            return spark.range(1).select(F.expr("length(secret('kv', concat('sa', 'lt')))"), F.expr("secret('kv', 'SALT') IS NOT NULL"))
    """)

    p.run()

    assert p.rows("seen") == [(15, True)]


def test_a_secret_that_is_not_there_is_an_error_of_validate_at_the_query(project, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_KV_SALT", "pepper and salt")
    p = project()
    p.write("\n" + TABLE + "SELECT sha2(concat(id, secret('kv', 'sallt')), 256) AS id FROM range(2)", "seen.sql")

    [error] = p.refused()

    assert (error.code, error.what) == ("SECRET_MISSING", "the secret 'sallt' of the scope 'kv' is not in the environment")
    assert (error.nearest, error.todo) == (("LAKELET_SECRET_KV_SALT",), "Set the variable LAKELET_SECRET_KV_SALLT.")
    assert error.where is not None
    assert (Path(error.where.file).name, error.where.line) == ("seen.sql", 2)


def test_a_secret_that_is_computed_and_not_there_fails_the_dataset(project):
    p = project()
    p.write(TABLE + "SELECT secret('kv', concat('no', id)) AS id FROM range(2)", "seen.sql")

    p.run(expect="FAILED")

    assert "the environment has no variable LAKELET_SECRET_KV_NO" in str(p.result.errors[0])
