"""Checks of all declarations of a pipeline, once its source files are loaded, and the columns that their tables compute.

Declarations go in; errors, notices, and declarations whose flows return computed columns come out. `targets` checks which flows may write
to which targets.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.text import listed
from lakelet.base.user_code import display_path
from lakelet.config import delta_properties
from lakelet.config.properties import LAKELET_PROPERTIES, QUARANTINE, examine, look_up, switch
from lakelet.files.reads import module_names
from lakelet.language.failed_parts import root_name
from lakelet.language.model import Dataset, Definitions, Flow, Kind
from lakelet.language.notebook import PYTHON, read_source
from lakelet.language.registry import Notice, Registry
from lakelet.language.sql.python_schemas import computing

# --------------------------------------------------------------------- settings and table properties (RE-20, TP-10 ff)


def check_properties(definitions: Definitions, registry: Registry, parameters: Mapping[str, str] | None = None) -> None:
    """Note settings without effect; an unknown property of Delta, and a value that a setting cannot have, are errors.

    `parameters`: the pipeline's configuration.
    """
    for settings, where, name in _all_settings(definitions):
        for found in examine(settings, of="table"):
            if found.invalid:
                registry.errors.append(LakeletError("PROPERTY_INVALID", found.text, where=where, dataset=name))
            else:
                registry.note(found.text, where)
    for dataset in definitions.datasets:
        registry.errors += _lakelet_property_errors(dataset, definitions)
        asked = (look_up(dataset.table_properties, QUARANTINE) or "").strip().lower() == "true"
        if asked and not dataset.keeps_dropped:
            registry.note(f"{QUARANTINE} has no effect on {dataset.name}: it has no rule that drops rows", dataset.where)
    any_name = (parameters or {}).get(delta_properties.ANY_NAME, "").strip().lower() == "true"
    for dataset in definitions.datasets:
        if dataset.kind is Kind.VIEW:
            for key in dataset.spark_conf:
                if key.lower().startswith("pipelines."):
                    registry.note(f"{key} has no effect on a view: set it for the table that reads it", dataset.where)
        elif dataset.kind is not Kind.SINK:
            _check_delta_properties(dataset, registry, any_name)


def _lakelet_property_errors(dataset: Dataset, definitions: Definitions) -> Iterator[LakeletError]:
    """Return the errors of a dataset's `lakelet.*` properties (QU-2, QU-3)."""
    name, where = str(dataset.name), dataset.where
    for key, value in dataset.table_properties.items():
        if key.lower() == QUARANTINE:
            try:
                wanted = switch(value)
            except ValueError as problem:
                yield LakeletError("PROPERTY_INVALID", f"{key} is {value!r}: {problem}", dataset=name, where=where)
                continue
            refused = _reason_against_quarantine(dataset, definitions) if wanted else None
            if refused is not None:
                yield LakeletError("QUARANTINE_REFUSED", refused[0], dataset=name, where=where, todo=refused[1])
        elif key.lower().startswith("lakelet.") and key.lower() not in {known.lower() for known in LAKELET_PROPERTIES}:
            near = nearest_names(key, LAKELET_PROPERTIES)
            todo = f"Leave it out; tables may have {listed(LAKELET_PROPERTIES, 5)}."
            yield LakeletError("PROPERTY_UNKNOWN", f"Lakelet has no property {key}", dataset=name, where=where, nearest=near, todo=todo)


def _reason_against_quarantine(dataset: Dataset, definitions: Definitions) -> tuple[str, str] | None:
    """Why a dataset cannot have a quarantine, and the remedy; None if it can."""
    flows = definitions.flows_by_target()[dataset.name.key]
    if dataset.kind in (Kind.VIEW, Kind.SINK):
        what = f"{QUARANTINE} is set for a {dataset.kind.value}, which stores no rows of its own"
        return what, "Set it for the table whose rules drop the rows."
    if any(flow.changes is not None for flow in flows):
        what = f"{QUARANTINE} is set for the target of change flows, whose rows are made of several events"
        return what, "Drop the events in a streaming table with a quarantine, and let the change flow read that."
    if any(flow.replaces is not None for flow in flows):
        what = f"{QUARANTINE} is set for a table whose flow replaces its rows, so that one row could be kept again and again"
        return what, "Drop the rows in a table with a quarantine, and let the flow read that."
    same = next((other for other in definitions.datasets if other.name.key == dataset.quarantine.key), None)
    if same is not None:
        return f"its quarantine would be called {same.name}, which {same.where} defines", "Rename one of them."
    return None


def _check_delta_properties(dataset: Dataset, registry: Registry, any_name: bool) -> None:
    for remark in delta_properties.examine(dataset.table_properties, any_name=any_name):
        if remark.code is None:
            registry.note(remark.text, dataset.where)
            continue
        todo = f"Correct it, or set {delta_properties.ANY_NAME}=true in the configuration." if remark.code == "PROPERTY_UNKNOWN" else None
        name, where = str(dataset.name), dataset.where
        registry.errors.append(LakeletError(remark.code, remark.text, dataset=name, where=where, nearest=remark.nearest, todo=todo))


