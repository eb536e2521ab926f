"""`secret` and `try_secret` in SQL text (docs/semantics/language.md, LG-28)."""

from __future__ import annotations

import json
from pathlib import Path

from lakelet.inspection.inspector import read_events

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
    written = json.dumps(read_events(p.storage.root)) + "".join(
        path.read_bytes().decode("latin-1") for path in Path(p.storage.root).rglob("*") if path.is_file()
    )
    assert "Hunter2" not in written


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
