"""Declares what the SQL text of one source says into the active registry.

Errors of checks that it shares with Python name clauses of SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.names import Namespace, TableName, all_quoted, quoted
from lakelet.base.user_code import display_path
from lakelet.language.change_flows import ChangeArguments, declare_changes
from lakelet.language.failed_parts import failed_sql
from lakelet.language.flows import replacement
from lakelet.language.model import Dataset, Expectation, Flow, Kind, Replacement
from lakelet.language.registry import Registry, active_registry
from lakelet.language.sql.changes import order_remark
from lakelet.language.sql.columns import ddl
from lakelet.language.sql.grammar import is_setting, statement
from lakelet.language.sql.query_functions import RequiredKind, SqlQuery
from lakelet.language.sql.rule_columns import columns_of, on_columns
from lakelet.language.sql.values import Changes, CreateDataset, CreateFlow, Fragment, Name, Remark, SetStatement, Use
from lakelet.language.sql.varchar_lengths import without_lengths
from lakelet.language.sql_text.spark_sql import json_paths, parameters
from lakelet.language.sql_text.statements import Cell, CellText, StatementText, interpolated, statements
from lakelet.language.sql_text.tokens import OpenToken, adjacent

_STREAM = RequiredKind(
    True, "a streaming table needs a stream; this query reads everything as a batch", "Write STREAM before what it reads: FROM STREAM name."
)
_BATCH = RequiredKind(
    False, "a materialized view needs a batch query; this one is a stream", "Leave STREAM out, or write CREATE STREAMING TABLE."
)
_VIEW = RequiredKind(False, "CREATE VIEW needs a batch query; this one is a stream", "Leave STREAM out, or write CREATE TEMPORARY VIEW.")
_EVENTS = RequiredKind(
    True, "a change flow needs a stream of events; its source is a batch", "Write FROM STREAM(source), or ONCE for a batch."
)
_APPEND = replace(_STREAM, what="an append flow needs a stream; its query reads a batch")
_REPLACE_WHERE = RequiredKind(
    False, "a REPLACE WHERE flow reads a batch; its query is a stream", "Leave STREAM out: the condition says which rows are computed."
)
_REPLACE_USING = replace(_STREAM, what="a REPLACE USING flow needs a stream; its query reads a batch")
_APPEND_ONCE = RequiredKind(False, "a flow that runs ONCE reads a batch; its query is a stream", "Leave STREAM out, or leave ONCE out.")


def declare(cells: Sequence[Cell], file: Path, *, configuration: Mapping[str, str], session: Any) -> bool:
    """Declare the statements of the cells, in order, into the active registry.

    Args:
        cells: the SQL of one source file; `SET` and `USE` of one cell act on the later ones.
        file: the source file, for locations.
        configuration: the pipeline's parameters, for `${key}` and `:key`.
        session: the session that the declared queries run on, when they are called.

    Mistakes are added to the registry's errors. Returns whether every statement was understood.
    """
    registry = active_registry()
    source = _SqlSource(registry, file, configuration, session)
    whole = True
    for cell in cells:
        text, done = CellText(cell, display_path(str(file))), 0
        try:
            for begin, end in statements(text):
                whole &= source.declared(text, begin, end)
                done = end
        except LakeletError as error:  # a quote that is not closed: the rest cannot be split
            registry.errors.append(error)
            registry.failed_parts.parts.append(failed_sql(text.file, cell.text[done:]))
            whole = False
    return whole


class _SqlSource:
    """One file while its statements are declared: what SET and USE said so far."""

    def __init__(self, registry: Registry, file: Path, configuration: Mapping[str, str], session: Any) -> None:
        self.registry, self.file, self.configuration, self.session = registry, file, configuration, session
        self.settings: dict[str, str] = {}
        self.confs: dict[str, str] = {}
        self.namespace: Namespace | None = None

    def declared(self, cell: CellText, begin: int, end: int) -> bool:
        """Declare one statement and keep its error; return whether there was none."""
        try:
            self._declare_statement(cell, begin, end)
            return True
        except LakeletError as error:
            self.registry.errors.append(error)
        except RecursionError:
            what = "the statement is nested too deeply"
            self.registry.errors.append(LakeletError("SQL_SYNTAX", what, where=cell.location(begin), todo="Split it into views."))
        self.registry.failed_parts.parts.append(failed_sql(cell.file, cell.cell.text[begin:end]))
        return False

    def _declare_statement(self, cell: CellText, begin: int, end: int) -> None:
        text = interpolated(cell, begin, end, self._parameter_value)
        if not is_setting(text):
            new, anchors = self._with_parameters(text)
            text = text.edited(new, anchors)
        remarks: list[Remark] = []
        found = statement(text, remarks)
        if isinstance(found, SetStatement):
            self._apply_setting(found)
        elif isinstance(found, Use):
            self._apply_use(found)
        elif isinstance(found, CreateFlow):
            self._declare_flow(found, text)
        elif found is not None:
            self._declare_dataset(found, text)
        for remark in remarks:
            self.registry.note(remark.text, remark.where)

    # ---------------------------------------------------------------------------------------------- parameters, names

    def _parameter_value(self, key: str, where: Location, in_list: bool = False) -> str:
        """What `${key}` and `:key` stand for: what SET said in this file, then the pipeline's configuration (SQ-7).

        In a list of columns and rules a key that nobody gives is an empty text, with a notice: Spark puts that everywhere, and public
        pipelines rely on it for tables without rules. Elsewhere the rows would be others.
        """
        for known in (self.settings, self.configuration):
            if key in known:
                return known[key]
        if in_list:
            self.registry.note(f"nothing gives the parameter {key!r} a value: nothing stands in its place in the list of columns", where)
            return ""
        raise LakeletError(
            "SQL_PARAMETER_UNKNOWN",
            f"nothing gives the parameter {key!r} a value",
            where=where,
            nearest=nearest_names(key, (*self.settings, *self.configuration)),
            todo=f"Set it in the pipeline's configuration, with --param {key}=VALUE, or before this statement: SET {key} = VALUE.",
        )

    def _with_parameters(self, text: StatementText) -> tuple[str, tuple[tuple[int, int], ...]]:
        try:
            return parameters(text.text, lambda key, position: self._parameter_value(key, text.location(position)))
        except OpenToken:
            return text.text, ()  # reading the statement says what is wrong with it

    def _apply_setting(self, found: SetStatement) -> None:
        self.settings[found.key] = found.value
        if found.key.lower().startswith("spark.databricks."):
            self.registry.note(f"SET {found.key} has no effect here: it belongs to Databricks", found.where)
        else:
            self.confs[found.key] = found.value

    def _apply_use(self, found: Use) -> None:
        now = self.namespace or self.registry.namespace
        self.namespace = Namespace(found.catalog or now.catalog, found.schema or now.schema)

    def _full_name(self, name: Name, *, single: str = "") -> TableName:
        """The full name; `single`: what has a name of one part, and lives where the pipeline does, whatever USE says."""
        parts = name.parts
        legacy = len(parts) > 1 and parts[0].lower() == "live"
        parts = parts[1:] if legacy else parts
        if single and len(parts) > 1:
            raise LakeletError("SQL_SYNTAX", f"the name of {single} has one part", where=name.where, todo="Leave catalog and schema out.")
        space = self.registry.namespace if legacy or single else self.namespace or self.registry.namespace
        try:
            return space.resolve(all_quoted(parts))
        except ValueError as problem:
            raise LakeletError("SQL_SYNTAX", str(problem), where=name.where) from None

    # --------------------------------------------------------------------------------------------------- declarations

    def _declare_dataset(self, found: CreateDataset, text: StatementText) -> None:
        single = {"temporary": "a temporary view", "live": "a live view"}.get(found.view, "")
        name = self._full_name(found.name, single=single)
        columns, clauses = found.spec.columns, found.clauses
        _check_columns(found)
        if found.view and clauses.properties:
            self.registry.note("TBLPROPERTIES of a view have no effect here: a view is not stored", found.where)
        query = self._query_of_dataset(found, text) if found.query else None
        schema, limits = without_lengths(ddl(columns) if columns and columns[0].type else None, found.where)
        self.registry.add_dataset(
            Dataset(
                name=name,
                kind=found.kind,
                where=found.where,
                comment=clauses.comment,
                spark_conf=dict(self.confs),
                table_properties={} if found.view else clauses.properties,
                partition_cols=clauses.partitioned_by,
                cluster_by=clauses.cluster_by,
                refresh_policy=clauses.refresh_policy,
                schema=schema,
                private=found.private,
                expectations=(*limits, *_expectations_of(found)),
                published=found.view == "published",
                computed=() if query is not None else tuple(column for column in columns if column.filled is not None),
                identities=tuple(column for column in columns if column.identity is not None),
                primary_key=found.spec.primary_key,
            )
        )
        if query is not None:
            function = query.function(self.session, self.file, found.where)
            if found.view == "published":
                vars(function)["published"] = self._check_published(name, found)
            self.registry.add_flow(
                Flow(
                    name=str(name),
                    target=name,
                    query=function,
                    where=found.where,
                    default=True,
                    language="SQL",
                    once=found.once,
                    replaces=_replacement_of(found),
                )
            )
        if found.changes is not None:
            self._declare_change_flow(found.changes, name, None, text, found.where)

    def _check_published(self, name: TableName, found: CreateDataset) -> dict[str, str]:
        """What `lakelet sql` needs to know of a view; see `lakelet.storage.published_views`."""
        assert found.query is not None
        space, columns = self.namespace or self.registry.namespace, found.spec.columns
        named = ", ".join(quoted(column.name) for column in columns)
        query = f"SELECT * FROM (\n{found.query.text}\n) AS {quoted(name.name)} ({named})" if columns else found.query.text
        return {"name": str(name), "query": query, "catalog": space.catalog, "schema": space.schema}

    def _query_of_dataset(self, found: CreateDataset, text: StatementText) -> SqlQuery:
        assert found.query is not None
        wanted = {Kind.STREAMING_TABLE: _STREAM, Kind.MATERIALIZED_VIEW: _BATCH}.get(found.kind)
        if adjacent(found.query.text, "PIVOT", ("(",)):
            self.registry.note("PIVOT runs here only: Databricks refuses it in pipelines", found.query.where)
        wanted = _VIEW if found.view == "published" else _wanted_of_flow(found, wanted)
        columns = found.spec.columns
        return SqlQuery(
            found.query,
            text,
            self.namespace,
            wanted,
            names=tuple(column for column in columns if column.type is None),
            filled=tuple(column for column in columns if column.filled is not None),
        )

    def _declare_flow(self, found: CreateFlow, text: StatementText) -> None:
        target = self._full_name(found.target)
        name = self._full_name(found.name) if found.name else None
        if found.changes is not None:
            self._declare_change_flow(found.changes, target, name, text, found.where, found.comment)
            return
        assert found.query is not None
        query = SqlQuery(found.query, text, self.namespace, _wanted_of_flow(found, _APPEND))
        self.registry.add_flow(
            Flow(
                name=str(name),
                target=target,
                query=query.function(self.session, self.file, found.where),
                where=found.where,
                default=False,
                comment=found.comment,
                spark_conf=dict(self.confs),
                language="SQL",
                once=found.once,
                replaces=_replacement_of(found),
            )
        )

    def _declare_change_flow(
        self, found: Changes, target: TableName, name: TableName | None, text: StatementText, where: Location, comment: str | None = None
    ) -> None:
        plain = not found.source_streams and not found.once and not found.source.text.startswith("(")
        prefix = "SELECT * FROM STREAM" if plain else "SELECT * FROM"
        query = SqlQuery(found.source, text, self.namespace, None if found.once else _EVENTS, prefix)
        remark = order_remark(found)
        if remark is not None:
            self.registry.note(remark.text, remark.where)
        with with_sql_clauses(where, found.places):
            declare_changes(
                _change_arguments(found),
                str(target) if _is_plain(target) else all_quoted((target.catalog, target.schema, target.name)),
                str(name) if name else None,
                where,
                query=query.function(self.session, self.file, where),
                comment=comment,
                spark_conf=dict(self.confs),
                language="SQL",
            )


def _is_plain(name: TableName) -> bool:
    return not set(str(name)) & set("` ") and str(name).count(".") == 2


def _check_columns(found: CreateDataset) -> None:
    """Refuse column lists that say something the dataset cannot have."""
    for column in found.spec.columns:
        if found.view and (column.type or not column.nullable):
            what = f"column {column.name!r} of a view has a type"
            raise LakeletError("SQL_SYNTAX", what, where=column.where, todo="Cast it in the query.")
        if not found.view and found.query is None and column.type is None:
            raise LakeletError("SQL_SYNTAX", f"column {column.name!r} has no type", where=column.where, todo="Give it one.")


def _expectations_of(found: CreateDataset) -> tuple[Expectation, ...]:
    """The rules of a dataset, on the columns that its query returns."""
    named_apart = found.query is not None and any("." in rule.condition.text for rule in found.spec.rules)
    columns = columns_of(found.query.text) if found.query is not None and named_apart else None
    rules = []
    for rule in found.spec.rules:
        condition = json_paths(rule.condition.text)
        written = rule.condition.text if condition != rule.condition.text else None
        condition = on_columns(condition, columns) if columns else condition
        rules.append(Expectation(rule.name, condition, rule.action, rule.where, written=written))
    return tuple(rules)


def _wanted_of_flow(found: CreateDataset | CreateFlow, otherwise: RequiredKind | None) -> RequiredKind | None:
    """Whether the query of a flow must be a stream; `otherwise`: of one that appends what it reads."""
    if found.replaces is not None:
        return _REPLACE_USING if found.replaces.keys else _REPLACE_WHERE
    return _APPEND_ONCE if found.once else otherwise


def _replacement_of(found: CreateDataset | CreateFlow) -> Replacement | None:
    """What the rows of a flow replace. What names the query's tables is put on the columns that the query returns (RP-1)."""
    said = found.replaces
    if said is None:
        return None
    columns = columns_of(found.query.text) if found.query is not None else None

    def placed(part: Fragment) -> str:
        return on_columns(part.text, columns) if columns is not None and "." in part.text else part.text

    if said.where is not None:
        condition, sequence = placed(said.where), None
    else:
        assert said.sequence_by is not None
        condition, sequence = None, placed(said.sequence_by)
    with with_sql_clauses(said.at, {}):
        return replacement(condition, None if said.where is not None else said.keys, sequence, said.at)


