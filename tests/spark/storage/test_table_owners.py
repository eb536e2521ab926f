"""A table belongs to one pipeline (docs/semantics/storage.md, ST-1 to ST-5)."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from lakelet.base.errors import LakeletError
from lakelet.config.update_config import load_config
from lakelet.inspection.inspector import list_tables, read_rows, run_sql
from lakelet.pipeline import Pipeline
from lakelet.storage.root import FORMAT

TABLE = """
    import dlt
    @dlt.table
    def {name}():
        return spark.range({rows})
"""
BUNDLE = """
    bundle:
      name: shop
    resources:
      pipelines:
        bronze:
          name: bronze
          configuration: {pipelines.dropInactiveTables: "true"}
          libraries: [{glob: {include: bronze/*}}]
        gold:
          name: gold
          configuration: {pipelines.dropInactiveTables: "true"}
          libraries: [{glob: {include: gold/*}}]
"""
BRONZE_VIEW = "CREATE VIEW small AS SELECT * FROM raw WHERE id < 1"


class Folder:
    """A project on disk, whose pipelines run as the command line runs them; storage `.lakelet`."""

    def __init__(self, root: Path, spark) -> None:
        self.root, self.spark, self.storage = root, spark, root / ".lakelet"
        self.notices: list[str] = []

    def write(self, **files: str) -> Folder:
        for name, text in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text))
        return self

    def run(self, *sources: str, **flags) -> None:
        events: list = []
        config = load_config(sources, cwd=self.root, environ={}, **flags)
        result = Pipeline(config, spark=self.spark).run(listeners=[events.append])
        self.notices = [e.message for e in events if e.event_type == "notice"]
        assert result.state == "COMPLETED", [str(e) for e in result.errors]

    def refused(self, *sources: str, **flags) -> LakeletError:
        with pytest.raises(LakeletError) as caught:
            self.run(*sources, **flags)
        return caught.value.errors[0]

    def rows(self, name: str) -> int:
        return len(list(read_rows(self.storage, name).rows))

    def active(self) -> dict[str, bool]:
        return {t.name.removeprefix("main.default."): t.active for t in list_tables(self.storage)}


@pytest.fixture
def folder(tmp_path, spark) -> Folder:
    return Folder(tmp_path / "shop", spark)


@pytest.mark.long
def test_two_pipelines_of_a_bundle_share_a_storage_and_neither_touches_the_tables_of_the_other(folder):
    reader = "import dlt\n@dlt.table\ndef daily():\n    return spark.read.table('raw')\n"
    folder.write(**{"databricks.yml": BUNDLE, "bronze/raw.py": TABLE.format(name="raw", rows=3), "gold/daily.py": reader})
    folder.write(**{"bronze/view.sql": BRONZE_VIEW})
    folder.run("bronze")
    folder.run("gold")
    assert folder.notices == []
    folder.run("bronze")
    assert folder.notices == []
    assert folder.active() == {"raw": True, "daily": True}
    assert folder.rows("raw") == folder.rows("daily") == 3
    assert list(run_sql(folder.storage, "SELECT * FROM small", spark=folder.spark).rows) == [{"id": 0}]

    folder.write(**{"gold/raw.py": TABLE.format(name="raw", rows=9)})
    error = folder.refused("gold")
    assert error.code == "TABLE_OWNED"
    assert "belongs to the pipeline 'bronze' (bundle shop)" in error.what
    assert str(error.where).endswith("gold/raw.py, line 3")

    # The checkout moves with its storage, and goes on; a table that is gone from the code is the pipeline's own to drop.
    moved = Folder(folder.root.rename(folder.root.parent / "elsewhere"), folder.spark)
    (moved.root / "gold/raw.py").unlink()
    (moved.root / "gold/daily.py").write_text(dedent(TABLE.format(name="weekly", rows=2)))
    moved.run("gold")
    assert moved.active() == {"raw": True, "weekly": True}


def test_two_files_with_one_table_are_two_pipelines_and_a_renamed_file_takes_its_table_over(folder):
    folder.write(**{"one.py": TABLE.format(name="raw", rows=3), "two.py": TABLE.format(name="raw", rows=9)})
    folder.run("one.py")
    error = folder.refused("two.py")
    assert error.code == "TABLE_OWNED"
    assert "one.py" in error.what
    assert "--take-over one" in str(error)
    assert folder.rows("raw") == 3
    (folder.root / "one.py").rename(folder.root / "first.py")
    assert "--take-over one" in str(folder.refused("first.py"))
    folder.run("first.py", take_over=["one"])
    folder.run("first.py")
    assert folder.rows("raw") == 3


def test_a_part_of_a_pipeline_leaves_the_other_tables_as_they_are(folder):
    folder.write(**{"databricks.yml": BUNDLE, "bronze/a.py": TABLE.format(name="a", rows=1), "bronze/b.py": TABLE.format(name="b", rows=2)})
    folder.run("bronze")
    folder.run("bronze/a.py")
    assert folder.notices == []
    assert folder.active() == {"a": True, "b": True}
    assert folder.rows("b") == 2
    (folder.root / "bronze/b.py").unlink()
    folder.run("bronze")
    assert folder.active() == {"a": True}


@pytest.mark.parametrize("other", [-1, 1])
def test_an_update_refuses_a_storage_of_another_format_and_leaves_it_as_it_is(folder, other):
    folder.write(**{"one.py": TABLE.format(name="raw", rows=3)})
    folder.run("one.py")
    file = folder.storage / "system/registry.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": FORMAT + other}))
    before = file.read_text()
    with pytest.raises(LakeletError) as refused:
        folder.run("one.py")
    assert refused.value.code == "FORMAT_UNKNOWN"
    assert f"format {FORMAT + other}; this Lakelet reads format {FORMAT}" in refused.value.what
    assert file.read_text() == before
