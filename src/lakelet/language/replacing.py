"""Flows that replace rows of their target: REPLACE WHERE and REPLACE USING (docs/semantics/replacing.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.user_code import caller_location
from lakelet.language.argument_types import Columns, Expression, F, Settings
from lakelet.language.arguments import invalid
from lakelet.language.column_arguments import columns, expression
from lakelet.language.flows import flow_into
from lakelet.language.model import Definitions, Replacement
from lakelet.language.registry import Notice


def replace_flow(
    target: str | None = None,
    replace_using: Columns | None = None,
    sequence_by: Expression | None = None,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Settings | None = None,
) -> Callable[[F], F]:
    """Declare the decorated function as a flow whose rows replace those of the streaming table `target` with the same keys (RP-2).

    Args:
        target: name of a table that `create_streaming_table` declares.
        replace_using: the key columns; the stored rows with the key of a new row go.
        sequence_by: what orders the rows of a key; the last one stays.
        name: of the flow; the function's name by default.
        comment: text that reports show with the flow.
        spark_conf: settings of Spark while the flow runs.

    Raises ARGUMENT_INVALID for a missing argument, a value of the wrong type or a column that is named twice.
    """
    where = caller_location()
    if replace_using is None:
        raise invalid("replace_flow needs replace_using", where, 'Write replace_using=["id"]: the columns whose rows go together.')
    replaces = replacement(None, replace_using, sequence_by, where)
    return flow_into("replace_flow", target, name, where, {"comment": comment, "spark_conf": spark_conf}, replaces=replaces)


def replacement(condition: Any, using: Any, sequence: Any, where: Location) -> Replacement | None:
    """Return what `replace_where`, `replace_using` and `sequence_by` of a table or flow say; None where none is given.

    Raises ARGUMENT_INVALID.
    """
    if condition is not None and (using is not None or sequence is not None):
        raise invalid("replace_where and replace_using exclude each other", where, "Keep one of them.")
    if condition is not None:
        return Replacement(where=expression("replace_where", condition, where))
    if using is None and sequence is None:
        return None
    if using is None or sequence is None:
        missing, has = ("replace_using", "sequence_by") if using is None else ("sequence_by", "replace_using")
        raise invalid(f"{has} needs {missing}", where, 'Write replace_using=["id"], sequence_by="changed_at".')
    return Replacement(keys=_keys(using, where), sequence_by=expression("sequence_by", sequence, where))


def _keys(given: Any, where: Location) -> tuple[str, ...]:
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else given
    found = columns("replace_using", listed, where)
    if not found:
        raise invalid("replace_using names no column", where, 'Write replace_using=["id"].')
    if len(found) < len(listed):
        raise invalid("replace_using names a column twice", where, "Name each column once.")
    return tuple(path[0] for path in found)


def replacing_problems(found: Definitions) -> Iterator[LakeletError]:
    """The contradictions between flows that replace rows and their targets."""
    for flows in found.flows_by_target().values():
        replacing = next((flow for flow in flows if flow.replaces is not None), None)
        if replacing is None or replacing.replaces is None:
            continue
        clause = replacing.replaces.clause
        others = [flow for flow in flows if flow is not replacing]
        if others:
            yield LakeletError(
                "REPLACE_FLOW_INVALID",
                f"flows {replacing.name!r} and {others[0].name!r} cannot share a target",
                where=others[0].where,
                dataset=str(replacing.target),
                why=f"{replacing.name!r} in {replacing.where} is a {clause} flow, and the table of such a flow has no other one",
                todo="Give each of them its own table.",
            )


def replacing_notices(found: Definitions) -> Iterator[Notice]:
    """Notices about what runs here and not on Databricks."""
    datasets = {dataset.name.key: dataset for dataset in found.datasets}
    for flow in found.flows:
        target = datasets.get(flow.target.key)
        if flow.replaces is not None and not flow.replaces.streams and target is not None and target.expectations:
            yield Notice(f"{target.name} has rules and a REPLACE WHERE flow: they count here, Databricks refuses them", target.where)


__all__ = ["replace_flow", "replacement", "replacing_notices", "replacing_problems"]
