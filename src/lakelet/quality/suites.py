"""Table checks as Great Expectations has them, both ways: a check of a rule file ↔ one expectation of a suite. Pure.

A suite is a JSON object `{"name", "expectations": [{"type", "kwargs", "severity", "meta"}]}`. What belongs to Lakelet lies in `meta`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.user_code import display_path
from lakelet.config.rule_files import Check

META = "lakelet"
"""The key of `meta` below which Lakelet keeps what an expectation has no word for."""

_BETWEEN = {
    "min": "expect_column_min_to_be_between",
    "max": "expect_column_max_to_be_between",
    "mean": "expect_column_mean_to_be_between",
    "median": "expect_column_median_to_be_between",
    "sum": "expect_column_sum_to_be_between",
    "stddev": "expect_column_stdev_to_be_between",
    "distinct": "expect_column_unique_value_count_to_be_between",
}
_KINDS = {name: kind for kind, name in _BETWEEN.items()}
UNEXPECTED_ROWS = "unexpected_rows_expectation"


@dataclass(frozen=True)
class SuiteExpectation:
    """One expectation of a suite. `meta` is what its author keeps with it."""

    type: str
    kwargs: Mapping[str, Any]
    severity: str = "critical"
    meta: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, "kwargs": dict(self.kwargs), "meta": dict(self.meta), "severity": self.severity}


@dataclass(frozen=True)
class Suite:
    """The expectations of one dataset."""

    dataset: str
    expectations: tuple[SuiteExpectation, ...]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.dataset, "expectations": [e.as_json() for e in self.expectations], "meta": {META: {"dataset": self.dataset}}}


def is_suite(content: object) -> bool:
    """Whether a JSON or YAML value looks like a suite of Great Expectations."""
    listed = content.get("expectations") if isinstance(content, Mapping) else None
    return isinstance(listed, list) and all(map(_is_expectation, listed))


def _is_expectation(one: object) -> bool:
    return isinstance(one, Mapping) and ("type" in one or "expectation_type" in one) and isinstance(one.get("kwargs"), Mapping)


def suite_of(content: Mapping[str, Any], default: str) -> Suite:
    """A suite from its JSON; suites of before version 1 have other keys. `default`: the dataset where neither meta nor name says it."""
    about = (content.get("meta") or {}).get(META) or {}
    name = about.get("dataset") or content.get("name") or content.get("expectation_suite_name") or default
    found = [
        SuiteExpectation(
            str(e.get("type") or e["expectation_type"]), e.get("kwargs") or {}, str(e.get("severity") or "critical"), e.get("meta") or {}
        )
        for e in content["expectations"]
    ]
    return Suite(str(name), tuple(found))


def suite_files(folder: Path) -> list[Path]:
    """The files of the folder that hold suites: JSON with a list of expectations. Others are nobody's here."""
    found = sorted(folder.glob("*.json")) if folder.is_dir() else []
    return [path for path in found if is_suite(_json(path))]


def read_suite(path: Path) -> Suite:
    """Raises RULE_FILE_INVALID."""
    content = _json(path)
    if not is_suite(content):
        todo = 'A suite is {"name": "<dataset>", "expectations": [{"type": …, "kwargs": {…}}]}.'
        raise LakeletError("RULE_FILE_INVALID", "not a suite of Great Expectations", where=Location(display_path(str(path)), 1), todo=todo)
    return suite_of(content, path.stem)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return None


def check_name(expectation: SuiteExpectation) -> str:
    """Return the name of an expectation of a suite: that in meta, else its type and columns."""
    about = expectation.meta.get(META) or {}
    named = about.get("name") or expectation.meta.get("name")
    columns = [str(v) for k, v in expectation.kwargs.items() if k in ("column", "column_A", "column_B")]
    columns += [str(c) for c in expectation.kwargs.get("column_list") or ()]
    return str(named or "_".join([expectation.type.removeprefix("expect_"), *columns]))


# --- from words to expectations -------------------------------------------------------------------------------------------------------


def expectation_of(check: Check) -> SuiteExpectation:
    """The expectation that judges what a check says. Freshness and references are queries, completed when the check is run.

    A query has `{batch}` for the rows; that of `fresh` has `{now}`, that of `references` `{other}` too.
    """
    kind, arguments = check.kind, check.arguments
    name, kwargs = _SIMPLE[kind](arguments) if kind in _SIMPLE else _bounded(kind, arguments)
    about = {"name": check.name, "kind": kind, "arguments": _plain(arguments)}
    about |= {k: v for k, v in (("tags", list(check.tags)), ("description", check.description), ("owner", check.owner)) if v}
    return SuiteExpectation(name, kwargs, check.severity, {META: about})


