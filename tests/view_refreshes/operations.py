"""What happens to a table between two updates. Each operation is one or more commits of a foreign writer: Spark or delta-rs.

An operation returns what it did, in words that a reader can repeat. `QUIET` operations leave the rows in their files, so that no view may
be committed after them alone.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from tests.view_refreshes.tables import POISON, Row, Table

MOST_ROWS = 260
"""With more rows in a table, rows are deleted before others come."""


def version_of(path: Path) -> int:
    """The newest version of a Delta table, by the names of its commits; −1 where there is none."""
    return max((int(file.stem) for file in (path / "_delta_log").glob("*.json")), default=-1)


@dataclass
class Input:
    """One stored input table, and the chance that changes it.

    `ids`: those given so far. `landing`: the folder of its files. `arriving`: what they hold where that is not the table's rows.
    """

    table: Table
    path: Path
    spark: Any
    rng: random.Random
    ids: int = 0
    added: int = 0
    landing: Path | None = None
    files: int = 0
    arriving: Table | None = None

    @property
    def sql_name(self) -> str:
        return f"delta.`{self.path}`"

    @property
    def version(self) -> int:
        return version_of(self.path)

    @property
    def has_vectors(self) -> bool:
        """Whether only Spark may write to the table."""
        return "deletionVectors" in (DeltaTable(str(self.path)).protocol().writer_features or ())

    def sql(self, text: str) -> Any:
        return self.spark.sql(text.format(t=self.sql_name))

    def rows(self) -> pa.Table:
        return self.spark.read.format("delta").load(str(self.path)).select(*self.table.columns).toArrow().cast(self.table.schema)

    def new_rows(self, count: int) -> pa.Table:
        self.ids += count
        return (self.arriving or self.table).rows(self.rng, range(self.ids - count, self.ids))

    def insert(self, rows: pa.Table) -> None:
        """By delta-rs where it may write to the table and chance says so, else by Spark."""
        if not self.has_vectors and self.rng.random() < 0.6:
            write_deltalake(str(self.path), rows, mode="append", schema_mode="merge")
        else:
            self._frame(rows).write.format("delta").mode("append").save(str(self.path))

    def overwrite(self, rows: pa.Table) -> None:
        self._frame(rows).write.format("delta").mode("overwrite").save(str(self.path))

    def delete(self, condition: str) -> str:
        self.sql(f"DELETE FROM {{t}} WHERE {condition}")
        return f"delete where {condition}"

    def update(self, assignments: str, condition: str) -> str:
        self.sql(f"UPDATE {{t}} SET {assignments} WHERE {condition}")
        return f"update {assignments} where {condition}"

    def _frame(self, rows: pa.Table) -> Any:
        return self.spark.createDataFrame(rows, self.table.ddl)

    # -- parts of statements

    def some_key(self) -> str:
        key = self.rng.choice(sorted({row["k"] for row in self.rows().select(["k"]).to_pylist()}, key=repr) or ["a"])
        return f"k <=> {_literal(key)}"

    def some_rows(self) -> str:
        """A condition that a part of the rows meets."""
        forms = [self.some_key, self._every_nth]
        if "id" in self.table.columns:
            forms += [self._range, lambda: f"grp <=> {self.rng.choice(('NULL', '0', '1', '2'))}"]
            if self.table.name == "facts":
                forms += [lambda: f"n BETWEEN {(low := self.rng.randrange(-5, 25))} AND {low + 4}", lambda: "ok IS NULL OR isnan(f)"]
        return self.rng.choice(forms)()

    def _range(self) -> str:
        low = self.rng.randrange(max(1, self.ids))
        return f"id BETWEEN {low} AND {low + self.rng.choice((0, 3, 20))}"

    def _every_nth(self) -> str:
        of = self.rng.choice((3, 7, 20))
        columns = ", ".join(name for name in self.table.columns if name != "tags")
        return f"pmod(xxhash64({columns}), {of}) = {self.rng.randrange(of)}"


def _literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


# --- operations that change rows ----------------------------------------------------------------------------------------------------------


def insert_many(i: Input) -> str:
    count = i.rng.randrange(5, 40)
    i.insert(i.new_rows(count))
    return f"insert {count} rows"


def insert_one(i: Input) -> str:
    i.insert(i.new_rows(1))
    return "insert 1 row"


def insert_duplicates(i: Input) -> str:
    condition = i.some_rows()
    columns = ", ".join(i.table.columns)
    i.sql(f"INSERT INTO {{t}} ({columns}) SELECT {columns} FROM {{t}} WHERE {condition}")
    return f"insert again the rows where {condition}"


def update_values(i: Input) -> str:
    forms = {
        "facts": ("n = 7", "amount = -amount", "f = -0.0D", "f = double('nan')", "ok = NOT ok", "note = concat(coalesce(note, ''), '+')",
                  "huge = NULL", "n = NULL", "tags = array('x', NULL)", "n = pmod(n, 5), f = f / 2"),
        "others": ("amount = amount + 1", "amount = NULL"),
        "dims": ("name = upper(name)", "name = NULL", "rate = rate + 1", "region = 's'"),
    }  # fmt: skip
    return i.update(i.rng.choice(forms[i.table.name]), i.some_rows())


def update_keys(i: Input) -> str:
    forms = ["k = upper(k)", "k = NULL", "k = coalesce(k, 'a')", f"k = {_literal(i.rng.choice(('a', 'b', '', 'new')))}"]
    forms += ["grp = NULL", "grp = coalesce(grp, 0) + 1", "k = 'a', grp = 1"] if "grp" in i.table.columns else ["region = NULL"]
    return i.update(i.rng.choice(forms), i.some_rows())


def update_times(i: Input) -> str:
    if "at" not in i.table.columns:
        return update_keys(i)
    forms = ("at = at + INTERVAL 1 HOUR", "at = at - INTERVAL 30 MINUTES", "at = at + INTERVAL 1 DAY", "at = NULL",
             "at = date_trunc('DAY', at)", "at = TIMESTAMP'2026-10-25T00:59:59.999999Z'")  # fmt: skip
    return i.update(i.rng.choice(forms), i.some_rows())


def delete_rows(i: Input) -> str:
    condition = i.some_rows()
    if not i.has_vectors and i.rng.random() < 0.3 and "xxhash64" not in condition and "<=>" not in condition:
        DeltaTable(str(i.path)).delete(condition)
        return f"delete where {condition}, by delta-rs"
    return i.delete(condition)


def delete_key(i: Input) -> str:
    return i.delete(i.some_key())


def delete_all(i: Input) -> str:
    return i.delete("true")


def merge(i: Input) -> str:
    """Rows of a source with one row per key: updates, deletes, inserts in one commit."""
    by = "id" if "id" in i.table.columns else "k"
    rows = i.new_rows(i.rng.randrange(1, 12))
    kept: dict[Any, Row] = {}
    for row in rows.to_pylist():
        if by == "id" and i.rng.random() < 0.6:
            row["id"] = i.rng.randrange(i.ids)
        kept[row[by]] = tuple(row.values())
    i._frame(i.table.of([*kept.values()])).createOrReplaceTempView("merge_source")
    columns = list(i.table.columns)
    sets = ", ".join(f"{name} = s.{name}" for name in columns)
    deletes = "WHEN MATCHED AND s.k = 'a' THEN DELETE" if i.rng.random() < 0.5 else ""
    orphans = "WHEN NOT MATCHED BY SOURCE AND t.k = 'b' THEN DELETE" if i.rng.random() < 0.2 else ""
    i.sql(
        f"MERGE INTO {{t}} t USING merge_source s ON t.{by} <=> s.{by} {deletes} WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(f's.{name}' for name in columns)}) {orphans}"
    )
    i.spark.catalog.dropTempView("merge_source")
    return f"merge {len(kept)} rows by {by} {deletes} {orphans}".strip()


def delete_and_insert_equal(i: Input) -> str:
    condition = i.some_rows()
    rows = i.spark.sql(f"SELECT {', '.join(i.table.columns)} FROM {i.sql_name} WHERE {condition}").toArrow().cast(i.table.schema)
    i.delete(condition)
    i.insert(rows)
    return f"delete and insert again {rows.num_rows} rows where {condition}"


def cancelling(i: Input) -> str:
    """Two changes of which nothing stays."""
    if "id" in i.table.columns and i.rng.random() < 0.5:
        first = i.ids
        i.insert(i.new_rows(i.rng.randrange(1, 6)))
        return f"insert rows and {i.delete(f'id >= {first}')}"
    condition = i.some_key()
    if "grp" not in i.table.columns:
        return f"{i.update('rate = rate + 1', condition)}; {i.update('rate = rate - 1', condition)}"
    return f"{i.update('grp = grp + 100', condition)}; {i.update('grp = grp - 100', f'{condition} AND grp >= 90')}"


def overwrite_same(i: Input) -> str:
    i.overwrite(i.rows())
    return "overwrite with the same rows"


def overwrite_other(i: Input) -> str:
    count = i.rng.randrange(0, 60)
    i.overwrite(i.new_rows(count))
    return f"overwrite with {count} other rows"


def replace_where(i: Input) -> str:
    if "grp" not in i.table.columns:
        return overwrite_same(i)
    rows = [row for row in i.new_rows(20).to_pylist() if row["grp"] == 1]
    frame = i._frame(i.table.of([tuple(row.values()) for row in rows]))
    frame.write.format("delta").mode("overwrite").option("replaceWhere", "grp = 1").save(str(i.path))
    return f"replace the rows where grp = 1 by {len(rows)} others"


def restore(i: Input) -> str:
    to = i.rng.randrange(max(0, i.version - 8), i.version + 1)
    try:
        i.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {to}")
    except Exception as problem:  # its files are gone, or its commit
        return f"restore to version {to} was refused: {type(problem).__name__}"
    return f"restore to version {to}"


def poison(i: Input) -> str:
    if i.table.name != "facts":
        return insert_one(i)
    return i.update(f"n = {POISON}", f"id = {i.rng.randrange(max(1, i.ids))}")


def recreate(i: Input) -> str:
    """Drop the table and create another one at its place, with the same rows or others."""
    rows = i.rows() if i.rng.random() < 0.5 else i.new_rows(i.rng.randrange(40))
    properties = DeltaTable(str(i.path)).metadata().configuration
    shutil.rmtree(i.path)
    i.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    kept = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items() if name.startswith("lakelet"))
    i.sql(f"CREATE TABLE {{t}} ({i.table.ddl}) USING delta{f' TBLPROPERTIES ({kept})' if kept else ''}")
    i.insert(rows)
    return f"drop and create again with {rows.num_rows} rows"


def arrive(i: Input) -> str:
    """A file for the table's own flow, so that rows come within the update."""
    if i.landing is None:
        return insert_many(i)
    import json

    rows = [row for row in i.new_rows(i.rng.randrange(1, 15)).to_pylist() if str(row.get("f")) not in ("nan", "inf")]
    i.files += 1
    i.landing.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, default=_as_json) + "\n" for row in rows)
    (i.landing / f"{i.table.name}-{i.files:04}.json").write_text(text)
    return f"a file with {len(rows)} rows arrives"


