"""The versions of a view's inputs: those that its content was computed from, and those that are read now.

Versions belong to one table: a table that was created again, in its folder or another one, has another name (UP-3). A table from outside
has another version whenever its files change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakelet.config.named_tables import files_fingerprint
from lakelet.flows.context import FlowTask
from lakelet.plan.decisions import ViewState
from lakelet.plan.refreshes import Issue, IssueType
from lakelet.spark.names.outside import outside_tables
from lakelet.storage.delta.changed_rows import ChangedFiles, changed_files


@dataclass(frozen=True)
class InputVersions:
    """A view's state, and the version in which each input is read: the newest when the view was decided on, by key.

    `names`: by key how `ViewState.inputs` calls the input.
    """

    state: ViewState
    read: Mapping[str, int]
    names: Mapping[str, str]

    @classmethod
    def of(cls, task: FlowTask, known: Mapping[str, int]) -> InputVersions:
        """The present ones. An input's data version moves only when data files were added or removed. `known`: the stored ones."""
        environment, batch = task.environment, task.flow.batch
        versions, read, names = {}, {}, {}
        for key in task.inputs:
            path = environment.storage.table_path(environment.catalog.datasets[key].name)
            log = environment.memory.log(path)
            name = names[key] = f"{key}\n{path.name} {log.table_id()}"
            read[key] = environment.memory.pinned(path)
            versions[name] = log.data_version(known.get(name, -1), read[key])
        for table in filter(None, map(outside_tables().readable, batch.outside)):
            versions[f"{table.given} ({table.path})"] = files_fingerprint(table) or -1
        return cls(ViewState(batch.fingerprint, versions, batch.always), read, names)

    def on_present_columns(self, task: FlowTask) -> InputVersions:
        """With the fingerprint on the columns that the inputs have now, where this update gave a table some that analysis did not know."""
        if not task.environment.memory.widened:
            return self
        found = task.environment.analyzer.fingerprint(task.target)
        return replace(self, state=replace(self.state, fingerprint=found or self.state.fingerprint))

    def changes(self, task: FlowTask, known: Mapping[str, int]) -> tuple[ChangedFiles, ...] | Issue:
        """What each input got and lost since the versions `known`."""
        found = []
        for key, name in self.names.items():
            if name not in known:
                return Issue(IssueType.OTHER_DATA, f"{key} is another table than before")
            log = task.environment.memory.log(task.environment.storage.table_path(task.environment.catalog.datasets[key].name))
            files = changed_files(log, key, known[name], self.read[key])
            if isinstance(files, Issue):
                return files
            found.append(files)
        return tuple(found)


def view_state(task: FlowTask, known: Mapping[str, int]) -> ViewState:
    """The view's state now."""
    return InputVersions.of(task, known).state


__all__ = ["InputVersions", "view_state"]
