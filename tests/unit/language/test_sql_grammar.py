"""SQL sources: what each statement declares, or the whole text of its error (docs/semantics/sql-statements.md)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from sql_statements import CONFIGURATION, THEMES

from lakelet.base.errors import Location
from lakelet.base.names import Namespace
from lakelet.language import sql
from lakelet.language.model import Dataset, Definitions, Expectation, Flow, NullUpdates, RefreshPolicy
from lakelet.language.registry import Registry, recording
from tests.paths import ROOT


def declared(*texts: str, line: int = 1) -> tuple[Registry, Definitions, bool]:
    """The registry after one source of these cells, what it defines, and whether all of it was understood."""
    registry = Registry(Namespace())
    with recording(registry):
        cells = [sql.Cell(text, line) for text in texts]
        whole = sql.declare(cells, Path("shop.sql"), configuration=CONFIGURATION, session=None)
    return registry, registry.definitions(complete=whole), whole


def place(where: Location) -> str:
    return f"{where.line}:{where.column}"


def plain(value: object) -> str:
    """A field of a change flow as a user would write it."""
    if isinstance(value, NullUpdates):
        return value.value
    if isinstance(value, tuple):
        return ", ".join(".".join(part) if isinstance(part, tuple) else str(part) for part in value)
    return str(value)


def of_dataset(dataset: Dataset) -> Iterator[str]:
    yield f"{'private ' if dataset.private else ''}{dataset.kind.value} {dataset.name} at {place(dataset.where)}"
    for name in ("comment", "schema", "partition_cols", "cluster_by", "spark_conf", "table_properties"):
        if getattr(dataset, name):
            yield f"  {name}: {plain(getattr(dataset, name))}"
    if dataset.refresh_policy is not RefreshPolicy.AUTO:
        yield f"  refresh policy: {dataset.refresh_policy.value}"
    for rule in dataset.expectations:
        yield f"  {of_rule(rule)}"


def of_rule(rule: Expectation) -> str:
    return f"{rule.action.value} {rule.name!r} at {place(rule.where)}: {rule.text}"


def of_flow(flow: Flow) -> Iterator[str]:
    yield f"flow {flow.name} into {flow.target} at {place(flow.where)}{', default' if flow.default else ''}{', once' if flow.once else ''}"
    text = vars(flow.query)["sql"]
    yield "  query: " + text.replace("\n", "\n         ")
    for name in ("comment", "spark_conf"):
        if getattr(flow, name):
            yield f"  {name}: {plain(getattr(flow, name))}"
    if flow.replaces is not None:
        said = flow.replaces
        yield f"  {said.clause} {f'{plain(said.keys)} SEQUENCE BY {said.sequence_by}' if said.streams else said.where}"
    for field in fields(flow.changes) if flow.changes else ():
        value = getattr(flow.changes, field.name)
        if value not in (field.default, None) or field.name == "scd_type":
            yield f"  {field.name}: {plain(value)}"


def stands_in(text: str, where: Location | None) -> bool:
    """Whether a place is one of the text, or right behind one of its lines."""
    lines = text.split("\n")
    if where is None or where.column is None or not 1 <= where.line <= len(lines):
        return False
    return 1 <= where.column <= len(lines[where.line - 1]) + 1


def told(statement: str) -> str:
    """The statement, and what came of it."""
    registry, found, _ = declared(statement)
    lines = [line for dataset in found.datasets for line in of_dataset(dataset)]
    lines += [line for flow in found.flows for line in of_flow(flow)]
    lines += [f"note at {place(notice.where)}: {notice.text}" for notice in registry.notices]
    lines += [line for error in registry.errors for line in error.lines()]
    return "\n".join([statement.rstrip(), *("    " + line for line in "\n".join(lines).split("\n")), ""])


def test_the_suite_is_as_large_as_it_should_be():
    assert len({statement for statements in THEMES.values() for statement in statements}) >= 200


@pytest.mark.parametrize("theme", THEMES)
def test_statements_of(theme: str, golden: Callable[[str, str], None]):
    golden(f"sql_{theme}.txt", "\n".join(told(statement) for statement in THEMES[theme]))


def test_every_error_has_a_line_and_a_column_of_the_source():
    for statement in (statement for statements in THEMES.values() for statement in statements):
        for error in declared(statement)[0].errors:
            assert stands_in(statement, error.where), statement


def test_places_are_those_of_the_file_when_a_cell_begins_further_down():
    registry, found, _ = declared("-- title\n\n  CREATE MATERIALIZED VIEW a AS SELECT 1;\nCREATE X", line=40)
    assert str(found.datasets[0].where) == "shop.sql, line 42, column 3"
    assert str(registry.errors[0].where) == "shop.sql, line 43, column 8"


def test_places_in_a_jupyter_notebook_name_the_cell():
    registry = Registry(Namespace())
    with recording(registry):
        cells = [sql.Cell("CREATE MATERIALIZED VIEW a AS SELECT 1", 1, 2), sql.Cell("\nCREATE X", 1, 3)]
        sql.declare(cells, Path("shop.ipynb"), configuration={}, session=None)
    assert str(registry.errors[0].where) == "shop.ipynb, cell 3, line 2, column 8"
    flow = registry.definitions().flows[0]
    assert (str(flow.where), flow.query.__code__.co_filename) == ("shop.ipynb, cell 2, line 1, column 1", "shop.ipynb#cell-2")


def test_one_mistake_does_not_hide_the_next_and_says_that_the_rest_may_be_missing():
    registry, found, whole = declared("CREATE X; CREATE MATERIALIZED VIEW a AS SELECT 1; CREATE Y")
    assert ([error.where.column for error in registry.errors], len(found.datasets), whole) == (
        [8, 1 + len("CREATE X; CREATE MATERIALIZED VIEW a AS SELECT 1; CREATE ")],
        1,
        False,
    )


def test_set_and_use_act_on_the_later_cells_of_a_source_and_on_no_other_source():
    _, found, _ = declared("SET k = 1; USE s", "CREATE MATERIALIZED VIEW a AS SELECT ${k}")
    assert (str(found.datasets[0].name), vars(found.flows[0].query)["sql"]) == ("main.s.a", "SELECT 1")
    assert declared("CREATE MATERIALIZED VIEW a AS SELECT ${k}")[0].errors[0].code == "SQL_PARAMETER_UNKNOWN"


def test_a_parameter_that_nobody_gives_is_an_empty_text_in_a_list_of_columns_and_an_error_elsewhere():
    registry, found, _ = declared("CREATE MATERIALIZED VIEW a (id INT COMMENT 'x' ${a.rules}) AS SELECT 1 AS id")
    assert (registry.errors, [str(d.schema) for d in found.datasets]) == ([], ["`id` INT COMMENT 'x'"])
    (notice,) = registry.notices
    assert ("'a.rules'" in notice.text, notice.where.column) == (True, len("CREATE MATERIALIZED VIEW a (id INT COMMENT 'x' ") + 1)
    for text in (
        "CREATE MATERIALIZED VIEW a (id INT COMMENT '${x}') AS SELECT 1",
        "CREATE MATERIALIZED VIEW a (id INT) AS SELECT (${x})",
        "CREATE MATERIALIZED VIEW ${x} AS SELECT 1",
    ):
        assert [error.code for error in declared(text)[0].errors] == ["SQL_PARAMETER_UNKNOWN"]


def test_a_source_without_statements_declares_nothing():
    for text in ("", "  \n", "-- only\n/* comments; */ ;;\n", ";"):
        registry, found, whole = declared(text)
        assert (registry.errors, found.datasets, whole) == ([], (), True)


def test_a_query_runs_in_the_line_and_column_that_it_has_in_the_file():
    class Session:
        def sql(self, text: str) -> object:
            raise ValueError(text)

    registry = Registry(Namespace())
    with recording(registry):
        text = "SET k = 7;\nCREATE MATERIALIZED VIEW a AS\n  SELECT ${k},\n b"
        sql.declare([sql.Cell(text, 5)], Path("shop.sql"), configuration={}, session=Session())
    query = registry.definitions().flows[0].query
    with pytest.raises(ValueError, match="SELECT") as caught:
        query()
    assert str(caught.value) == "\n" * 6 + "  SELECT 7,\n b"
    assert (query.__code__.co_filename, query.__code__.co_firstlineno) == ("shop.sql", 6)


def test_sqlglot_is_not_loaded_for_pipelines_without_sql():
    code = "import sys, lakelet.language.loader, lakelet.spark.names.reader, lakelet.pipeline; assert 'sqlglot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_examples_of_the_reference_page_are_understood():
    page = (ROOT / "docs" / "reference" / "sql.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sql\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert [str(e) for block in blocks for e in declared(block)[0].errors] == []
    (shown,) = re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    errors = declared(blocks[0].replace("DROP ROW", "DORP ROW"))[0].errors
    assert "\n".join(errors[0].lines()) + "\n" == shown.replace("pipelines/shop.sql", "shop.sql")
