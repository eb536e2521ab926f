"""Datasets that an update of an environment is about to compute: they go on from the main storage, or from what was computed there before.

In: the selection, and the definitions that the code has now. Out: an environment with the tables and the state of flows to go on from. A
dataset whose definition has changed since the environment computed it begins again from the main storage, with everything downstream. So
its rows are those that the main storage would get from the present code, however often somebody has tried.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.jvm.delta import forget_logs
from lakelet.plan.definition_changes import DefinitionParts
from lakelet.plan.graph import Graph
from lakelet.plan.selection import Selection
from lakelet.spark.session_clones import UpdateSession
from lakelet.storage.environments import begin_datasets_again, provide
from lakelet.storage.promotion import written_datasets
from lakelet.storage.recorded_definitions import forget_definitions, load_definitions
from lakelet.storage.root import Storage


def prepare_datasets(
    storage: Storage, graph: Graph, selection: Selection, definitions: Mapping[str, DefinitionParts], spark: UpdateSession
) -> bool:
    """Prepare the selected datasets of an environment. Return whether anything changed there; nothing happens in other storages.

    Raises as `provide`.
    """
    if storage.base is None:
        return False
    recorded = load_definitions(storage)
    written = {(d.quarantine_of or d.name).lower() for d in written_datasets(storage)}
    changed = {key for key in selection.refresh if recorded.get(key) != definitions.get(key)}
    again = graph.downstream(changed & written) & written if changed & written else set[str]()
    if again:
        begin_datasets_again(storage, again)
        forget_logs(spark)
    forget_definitions(storage, changed)  # recorded again when they are computed; until then another definition may have written rows
    copied = provide(storage, (graph.by_key[key].name for key in sorted(selection.refresh)), selection.reset)
    return copied or bool(again)


__all__ = ["prepare_datasets"]