def _all_settings(definitions: Definitions) -> Iterator[tuple[Mapping[str, str], Location, str]]:
    for dataset in definitions.datasets:
        yield {**dataset.table_properties, **dataset.spark_conf}, dataset.where, str(dataset.name)
    for flow in definitions.flows:
        yield flow.spark_conf, flow.where, str(flow.target)


# -------------------------------------------------------------------------------------------- computed columns (DS-22)


def with_computed(found: Definitions) -> Definitions:
    """The declarations, in which each append flow returns the columns too that its table computes."""
    tables = _tables_that_compute(found)
    return replace(found, flows=tuple(_flow_with_computed(flow, tables.get(flow.target.key)) for flow in found.flows)) if tables else found


def computed_problems(found: Definitions) -> Iterator[LakeletError]:
    """Columns that a table cannot have because of its flows or its quarantine."""
    changed = {flow.target.key for flow in found.flows if flow.changes is not None}
    for table in found.datasets:
        yield from _identity_problems(table, changed=table.name.key in changed)
        if table.name.key in changed:
            yield from _default_problems(table)


def _identity_problems(table: Dataset, *, changed: bool) -> Iterator[LakeletError]:
    """Rows of a table that changes are applied to are written again, and those that wait in a quarantine have no number."""
    for column in table.identities if changed or table.keeps_dropped else ():
        yield LakeletError(
            "NOT_SUPPORTED_YET",
            f"the IDENTITY column {column.name!r} of a table {'that changes are applied to' if changed else 'with a quarantine'}",
            where=table.where,
            dataset=str(table.name),
            todo="Make a key of the data, for example xxhash64(id), or number the rows in a table that reads this one.",
        )


def _default_problems(table: Dataset) -> Iterator[LakeletError]:
    """A change without a column that has a DEFAULT could mean it or NULL."""
    for column in table.computed:
        if not column.generated and column.identity is None:
            what = f"the DEFAULT of the column {column.name!r} of a table that changes are applied to"
            todo = "Give the column its value in the view that makes the events, or write it as GENERATED ALWAYS AS."
            yield LakeletError("NOT_SUPPORTED_YET", what, where=table.where, dataset=str(table.name), todo=todo)


def _tables_that_compute(found: Definitions) -> dict[str, Dataset]:
    return {table.name.key: table for table in found.datasets if table.computed}


def _flow_with_computed(flow: Flow, table: Dataset | None) -> Flow:
    if table is None or flow.changes is not None:
        return flow
    return replace(flow, query=computing(flow.query, table.computed, flow.where))


# --------------------------------------------------------------------------------------------- flows that replace rows


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


# ------------------------------------------------------------------------------------- functions that nothing declares


_FUNCTION_HEAD = re.compile(r"^def (\w+)\(\s*\)", re.MULTILINE)
_SCRIPT_MARKS = re.compile(r"^\s*spark\s*=|__main__", re.MULTILINE)
_READ_BY_NAME = re.compile(r"""\b(?:table|read|read_stream)\(\s*["'][^"'\n]*["']""")
_WORD = re.compile(r"\w+")
_READING_METHODS = frozenset({"table", "sql", "read", "readStream", "read_stream", "range", "createDataFrame"})
_READING_ROOTS = frozenset({"spark", "dlt", "dp"})


def undeclared(files: Sequence[Path]) -> Iterator[Notice]:
    """A notice for each function that takes nothing, returns a query, has no decorator and is named nowhere else.

    A name under which a table is read is no other use of the function: its reader misses the table.
    The sources are checked, and the modules beside them in their folders.
    """
    texts = dict(_source_texts(files))
    times = Counter(_WORD.findall(_READ_BY_NAME.sub("", "\n".join(texts.values()))))
    for file, text in texts.items():
        alone = {name for name in _FUNCTION_HEAD.findall(text) if not name.startswith("_") and times[name] == 1}
        with suppress(SyntaxError, ValueError, RecursionError):
            for node in ast.parse(text).body if alone else ():
                if isinstance(node, ast.FunctionDef) and node.name in alone and not node.decorator_list and _returns_query(node):
                    yield Notice(_notice_text(node.name, text), Location(display_path(str(file)), node.lineno))


def _source_texts(files: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The Python files that are no notebooks, in which a function may be there for trying things, and no scripts and tests."""
    beside = {folder / name for folder in {file.parent for file in files} for name in module_names(folder)} - set(files)
    for file in (*files, *sorted(beside)):
        if file.suffix != ".py" or file.name.startswith(("test_", "conftest", "setup")):
            continue
        with suppress(OSError, LakeletError):
            source = read_source(file)
            text = source.cells[0].text if source.cells else ""
            if source.language == PYTHON and not source.notebook and (file in files or not _SCRIPT_MARKS.search(text)):
                yield file, text


def _returns_query(function: ast.FunctionDef) -> bool:
    """Whether a function reads by the session or the language, and returns something."""
    nodes = list(ast.walk(function))
    reads = any(isinstance(node, ast.Attribute) and node.attr in _READING_METHODS and root_name(node) in _READING_ROOTS for node in nodes)
    return reads and any(isinstance(node, ast.Return) and node.value is not None for node in nodes)


def _notice_text(name: str, text: str) -> str:
    decorator = "@dp.materialized_view" if re.search(r"\bdp\b", text) else "@dlt.table"
    return f"{name}() returns a query, and nothing declares or calls it: write {decorator} above it to make it a table"
