"""The views that a pipeline publishes: `CREATE VIEW` in SQL (dlt-semantics 2.1). Their queries are kept beside the registry. Layer 3.

They are no datasets that are stored: only `lakelet sql` reads them, by running their query on what the tables hold then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from lakelet.model import Flow
from lakelet.storage import Storage, write_atomically

_FILE = "views.json"


@dataclass(frozen=True)
class PublishedView:
    """A view by its full name: the query, and where names of it without catalog or schema live."""

    name: str
    query: str
    catalog: str
    schema: str


def published(flows: Iterable[Flow]) -> list[PublishedView]:
    """The views among the flows' datasets that are published; `lakelet.sql.declaring` tells which."""
    told = (vars(flow.query).get("published") for flow in flows if hasattr(flow.query, "__dict__"))
    return [PublishedView(**view) for view in told if view is not None]


def save_views(storage: Storage, views: Iterable[PublishedView]) -> None:
    """Replace the published views of the storage; nothing is written where nothing changed."""
    wanted = {view.name.lower(): view for view in views}
    if wanted != load_views(storage):
        write_atomically(storage.system / _FILE, json.dumps({key: asdict(view) for key, view in sorted(wanted.items())}, indent=1))


def load_views(storage: Storage) -> Mapping[str, PublishedView]:
    """The published views by their lower-case full names."""
    try:
        text = (storage.system / _FILE).read_text()
    except FileNotFoundError:
        return {}
    return {key: PublishedView(**view) for key, view in json.loads(text).items()}
