"""The names that a pipeline's queries can mean: its datasets, and the tables that the storage holds beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.errors import AnalysisException

from lakelet.base.names import Namespace, TableName, all_quoted, split_name
from lakelet.language.model import Dataset, Definitions, Flow, Kind
from lakelet.language.registry import names_used
from lakelet.storage.root import ExistingTables

_MISSING_TABLE = {"TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND"}


@dataclass
class ReadsFound:
    """How the pipeline's queries read its datasets, as far as analysis has found out. Grows meanwhile.

    feeds: keys of those whose change feed is read. streamed: keys of the change tables and materialized views whose rows a stream reads.
    queried: keys of those whose rows are read as a batch.
    """

    feeds: set[str] = field(default_factory=set)
    streamed: set[str] = field(default_factory=set)
    queried: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Catalog:
    """The pipeline's datasets by name, and the tables the storage holds beside them (path by key).

    `quarantines`: keys of the quarantines that the datasets have or the storage holds; no query reads them (QU-4).
    """

    namespace: Namespace
    datasets: Mapping[str, Dataset]
    flows: Mapping[str, tuple[Flow, ...]]
    other_tables: Mapping[str, str]
    reads: ReadsFound = field(default_factory=ReadsFound)
    quarantines: frozenset[str] = frozenset()

    @classmethod
    def of(cls, definitions: Definitions, namespace: Namespace, stored: ExistingTables) -> Catalog:
        datasets = {d.name.key: d for d in definitions.datasets}
        flows = definitions.flows_by_target()
        own = {key for key, d in datasets.items() if d.sink is None and not d.is_temporary_view}
        quarantines = stored.quarantines | {d.quarantine.key for d in definitions.datasets if d.keeps_dropped}
        return cls(namespace, datasets, flows, stored.apart_from(own), quarantines=quarantines)

    def other(self, definitions: Definitions) -> Catalog:
        """The same with other definitions of the same names."""
        return replace(self, datasets={d.name.key: d for d in definitions.datasets}, flows=definitions.flows_by_target())

    def sinks(self) -> frozenset[str]:
        """Keys of the datasets that are only written to."""
        return frozenset(key for key, dataset in self.datasets.items() if dataset.kind is Kind.SINK)

    def find(self, parts: Sequence[str]) -> TableName | None:
        """The full name meant by the parts of a name, or None if they are too many.

        Names are completed by what `USE` said in the source that reads them; views are the pipeline's, whatever it said.
        """
        text = all_quoted(parts)
        used = names_used()
        try:
            own = self.namespace.resolve(text)
            if used is None or parts[0].lower() == "live" or (len(parts) == 1 and self._is_view(own)):
                return own
            return used.resolve(text)
        except ValueError:
            return None

    def dataset(self, parts: Sequence[str]) -> Dataset | None:
        """Return the dataset of the pipeline that the parts of a name mean, or None.

        A temporary view has no catalog and schema: a name with one of them means a table, whatever the views are called.
        """
        found = self.find(parts)
        dataset = self.datasets.get(found.key) if found else None
        if dataset is not None and dataset.is_temporary_view and len(_without_live(parts)) > 1:
            return None
        return dataset

    def is_foreign(self, name: TableName) -> bool:
        """Whether the name of a sink is that of a table beside the pipeline too; then reading it means the table."""
        return self.datasets[name.key].sink is not None and name.key in self.other_tables

    def _is_view(self, name: TableName) -> bool:
        return name.key in self.datasets and self.datasets[name.key].kind is Kind.VIEW

    def known_names(self) -> list[str]:
        return [str(d.name) for d in self.datasets.values() if d.sink is None] + [
            key for key in self.other_tables if key not in self.quarantines
        ]


def _without_live(parts: Sequence[str]) -> Sequence[str]:
    return parts[1:] if len(parts) > 1 and parts[0].lower() == "live" else parts


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of a name; a text that is not a name is one part."""
    try:
        return split_name(text)
    except ValueError:
        return (text,)


def is_missing_table(problem: AnalysisException) -> bool:
    """Whether Spark says that it knows no table of that name."""
    return (problem.getCondition() or "").split(".")[0] in _MISSING_TABLE
