"""Small projects with one unit test in YAML each, and what sdp-test 0.4 says of it: the verdicts that Lakelet's plugin must give too.

`passed`, `error` (the test could not be judged: its file is refused, or the tested code raises), or the rows that differ: expected ones
that are not there after `-`, found ones that were not expected after `+`. `here` is Lakelet's verdict where a decision makes it another
(docs/decisions/0047-yaml-tests.md). `tests/conformance/test_yaml_tests_of_sdp_test.py` asks the package itself again, where it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT = """\
name: shop
catalog: main
database: gold
configuration: {bronze_schema: bronze, silver_schema: silver, floor: "10", limit: 7, word: "7"}
libraries: [{glob: {include: "code/**"}}]
"""
SQL_HEAD = "CREATE OR REFRESH MATERIALIZED VIEW ${silver_schema}.model AS\n"
PYTHON_HEAD = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()

"""
PASSED, ERROR = "passed", "error"


@dataclass(frozen=True)
class Case:
    """A project by its files, and the verdict on its only test."""

    files: Mapping[str, str]
    verdict: str
    here: str | None = None

    def write(self, folder: Path) -> None:
        """Write the project's files."""
        for name, text in {"spark-pipeline.yml": PROJECT, **self.files}.items():
            if text:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")


def sql(query: str, test: str, verdict: str, *, here: str | None = None, **more: str) -> Case:
    """A query and the YAML of its test, without `name` and `model`; `query` may be the whole file."""
    text = query if query.startswith(("CREATE", "--")) else SQL_HEAD + query
    return Case({"code/model.sql": text, "code/model.unit_tests.yml": _entry("model.sql", test), **more}, verdict, here)


def python(body: str, test: str, verdict: str, *, here: str | None = None, **more: str) -> Case:
    """A function `model`, and the YAML of its test; `body` is what it returns, or the whole file after the imports."""
    text = body if body.startswith(("@", "def", "import")) else f"@dp.table\ndef model():\n    return {body}\n"
    files = {"code/model.py": PYTHON_HEAD + text, "code/model.unit_tests.yml": _entry("model.py", test), **more}
    return Case(files, verdict, here)


def _entry(model: str, test: str) -> str:
    if test.startswith("tests:"):
        return test
    lines = "".join(f"    {line}\n" for line in test.strip("\n").splitlines())
    return f"tests:\n  - name: case\n    model: {model}\n{lines}"


def given(rows: str, expected: str, *, table: str = "${bronze_schema}.raw", schema: str = "") -> str:
    """The YAML of a test with one given table; `rows` and `expected` are YAML lists."""
    typed = f", schema: {schema}" if schema else ""
    return f"given:\n  - {{table: '{table}', rows: {rows}{typed}}}\nexpect:\n  rows: {expected}\n"


FROM_RAW = "SELECT * FROM ${bronze_schema}.raw"
TYPES = (
    "SELECT CAST(a AS DECIMAL(16, 2)) AS a, CAST(d AS DATE) AS d, CAST(t AS TIMESTAMP) AS t, CAST(f AS DOUBLE) AS f"
    " FROM ${bronze_schema}.raw"
)

RESOURCES = """\
resources:
  schemas: {bronze: {name: shop_bronze, catalog_name: main}}
  pipelines:
    shop:
      name: shop
      catalog: ${var.catalog}
      schema: gold
      configuration: {bronze_schema: "${var.bronze}", silver_schema: silver}
      libraries: [{glob: {include: ../code/**}}]
"""
ROOT_PATH = 'root_path: "${workspace.file_path}/code"'
BUNDLED = {
    "spark-pipeline.yml": "",
    "databricks.yml": "bundle: {name: shop}\ninclude: [resources/*.yml]\nvariables:\n  catalog: {default: main}\n  limit: {default: 5}\n"
    '  bronze: {default: "${resources.schemas.bronze.name}"}\n',
    "resources/shop.pipeline.yml": RESOURCES,
    "code/model.sql": SQL_HEAD + FROM_RAW,
}
"""A project with a bundle instead of a project file of Spark's pipelines."""


