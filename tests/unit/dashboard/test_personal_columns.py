"""Values of personal columns are hidden in rows of tables and quarantines on the page, and in samples of a comparison."""

from __future__ import annotations

from dataclasses import replace

from lakelet.dashboard.tables import Sample
from lakelet.inspection.table_comparison import ChangedColumn, ChangedValue, TableComparison
from tests.event_logs import Log, facts, site

ORDERS, COPIES = "main.s.orders", "main.s.copies"


def call_personal(log: Log, columns: list[str]) -> None:
    """Let the first definition of a log name personal columns."""
    row = next(row for row in log.rows if row["event_type"] == "dataset_definition")
    row["details"]["dataset_definition"]["personal_columns"] = columns


def test_a_column_that_one_dataset_calls_personal_is_hidden_in_the_rows_of_all_tables() -> None:
    log = Log()
    update = log.update()
    for name in (ORDERS, COPIES):
        update.define(name)
    call_personal(log, ["Amount"])
    update.state("COMPLETED", 3)
    made = site(log, tables={ORDERS: facts(ORDERS, held=3), COPIES: facts(COPIES)})
    tables = {view.name: made.dataset(number)["table"] for number, view in enumerate(made.views)}
    for table in (tables[ORDERS]["sample"], tables[ORDERS]["quarantine"], tables[COPIES]["sample"]):
        assert {dict(zip(table["columns"], values, strict=True))["amount"] for values in table["rows"]} == {"***"}
    assert [row[0] for row in tables[COPIES]["sample"]["rows"]] == ["1", "2"]


def test_a_record_that_does_not_fit_is_hidden_where_a_column_is_personal() -> None:
    columns, row = ("id", "_rescued_data", "_corrupt_record"), ("1", '{"email":"a@b"}', "a@b,")
    for personal, shown in ((["email"], ("1", "***", "***")), ([], row)):
        log = Log()
        log.update().define(ORDERS)
        next(row for row in log.rows if row["event_type"] == "dataset_definition")["details"]["dataset_definition"]["personal_columns"] = (
            personal
        )
        made = site(log, tables={ORDERS: replace(facts(ORDERS), sample=Sample(columns, (row,)))})
        assert made.dataset(0)["table"]["sample"]["rows"] == [list(shown)]


def test_samples_of_a_comparison_hide_the_values_of_columns_and_of_keys() -> None:
    name = ChangedColumn("name", 1, 0.5, (ChangedValue({"id": 1, "email": "a@b"}, "ada", "eve"),))
    email = ChangedColumn("email", 1, 0.5, (ChangedValue({"id": 1, "email": "a@b"}, "a@b", "e@b"),))
    rows = {"id": 2, "email": "c@d"}
    changed = {"id": 1, "email": "a@b"}, {"id": 1, "email": "e@b"}
    given = TableComparison((), 2, 2, 1, 1, 1, columns=(name, email), added_rows=(rows,), removed_rows=(rows,), changed_rows=(changed,))
    found = given.hiding(lambda column: column == "email")
    assert [column.samples for column in found.columns] == [
        (ChangedValue({"id": 1, "email": "***"}, "ada", "eve"),),
        (ChangedValue({"id": 1, "email": "***"}, "***", "***"),),
    ]
    assert found.added_rows == found.removed_rows == ({"id": 2, "email": "***"},)
    assert found.changed_rows == (({"id": 1, "email": "***"}, {"id": 1, "email": "***"}),)
    assert "@" not in repr(found)
