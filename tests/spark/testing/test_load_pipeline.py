"""The fixture `load_pipeline` itself: what it puts in place for one file, and that it takes everything away again."""

import sys

import pytest

from lakelet.base.errors import DefinitionErrors, LakeletError

PIPELINE = """
import dlt
from pyspark import pipelines as dp
from helpers.names import SOURCE

@dlt.table(name="cleaned", partition_cols=["day"])
@dlt.expect_or_drop("has_id", "id IS NOT NULL")
def anything():
    return dlt.read_stream(SOURCE).where("id > 0")

@dlt.view
def seen():
    return spark.table("LIVE.source")

@dp.materialized_view
def batch():
    return spark.read.table("`source`").limit(int(spark.conf.get("rows", "1")))

@dlt.append_flow(target="table_of_another_file", name="more")
def flow():
    return spark.readStream.option("skipChangeCommits", "true").table("source")

@dlt.view
def in_sql():
    return spark.sql("WITH seen AS (SELECT * FROM LIVE.source) SELECT source.id FROM seen JOIN source USING (id) WHERE id > 2")

@dlt.table
def misspelt():
    return dlt.read("sourec")

@dlt.table
def streamed_sql():
    return spark.sql("SELECT s.id FROM STREAM(LIVE.source) s JOIN (SELECT * FROM STREAM source) t ON s.id = t.id WHERE s.id > 2")
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "databricks.yml").touch()
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "names.py").write_text('SOURCE = "source"\n')
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "p.py").write_text(PIPELINE)
    return tmp_path


@pytest.fixture
def p(spark, load_pipeline, project):
    return load_pipeline(project / "pipelines" / "p.py", conf={"rows": "2"}, inputs={"source": spark.range(-1, 5)})


def test_every_way_of_reading_gives_the_input(p):
    counts = {name: p[name]().count() for name in ("cleaned", "seen", "batch", "more", "in_sql", "streamed_sql")}
    assert counts == {"cleaned": 4, "seen": 6, "batch": 2, "more": 6, "in_sql": 2, "streamed_sql": 2}


def test_what_was_declared_can_be_looked_at(p):
    assert p.datasets["cleaned"].partition_cols == ("day",)
    assert p.expectations["cleaned"]["has_id"].text == "id IS NOT NULL"
    assert p.expectations["seen"] == {}
    assert p.module.SOURCE == "source"


def test_an_unknown_name_names_the_nearest_input_and_the_line(p):
    with pytest.raises(LakeletError, match="Did you mean") as error:
        p["misspelt"]()
    assert error.value.code == "UNKNOWN_DATASET"
    assert error.value.nearest == ("source",)
    assert str(error.value.where).endswith("p.py, line 29")


def test_an_unknown_function_names_the_nearest_one(p):
    with pytest.raises(LakeletError) as error:
        p["clened"]
    assert error.value.nearest == ("cleaned",)


def test_everything_is_restored(spark, p):
    from pyspark.sql import DataFrameReader, SparkSession

    before = (list(sys.path), SparkSession.table, DataFrameReader.table)
    p["cleaned"]()
    assert (list(sys.path), SparkSession.table, DataFrameReader.table) == before
    assert not {"dlt", "helpers", "helpers.names"} & set(sys.modules)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("source").collect()


def test_two_projects_with_the_same_module_names_do_not_mix(spark, load_pipeline, project, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "databricks.yml").touch()
    (other / "helpers").mkdir()
    (other / "helpers" / "names.py").write_text('SOURCE = "other_source"\n')
    (other / "p.py").write_text(PIPELINE)

    first = load_pipeline(project / "pipelines" / "p.py")
    second = load_pipeline(other / "p.py")
    assert (first.module.SOURCE, second.module.SOURCE) == ("source", "other_source")


def test_an_error_in_the_file_comes_through_as_it_is(spark, load_pipeline, tmp_path):
    (tmp_path / "broken.py").write_text("import dlt\n1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        load_pipeline(tmp_path / "broken.py")
    assert "dlt" not in sys.modules


def test_contradicting_definitions_are_reported(spark, load_pipeline, tmp_path):
    (tmp_path / "twice.py").write_text("import dlt\nfor _ in range(2):\n    @dlt.table(name='t')\n    def f(): pass\n")
    with pytest.raises(DefinitionErrors, match="DUPLICATE_DATASET"):
        load_pipeline(tmp_path / "twice.py")
