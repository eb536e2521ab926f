"""A preview shows what a dataset would be, and writes nothing; a watch does it for what was saved."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from lakelet import load
from lakelet.base.errors import LakeletError
from lakelet.config.update_config import load_config
from lakelet.inspection.pipeline_watch import Finding, LoadProblem, PipelineWatch, PreviewRows, SavedFiles, ValidDefinitions
from lakelet.inspection.preview import ColumnChange, JudgedRule, preview

pytestmark = [pytest.mark.spark, pytest.mark.long]

PIPELINE = """\
import dlt
from pyspark.sql import functions as F


@dlt.table
@dlt.expect("small", "id < 3")
@dlt.expect_or_drop("known", "kind IS NOT NULL")
def raw():
    options = {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}
    return spark.readStream.format("cloudFiles").options(**options).load(spark.conf.get("landing"))


@dlt.view
def doubled():
    return dlt.read_stream("raw").withColumn("id", F.col("id") * 2)


@dlt.table
def gold():
    return dlt.read("raw").groupBy("kind").agg(F.count("*").alias("n")).orderBy("kind")


@dlt.table
def in_sql():
    return spark.sql("SELECT s.id, f.id AS of_file FROM STREAM(raw) AS s JOIN raw AS f ON s.id = f.id WHERE s.id > 1")


@dlt.table
def of_files():
    return spark.sql(f"SELECT id FROM STREAM read_files('{spark.conf.get('landing')}', format => 'json') WHERE id > 1")


@dlt.table
def rates():
    return spark.readStream.format("rate").load()


dlt.create_streaming_table("latest")
dlt.apply_changes("latest", "raw", keys=["id"], sequence_by="id")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / "landing").mkdir()
    lines = ['{"id": 1, "kind": "a"}', '{"id": 2, "kind": "b"}', '{"id": 3, "kind": "a"}', '{"id": 4}']
    (tmp_path / "landing" / "a.json").write_text("\n".join(lines))
    return tmp_path


def written(project: Path) -> set[str]:
    return {str(path.relative_to(project)) for path in project.rglob("*") if "__pycache__" not in path.parts}


def test_previews_before_and_after_an_update_and_while_files_are_saved(project: Path, spark) -> None:
    source, before = project / "pipeline.py", written(project)
    given = {"parameters": {"landing": str(project / "landing")}, "storage": project / "kept", "spark": spark}
    raw = preview(load(source, **given), "raw", 2)
    assert raw.columns[:2] == (("id", "bigint"), ("kind", "string"))
    assert raw.difference is None
    assert [row["id"] for row in raw.rows] == [1, 2]
    assert (raw.judged, raw.dropped) == (4, 1)
    assert raw.rules == (
        JudgedRule("main.default.raw", "small", "id < 3", "warn", 2, 2),
        JudgedRule("main.default.raw", "known", "kind IS NOT NULL", "drop", 3, 1),
    )
    assert "newest" in raw.notes[0]
    gold = preview(load(source, **given), "main.default.gold", 10)
    assert [(row["kind"], row["n"]) for row in gold.rows] == [("a", 2), ("b", 1)]
    assert "main.default.raw" in " ".join(gold.notes)
    assert [row["id"] for row in preview(load(source, **given), "doubled", 10).rows] == [2, 4, 6]
    assert sorted(row["of_file"] for row in preview(load(source, **given), "in_sql", 10).rows) == [2, 3]
    assert sorted(row["id"] for row in preview(load(source, **given), "of_files", 10).rows) == [2, 3, 4]
    assert "before they are applied" in " ".join(preview(load(source, **given), "latest", 10).notes)
    with pytest.raises(LakeletError) as refused:
        preview(load(source, **given), "rates", 10)
    assert refused.value.code == "PREVIEW_REFUSED"
    with pytest.raises(LakeletError) as unknown:
        preview(load(source, **given), "golf", 10)
    assert (unknown.value.code, unknown.value.nearest) == ("UNKNOWN_DATASET", ("main.default.gold",))
    assert written(project) == before

    source.write_text(PIPELINE.replace('format("rate").load()', 'table("raw")'))
    load(source, **given).run()
    stored = written(project)
    source.write_text(source.read_text().replace('alias("n")', 'alias("total")'))
    changed = preview(load(source, **given), "gold", 10)
    assert changed.difference == (ColumnChange("total", None, "bigint"), ColumnChange("n", "bigint", None))
    assert written(project) == stored

    found: list[Finding] = []
    parameters = {"landing": str(project / "landing")}
    watch = PipelineWatch(lambda: load_config([str(source)], params=parameters, storage=str(project / "kept")), found.append, 5)
    watch.begin()
    assert isinstance(found[-1], ValidDefinitions)
    assert not watch.look()
    text = source.read_text()
    source.write_text(text.replace('orderBy("kind")', "where(\"kind = 'a'\")"))
    assert watch.look()
    saved, valid, shown = found[1:]
    assert isinstance(saved, SavedFiles)
    assert saved.datasets == ("main.default.gold",)
    assert isinstance(valid, ValidDefinitions)
    assert isinstance(shown, PreviewRows)
    assert [row["kind"] for row in shown.preview.rows] == ["a"]
    print(f"valid after {valid.seconds:.2f} s, previewed after {shown.seconds:.2f} s")
    source.write_text(text.replace('alias("total")', 'alias("total"), F.max("nothing")'))
    assert watch.look()
    assert isinstance(found[-1], LoadProblem)
    assert "nothing" in str(found[-1].errors[0])
    source.write_text(text.replace("import dlt", "import dlt\nraise ValueError('broken')"))
    assert watch.look()
    assert isinstance(found[-1], LoadProblem)
    source.write_text(text)
    assert watch.look()
    assert isinstance(found[-1], (ValidDefinitions, PreviewRows))
    assert written(project) == stored


