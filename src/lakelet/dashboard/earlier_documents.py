"""Documents of an earlier report that a new one takes over as they are: those of updates that have ended.

A report beside them notes what they depend on. A document of an update names datasets by their numbers, and shows for which inputs a flow
waited; it stays the same as long as datasets and inputs do. Taking one over is a second link to its file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from lakelet.base import VERSION
from lakelet.dashboard.documents import FORMAT, PAGE, Site

NOTE = "documents.json"
"""Beside the documents of a report."""


class EarlierDocuments:
    """The documents of the report in a folder that the report of `site` can take over; none if the folder is not a report."""

    def __init__(self, folder: Path, site: Site) -> None:
        self._data, self._sizes = folder / "data", _noted(folder / "data" / NOTE, site)

    def take_over(self, name: str, target: Path) -> bool:
        """Link the document's file as `target`; False if it has to be written."""
        source = self._data / target.name
        try:
            if name not in self._sizes or source.stat().st_size != self._sizes[name]:
                return False
            os.link(source, target)
        except OSError:  # another file system, or one without links
            return False
        return True


def note_documents(folder: Path, site: Site) -> None:
    """Note in the folder of a new report which of its documents stay as they are, with their sizes."""
    data = folder / "data"
    found = {name: [ids, (data / f"{name}.js").stat().st_size] for name, ids in _ended(site).items()}
    (data / NOTE).write_text(json.dumps({"names": _names(site), "documents": found}, separators=(",", ":")), encoding="utf-8")


def _noted(file: Path, site: Site) -> Mapping[str, int]:
    """The sizes of the documents that are the same in the report of `site`."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        before = found["documents"] if found["names"] == _names(site) else {}
        return {name: before[name][1] for name, ids in _ended(site).items() if name in before and before[name][0] == ids}
    except (OSError, ValueError, KeyError, TypeError, IndexError):  # not there, or damaged
        return {}


def _ended(site: Site) -> Mapping[str, str]:
    """The documents about ended updates alone, with a text that says which ones these are: of each update, and of each full page."""
    updates = site.history.updates
    found = {f"update-{update.number}": update.id for update in updates if update.state.has_ended}
    for page in range(len(updates) // PAGE):
        shown = updates[page * PAGE : (page + 1) * PAGE]
        if all(update.state.has_ended for update in shown):
            found[f"updates-{page}"] = _digest([update.id for update in shown])
    return found


def _names(site: Site) -> str:
    """What documents of updates depend on beside the update: the version of the page, the numbers of datasets, their inputs."""
    return _digest([VERSION, FORMAT, [[view.name, *view.inputs] for view in site.views]])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]


__all__ = ["NOTE", "EarlierDocuments", "note_documents"]
