"""For tests of pipeline code: one file's functions on small data frames, or a project with updates. Fixtures are in `plugin`.

Importing this package imports nothing heavy: every pytest run does, for the plugin.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakelet.storage.rule_counts import RuleCount
    from lakelet.testing.loading import PipelineFunctions, load_file
    from lakelet.testing.project import Metrics, Project, Rows

_PLACES = {
    **dict.fromkeys(("PipelineFunctions", "load_file"), "lakelet.testing.loading"),
    **dict.fromkeys(("Metrics", "Project", "Rows"), "lakelet.testing.project"),
    "RuleCount": "lakelet.storage.rule_counts",
}

__all__ = ["Metrics", "PipelineFunctions", "Project", "Rows", "RuleCount", "load_file"]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'lakelet.testing' has no attribute {name!r}")
