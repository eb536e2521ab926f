"""Which tables of a pipeline a stream can read: those whose commits only add rows (DS-10).

What is known before anything runs is refused, or noted, here. What only the commits of a table tell is found when a flow runs (`flows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakelet.base.errors import LakeletError, Location
from lakelet.language.model import Dataset, Flow, Kind

_SKIP = "skipchangecommits"
_TAKES_CHANGES = {_SKIP, "ignorechanges"}
_IN_A_VIEW = "as a batch, in a materialized view"


def check_streamed(
    dataset: Dataset, kind: Kind, flows: Sequence[Flow], options: Mapping[str, str], *, complete: bool, where: Location
) -> str | None:
    """Return the notice for a stream over the rows of `dataset`, or None. `complete`: the table is replaced by each of its micro-batches.

    Raises STREAM_SOURCE_UPDATED, at `where`, for a change table whose changes an option takes.
    """
    given = {key.lower() for key, value in options.items() if value.lower() == "true"}
    changes = next((f for f in flows if f.changes is not None), None)
    if changes is not None:
        why = f"it is the target of {changes.name}, whose change events update and delete rows; a stream reads added rows only"
        if given & _TAKES_CHANGES:
            raise LakeletError(
                "STREAM_SOURCE_UPDATED",
                f"it streams from {dataset.name}, whose rows are updated",
                where=where,
                why=f"{why}\nthe options skipChangeCommits and ignoreChanges do not go with such a table",
                todo=f"{remedies(str(dataset.name), batch=_IN_A_VIEW)}.",
            )
        return (
            f"{dataset.name} is the target of {changes.name}: the stream fails at the first commit that updates or deletes rows. "
            + remedies(str(dataset.name), batch=_IN_A_VIEW)
        )
    replacing = next((f.replaces.clause for f in flows if f.replaces is not None), None)
    if replacing is not None and not given & _TAKES_CHANGES:
        text = f"{dataset.name} is the target of a {replacing} flow: the stream fails at the first commit that takes rows away. "
        return text + remedies(str(dataset.name))
    if given & _TAKES_CHANGES:
        text = f"every commit of {dataset.name} replaces its rows; with skipChangeCommits a stream gets those it had first"
        return text if complete and _SKIP in given else None
    if complete:
        text = f"{dataset.name} aggregates without a watermark: the stream gets its first rows, and fails once they are replaced"
        return f"{text}. {remedies(str(dataset.name), batch='as a batch')}, or give its query a watermark: finished groups are added"
    if kind is Kind.MATERIALIZED_VIEW:
        text = f"{dataset.name} is a materialized view: the stream gets the rows that are added to it, and fails once one changes or goes"
        return f"{text}; with skipChangeCommits it goes on, without what that update brings"
    return None


def remedies(name: str, *, batch: str = _IN_A_VIEW) -> str:
    """Remedy for a stream over a table whose rows are updated."""
    feed = f'spark.readStream.option("readChangeFeed", "true").table("{name}")'
    return f"Read its changes with {feed}, or its rows {batch} (spark.read.table, dlt.read)"
