"""Cases S01–S10: `read_files`, `cloud_files` and `cloud_files_state` in `spark.sql` of a pipeline function."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoloading import rescued

Make = Callable[..., Any]
A = '{"id":1,"o":{"k":1}}'


@pytest.fixture
def views(project: Callable[..., Any]) -> Make:
    """A pipeline of materialized views, one per statement, over a landing folder with a.json; `$IN` in a statement is that folder."""

    def make(**statements: str) -> Any:
        one = project("from pyspark import pipelines as dp\n")
        one.arrive("a.json", A)
        text = "from pyspark import pipelines as dp\n"
        for name, statement in statements.items():
            text += f"\n@dp.materialized_view\ndef {name}():\n    return spark.sql({statement.replace('$IN', str(one.landing))!r})\n"
        return one.write(text)

    return make


def types(one: Any, name: str) -> dict[str, str]:
    """The columns of a stored table with their Arrow types."""
    return {field.name: str(field.type) for field in one.table(name).schema}


def test_S01_the_format_is_detected_and_types_are_inferred(views: Make) -> None:
    one = views(t="SELECT * FROM read_files('$IN')")
    for _ in range(2):
        one.run()
        (row,) = one.table("t").to_pylist()
        assert row == {"id": 1, "o": {"k": 1}, "_rescued_data": None}
    assert types(one, "t")["id"] == "int64"


def test_S02_types_can_be_left_out(views: Make) -> None:
    one = views(t="SELECT * FROM read_files('$IN', format => 'json', inferColumnTypes => false)").run()
    (row,) = one.table("t").to_pylist()
    assert (row["id"], json.loads(row["o"])) == ("1", {"k": 1})


def test_S03_mode_none_has_no_rescued_column(views: Make) -> None:
    one = views(t="SELECT * FROM read_files('$IN', format => 'json', schemaEvolutionMode => 'none')").run()
    assert one.table("t").to_pylist() == [{"id": 1, "o": {"k": 1}}]


def test_S04_hints_hold(views: Make) -> None:
    one = views(t="SELECT * FROM read_files('$IN', format => 'json', schemaHints => 'id INT')").run()
    assert (types(one, "t")["id"], one.rows("t", "id")) == ("int32", [1])


def test_S05_a_single_file_with_a_schema(views: Make) -> None:
    one = views(
        t="SELECT * FROM read_files('$IN/a.json', format => 'json', schema => 'id INT')",
        kept="SELECT * FROM read_files('$IN/a.json', format => 'json', schema => 'id INT', rescuedDataColumn => '_r')",
    ).run()
    assert (types(one, "t"), one.rows("t")) == ({"id": "int32"}, [1])
    ((number, kept),) = one.rows("kept", "id", "_r")
    assert (number, rescued(kept, "a.json")) == (1, {"o": {"k": 1}})


STREAM = """
    from pyspark import pipelines as dp

    @dp.table
    def t():
        return spark.sql(f"SELECT * FROM STREAM read_files('{spark.conf.get('landing')}', format => 'json')")
"""


def read_twice(project: Callable[..., Any], source: str) -> Any:
    """One update with a.json, one more with b.json, which brings a column."""
    one = project(source)
    one.arrive("a.json", A)
    one.run()
    one.arrive("b.json", '{"id":2,"n":1}')
    return one.run()


@pytest.mark.slow
def test_S06_a_stream_of_read_files_infers_types_and_heals_itself(project: Callable[..., Any]) -> None:
    one = read_twice(project, STREAM)
    assert (types(one, "t")["id"], types(one, "t")["n"]) == ("int64", "int64")
    assert one.rows("t", "id", "o", "n") == [(1, {"k": 1}, None), (2, None, 1)]
    assert one.run().rows("t", "id") == [1, 2]


def test_S07_cloud_files_takes_a_map_of_options(project: Callable[..., Any]) -> None:
    one = project(
        """
        from pyspark import pipelines as dp

        @dp.table
        def typed():
            return spark.sql(f'''SELECT *, _metadata.file_name f FROM
                cloud_files("{spark.conf.get('landing')}", "json", map("cloudFiles.inferColumnTypes", "true"))''')

        @dp.table
        def plain():
            return spark.sql(f'''SELECT * FROM cloud_files("{spark.conf.get('landing')}", "json")''')
        """
    )
    one.arrive("a.json", A)
    one.run()
    assert (types(one, "typed")["id"], one.rows("typed", "id", "f")) == ("int64", [(1, "a.json")])
    assert one.rows("plain", "id", "o") == [("1", '{"k":1}')]


@pytest.mark.slow
def test_S08_the_state_lists_each_file_once(project: Callable[..., Any]) -> None:
    one = read_twice(project, STREAM)
    one.write(
        STREAM
        + """
    @dp.materialized_view
    def state():
        return spark.sql("SELECT * FROM cloud_files_state(TABLE(t))")
"""
    )
    one.run()
    rows = one.table("state").to_pylist()
    found = sorted((Path(row["path"]).name, row["size"], row["source_id"]) for row in rows)
    assert found == [(file.name, file.stat().st_size, "0") for file in sorted(one.landing.iterdir())]
    assert all(row["path"].endswith(f"{one.landing}/{Path(row['path']).name}") for row in rows)
    assert all(row["commit_time"] is not None and row["archive_mode"] is None for row in rows)


def test_S09_a_stream_of_a_single_file_is_refused(project: Callable[..., Any]) -> None:
    one = project("from pyspark import pipelines as dp\n")
    one.arrive("a.json", A)
    one.write(
        f"""
        from pyspark import pipelines as dp

        @dp.table
        def t():
            return spark.sql("SELECT * FROM STREAM read_files('{one.landing}/a.json', format => 'json')")
        """
    )
    (error,) = one.refused()
    assert error.code == "CF_PATH_IS_NOT_A_DIRECTORY"
    assert str(one.landing) in str(error)


def test_S10_cloudfiles_is_not_read_as_a_batch(project: Callable[..., Any]) -> None:
    one = project(
        """
        from pyspark import pipelines as dp

        @dp.materialized_view
        def t():
            return spark.read.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))
        """
    )
    one.arrive("a.json", A)
    (error,) = one.refused()
    assert "CF_INCORRECT_BATCH_USAGE" in str(error)
