"""Checks on the rows of one version of a table, by Great Expectations. Freshness is the greatest value of a column, and needs no package.

Great Expectations names its view of the rows `tmp_view` in the session, so one table is validated at a time, in a session of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import TableName, quoted
from lakelet.base.text import counted, listed
from lakelet.quality.definitions import TableCheck

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PACKAGE = "great_expectations"
_COLUMNS = ("column", "column_A", "column_B")


@dataclass(frozen=True)
class Outcome:
    """Result of one check.

    Attributes:
        observed: the value that was compared, or the rows that do not meet it, as text.
        message: why it could not be judged; "" where the other fields say all.
        newest: of a freshness check, the greatest value in seconds since 1970, None for a table without one.
    """

    check: TableCheck
    success: bool
    observed: str | None = None
    message: str = ""
    newest: float | None = None


def is_installed() -> bool:
    """Whether Great Expectations can be imported; looks without importing it."""
    return importlib.util.find_spec(PACKAGE) is not None


def without_package(checks: Iterable[tuple[TableName, Sequence[TableCheck]]]) -> LakeletError | None:
    """QUALITY_MISSING for checks of datasets that only Great Expectations can make, if it is not installed; freshness needs no package."""
    needing = [(name, check) for name, found in checks for check in found if not is_fresh(check)]
    if not needing or is_installed():
        return None
    names = [f"{name}.{check.name}" for name, check in needing]
    return LakeletError(
        "QUALITY_MISSING",
        f"{counted(len(names), 'table check')} cannot be made: the package great-expectations is not installed",
        where=needing[0][1].where,
        why=f"the checks: {listed(names, 5)}",
        todo="Install the extra: pip install 'lakelet[quality]'. Or remove the checks.",
    )


def is_fresh(check: TableCheck) -> bool:
    return check.check is not None and check.check.kind == "fresh"


def freshness(check: TableCheck, newest: float | None, now: datetime) -> Outcome:
    """Judge the greatest value of a column at a moment."""
    assert check.check is not None
    shown = None if newest is None else datetime.fromtimestamp(newest, timezone.utc).isoformat().replace("+00:00", "Z")
    fresh = newest is not None and now.timestamp() - newest <= check.check.arguments["within"]
    return Outcome(check, fresh, f"newest {shown}" if shown else "no value", newest=newest)


def validate(rows: DataFrame, checks: Sequence[TableCheck], others: Mapping[str, str | None], now: datetime) -> list[Outcome]:
    """Judge the rows by each check; a check that cannot be judged has failed, its message says why.

    Args:
        rows: of one version of the table.
        others: of each table that a check refers to, the view in the session that shows its rows; None where there is none.
        now: the moment of the check, for freshness.
    """
    found: dict[str, Outcome] = {}
    asked: list[TableCheck] = []
    for check in checks:
        unknown = _unknown_column(check, rows.columns)
        other = check.check.arguments["table"] if check.check and check.check.kind == "references" else None
        if unknown is not None:
            found[check.name] = Outcome(check, False, message=unknown)
        elif is_fresh(check):
            found[check.name] = _freshness(check, rows, now)
        elif other is not None and others.get(other) is None:
            found[check.name] = Outcome(check, False, message=f"the pipeline has no stored table {other}")
        else:
            asked.append(check)
    if asked:
        found |= {outcome.check.name: outcome for outcome in _validated(rows, asked, others)}
    return [found[check.name] for check in checks]


def _unknown_column(check: TableCheck, columns: Sequence[str]) -> str | None:
    """A sentence about the first column of a check that the table does not have."""
    kwargs = check.expectation.kwargs
    wanted = [kwargs[key] for key in _COLUMNS if key in kwargs] + list(kwargs.get("column_list") or ())
    if check.check is not None:
        a = check.check.arguments
        wanted = [*a.get("columns", ()), *([a["column"]] if "column" in a else ())]
    for name in map(str, wanted):
        if name.lower() not in {column.lower() for column in columns}:
            nearest = nearest_names(name, columns)
            return f"the table has no column {name!r}" + (f"; did you mean {' or '.join(map(repr, nearest))}?" if nearest else "")
    return None


def _freshness(check: TableCheck, rows: DataFrame, now: datetime) -> Outcome:
    from pyspark.errors import PySparkException

    column = quoted(check.check.arguments["column"]) if check.check else ""
    try:
        newest = rows.selectExpr(f"unix_micros(CAST(max({column}) AS TIMESTAMP)) AS newest").collect()[0]["newest"]
    except PySparkException as problem:
        return Outcome(check, False, message=str(problem).splitlines()[0])
    return freshness(check, None if newest is None else newest / 1_000_000, now)


# --- Great Expectations ---------------------------------------------------------------------------------------------------------------


def _validated(rows: DataFrame, checks: Sequence[TableCheck], others: Mapping[str, str | None]) -> list[Outcome]:
    """All expectations in one validation; one by one where the suite as a whole is refused."""
    with _quiet():
        gx = _package()
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False}
        asset = context.data_sources.add_spark("lakelet", persist=False).add_dataframe_asset("table")
        batch = asset.add_batch_definition_whole_dataframe("version").get_batch({"dataframe": rows})
        outcomes: dict[int, Outcome] = {}
        expectations = []
        for number, check in enumerate(checks):
            described = {"type": check.expectation.type, "kwargs": _completed(check, others), "meta": {"number": number}}
            try:
                made = gx.ExpectationSuite(name=f"check {number}", expectations=[described]).expectations
                expectations += made
                if not made:
                    outcomes[number] = Outcome(check, False, message=f"not an expectation: {check.expectation.type} is unknown")
            except Exception as problem:  # whatever the package says about a type or an argument
                outcomes[number] = Outcome(check, False, message=f"not an expectation: {_first_line(problem)}")
        if expectations:
            for expectation in expectations:
                expectation.id = None
            result = batch.validate(gx.ExpectationSuite(name="checks", expectations=expectations), result_format="BASIC")
            for one in result.results:
                number = one.expectation_config.meta["number"]
                outcomes[number] = _outcome(checks[number], one)
    return [outcomes.get(number) or Outcome(check, False, message="no result") for number, check in enumerate(checks)]


def _package() -> Any:
    """The package, imported where pyspark seems to have a prompt.

    It tries to import the Connect part of pyspark, which ends a process without grpc and main file (`python -c`) as if it ran doctests.
    """
    prompt = getattr(sys, "ps1", None)
    sys.ps1 = prompt or ""
    try:
        return importlib.import_module(PACKAGE)
    finally:
        if prompt is None:
            del sys.ps1


def _completed(check: TableCheck, others: Mapping[str, str | None]) -> dict[str, Any]:
    kwargs = dict(check.expectation.kwargs)
    if check.check is not None and check.check.kind == "references":
        view = others[check.check.arguments["table"]] or ""
        kwargs["unexpected_rows_query"] = kwargs["unexpected_rows_query"].replace("{other}", view)
    return kwargs


def _outcome(check: TableCheck, result: Any) -> Outcome:
    raised = _exception(result.exception_info)
    if raised is not None:
        return Outcome(check, False, message=f"could not be judged: {raised}")
    found = result.result or {}
    return Outcome(check, bool(result.success), _observed(check, found))


def _exception(info: Any) -> str | None:
    """Return what an expectation raised: `exception_info` is about it as a whole, or about each metric that it needed."""
    for one in (info, *(info or {}).values()) if isinstance(info, Mapping) else ():
        if isinstance(one, Mapping) and one.get("raised_exception"):
            return _first_line(one.get("exception_message") or "an unknown exception")
    return None


def _first_line(problem: object) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(problem).__name__


def _observed(check: TableCheck, found: Mapping[str, Any]) -> str | None:
    if "unexpected_count" in found:
        return f"{found['unexpected_count']:,} of {counted(int(found['element_count']), 'row')}"
    value = found.get("observed_value")
    if check.expectation.type == "unexpected_rows_expectation":
        return counted(int(value or 0), "row")
    if isinstance(value, Mapping) and value.get("values"):
        value = value["values"][0] if len(value["values"]) == 1 else value["values"]
    if isinstance(value, float) or hasattr(value, "item"):  # also numpy's
        number = float(value or 0)
        return "NaN" if math.isnan(number) else f"{number:g}"
    return None if value is None else str(value)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the package logs and warns of from the terminal."""
    logger = logging.getLogger(PACKAGE)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
