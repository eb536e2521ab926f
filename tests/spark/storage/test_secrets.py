"""Nothing that is secret is written to the storage, nor shown (docs/semantics/storage.md, ST-13)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakelet.plan.explanation import plan_text
from lakelet.storage.eventlog.reading import read_events

PIPELINE = """
    import dlt
    password = dbutils.secrets.get("kv", "password")
    key = spark.conf.get("spark.hadoop.fs.s3a.secret.key")

    @dlt.table(comment="fine")
    @dlt.expect("known", f"id <> '{spark.conf.get('db_password')}'")
    def fine():
        spark.conf.get("db_password")
        return spark.range(2).withColumn("id", F.col("id").cast("string"))

    @dlt.table
    def broken():
        @F.udf("string")
        def connect(value):
            raise ValueError(f"cannot connect with {password} and {key}")
        return spark.range(2).select(connect("id").alias("answer"))

    from pyspark.sql import functions as F
"""
SECRETS = ["from-the-vault-1", "Hunter2-of-db", "wJalrXUtnFEMI/K7"]


def test_secrets_of_parameters_and_of_dbutils_are_in_no_event_and_no_file(project, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_KV_PASSWORD", SECRETS[0])
    p = project(PIPELINE)
    p.parameters |= {"db_password": SECRETS[1], "spark.hadoop.fs.s3a.secret.key": SECRETS[2]}
    p.run(expect="FAILED")
    shown = [json.dumps([e.as_json() for e in p.events], default=str), json.dumps(read_events(p.storage.root))]
    shown += [plan_text(p.pipeline.plan()), *map(str, p.result.errors)]
    shown += [str(pq.read_table(f).to_pylist()) for f in Path(p.storage.events).rglob("*.parquet")]
    assert "cannot connect with [REDACTED] and [REDACTED]" in shown[1]
    files = {name: content.decode("latin-1") for name, content in p.snapshot().items()}
    for secret in SECRETS:
        assert not [text for text in shown if secret in text]
        assert not [name for name, content in files.items() if secret in content]


IN_SETTINGS = """
    import dlt
    from pyspark.sql import functions as F

    given = dbutils.secrets.get("kv", "password")

    @dlt.table(table_properties={"db.password": "Hunter3-of-db", "handed.on": given}, spark_conf={"my.api.key": "k7"})
    @dlt.expect("known", "id <> 'Hunter3-of-db'")
    def fine():
        return spark.range(2).withColumn("id", F.col("id").cast("string"))

    @dlt.table(spark_conf={"other.token": "a-token-of-mine"})
    def broken():
        raise ValueError(f"no answer to {given}, Hunter3-of-db, a-token-of-mine")
"""


def test_secrets_among_table_properties_and_settings_are_stored_with_the_table_and_shown_nowhere(project, monkeypatch):
    monkeypatch.setenv("LAKELET_SECRET_KV_PASSWORD", "from-the-vault-2")
    p = project(IN_SETTINGS)
    p.run(expect="FAILED")
    assert "no answer to [REDACTED], [REDACTED], [REDACTED]" in "".join(map(str, p.result.errors))
    p.write(IN_SETTINGS.partition("    @dlt.table(spark_conf")[0]).run()
    shown = [json.dumps([e.as_json() for e in p.events], default=str), json.dumps(read_events(p.storage.root))]
    shown += [str(pq.read_table(f).to_pylist()) for f in Path(p.storage.events).rglob("*.parquet")]
    for secret in ("Hunter3-of-db", "from-the-vault-2", '"k7"'):
        assert not [text for text in shown if secret in text.replace("\\", "")], secret
    stored = DeltaTable(str(p.path("fine"))).metadata().configuration
    assert (stored["db.password"], stored["handed.on"]) == ("Hunter3-of-db", "from-the-vault-2")
