"""Settings of views: they count for each flow that reads the view (docs/semantics/language.md, LG-20 ff)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakelet.base.errors import LakeletError
from lakelet.language.model import Dataset

_OF_TABLES = "pipelines."


def view_settings(views: Iterable[Dataset], own: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The settings that a flow takes over from the views it reads, and notices about those that it has another value for.

    `own`: those of the flow and of its dataset, which win. Raises VIEW_SETTINGS_DIFFER where two views do not agree and `own` says nothing.
    """
    found: dict[str, Dataset] = {}
    notices = []
    for view in views:
        for key, value in view.spark_conf.items():
            first = found.setdefault(key, view)
            if key.startswith(_OF_TABLES):
                continue
            if key in own:
                if own[key] != value:
                    notices.append(f"{key} = {value} of the view {view.name} has no effect here: the flow that reads it sets {own[key]}")
            elif first.spark_conf[key] != value:
                raise LakeletError(
                    "VIEW_SETTINGS_DIFFER",
                    f"it reads the views {first.name} and {view.name}, whose spark_conf give {key} the values "
                    f"{first.spark_conf[key]!r} and {value!r}",
                    where=view.where,
                    todo="Give both one value, or set it in the spark_conf of the flow or table that reads them.",
                )
    return {key: view.spark_conf[key] for key, view in found.items() if key not in own and not key.startswith(_OF_TABLES)}, notices
