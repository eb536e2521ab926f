"""Calls of `dlt` and `pyspark.pipelines` in a syntax tree, and what this version makes of them. No Spark.

Whether a call is supported is asked of the functions themselves, so the answer is never older than they are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.language import api
from lakelet.language.registry import Registry, recording
from lakelet.project.init.python_files import dotted

Refuse = Callable[[str, str], None]
"""Takes a code and a sentence about something that is not supported."""

_MODULES: Mapping[str, Mapping[str, Any]] = {"dlt": api.DLT, "dp": api.DP}
_CHECKED = ("NOT_SUPPORTED_YET", "PROTECTION_REFUSED")
_KINDS = {
    "materialized_view": "materialized_view",
    "view": "view",
    "temporary_view": "view",
    "create_view": "view",
    "create_streaming_table": "streaming_table",
    "create_streaming_live_table": "streaming_table",
    "create_target_table": "streaming_table",
    "create_sink": "sink",
    "foreach_batch_sink": "sink",
}
_CONNECTORS = frozenset(
    (
        *("kafka", "kinesis", "eventhubs", "pubsub", "pulsar", "snowflake", "bigquery", "mongodb", "redshift", "sqlserver", "postgresql"),
        *("mysql", "oracle", "teradata", "salesforce", "cosmos.oltp", "org.apache.spark.sql.cassandra", "elasticsearch", "deltasharing"),
        *("iceberg", "hudi", "avro", "dynamodb", "databricks", "com.databricks.spark.redshift", "net.snowflake.spark.snowflake"),
    )
)


@dataclass
class ApiNames:
    """Which names of a file mean the modules, or functions of them."""

    modules: dict[str, str] = field(default_factory=lambda: {"dlt": "dlt", "dp": "dp"})  # `%run` may bring them
    functions: dict[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, trees: Iterable[ast.Module]) -> ApiNames:
        found = cls()
        for tree in trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.Import):
                    found._modules(node)
                elif isinstance(node, ast.ImportFrom):
                    found._names(node)
        return found

    def _modules(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name in ("dlt", "pyspark.pipelines"):
                self.modules[alias.asname or alias.name] = "dlt" if alias.name == "dlt" else "dp"

    def _names(self, node: ast.ImportFrom) -> None:
        module = {"dlt": "dlt", "pyspark.pipelines": "dp"}.get(node.module or "")
        for alias in node.names:
            if node.module == "pyspark" and alias.name == "pipelines":
                self.modules[alias.asname or "pipelines"] = "dp"
            elif module and alias.name == "*":
                self.functions.update({name: (module, name) for name in _MODULES[module]})
            elif module and alias.name in _MODULES[module]:
                self.functions[alias.asname or alias.name] = (module, alias.name)

    def module_of(self, node: ast.expr) -> str | None:
        """`dlt` or `dp` where the expression is that module."""
        return self.modules.get(dotted(node) or "") if isinstance(node, ast.Name | ast.Attribute) else None

    def called(self, node: ast.expr) -> tuple[str, str] | None:
        """(module, function) where the expression is a function of the modules."""
        if isinstance(node, ast.Name):
            return self.functions.get(node.id)
        module = self.module_of(node.value) if isinstance(node, ast.Attribute) else None
        return (module, node.attr) if module and isinstance(node, ast.Attribute) and node.attr in _MODULES[module] else None

    @staticmethod
    def names(module: str) -> Mapping[str, Any]:
        return _MODULES[module]


def kind_of(module: str, name: str) -> str | None:
    """The kind of dataset that a function declares; `table` where only its query decides; None for functions that declare none."""
    if name == "table":
        return "table"
    if name == "create_table":
        return "table" if module == "dlt" else "streaming_table"
    return _KINDS.get(name)


def writes_flow(name: str) -> bool:
    """Whether a function declares a flow without a dataset."""
    return name in ("append_flow", "update_flow", "replace_flow") or name.startswith(("apply_changes", "create_auto_cdc"))


def hooks(name: str) -> bool:
    """Whether a function declares an event hook."""
    return name == "on_event_hook"


def argument(call: ast.Call | None, name: str) -> ast.expr | None:
    """The argument of a call that is given by this name; None for a value of None."""
    found = next((k.value for k in call.keywords if k.arg == name), None) if call else None
    return None if isinstance(found, ast.Constant) and found.value is None else found


def check_call(
    module: str, name: str, call: ast.Call | None, decorates: str | None, text: Callable[[ast.expr], str], refuse: Refuse
) -> None:
    """Ask the function whether it executes this call; `decorates`: the name of the function that it decorates.

    Arguments that are not constants are given as `text`.
    """
    positional = [_value(value, text) for value in call.args] if call else []
    given = {k.arg: _value(k.value, text) for k in call.keywords if k.arg} if call else {}

    def query() -> None: ...

    query.__name__ = decorates or "query"
    try:
        with recording(Registry(Namespace())):
            if call is None:
                _MODULES[module][name](query)
            else:
                found = _MODULES[module][name](*positional, **given)
                if decorates is not None and callable(found):
                    found(query)
    except LakeletError as error:
        if error.code in _CHECKED:
            refuse(error.code, error.what)
    except Exception:  # the call depends on values that are known only when the code runs
        return


def _value(node: ast.expr, text: Callable[[ast.expr], str]) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text(node)


def check_format(name: str, refuse: Refuse) -> None:
    """Refuse a format of Spark whose connector is a package of its own."""
    if name.lower() in _CONNECTORS:
        refuse("NOT_SUPPORTED_YET", f"format {name!r} needs a connector of Spark that Lakelet does not bring")
