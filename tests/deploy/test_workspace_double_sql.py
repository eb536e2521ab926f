"""The workspace on loopback: SQL warehouses and their statements, as the real SDK sees them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from databricks.sdk.errors import BadRequest, NotFound, NotImplemented
from databricks.sdk.service.sql import (
    ExecuteStatementRequestOnWaitTimeout,
    StatementParameterListItem,
    StatementResponse,
    StatementState,
)

from tests.workspace_double import Workspace, failing_flow, flow

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

Client = Callable[..., "WorkspaceClient"]

ORDERS = pa.table(
    {
        "Id": pa.array([1, 2, 3], pa.int64()),
        "amount": pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(10, 2)),
        "day": pa.array([date(2026, 8, 1), date(2026, 8, 2), None], pa.date32()),
        "seen": pa.array([datetime(2026, 8, 1, 12, 0, 0, 5000, tzinfo=timezone.utc)] * 3, pa.timestamp("us", tz="UTC")),
        "ok": pa.array([True, False, None]),
        "weight": pa.array([0.5, 1.0, None], pa.float64()),
        "tags": pa.array([["a"], [], None], pa.list_(pa.string())),
        "place": pa.array([{"city": "Bern"}, {"city": None}, None], pa.struct([("city", pa.string())])),
    }
)


@pytest.fixture
def ask(workspace: Workspace, client: Client) -> Callable[..., StatementResponse]:
    """Execute a statement on the shared warehouse; the table `main.s.orders` is there."""
    workspace.tables["main.s.orders"] = ORDERS
    api = client()
    return lambda text, **more: api.statement_execution.execute_statement(text, workspace.warehouse_id, **more)


def _rows(answer: StatementResponse) -> Any:
    assert answer.status is not None
    assert answer.status.state is StatementState.SUCCEEDED, answer.status
    return answer.result.data_array if answer.result else None


def _error(answer: StatementResponse) -> str:
    assert answer.status is not None
    assert answer.status.error is not None
    assert (answer.status.state, answer.result) == (StatementState.FAILED, None)
    return answer.status.error.message or ""


def test_every_value_is_a_string_or_null(ask: Callable[..., StatementResponse]) -> None:
    answer = ask("SELECT * FROM main.s.orders ORDER BY id")
    assert _rows(answer) == [
        ["1", "1.50", "2026-08-01", "2026-08-01T12:00:00.005Z", "true", "0.5", '["a"]', '{"city": "Bern"}'],
        ["2", "2.25", "2026-08-02", "2026-08-01T12:00:00.005Z", "false", "1.0", "[]", '{"city": null}'],
        ["3", None, None, "2026-08-01T12:00:00.005Z", None, None, None, None],
    ]
    assert answer.manifest is not None
    assert answer.manifest.schema is not None
    assert [(column.name, column.type_text) for column in answer.manifest.schema.columns or []] == [
        ("Id", "BIGINT"),
        ("amount", "DECIMAL(10,2)"),
        ("day", "DATE"),
        ("seen", "TIMESTAMP"),
        ("ok", "BOOLEAN"),
        ("weight", "DOUBLE"),
        ("tags", "ARRAY<STRING>"),
        ("place", "STRUCT<city: STRING>"),
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT count(*), sum(amount) s, max(day) FROM orders", [["3", "3.75", "2026-08-02"]]),
        ("SELECT ok, count(*) n FROM orders GROUP BY ok ORDER BY n, ok", [[None, "1"], ["false", "1"], ["true", "1"]]),
        ("SELECT place.city FROM orders WHERE id = 1", [["Bern"]]),
        ("WITH a AS (SELECT id FROM orders) SELECT count_if(id > 1) FROM a", [["2"]]),
        ("SELECT a.id FROM orders a LEFT ANTI JOIN orders b ON a.id = b.id + 1 ORDER BY 1", [["1"]]),
        ("SELECT id FROM orders EXCEPT SELECT id FROM orders WHERE id > 1", [["1"]]),
        ("SELECT id / 2, CAST('7' AS INT), try_cast('x' AS INT) FROM orders WHERE id = 3", [["1.5", "7", None]]),
        ("SELECT sha2(concat_ws('|', id, ok), 256) = sha2('3', 256) FROM orders WHERE id = 3", [["true"]]),
        ("SELECT get_json_object('{\"a\": {\"b\": 5}}', '$.a.b') AS b", [["5"]]),
        ("SELECT date_trunc('MONTH', seen) AS m FROM orders LIMIT 1", [["2026-08-01T00:00:00.000Z"]]),
        ("SELECT greatest(id, NULL, 2) FROM orders ORDER BY 1 DESC LIMIT 1", [["3"]]),
        (
            "SELECT concat_ws('|', id, amount, ok, weight, seen, NULL) FROM orders WHERE id = 1",
            [["1|1.50|true|0.5|2026-08-01 12:00:00.005"]],
        ),
        (
            "SELECT CAST(ok AS STRING) || 'x', 1e10, 1e-4, upper('ä'), 'A' LIKE 'a' FROM orders LIMIT 1",
            [["truex", "1.0E10", "1.0E-4", "Ä", "false"]],
        ),
        ("SELECT id FROM orders WHERE id = '2' AND seen > '2026-07-01'", [["2"]]),
        (
            "SELECT ceil(1.2), -7 % 3, pmod(-7, 3), substring('abc', -2, 1), round(weight) FROM orders WHERE id = 1",
            [["2", "-1", "2", "b", "1.0"]],
        ),
        ("SELECT avg(amount), sum(amount) FROM orders", [["1.875000", "3.75"]]),
        ("SELECT year(day), date_add(day, 31), crc32('abc') FROM orders WHERE id = 1", [["2026", "2026-09-01", "891568578"]]),
        ("SELECT id FROM orders WHERE amount IS NULL OR weight <=> 0.5 ORDER BY id", [["1"], ["3"]]),
    ],
)
def test_statements_mean_what_they_mean_on_databricks(
    ask: Callable[..., StatementResponse], text: str, rows: list[list[str | None]]
) -> None:
    assert _rows(ask(text, catalog="main", schema="s")) == rows


def test_no_rows_are_no_data(ask: Callable[..., StatementResponse]) -> None:
    answer = ask("SELECT id FROM main.s.orders WHERE id > 5")
    assert answer.manifest is not None
    assert (_rows(answer), answer.manifest.total_row_count, answer.manifest.total_chunk_count) == (None, 0, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM main.s.none", "[TABLE_OR_VIEW_NOT_FOUND]"),
        ("SELECT nothing FROM main.s.orders", "[UNRESOLVED_COLUMN"),
        ("SELEKT 1 FROM x", "[PARSE_SYNTAX_ERROR]"),
        ("SELECT (1", "[PARSE_SYNTAX_ERROR]"),
        ("SELECT id / 0 FROM main.s.orders", "[DIVIDE_BY_ZERO]"),
        ("SELECT CAST('x' AS INT)", "[CAST_INVALID_INPUT]"),
        ("SELECT :day", "[UNBOUND_SQL_PARAMETER]"),
        ("SELECT * FROM event_log('none')", "[EVENT_LOG_UNAVAILABLE]"),
    ],
)
def test_errors_of_sql_are_answers_with_the_state_failed(ask: Callable[..., StatementResponse], text: str, words: str) -> None:
    assert words in _error(ask(text))


@pytest.mark.parametrize(
    "text", ["DELETE FROM main.s.orders", "SELECT h3_longlatash3(1, 2, 3)", "SELECT * FROM main.s.orders VERSION AS OF 1"]
)
def test_sql_that_is_not_modelled_is_501(ask: Callable[..., StatementResponse], text: str) -> None:
    with pytest.raises(NotImplemented, match="the workspace double does not know"):
        ask(text)


def test_values_that_sqlite_cannot_hold_are_501(workspace: Workspace, ask: Callable[..., StatementResponse]) -> None:
    workspace.tables["main.s.long"] = [{"d": Decimal("12345678901234567.89")}]
    workspace.tables["main.s.nan"] = [{"x": float("nan")}]
    for name in ("long", "nan"):
        with pytest.raises(NotImplemented):
            ask(f"SELECT * FROM main.s.{name}")


def test_parameters_are_bound_by_name_and_type(ask: Callable[..., StatementResponse]) -> None:
    values = [StatementParameterListItem("day", type="DATE", value="2026-08-02"), StatementParameterListItem("most", type="INT", value="1")]
    assert _rows(ask("SELECT id FROM main.s.orders WHERE day = :day LIMIT :most", parameters=values)) == [["2"]]
    table = [StatementParameterListItem("table", value="main.s.orders")]
    assert _rows(ask("SELECT count(*) FROM IDENTIFIER(:table)", parameters=table)) == [["3"]]


def test_an_asynchronous_statement_is_pending_until_somebody_looks(workspace: Workspace, client: Client) -> None:
    api = client().statement_execution
    begun = api.execute_statement("SELECT 1 AS one", workspace.warehouse_id, wait_timeout="0s")
    assert begun.status is not None
    assert (begun.status.state, begun.result) == (StatementState.PENDING, None)
    assert _rows(api.get_statement(begun.statement_id or "")) == [["1"]]


def test_a_slow_statement_goes_on_or_is_canceled_after_the_wait(workspace: Workspace, client: Client) -> None:
    workspace.looks_per_statement = 2
    api = client().statement_execution
    begun = api.execute_statement("SELECT 1", workspace.warehouse_id, wait_timeout="5s")
    states = [begun, api.get_statement(begun.statement_id or ""), api.get_statement(begun.statement_id or "")]
    assert [each.status and each.status.state for each in states] == [
        StatementState.RUNNING,
        StatementState.RUNNING,
        StatementState.SUCCEEDED,
    ]
    given_up = api.execute_statement("SELECT 1", workspace.warehouse_id, on_wait_timeout=ExecuteStatementRequestOnWaitTimeout.CANCEL)
    assert given_up.status is not None
    assert given_up.status.state is StatementState.CANCELED


def test_a_running_statement_can_be_canceled(workspace: Workspace, client: Client) -> None:
    api = client().statement_execution
    key = api.execute_statement("SELECT 1", workspace.warehouse_id, wait_timeout="0s").statement_id or ""
    api.cancel_execution(key)
    status = api.get_statement(key).status
    assert status is not None
    assert status.state is StatementState.CANCELED


@pytest.mark.parametrize("wait", ["3s", "51s", "soon"])
def test_a_wait_that_is_not_allowed_is_400(workspace: Workspace, client: Client, wait: str) -> None:
    with pytest.raises(BadRequest, match="wait_timeout"):
        client().statement_execution.execute_statement("SELECT 1", workspace.warehouse_id, wait_timeout=wait)


def test_results_come_in_chunks(workspace: Workspace, client: Client) -> None:
    workspace.rows_per_chunk = 2
    workspace.tables["main.s.numbers"] = [{"n": number} for number in range(5)]
    api = client().statement_execution
    answer = api.execute_statement("SELECT n FROM main.s.numbers ORDER BY n", workspace.warehouse_id)
    part, rows = answer.result, list(_rows(answer))
    while part and part.next_chunk_index:
        part = api.get_statement_result_chunk_n(answer.statement_id or "", part.next_chunk_index)
        rows += part.data_array or []
    assert rows == [["0"], ["1"], ["2"], ["3"], ["4"]]
    with pytest.raises(NotFound):
        api.get_statement_result_chunk_n(answer.statement_id or "", 3)


def test_a_row_limit_says_that_it_cut(ask: Callable[..., StatementResponse]) -> None:
    cut, whole = (ask("SELECT id FROM main.s.orders ORDER BY id", row_limit=limit) for limit in (2, 3))
    assert [answer.manifest and answer.manifest.truncated for answer in (cut, whole)] == [True, False]
    assert _rows(cut) == [["1"], ["2"]]


def test_a_warehouse_is_found_by_name_and_an_unknown_one_refused(workspace: Workspace, client: Client) -> None:
    api = client()
    assert {each.name: each.id for each in api.warehouses.list()} == {"Shared warehouse": workspace.warehouse_id}
    second = workspace.add_warehouse("Starter")
    assert api.warehouses.get(second).name == "Starter"
    with pytest.raises(BadRequest, match="not a valid endpoint id"):
        api.statement_execution.execute_statement("SELECT 1", "none")


def test_tables_and_columns_are_in_the_information_schema(ask: Callable[..., StatementResponse], client: Client) -> None:
    of_orders = "FROM main.information_schema.columns WHERE table_name = 'orders'"
    names = f"SELECT column_name, full_data_type {of_orders} ORDER BY ordinal_position LIMIT 2"
    assert _rows(ask(names)) == [["Id", "bigint"], ["amount", "decimal(10,2)"]]
    assert _rows(ask("DESCRIBE TABLE main.s.orders"))[0] == ["Id", "bigint", None]
    columns = client().tables.get("main.s.orders").columns or []
    assert [(column.name, column.type_text) for column in columns][:2] == [("Id", "bigint"), ("amount", "decimal(10,2)")]
    assert [table.full_name for table in client().tables.list("main", "s")] == ["main.s.orders"]


def test_the_event_log_is_a_table_of_structs_with_details_as_text(
    workspace: Workspace, client: Client, ask: Callable[..., StatementResponse]
) -> None:
    workspace.script("*", [flow("main.s.orders", rows=8, expectations={"valid_id": (8, 2)}), failing_flow("b", "no such column")])
    api = client()
    key = api.pipelines.create(name="sales", catalog="main", schema="s").pipeline_id or ""
    workspace.table_owners["main.s.orders"] = key
    update = api.pipelines.start_update(key).update_id
    workspace.finish(key)
    numbers = """
        SELECT origin.update_id, origin.flow_name, details:flow_progress.metrics.num_output_rows,
               get_json_object(details, '$.flow_progress.data_quality.expectations[0].failed_records') AS failed
        FROM event_log({source}) WHERE level = 'METRICS'"""
    for source in (f"'{key}'", "TABLE(main.s.orders)"):
        assert _rows(ask(numbers.format(source=source))) == [[update, "main.s.orders", "8", "2"]]
    errors = f"SELECT error.exceptions[0].message FROM event_log('{key}') WHERE event_type = 'flow_progress' AND level = 'ERROR'"
    assert _rows(ask(errors)) == [["no such column"]]
