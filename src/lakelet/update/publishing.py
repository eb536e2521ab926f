"""Publishing at the end of an update: what changed is registered in the catalogs that the settings name (PB-1 to PB-6).

The tables are written by then, whatever comes of it. What a catalog refuses is an error of the update's result and an event; it changes
neither tables nor the state of the update.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lakelet.base.errors import LakeletError
from lakelet.base.text import counted
from lakelet.storage.catalogs.publishing import Action, PublishResult, catalogs, publish
from lakelet.storage.eventlog.states import EventType, Level
from lakelet.update.opened import OpenedPipeline

_CHANGES = (Action.CREATED, Action.UPDATED, Action.REMOVED)


@dataclass
class Publishing:
    """The publishing of one update. `errors`: those of the tables and catalogs, as they are now."""

    opened: OpenedPipeline
    errors: list[LakeletError] = field(default_factory=list)

    def run(self) -> None:
        """Publish what changed in the pipeline's tables. An environment publishes nothing."""
        opened = self.opened
        if opened.storage.base is not None:
            return
        self.errors = []
        for catalog in catalogs(opened.config.publish, lambda: opened.environment.spark):
            try:
                found = publish(opened.storage, catalog, owners=opened.owner.ids)
            except LakeletError as problem:
                self._failed(catalog.kind, problem)
                continue
            except Exception as problem:  # the tables are written, and whatever this is must not fail their update
                why = f"{type(problem).__name__}: {problem}"
                self._failed(catalog.kind, LakeletError("PUBLISH_FAILED", "the tables could not be published", why=why))
                continue
            for result in found:
                if result.error is not None:
                    self._failed(catalog.kind, result.error)
            self._report(catalog.kind, found)

    def _failed(self, kind: str, problem: LakeletError) -> None:
        self.errors.append(problem)
        text = f"Publishing in the catalog '{kind}' has failed: {problem.what}."
        self.opened.reporter.emit(
            EventType.NOTICE, text, {"text": text, "catalog": kind}, dataset=problem.dataset, level=Level.ERROR, error=problem
        )

    def _report(self, kind: str, found: list[PublishResult]) -> None:
        """Emit a notice that says how many tables were registered and removed, if any."""
        counts = [(action, sum(result.action is action for result in found)) for action in _CHANGES]
        words = [f"{counted(count, 'table')} {action.value}" for action, count in counts if count]
        if words:
            tables = [result.as_json() for result in found if result.action in _CHANGES]
            text = f"Published in the catalog '{kind}': {', '.join(words)}."
            self.opened.reporter.notice(text, level=Level.INFO, catalog=kind, tables=tables)


__all__ = ["Publishing"]
