"""A loaded and analysed pipeline, ready for an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from lakelet.analysis.checks import mapping_notices
from lakelet.analysis.results import Analysis
from lakelet.config.update_config import PipelineConfig
from lakelet.flows.environment import Environment
from lakelet.language.loader import LoadedSources
from lakelet.plan.checked import Checked, RuledDataset
from lakelet.plan.definition_changes import DefinitionChange, DefinitionParts, definition_changes
from lakelet.plan.selection import Selection
from lakelet.quality.definitions import TableCheck
from lakelet.storage.eventlog.events import Reporter
from lakelet.storage.ownership import Owner
from lakelet.storage.recorded_definitions import load_definitions
from lakelet.storage.root import Storage
from lakelet.update.tasks import Task


@dataclass(frozen=True)
class LoadedPipeline:
    """A loaded pipeline with the surroundings its flows need; nothing of it is analysed yet."""

    config: PipelineConfig
    loaded: LoadedSources
    environment: Environment
    owner: Owner
    checks: Mapping[str, tuple[TableCheck, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenedPipeline:
    """A loaded and analysed pipeline with the surroundings its flows need."""

    config: PipelineConfig
    loaded: LoadedSources
    analysis: Analysis
    selection: Selection
    environment: Environment
    owner: Owner
    checks: Mapping[str, tuple[TableCheck, ...]] = field(default_factory=dict)
    """Checks of whole tables, by the key of the dataset."""
    definitions: Mapping[str, DefinitionParts] = field(default_factory=dict)
    """The definitions of the stored datasets as they are now, by key."""

    @property
    def storage(self) -> Storage:
        return self.environment.storage

    @property
    def reporter(self) -> Reporter:
        return self.environment.reporter

    @property
    def id(self) -> str:
        """That of the update."""
        return self.reporter.update_id

    def checked(self) -> Checked:
        """Return what `lakelet validate` shows of it."""
        tables = [(one.dataset, one.schema) for one in self.analysis.datasets.values()]
        notices = [*self.loaded.notices, *chain(*self.analysis.notices.values()), *mapping_notices(tables)]
        rules = tuple(RuledDataset(one.name, one.owner, one.expectations) for one in self.loaded.definitions.datasets)
        unchecked, changes = self.analysis.unchecked, self.definition_changes()
        return Checked(self.analysis.graph, tuple(dict.fromkeys(notices)), unchecked, self.definitions, changes, rules)

    def definition_changes(self, *, from_nothing: bool = False) -> tuple[DefinitionChange, ...]:
        """What changed in the definitions since each dataset was brought up to date last.

        Nothing before the first update, unless `from_nothing`: then all are new.
        """
        before = load_definitions(self.storage)
        names = {key: str(self.analysis.graph.by_key[key].name) for key in self.definitions}
        return tuple(definition_changes(before, self.definitions, names).values()) if before or from_nothing else ()

    def selects(self, task: Task) -> bool:
        """Whether the update brings a flow up to date."""
        return task.target in self.selection.refresh
