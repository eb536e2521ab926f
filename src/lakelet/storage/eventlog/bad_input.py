"""Input that flows could not read whole, by dataset and kind, over the updates. Computed from a `History`; no reads.

The view `bad_input` of the event log gives the same in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakelet.storage.eventlog.summaries import FlowSummary, History, RecordPlace


@dataclass(frozen=True, slots=True)
class InputProblem:
    """A kind of bad input: its cause, and what to do about it."""

    name: str
    cause: str
    remedy: str


PROBLEMS = (
    InputProblem(
        "broken",
        "lines or records that do not parse",
        "Correct the file at its source; the text is in the column for corrupt records.",
    ),
    InputProblem(
        "left out",
        "records that the options of the source leave out",
        "Look into the file; without mode DROPMALFORMED, badRecordsPath and ignoreCorruptFiles they are kept.",
    ),
    InputProblem(
        "rescued",
        "values that do not fit the type or the name of their column",
        "Look at _rescued_data; give a schema hint, or add the column.",
    ),
    InputProblem(
        "unread text",
        "text after the first JSON value of a line or document",
        "Write one value a line, or read the file with multiLine.",
    ),
    InputProblem(
        "undecodable",
        "bytes that are not of the encoding",
        "Give the option encoding, or write the file in UTF-8.",
    ),
    InputProblem(
        "late",
        "rows that came later than the watermark allows",
        "Allow more delay in withWatermark, or find out why the source is late.",
    ),
)


@dataclass(frozen=True, slots=True)
class BadInput:
    """One kind of bad input of a dataset. `points`: (number of the update, records), oldest first.

    `place`: the first record of the newest update that has one; `reason`: what that update says of undecodable bytes.
    """

    dataset: str
    problem: InputProblem
    points: tuple[tuple[int, int], ...]
    place: RecordPlace | None
    reason: str

    @property
    def remedy(self) -> str:
        """What to do, by the event itself where it says it."""
        return self.reason or self.problem.remedy


def bad_input(history: History) -> tuple[BadInput, ...]:
    """Return the kinds of bad input of each dataset that have any, by dataset, in the order of `PROBLEMS`."""
    found: dict[tuple[str, str], dict[int, int]] = {}
    last: dict[tuple[str, str], FlowSummary] = {}
    for update in history.updates:
        for run in update.runs:
            for name, records in _counts(run):
                if records:
                    points = found.setdefault((run.dataset, name), {})
                    points[update.number] = points.get(update.number, 0) + records
                    last[run.dataset, name] = run
    return tuple(
        BadInput(
            dataset,
            problem,
            tuple(sorted(found[dataset, problem.name].items())),
            _place(problem.name, last[dataset, problem.name]),
            last[dataset, problem.name].unread_reason if problem.name == "undecodable" else "",
        )
        for dataset in sorted({dataset for dataset, _ in found})
        for problem in PROBLEMS
        if (dataset, problem.name) in found
    )


def _place(problem: str, run: FlowSummary) -> RecordPlace | None:
    """The first record of that kind; of the kinds without a place of their own, the first of any kind."""
    if problem == "late":
        return None
    own = {"broken": run.corrupt_place, "left out": run.corrupt_place, "rescued": run.rescued_place}.get(problem)
    return own or run.unread_place


def _counts(run: FlowSummary) -> Iterator[tuple[str, int]]:
    """Records of each kind; those that were left out are not among the broken ones."""
    yield "broken", run.corrupt - run.left_out
    yield "left out", run.left_out
    yield "rescued", run.rescued
    yield "unread text", run.passed_over
    yield "undecodable", run.undecodable
    yield "late", run.late
