"""Checks of whole tables after the flows of an update: on the versions that are stored then, each version once (TC-1 to TC-10).

A check reads; it changes nothing but the event log and `system/checks.json`. The file is written when the events are in the log. So a
process that dies before that leaves the version to the next update, and events that the log has already are not written again.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from lakelet.base.failpoints import reached
from lakelet.files.delta_log import TableLog
from lakelet.language.model import Kind
from lakelet.quality.definitions import TableCheck
from lakelet.quality.validation import Outcome, freshness, is_fresh, validate
from lakelet.spark.session_clones import flow_session
from lakelet.storage.checked_versions import CheckedVersion, load_checked, save_checked
from lakelet.storage.eventlog.reading import known_ids
from lakelet.storage.eventlog.states import EventType, Level
from lakelet.storage.root import StoredDataset
from lakelet.update.opened import OpenedPipeline

CRITICAL = "critical"
_LEVELS = {CRITICAL: Level.ERROR, "warning": Level.WARN, "info": Level.INFO}


@dataclass(frozen=True)
class _Table:
    """One table that has checks, at the version it has now."""

    key: str
    stored: StoredDataset
    id: str
    version: int
    checks: tuple[TableCheck, ...]

    @property
    def definitions(self) -> str:
        text = "|".join(f"{check.name}={check.digest}" for check in self.checks)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def is_at(self, before: CheckedVersion | None) -> bool:
        """Whether this version was checked, by the same checks."""
        return before is not None and (self.id, self.version, self.definitions) == (before.table, before.version, before.definitions)


@dataclass
class TableChecks:
    """The checks of one update. `failed`: the critical ones that fail for the tables as they are now, `dataset.check`."""

    opened: OpenedPipeline
    failed: list[str] = field(default_factory=list)
    _checked: dict[str, CheckedVersion] = field(default_factory=dict)
    _has_looked: bool = False

    def run(self) -> None:
        """Check each table whose version was not checked yet, and report the results."""
        if not self.opened.checks:
            return
        before = self._checked if self._has_looked else load_checked(self.opened.storage)
        self._checked, self._has_looked, self.failed = dict(before), True, []
        tables, now = list(self._tables(before)), datetime.now(timezone.utc)
        new = [table for table in tables if not table.is_at(before.get(table.key))]
        for table in tables:
            if table not in new:
                self._still(table, before[table.key], now)
        if new:
            with ExitStack() as stack:
                self._check(new, stack, now)

    def save(self) -> None:
        """Remember what was checked; called when the events are in the log."""
        if self._has_looked:
            reached("checks.reported")
            save_checked(self.opened.storage, self._checked)

    def _tables(self, before: Mapping[str, CheckedVersion]) -> Sequence[_Table]:
        registry, found = self.opened.storage.registry(), []
        for key, checks in self.opened.checks.items():
            stored = registry.datasets.get(key)
            if stored is None or stored.kind is Kind.SINK or not stored.path or key not in self.opened.environment.catalog.datasets:
                continue
            log = TableLog(self.opened.storage.at(stored.path))
            known = before.get(key)
            version = log.version() if known is None else log.content_version(known.version)
            if version >= 0:
                found.append(_Table(key, stored, log.table_id() or "", version, checks))
        return found

    def _still(self, table: _Table, before: CheckedVersion, now: datetime) -> None:
        """A version that was checked: its result stands. Only what is fresh grows old by itself."""
        stale = []
        for check in table.checks:
            if not is_fresh(check) or check.name not in before.newest:
                continue
            outcome = freshness(check, before.newest[check.name], now)
            stale += [] if outcome.success else [check.name]
            if (check.name in before.stale) == outcome.success:
                self._emit(table, outcome, str(uuid.uuid4()))
        self._checked[table.key] = replace(before, stale=tuple(stale))
        critical = {check.name for check in table.checks if check.severity == CRITICAL}
        failed = [*(name for name in before.failed if name not in before.newest), *(name for name in stale if name in critical)]
        if failed:
            text = f"version {table.version} of {table.stored.name} still fails critical checks: {', '.join(failed)}"
            self.opened.reporter.notice(text, dataset=table.stored.name)
            self.failed += [f"{table.stored.name}.{name}" for name in failed]

    def _check(self, tables: Sequence[_Table], stack: ExitStack, now: datetime) -> None:
        session: AbstractContextManager[SparkSession] = flow_session(self.opened.environment.spark, {})
        spark = stack.enter_context(session)
        for table in tables:
            others = self._views(spark, table)
            rows = spark.read.format("delta").option("versionAsOf", str(table.version)).load(str(self.opened.storage.at(table.stored.path)))
            outcomes = validate(rows, table.checks, others, now)
            reached("checks.validated")
            ids = {outcome.check.name: _event_id(table, outcome) for outcome in outcomes}
            known = known_ids(self.opened.storage.events, EventType.TABLE_CHECK, ids.values())
            for outcome in outcomes:
                if ids[outcome.check.name] not in known:
                    self._emit(table, outcome, ids[outcome.check.name])
            self._checked[table.key] = _remembered(table, outcomes)
            self.failed += [f"{table.stored.name}.{name}" for name in self._checked[table.key].failed]

    def _views(self, spark: SparkSession, table: _Table) -> Mapping[str, str | None]:
        """A view of each table that a check refers to, at the version that it has now."""
        registry, found = self.opened.storage.registry(), dict[str, str | None]()
        for check in table.checks:
            name = check.check.arguments["table"] if check.check and check.check.kind == "references" else None
            if name is None or name in found:
                continue
            stored = registry.datasets.get(self.opened.config.namespace.resolve(name).key)
            path = self.opened.storage.at(stored.path) if stored is not None and stored.path else None
            version = TableLog(path).version() if path is not None else -1
            found[name] = None
            if version >= 0:
                found[name] = f"lakelet_other_{len(found)}"
                spark.read.format("delta").option("versionAsOf", str(version)).load(str(path)).createOrReplaceTempView(str(found[name]))
        return found

    def _emit(self, table: _Table, outcome: Outcome, id: str) -> None:
        check, name = outcome.check, table.stored.name
        owner = self.opened.environment.catalog.datasets[table.key].owner
        said = "holds" if outcome.success else "fails"
        facts = "; ".join(text for text in (outcome.message, f"observed {outcome.observed}" if outcome.observed else "") if text)
        message = f"Check '{check.name}' of '{name}' {said}: expected {check.expected}" + (f"; {facts}" if facts else "")
        message += "" if message.endswith("?") else "."
        body = {
            "dataset": name,
            "table_version": table.version,
            "name": check.name,
            "severity": check.severity,
            "success": outcome.success,
            "observed": outcome.observed,
            "expected": check.expected,
            "message": outcome.message or None,
            **({"owner": owner} if owner else {}),
            **check.about,
        }
        level = Level.INFO if outcome.success else _LEVELS.get(check.severity, Level.WARN)
        self.opened.reporter.emit(EventType.TABLE_CHECK, message, body, dataset=name, level=level, id=id)


def _event_id(table: _Table, outcome: Outcome) -> str:
    """The same for the same check of the same version, however often it is made."""
    parts = [table.key, table.id, str(table.version), outcome.check.name, outcome.check.digest]
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "|".join(["lakelet:check", *parts])))


def _remembered(table: _Table, outcomes: Sequence[Outcome]) -> CheckedVersion:
    failed = tuple(o.check.name for o in outcomes if not o.success and o.check.severity == CRITICAL)
    fresh = [o for o in outcomes if is_fresh(o.check) and not o.message]
    newest = {o.check.name: o.newest for o in fresh}
    return CheckedVersion(table.id, table.version, table.definitions, failed, newest, tuple(o.check.name for o in fresh if not o.success))
