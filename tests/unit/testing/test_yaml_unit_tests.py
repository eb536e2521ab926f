"""Unit tests in YAML, read without Spark: values, variables, mistakes; and how tables are compared."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.base.errors import LakeletError
from lakelet.testing.project import Project
from lakelet.testing.row_comparison import compared, converted, difference
from lakelet.testing.tables import table_of
from lakelet.testing.unit_tests import UnitTest, UnreadableTest, all_tests, read_tests
from lakelet.testing.unit_tests.inputs import aliases, likely_type
from lakelet.testing.yaml_names import unit_test_files

BUNDLE = """
bundle: {name: shop}
variables: {catalog: {default: shop}}
targets:
  dev: {default: true}
resources:
  schemas: {gold: {name: shop_gold}}
  pipelines:
    orders:
      name: orders
      catalog: ${var.catalog}
      schema: ${resources.schemas.gold.name}
      configuration: {bronze_schema: "${bundle.target}_bronze"}
      libraries:
        - file: {path: src/orders/**/*.sql}
    other:
      libraries:
        - glob: {include: elsewhere/**}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "databricks.yml").write_text(BUNDLE)
    (tmp_path / "src" / "orders").mkdir(parents=True)
    (tmp_path / "src" / "orders" / "clean.sql").write_text("CREATE MATERIALIZED VIEW clean AS SELECT 1 AS id")
    return tmp_path


def read(project: Path, text: str, name: str = "src/orders/clean.unit_tests.yml") -> list[tuple[str, UnitTest]]:
    file = project / name
    file.write_text(text)
    return list(read_tests(file, project))


def test_a_test_has_the_names_and_parameters_of_the_pipeline_to_whose_folder_it_belongs(project: Path) -> None:
    text = """
tests:
  - name: keeps ids
    model: clean.sql
    source_schema: raw
    log_level: DEBUG
    given:
      - table: ${catalog}.${bronze_schema}.orders
        rows: [{id: 1, day: 2024-01-02, note: "${source_schema} of ${pipeline_schema} in ${var.catalog}, ${ bundle.target }"}]
        schema: {id: int}
    expect:
      rows: [{id: 1}]
"""
    [(name, test)] = read(project, text)
    assert name == "keeps ids"
    assert test.settings.pipeline == "orders"
    assert test.settings.parameters == {"bronze_schema": "dev_bronze", "source_schema": "raw"}
    given = test.steps[0].given[0]
    assert (given.name, given.schema) == ("shop.dev_bronze.orders", {"id": "int"})
    assert given.rows == ({"id": 1, "day": date(2024, 1, 2), "note": "raw of shop_gold in shop, dev"},)
    assert not test.needs_update


def test_rules_counts_errors_and_several_updates_need_updates_and_nothing_expected_means_no_rows(project: Path) -> None:
    text = """
tests:
  - {name: a, model: clean.sql}
  - {name: b, model: clean.sql, expect: {rules: {has_id: 2, cheap: {passed: 1, failed: 0}}}}
  - {name: c, model: clean.sql, expect: {error: EXPECTATION_VIOLATION}}
  - name: d
    model: clean.sql
    given: [{table: raw.a, rows: [{id: 1}]}]
    updates:
      - {expect: {rows: [{id: 1}]}}
      - {given: [{table: raw.a, rows: [{id: 2}]}], expect: {tables: {other: []}, dropped: 0, quarantined: 3, late: 2}}
"""
    a, b, c, d = (test for _, test in read(project, text))
    assert [test.needs_update for test in (a, b, c, d)] == [False, True, True, True]
    assert a.steps[0].expect is not None
    assert a.steps[0].expect.rows == ()
    assert b.steps[0].expect is not None
    assert (b.steps[0].expect.rows, b.steps[0].expect.rules) == (None, {"has_id": (None, 2), "cheap": (1, 0)})
    assert [len(step.given) for step in d.steps] == [1, 1]
    assert d.steps[1].expect is not None
    expected = d.steps[1].expect
    assert (expected.tables, expected.dropped, expected.quarantined, expected.late) == ({"other": ()}, 0, 3, 2)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("tests: [{name: a}]", 1, "has no model"),
        ("tests:\n  - model: claen.sql", 2, "no file 'claen.sql'"),
        ("tests:\n  - model: clean.sql\n    expct: {rows: []}", 3, "no key 'expct'"),
        ("tests:\n  - model: clean.sql\n    expect: {row: []}", 3, "no key 'row'"),
        ("tests:\n  - model: clean.sql\n    given:\n      - {rows: []}", 4, "either a table or a folder"),
        ("tests:\n  - model: clean.sql\n    given:\n      - {table: a, text: b}", 4, "belong to a folder"),
        ("tests:\n  - model: clean.sql\n    given:\n      - {table: '${nothing}.a'}", 4, "${nothing} has no value"),
        ("tests:\n  - model: clean.sql\n    expect: {dropped: many}", 3, "a number of rows"),
        ("tests:\n  - model: clean.sql\n    expect: {error: EXPECTATION_VIOLATED}", 3, "no error code 'EXPECTATION_VIOLATED'"),
        ("tests:\n  - model: clean.sql\n    expect: {}\n    updates: []", 3, "expects something of each"),
        ("test: []", 1, "no key 'test'"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(project: Path, text: str, line: int, what: str) -> None:
    with pytest.raises(LakeletError) as caught:
        read(project, text)
    assert what in caught.value.what
    assert caught.value.where is not None
    assert caught.value.where.line == line


def test_a_test_that_cannot_be_read_hides_no_other_one(project: Path) -> None:
    file = project / "src/orders/clean.unit_tests.yml"
    file.write_text(
        "tests: [{name: a, model: clean.sql}, {name: b, model: claen.sql}, {model: clean.sql, expct: {}}, {name: d, model: clean.sql}]"
    )
    found = list(all_tests(file, project))
    assert [name for name, _ in found] == ["a", "b", "line 1", "d"]
    assert [type(test) for _, test in found] == [UnitTest, UnreadableTest, UnreadableTest, UnitTest]


def test_a_file_of_tests_that_is_no_yaml_is_a_failed_test_and_the_others_run(project: Path) -> None:
    (project / "src/orders/broken.unit_tests.yml").write_text("tests: [{name: a\n")
    (project / "src/orders/wrong.unit_tests.yml").write_text("tests: [{name: no model}]")
    (project / "test_sound.py").write_text("def test_sound():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "src", "test_sound.py"]
    done = subprocess.run(command, cwd=project, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert "broken.unit_tests.yml, line" in done.stdout
    assert "a test has no model" in done.stdout


def test_a_file_of_pipeline_tests_brings_variables_for_its_own_tests_and_those_beside_the_code(project: Path) -> None:
    read(project, "tests: [{name: beside, model: clean.sql, given: [{table: '${catalog}.${bronze_schema}.a'}]}]")
    text = """
suite: orders
bundle: {file: ../databricks.yml, target: dev, variables: {catalog: test_catalog}}
pipeline: PIPELINE
defaults: {bronze_schema: "${catalog}_raw"}
tests:
  - {name: inline, model: src/orders/clean.sql}
"""
    (project / "tests").mkdir()
    for form in ("pipelines.orders", "{ref: pipelines.orders}", "{file: ../databricks.yml, key: orders}"):
        found = read(project, text.replace("PIPELINE", form), "tests/orders_pipeline_tests.yml")
        assert [name for name, _ in found] == ["inline", "clean::beside"]
        assert found[1][1].steps[0].given[0].name == "test_catalog.test_catalog_raw.a"
    (project / "spark").mkdir()
    (project / "spark" / "spark-pipeline.yml").write_text("name: s\ncatalog: c\ndatabase: d\nlibraries:\n  - transformations/**\n")
    found = read(
        project, "pipeline: {file: ../spark/spark-pipeline.yml}\ntests: [{model: ../src/orders/clean.sql}]", "tests/s_pipeline_tests.yml"
    )
    assert found[0][1].settings.namespace.resolve("x").key == "c.d.x"
    with pytest.raises(LakeletError, match="no pipeline 'nothing'"):
        read(project, "pipeline: pipelines.nothing", "tests/n_pipeline_tests.yml")


def test_a_file_outside_of_every_library_has_no_pipeline(project: Path) -> None:
    (project / "tests").mkdir()
    [(_, test)] = read(project, "tests: [{model: ../src/orders/clean.sql}]", "tests/clean.unit_tests.yml")
    assert (test.settings.pipeline, dict(test.settings.parameters)) == (None, {})


def test_expected_values_take_the_types_of_the_table() -> None:
    found = pa.table(
        {
            "id": pa.array([1, 2]),
            "price": pa.array([Decimal("3.50"), None], pa.decimal128(10, 2)),
            "ratio": pa.array([0.1, math.nan], pa.float32()),
            "at": pa.array([datetime(2024, 1, 1, 10, tzinfo=timezone.utc), None], pa.timestamp("us", tz="UTC")),
            "day": pa.array([date(2024, 1, 1), None]),
            "text": pa.array(["7", "true"]),
            "nested": pa.array([{"a": 1, "b": None}, None]),
            "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        }
    )
    first = {"id": 1, "price": 3.5, "ratio": 0.1, "at": "2024-01-01T10:00:00", "day": "2024-01-01", "text": 7, "nested": {"a": 1}}
    second = {"id": 2, "ratio": math.nan, "text": True, "map": {}}
    assert not compared(found, [second, {**first, "map": {"k": 1}}], found.column_names)
    assert converted("2024-13-01", pa.date32()) == "2024-13-01"
    assert converted(1, pa.bool_()) == 1
    assert converted("2024-01-01 10:00:00.5", pa.timestamp("us")) == datetime(2024, 1, 1, 10, 0, 0, 500_000)


def test_a_difference_shows_each_expected_row_above_the_one_most_like_it() -> None:
    found = [{"id": 1, "name": "Jon"}, {"id": 2, "name": None}, {"id": 2, "name": None}]
    differing = difference(found, [{"id": 1, "name": "John"}, {"id": 2, "name": None}, {"id": 3, "name": "x\ny"}], ["id", "name"])
    assert differing.lines("customers") == [
        "customers: 2 missing and 2 unexpected, 1 row as expected",
        "              id  name",
        "  - expected  1   'John'",
        "  + found     1   'Jon'",
        "                  ^^^^^",
        "  - expected  3   'x\\ny'",
        "  + found     2   NULL",
    ]
    assert not difference(found, reversed(found), ["id", "name"])
    assert difference([{"id": True}], [{"id": 1}], ["id"])
    many = difference([{"id": n} for n in range(30)], [], ["id"]).lines("t")
    assert (many[0], many[-1]) == ("t: 30 unexpected, 0 rows as expected", "  … and 10 more")


def test_rows_become_a_table_as_pyspark_would_infer_it() -> None:
    rows = [{"i": 1, "f": 1, "l": [1], "m": {"a": 1}, "s": {"a": 1, "b": "x"}}, {"f": 2.5, "d": date(2024, 1, 1), "n": None}]
    assert {field.name: str(field.type) for field in table_of(rows).schema} == {
        "i": "int64",
        "f": "double",
        "l": "list<item: int64>",
        "m": "map<string, int64>",
        "s": "struct<a: int64, b: string>",
        "d": "date32[day]",
        "n": "string",
    }
    with pytest.raises(LakeletError, match="'a' are of several types: int, str"):
        table_of([{"a": 1}, {"a": "x"}])
    with pytest.raises(LakeletError, match="a value of the column 'a' does not fit the type int32"):
        table_of([{"a": "x"}], {"a": pa.int32()})


def test_a_column_that_only_the_query_knows_gets_a_likely_type_in_the_table_it_is_looked_for_in() -> None:
    query = "SELECT CASE WHEN late THEN 1 END, sum( amount ), is_new, o.note FROM raw.orders o JOIN c.raw.customers AS cu USING (id)"
    assert [likely_type(c, query) for c in ("late", "amount", "is_new", "note")] == ["BOOLEAN", "DOUBLE", "BOOLEAN", "STRING"]
    assert aliases(query) == {"o": "orders", "cu": "customers"}
    assert aliases("SELEC nothing FROM (") == {}


def test_files_arrive_where_the_code_looks_for_them_in_the_order_of_the_calls(tmp_path: Path) -> None:
    p = Project(tmp_path, lambda maps, tables: None, None, landing="/Volumes/main/raw")  # type: ignore[arg-type, return-value]
    files = [
        p.arrive("/Volumes/main/raw/orders/1.json", {"id": 1, "at": date(2024, 1, 1)}, "not json"),
        p.arrive("orders/2.csv", {"id": 1, "note": 'a "b", c'}, {"id": 2}),
        p.arrive("s3://bucket/other/3.bin", b"\x00\x01"),
        p.arrive("s3://bucket/other/inner/4.csv", "id;n", "1;2"),
    ]
    assert [f.relative_to(tmp_path).as_posix() for f in files] == [
        *("landing/orders/1.json", "landing/orders/2.csv", "mapped/1/3.bin", "mapped/1/inner/4.csv"),
    ]
    assert [f.read_bytes() for f in files] == [
        *(b'{"id": 1, "at": "2024-01-01"}\nnot json\n', b'id,note\n1,"a ""b"", c"\n2,\n', b"\x00\x01", b"id;n\n1;2\n"),
    ]
    times = [f.stat().st_mtime for f in files]
    assert times == sorted(set(times))


def test_unit_tests_in_yaml_are_found_below_a_folder_but_not_in_environments(tmp_path: Path) -> None:
    for name in ("a/x.unit_tests.yml", "b/y_pipeline_tests.yaml", "venv/z.unit_tests.yml", "env/lib/z.unit_tests.yml", "a/other.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert [f.name for f in unit_test_files(tmp_path, ["venv"])] == ["x.unit_tests.yml", "y_pipeline_tests.yaml"]


class Collected:
    """The tests that a run of pytest would do."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.names = sorted(item.name for item in items)


SHOP = {
    "spark-pipeline.yml": "name: shop\nlibraries: [{glob: {include: 'src/**'}}]\n",
    "resources/sales.pipeline.yml": "resources: {pipelines: {sales: {name: sales, libraries: [{glob: {include: ../src/sales/**}}]}}}\n",
    "src/sales/day.sql": "CREATE MATERIALIZED VIEW day AS SELECT 1 AS id",
    "src/sales/day.unit_tests.yml": "tests: [{name: beside, model: day.sql}]",
    "tests/test_it.py": "def test_it(): pass",
    "tests/shop_pipeline_tests.yml": "pipeline: {file: ../spark-pipeline.yml}\ntests: [{name: inline, model: ../src/sales/day.sql}]",
}


@pytest.mark.parametrize(
    ("settings", "arguments", "found"),
    [
        ("", [], ["beside", "day::beside", "inline", "test_it"]),
        ("[tool.pytest.ini_options]\ntestpaths = ['tests']", [], ["beside", "day::beside", "inline", "test_it"]),
        (
            "[tool.pytest.ini_options]\ntestpaths = ['tests', 'resources/sales.pipeline.yml']",
            [],
            ["day::beside", "inline", "sales::day::beside", "test_it"],
        ),
        ("[tool.sdp-test]\nauto_discover = false\nvariable_resolution_depth = 9", [], ["day::beside", "inline", "test_it"]),
        ("[tool.sdp-test]\nauto_discover = false", ["src/sales/day.unit_tests.yml"], ["beside"]),
        ("", ["spark-pipeline.yml"], ["shop::day::beside"]),
        ("", ["src", "resources/sales.pipeline.yml"], ["sales::day::beside"]),
        ("", ["tests/shop_pipeline_tests.yml"], ["day::beside", "inline"]),
    ],
)
def test_pytest_collects_what_the_settings_and_arguments_of_sdp_test_name(
    settings: str, arguments: list[str], found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {**SHOP, "pyproject.toml": settings}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    collected = Collected()
    options = [
        "-q",
        "--collect-only",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:timeout",
        "-p",
        "no:sdp_test",
        "--rootdir=.",
        "--import-mode=importlib",
    ]
    assert pytest.main([*options, *arguments], plugins=[collected]) == 0
    assert collected.names == found


def test_a_variable_that_stands_alone_keeps_the_type_of_its_value(tmp_path: Path) -> None:
    (tmp_path / "databricks.yml").write_text(
        "bundle: {name: shop}\nvariables: {limit: {default: 5}, day: {default: 2024-01-15}}\n"
        "resources: {pipelines: {shop: {libraries: [{glob: {include: 'src/**'}}],"
        " configuration: {top: '${var.limit}', word: '5', on: true}}}}\n"
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.sql").write_text("CREATE MATERIALIZED VIEW a AS SELECT 1 AS id")
    row = "{a: '${var.limit}', b: '${top}', c: '${word}', d: '${on}', e: '${var.day}', f: 'n${top}', g: '${own}'}"
    [(_, test)] = read(tmp_path, f"tests: [{{model: a.sql, own: 7, given: [{{table: t, rows: [{row}]}}]}}]", "src/a.unit_tests.yml")
    assert test.steps[0].given[0].rows == ({"a": 5, "b": 5, "c": "5", "d": True, "e": date(2024, 1, 15), "f": "n5", "g": 7},)
