"""Definitions of datasets and flows, read from one update's events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakelet.storage.eventlog.states import EventType
from lakelet.storage.eventlog.summaries import SINK, ColumnLineage, DatasetDefinition, DefinitionPlace, FlowDefinition, RuleDefinition


class DefinitionEvents:
    """Takes the events of one update that define something; `value` gives the definitions by dataset name."""

    def __init__(self) -> None:
        self._datasets: dict[str, DatasetDefinition] = {}
        self._flows: dict[tuple[str, str], FlowDefinition] = {}
        self._lineage: dict[tuple[str, str], tuple[ColumnLineage, ...]] = {}
        self._value: dict[str, DatasetDefinition] | None = None

    def take(self, event_type: str, origin: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Take one `dataset_definition`, `sink_definition`, `flow_definition` or `column_lineage`; a later one replaces an earlier one."""
        self._value = None
        if event_type == EventType.COLUMN_LINEAGE:
            name, dataset = str(body.get("flow_name")), str(body.get("output_dataset"))
            self._lineage[dataset, name] = _column_lineage(name, dataset, body)
        elif event_type == EventType.FLOW_DEFINITION:
            flow = _flow_definition(origin, body)
            self._flows[flow.dataset, flow.name] = flow
        else:
            sink = event_type == EventType.SINK_DEFINITION
            name = str(origin.get("sink_name") or origin.get("dataset_name"))
            kind = SINK if sink else str(body.get("dataset_type") or "")
            self._datasets[name] = DatasetDefinition(
                name,
                kind,
                "",
                _rule_definitions(body),
                _source_place(body),
                rules_known=sink or "expectations" in body,
                description=str(body.get("comment") or ""),
                owner=str(body.get("owner") or ""),
                tags=_tags(body),
                personal_columns=tuple(str(name) for name in body.get("personal_columns") or ()),
            )

    def value(self, pipeline: str) -> Mapping[str, DatasetDefinition]:
        """Each defined dataset with its flows and lineage, by name."""
        if self._value is None:
            flows, lineage = dict[str, list[FlowDefinition]](), dict[str, list[ColumnLineage]]()
            for (target, _), flow in sorted(self._flows.items(), key=lambda item: item[0]):
                flows.setdefault(target, []).append(flow)
            for (target, _), lines in sorted(self._lineage.items(), key=lambda item: item[0]):
                lineage.setdefault(target, []).extend(lines)
            self._value = {}
            for name, dataset in sorted(self._datasets.items()):
                its_flows = tuple(flows.get(name, ()))
                source = dataset.source or next((flow.source for flow in its_flows if flow.source), None)
                described = dataset.description or next((flow.comment for flow in its_flows if flow.comment), "")
                found = replace(dataset, pipeline=pipeline, flows=its_flows, lineage=tuple(lineage.get(name, ())), source=source)
                self._value[name] = replace(found, description=described)
        return self._value


def _rule_definitions(body: Mapping[str, Any]) -> tuple[RuleDefinition, ...]:
    return tuple(_rule_definition(rule) for rule in body.get("expectations") or ())


def _rule_definition(rule: Mapping[str, Any]) -> RuleDefinition:
    return RuleDefinition(
        str(rule.get("name")),
        str(rule.get("constraint") or ""),
        str(rule.get("action") or "warn").lower(),
        str(rule.get("description") or ""),
        str(rule.get("owner") or ""),
        _tags(rule),
    )


def _tags(body: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(tag) for tag in body.get("tags") or ())


def _source_place(body: Mapping[str, Any]) -> DefinitionPlace | None:
    found = body.get("source_code") or {}
    return DefinitionPlace(str(found["file"]), int(found.get("line") or 0)) if found.get("file") else None


def _flow_definition(origin: Mapping[str, Any], body: Mapping[str, Any]) -> FlowDefinition:
    dataset = str(body.get("output_dataset") or body.get("output_sink") or origin.get("dataset_name") or origin.get("sink_name"))
    columns = tuple((str(c.get("name")), str(c.get("data_type") or "").lower()) for c in body.get("schema") or ())
    return FlowDefinition(
        str(origin.get("flow_name") or dataset),
        dataset,
        tuple(_input_name(i) for i in body.get("input_datasets") or ()),
        str(body.get("flow_type") or ""),
        str(body.get("language") or ""),
        str(body.get("comment") or ""),
        columns,
        _source_place(body),
        tuple((str(rule.get("dataset")), _rule_definition(rule)) for rule in body.get("view_expectations") or ()),
        tuple(str(call) for call in body.get("transforms") or ()),
        tuple((str(c.get("name")), str(c["comment"])) for c in body.get("schema") or () if c.get("comment")),
    )


def _input_name(given: Any) -> str:
    """The name of an input: text, or an object with it."""
    return str(given.get("name") if isinstance(given, Mapping) else given)


def _column_lineage(flow: str, dataset: str, body: Mapping[str, Any]) -> tuple[ColumnLineage, ...]:
    def inputs(column: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        return tuple((str(i.get("dataset")), str(i.get("column"))) for i in column.get("inputs") or ())

    return tuple(ColumnLineage(flow, dataset, str(c.get("name")), inputs(c)) for c in body.get("columns") or ())
