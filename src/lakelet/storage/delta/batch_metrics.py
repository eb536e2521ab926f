"""What a flow found out while it wrote one batch: kept in the commit of its rows, reported as an event (EL-7). No Spark.

    rows written, dropped, late           by the write, the rules and the watermark
    expectations: RuleCount per rule     passed and failed records; of the target's rules, then of those of the views that were read
    sources: SourceRecords per source     records of files, rescued and corrupt ones, the first file and line of these
    quarantined                           rows of those dropped that the quarantine keeps; None without one
    bytes                                 of the files that the batch adds to the table; None where they are not known
    changed: RowChanges                   of a change table: rows upserted, deleted, written again
    view: ComputedFrom                    of a materialized view: what its content was computed from
    batch: SnapshotBatch                  of a change flow that reads batches: its generation, and the version of its snapshot

`BatchMetrics` goes from the flow to the writer of the table (`Measure`), comes back with the result of the write, is summed up over an
update (`Totals`) and becomes an event. The next update reads it from the commits of one that died. The keys of the JSON are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from lakelet.plan.refresh_choice import Learned
from lakelet.storage.rule_counts import RowSample, RuleCount

KEY = "lakelet"
"""The key in a commit's user metadata under which Lakelet keeps what belongs to the batch."""


_TEXTS = ("first_text", "corrupt_text", "rescued_text", "rescued_column")
_PLACES = ("corrupt_file", "corrupt_line", "rescued_file", "rescued_line", *_TEXTS)
_RARE = ("left_out", "passed_over", "undecodable", "reason", "unit", *_PLACES)


@dataclass(frozen=True)
class SourceRecords:
    """What a source of files reported about its records. `source`: its path; None where nothing was reported.

    `left_out`: those of the corrupt ones that are in no row, by `badRecordsPath` or the mode; a file that cannot be read counts as one.
    `passed_over`: lines or documents with text after their first JSON value, which is not read (FF-30).
    `undecodable`: lines with bytes that are not of the encoding; `reason` says which bytes the first of them has (FF-31).
    `corrupt_file`, `corrupt_line`, `rescued_file`, `rescued_line`: the first record of each of these two kinds.
    `first_text`, `corrupt_text`: what these records say, `rescued_text` the value and `rescued_column` its column; with samples only.
    `unit`: `record` where `first_line` is the number of a record, None for that of a line.
    """

    source: str
    records: int | None = 0
    rescued: int | None = 0
    corrupt: int | None = 0
    first_file: str | None = None
    first_line: int | None = None
    left_out: int | None = 0
    passed_over: int | None = 0
    undecodable: int | None = 0
    reason: str | None = None
    unit: str | None = None
    corrupt_file: str | None = None
    corrupt_line: int | None = None
    rescued_file: str | None = None
    rescued_line: int | None = None
    first_text: str | None = None
    corrupt_text: str | None = None
    rescued_text: str | None = None
    rescued_column: str | None = None

    @property
    def is_worth_telling(self) -> bool:
        """Whether some of it was not read as it stands in the files."""
        return bool(self.rescued or self.corrupt or self.passed_over or self.undecodable)

    def plus(self, other: SourceRecords) -> SourceRecords:
        """Both together; the first file and line are those of the earlier one that has them, or a reason too."""
        first = min((self, other), key=lambda one: (one.first_file is None, one.reason is None))
        corrupt = self if self.corrupt_file is not None else other
        rescued = self if self.rescued_file is not None else other
        return SourceRecords(
            self.source,
            (self.records or 0) + (other.records or 0),
            (self.rescued or 0) + (other.rescued or 0),
            (self.corrupt or 0) + (other.corrupt or 0),
            first.first_file,
            first.first_line,
            (self.left_out or 0) + (other.left_out or 0),
            (self.passed_over or 0) + (other.passed_over or 0),
            (self.undecodable or 0) + (other.undecodable or 0),
            first.reason,
            first.unit,
            corrupt.corrupt_file,
            corrupt.corrupt_line,
            rescued.rescued_file,
            rescued.rescued_line,
            first.first_text,
            corrupt.corrupt_text,
            rescued.rescued_text,
            rescued.rescued_column,
        )

    def as_event(self) -> dict[str, Any]:
        """As its event tells it: all fields, but places only of kinds that there were."""
        return {key: value for key, value in asdict(self).items() if value is not None or key not in _PLACES}

    def as_json(self) -> dict[str, Any]:
        """As kept in the commit; what few sources have has no key where there is nothing of it."""
        return {key: value for key, value in asdict(self).items() if value or key not in _RARE}


@dataclass(frozen=True)
class RowChanges:
    """What a batch of changes did: rows of the target inserted or updated, and deleted; rows and bytes written, moved rows included."""

    upserted: int
    deleted: int
    rewritten: int
    bytes: int | None = None

    def as_json(self) -> dict[str, int]:
        """The counts under the names that commits give them."""
        counts = {"rows": self.upserted, "upserted": self.upserted, "deleted": self.deleted, "rewritten": self.rewritten}
        return counts if self.bytes is None else {**counts, "bytes": self.bytes}


