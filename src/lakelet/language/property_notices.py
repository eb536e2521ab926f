"""Return the findings about the settings and table properties that datasets and flows carry (RE-20, TP-10 ff)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.config import delta_properties
from lakelet.config.properties import QUARANTINE, examine, look_up, switch
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
    for dataset in definitions.datasets:
        registry.errors += _about_lakelet(dataset, definitions)
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
            _check_delta(dataset, registry, any_name)


def _about_lakelet(dataset: Dataset, definitions: Definitions) -> Iterator[LakeletError]:
    """Return the errors of a dataset's `lakelet.*` properties (QU-2, QU-3)."""
    name, where = str(dataset.name), dataset.where
    for key, value in dataset.table_properties.items():
        if key.lower() == QUARANTINE:
            try:
                wanted = switch(value)
            except ValueError as problem:
                yield LakeletError("PROPERTY_INVALID", f"{key} is {value!r}: {problem}", dataset=name, where=where)
                continue
            refused = _no_quarantine(dataset, definitions) if wanted else None
            if refused is not None:
                yield LakeletError("QUARANTINE_REFUSED", refused[0], dataset=name, where=where, todo=refused[1])
        elif key.lower().startswith("lakelet."):
            near = nearest_names(key, [QUARANTINE])
            todo = f"Leave it out; {QUARANTINE} is the one that tables may have."
            yield LakeletError("PROPERTY_UNKNOWN", f"Lakelet has no property {key}", dataset=name, where=where, nearest=near, todo=todo)


def _no_quarantine(dataset: Dataset, definitions: Definitions) -> tuple[str, str] | None:
    """Why a dataset cannot have a quarantine, and the remedy; None if it can."""
    flows = definitions.flows_by_target()[dataset.name.key]
    if dataset.kind in (Kind.VIEW, Kind.SINK):
        what = f"{QUARANTINE} is set for a {dataset.kind.value}, which stores no rows of its own"
        return what, "Set it for the table whose rules drop the rows."
    if any(flow.changes is not None for flow in flows):
        what = f"{QUARANTINE} is set for the target of change flows, whose rows are made of several events"
        return what, "Drop the events in a streaming table with a quarantine, and let the change flow read that."
    if any(flow.replaces is not None for flow in flows):
        what = f"{QUARANTINE} is set for a table whose flow replaces its rows, so that one row could be held again and again"
        return what, "Drop the rows in a table with a quarantine, and let the flow read that."
    same = next((other for other in definitions.datasets if other.name.key == dataset.quarantine.key), None)
    if same is not None:
        return f"its quarantine would be called {same.name}, which {same.where} defines", "Rename one of them."
    return None


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