def _as_json(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


# --- operations that leave the rows -------------------------------------------------------------------------------------------------------


def nothing(i: Input) -> str:
    return "nothing"


def optimize(i: Input) -> str:
    by = " ZORDER BY (k)" if i.rng.random() < 0.4 else ""
    i.sql(f"OPTIMIZE {{t}}{by}")
    return f"optimize{by.lower()}"


def vacuum(i: Input) -> str:
    i.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    i.sql("VACUUM {t} RETAIN 0 HOURS")
    return "vacuum"


def add_column(i: Input) -> str:
    i.added += 1
    i.sql(f"ALTER TABLE {{t}} ADD COLUMNS (extra{i.added} STRING)")
    return f"add column extra{i.added}"


def switch_vectors(i: Input) -> str:
    to = i.rng.choice(("true", "true", "false"))
    i.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{to}')")
    return f"deletion vectors {to}"


def switch_feed(i: Input) -> str:
    to = i.rng.choice(("true", "false"))
    i.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = '{to}')")
    return f"change feed {to}"


def purge_vectors(i: Input) -> str:
    if not i.has_vectors:
        return nothing(i)
    i.sql("REORG TABLE {t} APPLY (PURGE)")
    return "purge deletion vectors"


def note(i: Input) -> str:
    """A commit that only says something."""
    if not i.has_vectors:
        write_deltalake(str(i.path), i.table.of([]), mode="append", commit_properties=CommitProperties(custom_metadata={"by": "hand"}))
    return "commit without rows"


