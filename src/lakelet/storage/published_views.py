"""The views that a pipeline publishes: `CREATE VIEW` in SQL (SQ-6). Their queries are kept beside the registry.

They are not datasets that are stored: only `lakelet sql` reads them, by running their query on what the tables hold then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from lakelet.base.errors import unknown_format
from lakelet.base.names import TableName
from lakelet.files.durable import write_atomically
from lakelet.language.model import Flow
from lakelet.storage.eventlog.views import EVENT_LOG, SOURCE
from lakelet.storage.root import Storage

_FILE, _FORMAT = "views.json", 1


@dataclass(frozen=True)
class PublishedView:
    """A view by its full name: the query, where names of it without catalog or schema live, and the id of the pipeline it belongs to."""

    name: str
    query: str
    catalog: str
    schema: str
    owner: str | None = None


def published(flows: Iterable[Flow]) -> list[PublishedView]:
    """The views among the flows' datasets that are published; `lakelet.language.sql.declaring` says which."""
    declared = (vars(flow.query).get("published") for flow in flows if hasattr(flow.query, "__dict__"))
    return [PublishedView(**view) for view in declared if view is not None]


def event_log_view(name: TableName) -> PublishedView:
    """The event log under the name that the pipeline gives it (EL-17)."""
    return PublishedView(str(name), f"SELECT * FROM {EVENT_LOG}.{SOURCE}", name.catalog, name.schema)


def save_views(storage: Storage, views: Iterable[PublishedView], *, owner: str) -> None:
    """Replace a pipeline's published views in the storage; nothing is written where nothing changed. Views of other pipelines stay."""
    before = load_views(storage)
    others = {key: view for key, view in before.items() if view.owner != owner}
    wanted = {**others, **{view.name.lower(): replace(view, owner=owner) for view in views}}
    if wanted != before:
        written = {"format": _FORMAT, "views": {key: asdict(view) for key, view in sorted(wanted.items())}}
        write_atomically(storage.system / _FILE, json.dumps(written, indent=1))


def published_view(storage: Storage, name: str) -> PublishedView | None:
    """The published view that a name of one to three parts means; None if there is none, or a table of that name."""
    registry = storage.registry()
    with suppress(ValueError):
        key = registry.namespace.resolve(name).key
        return None if key in registry.datasets else load_views(storage).get(key)
    return None


def load_views(storage: Storage) -> Mapping[str, PublishedView]:
    """The published views by their lower-case full names. Raises FORMAT_UNKNOWN."""
    try:
        kept = json.loads((storage.system / _FILE).read_text())
    except (FileNotFoundError, ValueError):  # cut off: the next update writes it again
        return {}
    if kept.get("format") != _FORMAT:
        raise unknown_format(_FILE, kept.get("format"), _FORMAT, remedy=f"remove {storage.system / _FILE}: the next update writes it.")
    return {key: PublishedView(**view) for key, view in kept["views"].items()}
