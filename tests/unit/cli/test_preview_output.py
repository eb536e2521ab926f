"""What `lakelet preview` and `lakelet watch` write of a preview: rows to stdout, all else to stderr. No Spark."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError, Location
from lakelet.cli.preview import _write_json, _write_text, show
from lakelet.inspection.pipeline_watch import LoadProblem, PreviewRows, SavedFiles, ValidDefinitions
from lakelet.inspection.preview import ColumnChange, JudgedRule, Preview

PREVIEW = Preview(
    name="main.shop.orders",
    kind="streaming_table",
    columns=(("id", "bigint"), ("name", "string")),
    difference=(ColumnChange("name", None, "string"), ColumnChange("age", "int", None), ColumnChange("id", "int", "bigint")),
    rows=({"id": 1, "name": "ann"}, {"id": 2, "name": None}),
    judged=3,
    dropped=1,
    rules=(JudgedRule("main.shop.orders", "known", "name IS NOT NULL", "drop", 2, 1),),
    notes=("files: the newest 10 of a source",),
)


def test_a_preview_shows_columns_that_differ_rows_and_rules(capsys: pytest.CaptureFixture[str]) -> None:
    show(PREVIEW)
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()[-2:]] == [["1", "ann"], ["2", "NULL"]]
    assert err.splitlines() == [
        "main.shop.orders (streaming table)",
        "  2 columns, different from the stored table:",
        "    + name string",
        "    - age int",
        "    ~ id int -> bigint",
        "  judged: 3 rows, 1 of them dropped",
        "  known  drop  2 passed  1 failed  name IS NOT NULL",
        "  files: the newest 10 of a source",
    ]


@pytest.mark.parametrize(("difference", "said"), [(None, "2 columns; nothing is stored yet"), ((), "2 columns, as stored")])
def test_a_preview_says_whether_a_table_is_stored(
    difference: tuple[ColumnChange, ...] | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show(replace(PREVIEW, difference=difference))
    assert f"  {said}\n" in capsys.readouterr().err


def test_change_events_are_shown_with_their_own_columns(capsys: pytest.CaptureFixture[str]) -> None:
    show(replace(PREVIEW, rows=({"id": 1, "operation": "DELETE"},)))
    assert "operation" in capsys.readouterr().out


FINDINGS = [
    SavedFiles(("/shop/silver/orders.sql",), ("main.shop.orders",)),
    ValidDefinitions("main.shop.orders", 1, 0.25),
    ValidDefinitions(None, 26, 1.5),
    PreviewRows(PREVIEW, 0.75),
    LoadProblem((LakeletError("UNKNOWN_DATASET", "the query reads x", where=Location("orders.sql", 3), todo="Correct it."),)),
]


def test_what_a_watch_finds_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    for finding in FINDINGS:
        _write_text(finding)
    err = capsys.readouterr().err
    assert "orders.sql saved: main.shop.orders\n" in err
    assert "  main.shop.orders is valid  (0.25 s)\n" in err
    assert "  the pipeline with 26 datasets is valid  (1.50 s)\n" in err
    assert "  (0.75 s)\n" in err
    assert "[UNKNOWN_DATASET] the query reads x\n  orders.sql, line 3\n" in err


def test_several_errors_are_apart_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (LakeletError("UNKNOWN_DATASET", f"the query reads {name}", todo="Correct it.") for name in ("x", "y"))
    _write_text(LoadProblem((first, second)))
    assert capsys.readouterr().err.split("\n") == [
        "[UNKNOWN_DATASET] the query reads x",
        "  Correct it.",
        "",
        "[UNKNOWN_DATASET] the query reads y",
        "  Correct it.",
        "",
        "2 errors",
        "",
    ]


def test_what_a_watch_finds_is_a_json_line_each() -> None:
    stream = io.StringIO()
    for finding in FINDINGS:
        _write_json(finding, stream)
    saved, valid, everything, previewed, problem = map(json.loads, stream.getvalue().splitlines())
    assert saved == {"event": "saved", "files": ["/shop/silver/orders.sql"], "datasets": ["main.shop.orders"]}
    assert valid == {"event": "valid", "dataset": "main.shop.orders", "datasets": 1, "seconds": 0.25}
    assert (everything["dataset"], everything["datasets"]) == (None, 26)
    assert (previewed["event"], previewed["seconds"]) == ("preview", 0.75)
    assert previewed["difference"][2] == {"column": "id", "before": "int", "after": "bigint"}
    assert previewed["rules"][0]["failed"] == 1
    error = {"code": "UNKNOWN_DATASET", "what": "the query reads x", "where": "orders.sql, line 3", "why": None, "todo": "Correct it."}
    assert problem == {"event": "error", "errors": [error]}
    assert Path(saved["files"][0]).name == "orders.sql"
