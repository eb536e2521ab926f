"""The names that a pipeline's queries can mean: its datasets, and the tables that the storage holds beside them. Layer 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException

from lakelet.model import Dataset, Definitions, Flow, Kind
from lakelet.names import Namespace, TableName, split_name
from lakelet.registry import names_used
from lakelet.sqltext import quoted
from lakelet.storage import HeldTables

_MISSING_TABLE = {"TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND"}


@dataclass(frozen=True)
class Catalog:
    """The pipeline's datasets by name, and the tables the storage holds beside them (path by key)."""

    namespace: Namespace
    datasets: Mapping[str, Dataset]
    flows: Mapping[str, tuple[Flow, ...]]
    other_tables: Mapping[str, str]
    feeds: set[str] = field(default_factory=set)
    """Keys of the datasets whose change feed the pipeline reads; analysis finds them."""

    @classmethod
    def of(cls, definitions: Definitions, namespace: Namespace, stored: HeldTables) -> Catalog:
        datasets = {d.name.key: d for d in definitions.datasets}
        flows = definitions.flows_by_target()
        return cls(namespace, datasets, flows, stored.apart_from({key for key, d in datasets.items() if d.sink is None}))

    def find(self, parts: Sequence[str]) -> TableName | None:
        """The full name meant by the parts of a name, or None if they are too many.

        Names are completed by what `USE` said in the source that reads them; views are the pipeline's, whatever it said.
        """
        text = ".".join(quoted(p) for p in parts)
        used = names_used()
        try:
            own = self.namespace.resolve(text)
            if used is None or parts[0].lower() == "live" or (len(parts) == 1 and self._is_view(own)):
                return own
            return used.resolve(text)
        except ValueError:
            return None

    def is_foreign(self, name: TableName) -> bool:
        """Whether the name of a sink is that of a table beside the pipeline too; then reading it means the table."""
        return self.datasets[name.key].sink is not None and name.key in self.other_tables

    def _is_view(self, name: TableName) -> bool:
        return name.key in self.datasets and self.datasets[name.key].kind is Kind.VIEW

    def known_names(self) -> list[str]:
        return [str(d.name) for d in self.datasets.values() if d.sink is None] + list(self.other_tables)


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of a name; a text that is no name is one part."""
    try:
        return split_name(text)
    except ValueError:
        return (text,)


def is_missing_table(problem: AnalysisException) -> bool:
    """Whether Spark says that it knows no table of that name."""
    return (problem.getCondition() or "").split(".")[0] in _MISSING_TABLE
