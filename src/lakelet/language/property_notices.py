"""Return the findings about the settings and table properties that datasets and flows carry (RE-20, TP-10 ff)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakelet.base.errors import LakeletError, Location
from lakelet.config import delta_properties
from lakelet.config.properties import examine
from lakelet.language.model import Dataset, Definitions, Kind
from lakelet.language.registry import Registry


def check_properties(definitions: Definitions, registry: Registry, parameters: Mapping[str, str] | None = None) -> None:
    """Note settings without effect; an unknown property of Delta, and a value that a setting cannot have, are errors.

    `parameters`: the pipeline's configuration.
    """
    for settings, where, name in _settings(definitions):
        for found in examine(settings, of="table"):
            if found.invalid:
                registry.errors.append(LakeletError("PROPERTY_INVALID", found.text, where=where, dataset=name))
            else:
                registry.note(found.text, where)
    any_name = (parameters or {}).get(delta_properties.ANY_NAME, "").strip().lower() == "true"
    for dataset in definitions.datasets:
        if dataset.kind is Kind.VIEW:
            for key in dataset.spark_conf:
                if key.lower().startswith("pipelines."):
                    registry.note(f"{key} has no effect on a view: set it for the table that reads it", dataset.where)
        elif dataset.kind is not Kind.SINK:
            _check_delta(dataset, registry, any_name)


def _check_delta(dataset: Dataset, registry: Registry, any_name: bool) -> None:
    for remark in delta_properties.examine(dataset.table_properties, any_name=any_name):
        if remark.code is None:
            registry.note(remark.text, dataset.where)
            continue
        todo = f"Correct it, or set {delta_properties.ANY_NAME}=true in the configuration." if remark.code == "PROPERTY_UNKNOWN" else None
        name, where = str(dataset.name), dataset.where
        registry.errors.append(LakeletError(remark.code, remark.text, dataset=name, where=where, nearest=remark.nearest, todo=todo))


def _settings(definitions: Definitions) -> Iterator[tuple[Mapping[str, str], Location, str]]:
    for dataset in definitions.datasets:
        yield {**dataset.table_properties, **dataset.spark_conf}, dataset.where, str(dataset.name)
    for flow in definitions.flows:
        yield flow.spark_conf, flow.where, str(flow.target)
