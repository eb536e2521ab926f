"""Commits of others on change tables between updates: maintenance changes no answer, rows changed by hand take part (CT-1 to CT-9)."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable as RustTable

TABLES = """
import dlt

def declare(name, properties=None, **more):
    @dlt.view(name=f"feed_of_{name}")
    def feed():
        reader = spark.readStream.schema("id INT, seq INT, name STRING, op STRING")
        return reader.json(spark.conf.get("landing") + "/" + name)

    dlt.create_streaming_table(name, table_properties=properties)
    arguments = dict(keys=["id"], sequence_by="seq", apply_as_deletes="op = 'd'", except_column_list=["op", "seq"])
    dlt.apply_changes(target=name, source=f"feed_of_{name}", **(arguments | more))

"""
ALL = {
    "latest": "declare('latest')\n",
    "truncated": "declare('truncated', apply_as_truncates=\"op = 't'\")\n",
    "nulls": "declare('nulls', ignore_null_updates=True)\n",
    "history": "declare('history', stored_as_scd_type=2)\n",
    # Tables that keep a change feed are merged, so they get several files, which OPTIMIZE puts together.
    "merged": "declare('merged', {'delta.enableChangeDataFeed': 'true'})\n",
    "merged_history": "declare('merged_history', {'delta.enableChangeDataFeed': 'true'}, stored_as_scd_type=2)\n",
}


class Tables:
    """Change tables that get the same events; rows are (id, name), or (id, name, start, end) of history."""

    def __init__(self, project: Any, *names: str) -> None:
        self.p = project(TABLES + "".join(ALL[name] for name in names))
        self.names, self.count = names, 0

    def update(self, *events: tuple[Any, ...]) -> Tables:
        """One update with events (id, sequence, name); a delete has no name, a truncate no id either."""
        self.count += 1
        records = [
            {"id": e[0], "seq": e[1], "name": e[2] if len(e) > 2 else None, "op": "u" if len(e) > 2 else "d" if e[0] else "t"}
            for e in events
        ]
        for name in self.names:
            self.p.arrive(f"{self.count}.json", *records, folder=name)
        self.p.run()
        return self

    def sql(self, statement: str, *names: str) -> Tables:
        for name in names or self.names:
            self.p.spark.sql(statement.format(t=f"delta.`{self.p.path(name)}`")).collect()
        return self

    def files(self, name: str) -> list[str]:
        return list(self.p.spark.read.format("delta").load(str(self.p.path(name))).inputFiles())

    def rows(self, name: str = "latest") -> list[Any]:
        """Read by Spark, which knows deletion vectors."""
        return sorted((tuple(row) for row in self.p.spark.read.format("delta").load(str(self.p.path(name))).collect()), key=repr)


def maintained(tables: Tables, name: str) -> None:
    """Everything that keeps rows as they are, through Spark and delta-rs."""
    tables.sql("OPTIMIZE {t}", name).sql("VACUUM {t} RETAIN 0 HOURS", name)
    tables.sql("ALTER TABLE {t} SET TBLPROPERTIES ('made.by' = 'ann', 'delta.enableDeletionVectors' = 'true')", name)
    tables.sql("COMMENT ON TABLE {t} IS 'kept by hand'", name).sql("ALTER TABLE {t} ALTER COLUMN name COMMENT 'first'", name)
    rust = RustTable(str(tables.p.path(name)))
    for full in (False, True):
        rust.vacuum(0, dry_run=False, enforce_retention_duration=False, full=full)


@pytest.fixture
def unguarded(spark):
    """VACUUM may delete what was removed a moment ago."""
    setting = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(setting, "false")
    yield
    spark.conf.unset(setting)


@pytest.mark.long
def test_C65_C66_maintenance_and_properties_between_updates_change_no_answer(project, unguarded):
    t = Tables(project, "merged", "merged_history").update((1, 10, "a"), (2, 10, "b")).update((3, 10, "c"), (2, 20))
    for name in t.names:
        maintained(t, name)
        assert not any("_changes" in file for file in t.files(name)), "OPTIMIZE did nothing"
    t.update((1, 5, "late"), (2, 15, "late"), (3, 20, "C"), (4, 1, "d"))
    assert all("_changes" in file for name in t.names for file in t.files(name))
    t.sql("OPTIMIZE {t}").update((4, 2, "D"))
    assert t.rows("merged") == [(1, "a"), (3, "C"), (4, "D")]
    history = [(1, "a", 10, None), (1, "late", 5, 10), (2, "b", 10, 15), (2, "late", 15, 20), (3, "C", 20, None), (3, "c", 10, 20)]
    assert t.rows("merged_history") == sorted([*history, (4, "D", 2, None), (4, "d", 1, 2)], key=repr)
    assert RustTable(str(t.p.path("merged"))).metadata().configuration["made.by"] == "ann"
    versions = t.p.versions()
    t.p.run()
    assert t.p.versions() == versions


@pytest.mark.slow
def test_files_that_a_light_vacuum_deleted_after_optimize_are_missed_by_name(project, unguarded):
    t = Tables(project, "merged").update((1, 10, "a")).update((2, 10, "b"))
    t.sql("OPTIMIZE {t}").sql("VACUUM {t} LITE RETAIN 0 HOURS")
    t.p.arrive("new.json", {"id": 5, "seq": 1, "name": "e", "op": "u"}, folder="merged")
    t.p.run(expect="FAILED")
    assert t.p.errors() == {"merged": "CDC_FILES_GONE"}
    assert t.rows("merged") == [(1, "a"), (2, "b")]
    t.p.run(full_refresh=["merged"])
    assert t.rows("merged") == [(1, "a"), (2, "b"), (5, "e")]


@pytest.mark.long
def test_C67_a_row_inserted_by_hand_stays_until_an_event_of_its_key_and_gives_way_to_a_row_that_is_there(project):
    t = Tables(project, "latest", "nulls").update((1, 10, "a"), (9, 10))
    t.sql("INSERT INTO {t} VALUES (1, 'again'), (2, 'hand'), (9, 'back')")
    t.update((8, 1, "h"))
    assert t.rows() == t.rows("nulls") == [(1, "a"), (2, "hand"), (8, "h"), (9, "back")]
    t.update((1, 5, "late"), (2, -1, "first"), (9, 9, "late"))
    assert t.rows() == t.rows("nulls") == [(1, "a"), (2, "first"), (8, "h"), (9, "back")]
    t.update((9, 11, "new"), (2, 0))
    assert t.rows() == t.rows("nulls") == [(1, "a"), (8, "h"), (9, "new")]


@pytest.mark.slow
def test_C67_a_row_inserted_by_hand_into_a_history_is_an_event_at_its_start(project):
    t = Tables(project, "history").update((1, 10, "a"), (2, 10, "b"))
    t.sql("INSERT INTO {t} VALUES (123, 'John Doe', 5, NULL), (1, 'before', 5, NULL), (2, 'after', 15, 18), (2, 'z', 1, 12)")
    t.update((8, 1, "h"))
    held = [(1, "a", 10, None), (1, "before", 5, 10), (2, "after", 15, 18), (2, "b", 10, 15), (2, "z", 1, 10), (8, "h", 1, None)]
    assert t.rows("history") == sorted([*held, (123, "John Doe", 5, None)], key=repr)
    t.update((123, 3, "Jo"), (123, 7, "Johnny"), (2, 16, "late"))
    told = [(123, "Jo", 3, 5), (123, "John Doe", 5, 7), (123, "Johnny", 7, None), (2, "late", 16, 18)]
    assert t.rows("history") == sorted([*[r for r in held if r[1] != "after"], (2, "after", 15, 16), *told], key=repr)


@pytest.mark.long
def test_C68_C69_rows_deleted_updated_and_merged_by_hand_count_at_the_sequence_they_had(project):
    t = Tables(project, "latest", "nulls").update(*((n, 10, "abcdefg"[n]) for n in range(7)))
    t.sql("DELETE FROM {t} WHERE id IN (0, 1, 2)").sql("UPDATE {t} SET name = upper(name) WHERE id = 3").sql(
        "UPDATE {t} SET name = NULL WHERE id = 6"
    )
    t.sql(
        "MERGE INTO {t} t USING (SELECT * FROM VALUES (4, 'M'), (5, 'x'), (50, 'n') AS v(id, name)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    t.update((70, 1, "z"))
    kept = [(3, "D"), (4, "M"), (50, "n"), (6, None), (70, "z")]
    assert t.rows() == t.rows("nulls") == kept
    t.update(*((n, 5, "late") for n in (0, 3, 4, 5, 6)), (1, 11, "new"), (50, 0, "old"))
    assert t.rows() == t.rows("nulls") == [(1, "new"), (3, "D"), (4, "M"), (50, "old"), (6, None), (70, "z")]


@pytest.mark.slow
def test_C68_C69_rows_of_a_history_that_were_deleted_or_changed_by_hand_stay_so(project):
    t = Tables(project, "history").update(
        (1, 1, "a"), (1, 5, "b"), (1, 7, "b"), (1, 10, "c"), (2, 1, "x"), (2, 5), (3, 1, "k"), (3, 5, "l")
    )
    t.sql("UPDATE {t} SET name = 'B' WHERE id = 1 AND __START_AT = 5").sql("DELETE FROM {t} WHERE id = 3 AND __START_AT = 5")
    t.sql("UPDATE {t} SET __END_AT = NULL WHERE id = 2").sql("UPDATE {t} SET __END_AT = 20 WHERE id = 1 AND name = 'c'")
    t.update((70, 1, "z"))
    held = [(1, "B", 5, 10), (1, "a", 1, 5), (1, "c", 10, 20), (2, "x", 1, None), (3, "k", 1, 5), (70, "z", 1, None)]
    assert t.rows("history") == held
    t.update((3, 3, "late"), (2, 9, "y"), (1, 30, "d"), (1, 6, "late"))
    assert t.rows("history") == sorted(
        [
            *held[1:3],
            held[5],
            (1, "B", 5, 6),
            (1, "late", 6, 10),
            (1, "d", 30, None),
            (2, "x", 1, 9),
            (2, "y", 9, None),
            (3, "k", 1, 3),
            (3, "late", 3, 5),
        ],
        key=repr,
    )


@pytest.mark.slow
@pytest.mark.long
def test_C70_a_restored_table_gets_its_rows_back_with_the_next_update_and_changes_after_it_are_kept(project):
    t = Tables(project, "latest", "nulls", "history").update((1, 10, "a"), (2, 10, "b"))
    first = {name: t.p.version(name) for name in t.names}
    t.update((1, 20, "A"), (3, 20, "c"))
    for name, version in first.items():
        t.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}", name)
    assert t.rows() == t.rows("nulls") == [(1, "a"), (2, "b")]
    t.sql("INSERT INTO {t} (id, name) VALUES (4, 'hand')", "latest", "nulls").sql("INSERT INTO {t} VALUES (4, 'hand', 1, NULL)", "history")
    t.update((2, 5, "late"), (5, 1, "e"))
    assert t.rows() == t.rows("nulls") == [(1, "A"), (2, "b"), (3, "c"), (4, "hand"), (5, "e")]
    assert {(1, "A", 20, None), (4, "hand", 1, None), (2, "late", 5, 10)} < set(t.rows("history"))
    before = t.p.version("latest")
    t.sql("DELETE FROM {t} WHERE id = 1").sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {before}", "latest")
    t.update((6, 1, "f"))
    assert (1, "A") in t.rows()
    assert (1, "A") not in t.rows("nulls")


@pytest.mark.slow
def test_rows_written_by_hand_after_a_truncate_stay_and_go_with_the_next_one(project):
    t = Tables(project, "truncated").update((1, 1, "a"), (None, 5))
    t.sql("INSERT INTO {t} VALUES (1, 'hand'), (2, 'hand')").update((3, 6, "c"), (2, 4, "late"))
    assert t.rows("truncated") == [(1, "hand"), (2, "hand"), (3, "c")]
    t.update((None, 6))
    assert t.rows("truncated") == [(3, "c")]


@pytest.mark.long
def test_rows_that_cannot_be_events_are_refused_before_anything_is_written_until_they_are_corrected(project):
    t = Tables(project, "latest", "history").update((1, 10, "a"))
    t.sql("INSERT INTO {t} VALUES (NULL, 'nobody')", "latest").sql("INSERT INTO {t} VALUES (2, 'b', 9, 3)", "history")
    for name in t.names:
        t.p.arrive("bad.json", {"id": 5, "seq": 1, "name": "e", "op": "u"}, folder=name)
    t.p.run(expect="FAILED")
    assert t.p.errors() == dict.fromkeys(t.names, "CDC_ROW_BY_HAND")
    assert t.rows() == [(1, "a"), (None, "nobody")]
    t.sql("DELETE FROM {t} WHERE id IS NULL", "latest").sql("UPDATE {t} SET __END_AT = 13 WHERE id = 2", "history")
    t.p.run()
    assert (t.rows(), t.rows("history")) == ([(1, "a"), (5, "e")], [(1, "a", 10, None), (2, "b", 9, 13), (5, "e", 1, None)])


@pytest.mark.slow
def test_a_column_or_constraint_added_by_hand_is_refused_and_a_full_refresh_begins_again(project):
    t = Tables(project, "latest", "history").update((1, 10, "a"))
    t.sql("ALTER TABLE {t} ADD COLUMN extra STRING", "latest").sql("ALTER TABLE {t} ADD CONSTRAINT named CHECK (name <> '')", "history")
    for name in t.names:
        t.p.arrive("new.json", {"id": 5, "seq": 1, "name": "e", "op": "u"}, folder=name)
    t.p.run(expect="FAILED")
    assert t.p.errors() == dict.fromkeys(t.names, "CDC_TABLE_ALTERED")
    t.sql("ALTER TABLE {t} DROP CONSTRAINT named", "history").sql("INSERT INTO {t} VALUES (7, 'gone', 'x')", "latest")
    t.p.run(full_refresh=["latest"])
    assert (t.rows(), t.rows("history")) == ([(1, "a"), (5, "e")], [(1, "a", 10, None), (5, "e", 1, None)])


@pytest.mark.slow
def test_readers_of_the_change_feed_get_what_was_changed_by_hand_once_and_nothing_of_maintenance(project, unguarded):
    feed = """
@dlt.table
def told():
    changes = spark.readStream.option("readChangeFeed", "true").table("latest")
    return changes.where("_change_type <> 'update_preimage'").select("id", "name", "_change_type")
"""
    t = Tables(project, "latest")
    t.p.write(TABLES + ALL["latest"] + feed)
    t.update((1, 10, "a"), (2, 10, "b")).update((3, 10, "c"))
    maintained(t, "latest")
    t.sql("INSERT INTO {t} VALUES (4, 'hand')").sql("DELETE FROM {t} WHERE id = 2")
    t.update((3, 11, "C"))
    assert t.p.rows("told") == [
        (1, "a", "insert"),
        (2, "b", "delete"),
        (2, "b", "insert"),
        (3, "C", "update_postimage"),
        (3, "c", "insert"),
        (4, "hand", "insert"),
    ]
    assert t.rows() == [(1, "a"), (3, "C"), (4, "hand")]
