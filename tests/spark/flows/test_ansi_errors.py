"""A row that ANSI mode stops: the error names the expression, its line, and what the owner chooses between."""

from __future__ import annotations

PYTHON = """
import dlt
from pyspark.sql import functions as F

@dlt.table
def boxes():
    return spark.createDataFrame([("a", 4, 0), ("2", 6, 3)], "size string, kg int, pieces int")

@dlt.table
def divided():
    frame = dlt.read("boxes")
    return frame.select(
        "size",
        (F.col("kg") / F.col("pieces")).alias("each"),
    )

@dlt.table
def listed():
    return dlt.read("boxes").select(F.element_at(F.array("kg"), 3).alias("third"))

@dlt.table
def streamed():
    return dlt.read_stream("drops").selectExpr("size", "CAST(size AS INT) AS number")

@dlt.table
def drops():
    return spark.readStream.schema("size string").csv(spark.conf.get("landing") + "/drops")
"""
SQL = """CREATE MATERIALIZED VIEW numbered AS
SELECT kg,
       CAST(size AS INT) AS number
FROM boxes;
"""


def test_the_error_of_a_row_that_ansi_mode_stops_says_what_to_choose_between(project):
    p = project(PYTHON)
    p.write(SQL, "numbered.sql")
    p.arrive("a.csv", "b\n", folder="drops")
    p.run(expect="FAILED")
    errors = {str(error.dataset).rsplit(".", 1)[-1]: error for error in p.result.errors}
    assert set(errors) == {"divided", "listed", "streamed", "numbered"}
    lines = (p.folder / "pipeline.py").read_text().splitlines()
    for name, instead in {"divided": "try_divide", "listed": "try_element_at", "streamed": "try_cast", "numbered": "try_cast"}.items():
        assert errors[name].todo.startswith(f"Choose: {instead}"), name
        assert 'spark.sql.ansi.enabled: "false" in the pipeline\'s configuration' in errors[name].todo
        assert "\n" not in errors[name].todo
    assert 'F.col("pieces")' in lines[errors["divided"].where.line - 1]
    assert '`(F.col("kg") / F.col("pieces")).alias("each")` at ' in errors["divided"].todo
    assert "`CAST(size AS INT)` at " in errors["streamed"].todo
    assert "numbered.sql, line 3" in errors["numbered"].todo


def test_code_reads_files_of_its_repository_by_their_paths_in_a_workspace(project):
    p = project(
        """
        import json, os
        import dlt

        ROOT = "/Workspace/Users/ada@example.com/project"
        with open(f"{ROOT}/conf/limits.json") as file:
            LIMIT = json.load(file)["kg"]

        @dlt.table
        def limits():
            names = sorted(os.listdir(f"{ROOT}/conf"))
            return spark.read.json(f"/Repos/ada/project/conf/limits.json").selectExpr("kg", f"{LIMIT} AS opened", f"'{names[0]}' AS file")
        """
    )
    (p.folder / "conf").mkdir()
    (p.folder / "conf/limits.json").write_text('{"kg": 30}')
    p.run()
    assert p.rows("limits") == [(30, 30, "limits.json")]