TWO = """\
import dlt


@dlt.table
def one():
    return spark.range(1)


@dlt.table
def two():
    return spark.range(2)
"""
ONE_IS_WRONG, TWO_IS_WRONG = ("range(1)", "range(1).select('nothing')"), ("spark.range(2)", "dlt.read('absent')")


@pytest.mark.in_ci(every=2)
@pytest.mark.parametrize("wrong_at_the_start", [False, True])
def test_a_watch_reports_each_error_until_it_is_corrected(tmp_path: Path, spark, wrong_at_the_start: bool) -> None:
    source, found = tmp_path / "pipeline.py", list[Finding]()

    def save(*changes: tuple[str, str]) -> None:
        found.clear()
        source.write_text(functools.reduce(lambda text, change: text.replace(*change), changes, TWO))

    def told() -> list[object]:
        """What was found: names of valid datasets (None for the pipeline), and codes of errors."""
        found_valid: list[object] = [
            finding.dataset and finding.dataset.rpartition(".")[2] for finding in found if isinstance(finding, ValidDefinitions)
        ]
        return [*found_valid, *(error.code for finding in found if isinstance(finding, LoadProblem) for error in finding.errors)]

    watch = PipelineWatch(lambda: load_config([str(source)], storage=str(tmp_path / "kept")), found.append, 5)
    save(*((ONE_IS_WRONG, TWO_IS_WRONG) if wrong_at_the_start else ()))
    watch.begin()
    if not wrong_at_the_start:
        assert told() == [None]
        save(ONE_IS_WRONG, TWO_IS_WRONG)
        assert watch.look()
    assert told() == ["QUERY_FAILED_ANALYSIS", "UNKNOWN_DATASET"]
    save(TWO_IS_WRONG)
    assert watch.look()
    assert told() == ["one", "UNKNOWN_DATASET"]
    save()
    assert watch.look()
    assert told() == (["two", None] if wrong_at_the_start else ["two"])


@pytest.mark.slow
def test_the_preview_of_a_part_shows_the_part(tmp_path: Path, spark) -> None:
    source = tmp_path / "pipeline.py"
    source.write_text("import dlt\n\n@dlt.table(replace_where='id > 1')\ndef part():\n    return spark.range(4)\n")
    found = preview(load(source, storage=tmp_path / "kept", spark=spark), "part", 10)
    assert [row["id"] for row in found.rows] == [2, 3]
    assert "REPLACE WHERE" in " ".join(found.notes)


@pytest.mark.slow
def test_a_streaming_table_in_a_sql_file_has_a_preview_before_and_after_an_update(tmp_path: Path, spark) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.json").write_text('{"id": 1}\n{"id": 2}\n')
    (tmp_path / "tables.sql").write_text(
        "CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('${landing}', format => 'json');\n"
        "CREATE STREAMING TABLE doubled (CONSTRAINT small EXPECT (id < 4)) AS SELECT id * 2 AS id FROM STREAM raw;\n"
        "CREATE MATERIALIZED VIEW total AS SELECT sum(id) AS total FROM doubled;\n"
    )
    parameters = {"landing": str(tmp_path / "landing")}
    pipeline = load(tmp_path / "tables.sql", parameters=parameters, storage=tmp_path / "kept", spark=spark)
    for _ in range(2):
        assert [row["id"] for row in preview(pipeline, "raw", 5).rows] == [1, 2]
        found = preview(pipeline, "doubled", 5)
        assert ([row["id"] for row in found.rows], [(rule.passed, rule.failed) for rule in found.rules]) == ([2, 4], [(1, 1)])
        assert [row["total"] for row in preview(pipeline, "total", 5).rows] == [6]
        pipeline.run()