def _change_arguments(found: Changes) -> ChangeArguments:
    """The clauses as arguments of `apply_changes`."""
    given = {field.name: getattr(found, field.name) for field in fields(ChangeArguments)}
    texts = {name: json_paths(value.text) for name, value in given.items() if isinstance(value, Fragment)}
    return ChangeArguments(**{**given, **texts, "source": found.source.text})


# -------------------------------------------------------------------------------------------------------------- errors


_CLAUSES_OF_ARGUMENTS = {
    'stored_as_scd_type="2"': "STORED AS SCD TYPE 2",
    'stored_as_scd_type="bitemporal"': "STORED AS BITEMPORAL",
    "stored_as_scd_type": "STORED AS",
    "track_history_column_list": "TRACK HISTORY ON",
    "track_history_except_column_list": "TRACK HISTORY ON * EXCEPT",
    "track_history_*": "TRACK HISTORY ON",
    "ignore_null_updates_column_list": "IGNORE NULL UPDATES ON",
    "ignore_null_updates_except_column_list": "IGNORE NULL UPDATES ON * EXCEPT",
    "ignore_null_updates": "IGNORE NULL UPDATES",
    "apply_as_deletes": "APPLY AS DELETE WHEN",
    "apply_as_truncates": "APPLY AS TRUNCATE WHEN",
    "except_column_list": "COLUMNS * EXCEPT",
    "column_list": "COLUMNS",
    "columns_to_update": "COLUMNS TO UPDATE",
    "system_sequence_by": "SYSTEM SEQUENCE BY",
    "sequence_by": "SEQUENCE BY",
    "keys": "KEYS",
    "replace_using": "REPLACE USING",
    "replace_where": "REPLACE WHERE",
}
_ARGUMENT = re.compile("|".join(rf"(?<![\w]){re.escape(name)}(?!\w)" for name in sorted(_CLAUSES_OF_ARGUMENTS, key=len, reverse=True)))


@contextmanager
def with_sql_clauses(where: Location, places: Mapping[str, Location]) -> Iterator[None]:
    """Say the errors that leave the block in SQL's words. They are about the statement at `where`, or one of its clauses."""
    try:
        yield
    except LakeletError as error:
        named = _ARGUMENT.search(error.what)
        stem = named[0].partition("=")[0].rstrip("*") if named else ""
        place = next((place for name, place in places.items() if stem and name.startswith(stem)), where)
        what, todo = (
            None if text is None else _ARGUMENT.sub(lambda m: _CLAUSES_OF_ARGUMENTS[m[0]], text) for text in (error.what, error.todo)
        )
        raise LakeletError(error.code, str(what), where=place, why=error.why, todo=todo, nearest=error.nearest) from None
