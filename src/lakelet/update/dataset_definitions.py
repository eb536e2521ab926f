"""The definition of each dataset of a loaded pipeline, as digests of its code, rules and settings.

In: declarations, checks of tables, parameters, and the graph that says which views a dataset reads. Out: `DefinitionParts` by key, of the
datasets that are stored; the code and the rules of a view belong to what reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from lakelet.config.update_config import PipelineConfig
from lakelet.language.function_code import FunctionCode, ProjectCode, digest, sql_digest
from lakelet.language.loader import LoadedSources
from lakelet.language.model import ChangeSpec, Dataset, Flow, Kind, RefreshPolicy, Replacement
from lakelet.plan.definition_changes import DefinitionParts, definition_changes, manifest_of, read_manifest
from lakelet.plan.graph import Graph
from lakelet.plan.selection import states_of
from lakelet.quality.definitions import TableCheck
from lakelet.storage.recorded_definitions import load_definitions
from lakelet.storage.root import Storage

_ENGINE = ("pipelines.", "lakelet.")
"""Parameters that say how an update runs: no row depends on them."""
_ANY_QUERY = "spark."
"""Parameters that are settings of Spark: each query may depend on them."""


def dataset_definitions(
    config: PipelineConfig, loaded: LoadedSources, graph: Graph, checks: Mapping[str, Sequence[TableCheck]]
) -> dict[str, DefinitionParts]:
    """Return the definitions of the stored datasets of a pipeline, by key."""
    modules = [file for module in loaded.helpers if (file := getattr(module, "__file__", None))]
    project = ProjectCode(config.root, [*map(str, config.files), *modules])
    datasets = {dataset.name.key: dataset for dataset in loaded.definitions.datasets}
    flows = loaded.definitions.flows_by_target()
    own = {key: _code(project, dataset, flows[key]) for key, dataset in datasets.items() if key in graph.by_key}
    named = {key for key in config.parameters if any(code.names(key) for code in own.values())}
    found = {}
    for key, code in own.items():
        if datasets[key].kind is Kind.VIEW:
            continue
        views = [node.name.key for node in graph.views_read(key)]
        parts, rules = dict(code.parts), dict(_rules(datasets[key], checks.get(key, ())))
        settings = _settings(project, datasets[key], flows[key])
        settings.update(_parameters(project, config.parameters, [code, *(own[view] for view in views)], named))
        for view in views:
            name = str(datasets[view].name.name)
            parts.update({f"{part} of the view {name}": value for part, value in own[view].parts.items()})
            rules.update({f"{rule} of the view {name}": value for rule, value in _rules(datasets[view], ())})
            of_view = _settings(project, datasets[view], flows[view])
            settings.update({f"{text} of the view {name}": value for text, value in of_view.items()})
        found[key] = DefinitionParts(parts, rules, settings)
    return found


def modified_datasets(selectors: Sequence[str], definitions: Mapping[str, DefinitionParts], storage: Storage) -> dict[str, frozenset[str]]:
    """Return by each selector of changed datasets among some the keys that it means.

    In an environment what was computed there and was taken back counts, too. Raises USAGE for an unknown state, or a manifest that is none.
    """
    found, names = {}, {key: key for key in definitions}
    main = [] if storage.base is None else [Storage(storage.base.path)]
    for selector in states_of(selectors):
        manifest = manifest_of(selector)
        before = [load_definitions(one) for one in (storage, *main)] if manifest is None else [read_manifest(manifest)]
        found[selector] = frozenset(chain(*(definition_changes(one, definitions, names) for one in before)))
    return found


def _code(project: ProjectCode, dataset: Dataset, flows: Sequence[Flow]) -> FunctionCode:
    """The code of a dataset: its flows with what they do to the rows of the table, and its handler if it is a sink."""
    functions: list[Any] = [flow.query for flow in flows]
    functions += [flow.changes.snapshots for flow in flows if flow.changes is not None and callable(flow.changes.snapshots)]
    functions += [dataset.sink.handler] if dataset.sink is not None and dataset.sink.handler is not None else []
    found = project.of(functions)
    for flow in flows:
        target = str(flow.target)
        name = "its flow" if flow.name == target else f"flow {flow.name}"
        how = (flow.runs_once, flow.update, flow.name.lower())
        found.parts[name] = digest(json.dumps([how, _changes(flow.changes), _replacement(flow.replaces)], default=str))
    return found


def _changes(spec: ChangeSpec | None) -> list[str] | None:
    if spec is None:
        return None
    given = {name: value for name, value in vars(spec).items() if name != "snapshots" or not callable(value)}
    return [f"{name}={_value_text(value)}" for name, value in given.items()]


def _replacement(spec: Replacement | None) -> list[str] | None:
    return None if spec is None else [_value_text(value) for value in (spec.where, spec.keys, spec.sequence_by)]


def _value_text(value: Any) -> str:
    return sql_digest(value) if isinstance(value, str) else str(value)


def _rules(dataset: Dataset, checks: Sequence[TableCheck]) -> Iterator[tuple[str, str]]:
    for rule in dataset.expectations:
        yield rule.name, digest(f"{sql_digest(rule.text)} {rule.action}")
    for check in checks:
        yield f"check {check.name}", check.digest


def _settings(project: ProjectCode, dataset: Dataset, flows: Sequence[Flow]) -> dict[str, str]:
    given: dict[str, Any] = {
        "comment": dataset.comment,
        "partition_cols": list(dataset.partition_cols),
        "cluster_by": list(dataset.cluster_by),
        "private": dataset.private,
        "refresh_policy": dataset.refresh_policy.value if dataset.refresh_policy is not RefreshPolicy.AUTO else None,
        "columns": _schema(dataset),
        **{f"property {name}": value for name, value in dataset.table_properties.items()},
        **{f"spark_conf {name}": value for name, value in dataset.spark_conf.items()},
        **{f"spark_conf {name}": value for flow in flows for name, value in flow.spark_conf.items()},
    }
    if dataset.sink is not None:
        given["format"] = dataset.sink.format
        given.update({f"option {name}": value for name, value in dataset.sink.options.items()})
    return {name: digest(project.relative(str(value))) for name, value in given.items() if value}


def _schema(dataset: Dataset) -> str | None:
    """The declared columns as text, with what computes them."""
    declared = dataset.schema.json() if hasattr(dataset.schema, "json") else dataset.schema and sql_digest(str(dataset.schema))
    computed = [(c.name, c.type, c.filled and sql_digest(c.filled.text), str(c.identity)) for c in (*dataset.computed, *dataset.identities)]
    return f"{declared} {computed}" if declared or computed else None


def _parameters(
    project: ProjectCode, parameters: Mapping[str, str], codes: Sequence[FunctionCode], named: set[str]
) -> Iterator[tuple[str, str]]:
    """The parameters that the code of a dataset reads: those that it names; one that no code names, wherever configuration is read."""
    for key, value in parameters.items():
        if key.startswith(_ENGINE):
            continue
        reads = any(code.names(key) or (key not in named and code.reads_configuration) for code in codes)
        if reads or key.startswith(_ANY_QUERY):
            yield f"parameter {key}", digest(project.relative(value))


__all__ = ["dataset_definitions", "modified_datasets"]
