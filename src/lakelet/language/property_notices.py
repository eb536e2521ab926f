"""What is to be said about the `pipelines.*` settings that datasets and flows carry (RE-20)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakelet.base.errors import LakeletError, Location
from lakelet.config.properties import examine
from lakelet.language.model import Definitions
from lakelet.language.registry import Registry


def check_properties(definitions: Definitions, registry: Registry) -> None:
    """Note settings without effect; a value that a setting cannot have is an error."""
    for settings, where, name in _settings(definitions):
        for found in examine(settings, of="table"):
            if found.invalid:
                registry.errors.append(LakeletError("PROPERTY_INVALID", found.text, where=where, dataset=name))
            else:
                registry.note(found.text, where)


def _settings(definitions: Definitions) -> Iterator[tuple[Mapping[str, str], Location, str]]:
    for dataset in definitions.datasets:
        yield {**dataset.table_properties, **dataset.spark_conf}, dataset.where, str(dataset.name)
    for flow in definitions.flows:
        yield flow.spark_conf, flow.where, str(flow.target)