def _plain(value: Any) -> Any:
    """The value in what JSON has."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return (
        [_plain(one) for one in value] if isinstance(value, tuple | list) else value if isinstance(value, str | int | float) else str(value)
    )


def _bounded(kind: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    bounds = {"min_value": _plain(arguments.get("at_least")), "max_value": _plain(arguments.get("at_most"))}
    kwargs = {key: value for key, value in bounds.items() if value not in (None, "None")}
    return _BETWEEN[kind], {"column": arguments["column"], **kwargs}


def _unique(arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    columns = list(arguments["columns"])
    if len(columns) == 1:
        return "expect_column_values_to_be_unique", {"column": columns[0]}
    return "expect_compound_columns_to_be_unique", {"column_list": columns}


def _rows(arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    least, most = arguments.get("at_least"), arguments.get("at_most")
    if least == most:
        return "expect_table_row_count_to_equal", {"value": least}
    bounds = {"min_value": least, "max_value": most}
    return "expect_table_row_count_to_be_between", {key: value for key, value in bounds.items() if value is not None}


def _mostly(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"mostly": arguments["at_least"]} if "at_least" in arguments else {}


def _quantile(arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    ranges = {"quantiles": [arguments["q"]], "value_ranges": [[arguments.get("at_least"), arguments.get("at_most")]]}
    return "expect_column_quantile_values_to_be_between", {"column": arguments["column"], "quantile_ranges": ranges}


def _fresh(arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    column, seconds = _quoted(arguments["column"]), arguments["within"]
    newest = f"coalesce(max({column}) >= {{now}} - INTERVAL '{seconds:.0f}' SECOND, false)"
    return UNEXPECTED_ROWS, {"unexpected_rows_query": f"SELECT max({column}) AS newest FROM {{batch}} HAVING NOT {newest}"}


def _references(arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    own, other = arguments["columns"], arguments.get("to") or arguments["columns"]
    known = " AND ".join(f"b.{_quoted(c)} IS NOT NULL" for c in own)
    same = " AND ".join(f"o.{_quoted(t)} = b.{_quoted(c)}" for c, t in zip(own, other, strict=False))
    return UNEXPECTED_ROWS, {
        "unexpected_rows_query": f"SELECT * FROM {{batch}} AS b WHERE {known} AND NOT EXISTS (SELECT 1 FROM {{other}} AS o WHERE {same})"
    }


_SIMPLE: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, dict[str, Any]]]] = {
    "unique": _unique,
    "rows": _rows,
    "complete": lambda a: ("expect_column_values_to_not_be_null", {"column": a["column"], **_mostly(a)}),
    "values": lambda a: ("expect_column_values_to_be_in_set", {"column": a["column"], "value_set": _plain(a["in"]), **_mostly(a)}),
    "quantile": _quantile,
    "fresh": _fresh,
    "references": _references,
    "no_rows": lambda a: (UNEXPECTED_ROWS, {"unexpected_rows_query": a["query"]}),
}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``").replace("{", "{{").replace("}", "}}") + "`"


# --- and back -------------------------------------------------------------------------------------------------------------------------


def kind_of(expectation: SuiteExpectation) -> tuple[str, Mapping[str, Any]] | None:
    """The kind and arguments of the check that says the same, or None where no kind does."""
    about = expectation.meta.get(META) or {}
    kwargs, kind = expectation.kwargs, about.get("kind")
    if kind in ("fresh", "references") and expectation.type == UNEXPECTED_ROWS:
        return str(kind), about["arguments"]
    if set(kwargs) - _KNOWN or any(kwargs.get(key) for key in ("strict_min", "strict_max")):
        return None
    column = {"column": kwargs.get("column")}
    share = {"at_least": kwargs["mostly"]} if kwargs.get("mostly", 1) != 1 else {}
    bounds = {ours: kwargs[theirs] for theirs, ours in _BOUNDS.items() if kwargs.get(theirs) is not None}
    match expectation.type:
        case "expect_column_values_to_be_unique" if not share:
            return "unique", {"columns": (kwargs["column"],)}
        case "expect_compound_columns_to_be_unique" | "expect_select_column_values_to_be_unique_within_record" if not share:
            return ("unique", {"columns": tuple(kwargs["column_list"])}) if expectation.type.startswith("expect_compound") else None
        case "expect_table_row_count_to_equal":
            return "rows", {"at_least": kwargs["value"], "at_most": kwargs["value"]}
        case "expect_table_row_count_to_be_between" if bounds:
            return "rows", bounds
        case "expect_column_values_to_not_be_null":
            return "complete", {**column, **share}
        case "expect_column_values_to_be_in_set":
            return "values", {**column, "in": tuple(kwargs["value_set"]), **share}
        case "expect_column_quantile_values_to_be_between" if len(kwargs["quantile_ranges"]["quantiles"]) == 1:
            ranges = kwargs["quantile_ranges"]
            limits = dict(zip(("at_least", "at_most"), ranges["value_ranges"][0], strict=True))
            return "quantile", {**column, "q": ranges["quantiles"][0], **{k: v for k, v in limits.items() if v is not None}}
        case "unexpected_rows_expectation":
            return "no_rows", {"query": kwargs["unexpected_rows_query"]}
        case name if name in _KINDS and bounds:
            return _KINDS[name], {**column, **bounds}
    return None


_BOUNDS = {"min_value": "at_least", "max_value": "at_most"}
_KNOWN = {
    *_BOUNDS,
    "column",
    "column_list",
    "value",
    "value_set",
    "mostly",
    "quantile_ranges",
    "unexpected_rows_query",
    "strict_min",
    "strict_max",
    "batch_id",
    "result_format",
    "catch_exceptions",
    "ignore_row_if",
}