def clean_log(i: Input) -> str:
    """A checkpoint, and the commits before it removed, as Delta does after thirty days."""
    log = i.path / "_delta_log"
    if i.has_vectors:
        return nothing(i)
    table = DeltaTable(str(i.path))
    table.create_checkpoint()
    for file in log.glob("*.json"):
        if int(file.stem) < table.version():
            file.unlink()
    i.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return f"checkpoint of version {table.version()} and clean the log before it"


Operation = Callable[[Input], str]

CHANGING: Mapping[Operation, int] = {
    insert_many: 14, insert_one: 8, insert_duplicates: 4, update_values: 8, update_keys: 7, update_times: 5, delete_rows: 6, delete_key: 4,
    delete_all: 1, merge: 6, delete_and_insert_equal: 4, cancelling: 4, overwrite_same: 2, overwrite_other: 1, replace_where: 2, restore: 3,
    poison: 1, recreate: 1, arrive: 8,
}  # fmt: skip
QUIET: Mapping[Operation, int] = {
    nothing: 5, optimize: 4, vacuum: 3, add_column: 2, switch_vectors: 4, switch_feed: 3, purge_vectors: 1, note: 1, clean_log: 1,
}  # fmt: skip
OF_CHANGE_TABLES: Mapping[Operation, int] = {arrive: 8, optimize: 1, vacuum: 1}
"""What may happen to a table whose rows are Lakelet's own."""
APPENDING: Mapping[Operation, int] = {insert_many: 6, insert_one: 3, insert_duplicates: 2, arrive: 4}
"""What leaves every row where it is: lives with these alone reach the techniques that need it."""


def chosen(rng: random.Random, weights: Mapping[Operation, int]) -> Operation:
    return rng.choices([*weights], [*weights.values()])[0]