def _of_pipeline(head: str, test: str, verdict: str) -> Case:
    """A bundle with a file of pipeline tests, whose keys beside `tests` are `head`."""
    entry = _entry("../code/model.sql", test)
    return Case({**BUNDLED, "tests/shop_pipeline_tests.yml": f"{head}\n{entry}"}, verdict)


CASES: dict[str, Case] = {
    # ------------------------------------------------------------------------------------------------------------- how rows are compared
    "rows are compared whatever their order": sql(FROM_RAW, given("[{id: 1}, {id: 2}]", "[{id: 2}, {id: 1}]"), PASSED),
    "a row that is there twice is expected twice": sql(FROM_RAW, given("[{id: 1}, {id: 1}]", "[{id: 1}]"), "+ 1"),
    "a row that is expected twice is there twice": sql(FROM_RAW, given("[{id: 1}]", "[{id: 1}, {id: 1}]"), "- 1"),
    "only the named columns are compared": sql(FROM_RAW, given("[{id: 1, other: x}]", "[{id: 1}]"), PASSED),
    "a column that the result does not have": sql(FROM_RAW, given("[{id: 1}]", "[{di: 1}]"), ERROR),
    "names of columns are compared without case": sql(FROM_RAW, given("[{id: 1}]", "[{ID: 1}]"), PASSED),
    "a test without expect wants no rows": sql(FROM_RAW, "given: [{table: bronze.raw, rows: [{id: 1}]}]", "+ 1"),
    "no rows are expected and there are none": sql(f"{FROM_RAW} WHERE id > 1", given("[{id: 1}]", "[]"), PASSED),
    "rows are expected and there are none": sql(f"{FROM_RAW} WHERE id > 1", given("[{id: 1}]", "[{id: 1}]"), "- 1"),
    "a key that an expected row lacks is NULL": sql(FROM_RAW, given("[{a: 1, b: null}, {a: 2, b: 3}]", "[{a: 2, b: 3}, {a: 1}]"), PASSED),
    "NULL is not an empty text": sql(FROM_RAW, given("[{a: ''}, {a: x}]", "[{a: null}, {a: x}]"), "- NULL\n+ ''"),
    "a column that only a later expected row names": sql(
        FROM_RAW, given("[{a: 1, b: 1}, {a: 2, b: 2}]", "[{a: 1}, {a: 2, b: 3}]"), PASSED, here="- 1  NULL\n- 2  3\n+ 1  1\n+ 2  2"
    ),
    # ------------------------------------------------------------------------------------------------------------------------ values
    "decimals, dates, moments and floats take the type of their column": sql(
        TYPES,
        given(
            "[{a: '3.5', d: '2024-01-15', t: '2024-01-15 10:30:00', f: 1}]",
            "[{a: 3.50, d: '2024-01-15', t: '2024-01-15T10:30:00', f: 1.0}]",
        ),
        PASSED,
    ),
    "values that YAML itself knows as dates and moments": sql(
        TYPES,
        given(
            "[{a: 1, d: 2024-01-15, t: 2024-01-15T10:30:00, f: .nan}]",
            "[{a: 1, d: 2024-01-15, t: 2024-01-15 10:30:00, f: .nan}]",
        ),
        PASSED,
    ),
    "a date where a moment is expected is its midnight": sql(
        TYPES, given("[{a: 1, d: null, t: '2024-01-15', f: 0.0}]", "[{t: 2024-01-15, f: -0.0}]"), PASSED
    ),
    "a moment where a date is expected is its day": sql(
        TYPES, given("[{a: 1, d: '2024-01-15', t: null, f: 1}]", "[{d: 2024-01-15 10:00:00}]"), PASSED
    ),
    "an expected decimal is rounded to the scale of its column": sql(
        TYPES, given("[{a: '3.51', d: null, t: null, f: 1}]", "[{a: 3.505}]"), PASSED
    ),
    "decimals differ by a hundredth": sql(TYPES, given("[{a: '3.51', d: null, t: null, f: 1}]", "[{a: 3.5}]"), "- 3.50\n+ 3.51"),
    "floats are compared exactly": sql(
        FROM_RAW.replace("*", "a + 0.0D AS a"), given("[{a: 0.1}]", "[{a: 0.1000001}]"), "- 0.1000001\n+ 0.1"
    ),
    "a float of four bytes": sql("SELECT CAST(a AS FLOAT) AS a FROM ${bronze_schema}.raw", given("[{a: 0.1}]", "[{a: 0.1}]"), PASSED),
    "a number where a text is expected": sql("SELECT CAST(id AS STRING) AS id FROM bronze.raw", given("[{id: 7}]", "[{id: 7}]"), PASSED),
    "a switch where a text is expected": sql(
        "SELECT CAST(ok AS STRING) AS ok FROM bronze.raw", given("[{ok: true}]", "[{ok: true}]"), PASSED
    ),
    "a text where a number is expected": sql(FROM_RAW, given("[{id: 7}]", "[{id: '7'}]"), ERROR, here="- '7'\n+ 7"),
    "a whole number where a float is expected": sql(
        "SELECT id + 0.0D AS x FROM bronze.raw", given("[{id: 7}]", "[{x: 7}]"), ERROR, here=PASSED
    ),
    "words of YAML 1.1": sql(FROM_RAW, given("[{a: yes, b: 1_000, c: 0x10, d: ~}]", "[{a: true, b: 1000, c: 16, d: null}]"), PASSED),
    "moments with a zone are moments": sql(
        "SELECT t FROM bronze.raw", given("[{t: 2024-01-15T10:30:00+02:00}]", "[{t: 2024-01-15T08:30:00Z}]"), PASSED
    ),
    "whole numbers and floats in one given column": sql(FROM_RAW, given("[{a: 1}, {a: 2.5}]", "[{a: 1.0}, {a: 2.5}]"), ERROR, here=PASSED),
    "texts, numbers and switches in one given column": sql(
        FROM_RAW, given("[{a: 1}, {a: x}, {a: true}, {a: 2.5}]", "[{a: '1'}, {a: x}, {a: 'true'}, {a: '2.5'}]"), PASSED
    ),
    # ----------------------------------------------------------------------------------------------------------------- nested values
    "arrays": sql(FROM_RAW, given("[{a: [1, 2]}]", "[{a: [1, 2]}]"), PASSED),
    "the order in an array counts": sql(FROM_RAW, given("[{a: [1, 2]}]", "[{a: [2, 1]}]"), "- [2, 1]\n+ [1, 2]"),
    "structs by a schema": sql(
        FROM_RAW, given("[{s: {a: 1, b: x}}]", "[{s: {b: x, a: 1}}]", schema="{s: 'struct<a:int,b:string>'}"), PASSED
    ),
    "a field that an expected struct lacks is NULL": sql(
        FROM_RAW, given("[{s: {a: 1}}]", "[{s: {a: 1}}]", schema="{s: 'struct<a:int,b:string>'}"), PASSED
    ),
    "a field that the struct does not have": sql(
        FROM_RAW,
        given("[{s: {a: 1}}]", "[{s: {a: 1, z: 1}}]", schema="{s: 'struct<a:int>'}"),
        PASSED,
        here='- {"a": 1, "z": 1}\n+ {"a": 1}',
    ),
    "a mapping is a map whose keys are read by name": sql(
        "SELECT m.a AS a, m['b'] AS b FROM bronze.raw", given("[{m: {a: 1, b: 2}}]", "[{a: 1, b: 2}]"), PASSED
    ),
    "a list of mappings is exploded": sql(
        "SELECT i.sku AS sku FROM (SELECT explode(items) AS i FROM bronze.raw)",
        given("[{items: [{sku: a}, {sku: b}]}]", "[{sku: b}, {sku: a}]"),
        PASSED,
    ),
    "maps are compared": sql(FROM_RAW, given("[{m: {a: 1}}]", "[{m: {a: 1}}]"), ERROR, here=PASSED),
    "a column of VARIANT is given and read": sql(
        "SELECT v:a::int AS a, v:b[0]::string AS b FROM bronze.raw",
        given("[{v: {a: 2, b: [x]}}, {v: null}]", "[{a: 2, b: x}, {a: null}]", schema="{v: Variant}"),
        PASSED,
    ),
    "a column of VARIANT is compared": sql(FROM_RAW, given("[{v: {a: 2}}]", "[{v: {a: 2}}]", schema="{v: variant}"), ERROR, here=PASSED),
    # --------------------------------------------------------------------------------------------------------------- the given tables
    "a schema gives some columns their types": sql(
        "SELECT typeof(a) AS a, typeof(b) AS b FROM bronze.raw",
        given("[{a: 1, b: 1}]", "[{a: tinyint, b: bigint}]", schema="{a: tinyint}"),
        PASSED,
    ),
    "a value that does not fit its schema": sql(FROM_RAW, given("[{a: x}]", "[{a: x}]", schema="{a: int}"), ERROR),
    "a schema with an unknown type": sql(FROM_RAW, given("[{a: x}]", "[{a: x}]", schema="{a: nothing}"), ERROR),
    "a column of nothing but NULL is text": sql(
        "SELECT typeof(a) AS a FROM bronze.raw", given("[{a: null, b: 1}]", "[{a: string}]"), PASSED
    ),
    "types that are taken from the values": sql(
        "SELECT typeof(a) AS a, typeof(b) AS b, typeof(c) AS c, typeof(d) AS d, typeof(e) AS e, typeof(f) AS f, "
        "typeof(g) AS g FROM bronze.raw",
        given(
            "[{a: 1, b: 1.5, c: x, d: true, e: 2024-01-15, f: 2024-01-15 10:00:00, g: {k: 1}}]",
            "[{a: bigint, b: double, c: string, d: boolean, e: date, f: timestamp, g: 'map<string,bigint>'}]",
        ),
        PASSED,
    ),
    "columns without a schema are in alphabetical order": sql(
        "SELECT * FROM bronze.raw UNION ALL SELECT * FROM bronze.more",
        "given: [{table: bronze.raw, rows: [{name: x, id: 1}]}, {table: bronze.more, rows: [{id: 2, name: y}]}]\n"
        "expect: {rows: [{id: 1, name: x}, {id: 2, name: y}]}",
        PASSED,
    ),
    "a table without rows can be joined": sql(
        "SELECT r.id, m.name FROM bronze.raw r LEFT JOIN bronze.more m ON r.id = m.id",
        "given: [{table: bronze.raw, rows: [{id: x}]}, {table: bronze.more, rows: []}]\nexpect: {rows: [{id: x, name: null}]}",
        PASSED,
    ),
    "a column that only the query knows is NULL": sql(
        "SELECT id, note, is_new, CASE WHEN paid THEN 1 ELSE 0 END AS paid FROM bronze.raw",
        given("[{id: 1}]", "[{id: 1, note: null, is_new: null, paid: 0}]"),
        PASSED,
    ),
    "a column that is summed and begins with is_ is a number": sql(
        "SELECT SUM(is_new) AS n, typeof(SUM(cost)) AS kind FROM bronze.raw", given("[{id: 1}]", "[{n: null, kind: double}]"), PASSED
    ),
    "a table that is not given": sql("SELECT * FROM bronze.other", given("[{id: 1}]", "[{id: 1}]"), ERROR),
    "a table that is given twice": sql(
        FROM_RAW,
        "given: [{table: bronze.raw, rows: [{id: 1}]}, {table: bronze.raw, rows: [{id: 2}]}]\nexpect: {rows: [{id: 2}]}",
        PASSED,
        here="+ 1",
    ),
    "a table without a schema in its name": sql("SELECT * FROM raw", given("[{id: 1}]", "[{id: 1}]", table="raw"), PASSED),
    # -------------------------------------------------------------------------------------------------------------------- three parts
    "a catalog in the test and none in the code": sql(FROM_RAW, given("[{id: 1}]", "[{id: 1}]", table="${catalog}.bronze.raw"), PASSED),
    "a catalog in the code and none in the test": sql(
        "SELECT main.bronze.raw.id FROM `main`.`bronze`.`raw`", given("[{id: 1}]", "[{id: 1}]"), PASSED
    ),
    "two catalogs of one test": sql(
        "SELECT id, 'a' AS src FROM a.sales.orders UNION ALL SELECT id, 'b' FROM b.sales.orders",
        "given: [{table: a.sales.orders, rows: [{id: 1}]}, {table: b.sales.orders, rows: [{id: 2}]}]\n"
        "expect: {rows: [{id: 1, src: a}, {id: 2, src: b}]}",
        PASSED,
    ),
    "the code names none of two catalogs": sql(
        "SELECT id FROM sales.orders",
        "given: [{table: a.sales.orders, rows: [{id: 1}]}, {table: b.sales.orders, rows: [{id: 2}]}]\nexpect: {rows: [{id: 1}, {id: 2}]}",
        ERROR,
    ),
    "a schema that carries its catalog": python(
        "spark.read.table(spark.conf.get('bronze_schema') + '.raw')",
        "bronze_schema: main.bronze\n" + given("[{id: 1}]", "[{id: 1}]", table="bronze.raw"),
        PASSED,
    ),
    # ------------------------------------------------------------------------------------------------------------------- the SQL model
    "a streaming table over STREAM": sql(
        "CREATE OR REFRESH STREAMING TABLE model (CONSTRAINT big EXPECT (id > 1) ON VIOLATION DROP ROW) "
        "AS SELECT * FROM STREAM(bronze.raw)",
        given("[{id: 1}, {id: 2}]", "[{id: 1}, {id: 2}]"),
        PASSED,
    ),
    "QUALIFY": sql(
        "SELECT id, n FROM bronze.raw QUALIFY row_number() OVER (PARTITION BY id ORDER BY n DESC) = 1",
        given("[{id: 1, n: 1}, {id: 1, n: 2}]", "[{id: 1, n: 2}]"),
        PASSED,
    ),
    "WITH, and columns that are declared": sql(
        "CREATE MATERIALIZED VIEW gold.model (id STRING COMMENT 'key', n BIGINT) COMMENT 'c' AS\n"
        "WITH r AS (SELECT CAST(id AS STRING) AS id, count(*) AS n FROM bronze.raw GROUP BY ALL) SELECT * FROM r;",
        given("[{id: 1}, {id: 1}]", "[{id: '1', n: 2}]"),
        PASSED,
    ),
    "a temporary view": sql("CREATE TEMPORARY VIEW model AS SELECT id FROM bronze.raw", given("[{id: 1}]", "[{id: 1}]"), PASSED),
    "a live table": sql(
        "CREATE OR REFRESH LIVE TABLE model AS SELECT id FROM LIVE.raw", given("[{id: 1}]", "[{id: 1}]", table="LIVE.raw"), PASSED
    ),
    "parameters in the text of a query": sql(
        "SELECT * FROM ${bronze_schema}.raw WHERE id > ${floor}", given("[{id: 10}, {id: 11}]", "[{id: 11}]"), PASSED
    ),
    "a query that fails while it runs": sql("SELECT 1 / id AS x FROM bronze.raw", given("[{id: 0}]", "[{x: 1.0}]"), ERROR),
    # ---------------------------------------------------------------------------------------------------------------- the Python model
    "a function of the name of its file": python("spark.table('bronze.raw')", given("[{id: 1}]", "[{id: 1}]"), PASSED),
    "a function that is named, without a decorator": python(
        "def other():\n    return spark.table('bronze.raw').where('id > 1')\n",
        "callable: other\n" + given("[{id: 1}, {id: 2}]", "[{id: 2}]"),
        PASSED,
    ),
    "a function that is not there": python("spark.table('bronze.raw')", "callable: modle\n" + given("[{id: 1}]", "[{id: 1}]"), ERROR),
    "a stream is one batch": python("spark.readStream.table('bronze.raw').select('id')", given("[{id: 1}]", "[{id: 1}]"), PASSED),
    "SQL in a function": python(
        "spark.sql(f\"SELECT * FROM main.{spark.conf.get('bronze_schema')}.raw QUALIFY row_number() OVER (ORDER BY id) = 1\")",
        given("[{id: 2}, {id: 1}]", "[{id: 1}]"),
        PASSED,
    ),
    "rules of a function are not applied": python(
        "@dp.table\n@dp.expect_or_drop('big', 'id > 1')\ndef model():\n    return spark.table('bronze.raw')\n",
        given("[{id: 1}]", "[{id: 1}]"),
        PASSED,
    ),
    "a function that raises": python("spark.table('bronze.raw').select('nothing')", given("[{id: 1}]", "[{id: 1}]"), ERROR),
    # ---------------------------------------------------------------------------------------------------------------------- variables
    "a variable alone keeps its type": sql("SELECT id FROM bronze.raw", given("[{id: '${limit}'}]", "[{id: 7}]"), PASSED),
    "a variable that is a text stays one": sql("SELECT id FROM bronze.raw", given("[{id: '${word}'}]", "[{id: '7'}]"), PASSED),
    "a variable within a text": sql("SELECT id FROM bronze.raw", given("[{id: 'a-${limit}'}]", "[{id: a-7}]"), PASSED),
    "names that every pipeline has": sql(
        "SELECT id FROM bronze.raw", given("[{id: '${catalog}.${pipeline_schema}.${pipeline_name}'}]", "[{id: main.gold.shop}]"), PASSED
    ),
    "a text in the form of an unknown variable": sql(
        "SELECT id FROM bronze.raw", given("[{id: '${nobody}'}]", "[{id: '${nobody}'}]"), PASSED
    ),
    "a test sets a parameter of the pipeline": sql(
        FROM_RAW, "bronze_schema: special\n" + given("[{id: 1}]", "[{id: 1}]", table="special.raw"), PASSED
    ),
    # ------------------------------------------------------------------------------------------------------------------ other keys
    "settings of Spark": sql(
        "SELECT CAST(id AS INT) AS id FROM bronze.raw",
        "spark_conf: {spark.sql.ansi.enabled: 'false'}\n" + given("[{id: x}]", "[{id: null}]"),
        PASSED,
    ),
    "settings of the code's own": python(
        "spark.table('bronze.raw').where(f\"id > {spark.conf.get('shop.floor')}\")",
        "spark_conf: {shop.floor: '1'}\n" + given("[{id: 1}, {id: 2}]", "[{id: 2}]"),
        PASSED,
    ),
    "a level for the log": sql(FROM_RAW, "log_level: DEBUG\n" + given("[{id: 1}]", "[{id: 1}]"), PASSED),
    "keys that nobody knows": sql(
        FROM_RAW,
        "tests:\n  - name: case\n    model: model.sql\n    owner: [ada, alan]\n"
        "    given: [{table: bronze.raw, rows: &rows [{id: 1}]}]\n    expect: {rows: *rows}\nversion: 1\nabout: {team: shop}\n",
        PASSED,
    ),
    "a misspelt key": sql(FROM_RAW, "givn: [{table: bronze.raw, rows: [{id: 1}]}]\n" + given("[{id: 1}]", "[{id: 1}]"), PASSED, here=ERROR),
    "an unknown key of an input": sql(
        FROM_RAW, "given: [{table: bronze.raw, rows: [{id: 1}], colour: red}]\nexpect: {rows: [{id: 1}]}", ERROR
    ),
    "an unknown key of expect": sql(
        FROM_RAW, "given: [{table: bronze.raw, rows: [{id: 1}]}]\nexpect: {rows: [{id: 1}], order: true}", ERROR
    ),
    "an input without a table": sql(FROM_RAW, "given: [{rows: [{id: 1}]}]\nexpect: {rows: [{id: 1}]}", ERROR),
    "rows that are no list": sql(FROM_RAW, "given: [{table: bronze.raw, rows: {id: 1}}]\nexpect: {rows: [{id: 1}]}", ERROR),
    "a test without a model": sql(FROM_RAW, "tests: [{name: case, given: [], expect: {rows: []}}]", ERROR),
    "a model that is not there": sql(FROM_RAW, "tests: [{name: case, model: other.sql, given: [], expect: {rows: []}}]", ERROR),
    "a test without a name": sql(
        FROM_RAW, "tests: [{model: model.sql, given: [{table: bronze.raw, rows: [{id: 1}]}], expect: {rows: [{id: 1}]}}]", PASSED
    ),
    "an interval is not compared where no rows are expected": sql(
        "SELECT make_interval(1) AS i FROM bronze.raw WHERE id > 1", given("[{id: 1}]", "[]"), PASSED
    ),
    # -------------------------------------------------------------------------------------------------- bundles and files of pipelines
    "a bundle whose variables refer to others": Case(
        {
            **BUNDLED,
            "code/model.unit_tests.yml": _entry(
                "model.sql", given("[{id: '${var.limit}'}]", "[{id: 5}]", table="${var.catalog}.${bronze_schema}.raw")
            ),
        },
        PASSED,
    ),
    "names of resources in a test": Case(
        {
            **BUNDLED,
            "code/model.unit_tests.yml": _entry(
                "model.sql", given("[{id: '${resources.schemas.bronze.name}'}]", "[{id: shop_bronze}]", table="shop_bronze.raw")
            ),
        },
        PASSED,
    ),
    "an unknown variable in a project with a bundle": Case(
        {**BUNDLED, "code/model.unit_tests.yml": _entry("model.sql", given("[{id: '${nobody}'}]", "[{id: '${nobody}'}]"))}, ERROR
    ),
    "a library that is one file": Case(
        {
            **BUNDLED,
            "resources/shop.pipeline.yml": RESOURCES.replace("glob: {include: ../code/**}", "file: {path: ../code/model.sql}"),
            "code/model.unit_tests.yml": _entry("model.sql", given("[{id: 1}]", "[{id: 1}]")),
        },
        PASSED,
    ),
    "a folder of sources instead of libraries": Case(
        {
            **BUNDLED,
            "resources/shop.pipeline.yml": RESOURCES.replace("libraries: [{glob: {include: ../code/**}}]", ROOT_PATH),
            "code/model.unit_tests.yml": _entry("model.sql", given("[{id: 1}]", "[{id: 1}]")),
        },
        PASSED,
    ),
    "libraries that are plain patterns": Case(
        {
            "spark-pipeline.yml": PROJECT.replace('[{glob: {include: "code/**"}}]', "['code/**']"),
            "code/model.sql": SQL_HEAD + FROM_RAW,
            "code/model.unit_tests.yml": _entry("model.sql", given("[{id: 1}]", "[{id: 1}]")),
        },
        PASSED,
    ),
    "the target is that of a bundle without one": Case(
        {
            **BUNDLED,
            "databricks.yml": BUNDLED["databricks.yml"] + "targets: {dev: {default: true}}\n",
            "code/model.unit_tests.yml": _entry("model.sql", given("[{id: '${bundle.target}'}]", "[{id: local}]")),
        },
        PASSED,
        here="- 'local'\n+ 'dev'",
    ),
    "a file of the pipeline with target and variables that the bundle does not declare": _of_pipeline(
        "bundle: {file: ../databricks.yml, target: dev, variables: {catalog: other, extra: 9}}\npipeline: pipelines.shop",
        given("[{id: '${bundle.target}', n: '${var.extra}'}]", "[{id: dev, n: 9}]", table="${catalog}.shop_bronze.raw"),
        PASSED,
    ),
    "a pipeline by its reference, with defaults": _of_pipeline(
        "suite: shop\nlog_level: INFO\npipeline: {ref: pipelines.shop}\ndefaults: {bronze_schema: special}",
        given("[{id: 1}]", "[{id: 1}]", table="${bronze_schema}.raw"),
        PASSED,
    ),
    "a pipeline of a resource file": _of_pipeline(
        "pipeline: {file: ../resources/shop.pipeline.yml, key: shop}", given("[{id: 1}]", "[{id: 1}]", table="${bronze_schema}.raw"), PASSED
    ),
    "a pipeline that the bundle does not have": _of_pipeline("pipeline: pipelines.shopp", given("[{id: 1}]", "[{id: 1}]"), ERROR),
    "a file of no pipeline": _of_pipeline("suite: shop", given("[{id: 1}]", "[{id: 1}]"), ERROR),
    "an unknown key of a bundle": _of_pipeline("bundle: {taget: dev}\npipeline: pipelines.shop", given("[{id: 1}]", "[{id: 1}]"), ERROR),
    "a file of a pipeline of Spark, without a bundle": Case(
        {
            "code/model.sql": SQL_HEAD + FROM_RAW,
            "tests/shop_pipeline_tests.yml": "bundle: {variables: {extra: x}}\npipeline: {file: ../spark-pipeline.yml}\n"
            + _entry("../code/model.sql", given("[{id: '${var.extra}'}]", "[{id: x}]")),
        },
        PASSED,
    ),
}