@dataclass(frozen=True)
class ComputedFrom:
    """Fingerprint of a materialized view, the versions of its inputs, how it was brought to these, and what its refreshes have cost.

    `technique`: name of a `Technique` in lower case; None in commits of earlier versions. `rows`: about how many the view has.
    """

    fingerprint: str
    inputs: Mapping[str, int]
    technique: str | None = None
    rows: int | None = None
    learned: Learned = field(default_factory=Learned)

    def as_json(self) -> dict[str, Any]:
        """As kept in the commit; what is not known has no key."""
        learned = {name: value for name, value in asdict(self.learned).items() if value is not None}
        found: dict[str, Any] = {"fingerprint": self.fingerprint, "inputs": dict(self.inputs)}
        known = {"technique": self.technique, "rows": self.rows, "learned": learned or None}
        return {**found, **{name: value for name, value in known.items() if value is not None}}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> ComputedFrom:
        """What a commit of an older or newer version keeps."""
        technique, rows = kept.get("technique"), kept.get("rows")
        return cls(kept["fingerprint"], kept["inputs"], technique, rows, Learned(**_known(Learned, kept.get("learned") or {})))


@dataclass(frozen=True)
class SnapshotBatch:
    """`generation`: of the flow's checkpoint; `snapshot`: the version in its stored form, None for a batch that is not a snapshot."""

    generation: str
    snapshot: Any


@dataclass(frozen=True)
class BatchMetrics:
    """What was found out about one batch.

    `event_id`: of the event that reports it. `batch_id`: number of the micro-batch, None for a materialized view. `dropped`: rows that drop
    rules left out; `late`: rows that the watermark left out. `released`: rows that `lakelet quarantine replay` gave back.
    `anything`: whether anything came in that counts; None where the batch is committed in any case. `samples`: a few rows that broke rules.
    """

    event_id: str
    update_id: str
    dataset: str
    flow: str
    batch_id: int | None
    rows: int
    dropped: int = 0
    expectations: tuple[RuleCount, ...] = ()
    late: int = 0
    sources: tuple[SourceRecords, ...] = ()
    anything: bool | None = None
    view: ComputedFrom | None = None
    batch: SnapshotBatch | None = None
    changed: RowChanges | None = None
    quarantined: int | None = None
    released: int | None = None
    bytes: int | None = None
    samples: tuple[RowSample, ...] = ()

    @property
    def worth_a_commit(self) -> bool:
        """Whether the batch is committed also without a row."""
        return self.anything is not False

    def with_anything(self) -> BatchMetrics:
        """With `anything`: rows, also those dropped, late or only judged, and records that did not fit."""
        judged = any(rule.rows for rule in self.expectations)
        unfit = any(source.is_worth_telling for source in self.sources)
        return replace(self, anything=bool(self.rows or self.dropped or self.late or judged or unfit))

    def with_changes(self, changed: RowChanges) -> BatchMetrics:
        """With what a batch of changes did; `rows` are those that it inserted or updated."""
        return replace(self, rows=changed.upserted, changed=changed, bytes=changed.bytes)

    def with_files(self, files: Sequence[Any]) -> BatchMetrics:
        """With the bytes of the files, Delta's actions, that the batch adds."""
        return replace(self, bytes=size_of(files))

    def as_json(self) -> dict[str, Any]:
        """As kept in the commit; a part that the batch does not have has no key."""
        return {
            "event_id": self.event_id,
            "update_id": self.update_id,
            "dataset": self.dataset,
            "flow": self.flow,
            "batch_id": self.batch_id,
            "rows": self.rows,
            "dropped": self.dropped,
            "expectations": [asdict(rule) for rule in self.expectations],
            "late": self.late,
            "sources": [source.as_json() for source in self.sources],
            **({} if self.anything is None else {"anything": self.anything}),
            **({} if self.view is None else {"view": self.view.as_json()}),
            **({} if self.batch is None else asdict(self.batch)),
            **({} if self.changed is None else self.changed.as_json()),
            **({} if self.quarantined is None else {"quarantined": self.quarantined}),
            **({} if self.released is None else {"released": self.released}),
            **({} if self.bytes is None else {"bytes": self.bytes}),
            **({"samples": [asdict(sample) for sample in self.samples]} if self.samples else {}),
        }

    def user_metadata(self) -> dict[str, Any]:
        """The user metadata of the batch's commit."""
        return {KEY: self.as_json()}

    @classmethod
    def of_commit(cls, user_metadata: Mapping[str, Any] | None) -> BatchMetrics | None:
        """What a commit with this user metadata keeps; None if it belongs to no batch of Lakelet."""
        kept = (user_metadata or {}).get(KEY)
        return cls.from_json(kept) if kept else None

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> BatchMetrics:
        """What a commit keeps, also one of an older or newer version: keys that are not known are left out."""
        return cls(
            **{name: kept[name] for name in ("event_id", "update_id", "dataset", "flow", "batch_id", "rows", "dropped", "late")},
            expectations=tuple(RuleCount(**_known(RuleCount, rule)) for rule in kept["expectations"]),
            sources=tuple(SourceRecords(**_known(SourceRecords, source)) for source in kept["sources"]),
            anything=kept.get("anything"),
            view=ComputedFrom.from_json(kept["view"]) if kept.get("view") else None,
            batch=SnapshotBatch(kept["generation"], kept.get("snapshot")) if "generation" in kept else None,
            changed=_changes(kept),
            quarantined=kept.get("quarantined"),
            released=kept.get("released"),
            bytes=kept.get("bytes"),
            samples=tuple(RowSample(**_known(RowSample, sample)) for sample in kept.get("samples", ())),
        )


def size_of(files: Sequence[Any]) -> int:
    """The bytes of files, Delta's actions."""
    return sum(int(file.size()) for file in files)


def _changes(kept: Mapping[str, Any]) -> RowChanges | None:
    """What a commit keeps about changes of rows."""
    return RowChanges(kept["upserted"], kept["deleted"], kept["rewritten"], kept.get("bytes")) if "upserted" in kept else None


def _known(kind: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(kind) if one.name in values}
