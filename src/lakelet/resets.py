"""What a reset changes in the registry: tables begin anew, or flows read their sources again (dlt-semantics 5.1, 5.6). Layer 5.

Both are numbers in the paths of checkpoints and source states, written at once for all. A table gets its new epoch, and loses its old rows,
in the first commit after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakelet.analysis import AnalyzedDataset
from lakelet.flows.roles import remade
from lakelet.places import Place
from lakelet.select import Selection
from lakelet.storage import Registry, StoredFlow


def with_resets(registry: Registry, selection: Selection, *, root: Place, analyzed: Mapping[str, AnalyzedDataset]) -> Registry:
    """The registry after the resets that were asked for. `analyzed`: the datasets as they are defined now; `root`: of the storage."""
    datasets, flows = dict(registry.datasets), dict(registry.flows)
    for key in sorted(selection.reset & datasets.keys()):
        stored = remade(root, datasets[key], analyzed.get(key), taken={d.path for d in datasets.values()})
        datasets[key] = replace(stored, epoch=stored.epoch + 1, columns=None, fingerprint=None, input_versions={}, version=None)
    for flow in selection.checkpoints:
        known = flows.get(flow.lower(), StoredFlow(flow))
        flows[flow.lower()] = replace(known, resets=known.resets + 1)
    return replace(registry, datasets=datasets, flows=flows)
