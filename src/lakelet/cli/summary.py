"""The closing report of an update as lines: datasets, broken rules, checks, warnings, errors, next commands. Pure."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.base.text import aligned, counted, cut, listed, seconds_text, shortener, width_of
from lakelet.cli.lines import Line
from lakelet.language.model import Action
from lakelet.plan.graph import LAYERS, layers
from lakelet.storage.eventlog.states import WORST_FIRST, FlowState, UpdateState
from lakelet.storage.eventlog.summaries import SINK, DatasetSummary, RecordPlace, TableCheckResult, UpdateSummary
from lakelet.storage.rule_counts import RuleCount

_STATE_ORDER = (
    FlowState.COMPLETED,
    FlowState.IDLE,
    FlowState.EXCLUDED,
    FlowState.SKIPPED,
    FlowState.STOPPED,
    FlowState.FAILED,
)
SHOWN_DATASETS = 20
SHOWN_RULES = 10
SHOWN_WARNINGS = 10
_QUIET = (FlowState.IDLE, FlowState.EXCLUDED, FlowState.QUEUED)
_HEADER = ("layer", "dataset", "state", "rows", "dropped", "violations", "time")
_ROW_STYLES = {FlowState.FAILED: "bad", FlowState.SKIPPED: "warning", FlowState.STOPPED: "warning", FlowState.IDLE: "quiet"}
_SHORTEST_NAME = 12


def summary(
    update: UpdateSummary,
    state: UpdateState,
    errors: Sequence[LakeletError] = (),
    *,
    namespace: Namespace | None = None,
    storage: str | None = None,
    env: str | None = None,
    elapsed: float | None = None,
    following: Sequence[str] | None = None,
    sources: Sequence[str] = (),
    width: int | None = None,
    needs_spark: str = "",
) -> list[Line]:
    """The closing report of an update that ended in `state`.

    `errors` are those of the result; errors seen in events are added, each once. For the commands to try next: `namespace` is where
    unqualified names live, `storage` and `env` what `--storage` and `--env` they need. `elapsed` is the time since the process began.
    `following`: the commands to try next, where they are not those of a local storage. `sources`: the arguments of the
    run. `width`: that of the terminal, None to cut no line.
    `needs_spark`: why an update with nothing to do starts Spark, of the result. The outcome comes last, next to the prompt.
    """
    short = shortener(update.all_datasets)
    lines = [
        *_dataset_lines(update, short, width),
        *_broken_rules(update, short),
        *_check_lines(update, short),
        *_warning_lines(update, short),
    ]
    lines += [*_error_lines(update, errors), Line(""), *_outcome_lines(update, state, elapsed, needs_spark)]
    lines += _next_line(following or _next_commands(update, state, namespace or Namespace(), storage, sources, env))
    return lines[1:] if lines[0] == Line("") else lines


def _outcome_lines(update: UpdateSummary, state: UpdateState, elapsed: float | None, needs_spark: str) -> Iterator[Line]:
    style = {UpdateState.COMPLETED: "good", UpdateState.FAILED: "bad"}.get(state, "warning")
    of = f" of {update.pipeline}" if update.pipeline else ""
    whole = f", {seconds_text(elapsed)} with start-up" if elapsed is not None else ""
    yield Line(f"Update {update.id[:6]}{of} {state} in {seconds_text(update.seconds_so_far)}{whole}", style)
    counts, rows, dropped, quarantined = update.states, *(update.total(name) for name in ("rows", "dropped", "quarantined"))
    order = [*_STATE_ORDER, *(state for state in WORST_FIRST if state not in _STATE_ORDER)]
    facts = [f"{counts[name]:,} {name.lower()}" for name in order if counts[name]]
    if facts:
        less = f", {dropped:,} dropped" if dropped else ""
        less += f", {quarantined:,} of them quarantined" if quarantined else ""
        yield Line(f"  {counted(len(update.all_datasets), 'dataset')}: {', '.join(facts)}; {counted(rows, 'row')} written{less}")
    if facts and not rows and not dropped and set(counts) <= {FlowState.IDLE, FlowState.EXCLUDED}:
        yield Line("  Nothing new: no table was touched.")
        if needs_spark:
            yield Line(f"  Spark was started to find that out: {needs_spark.replace(f'{Path.cwd()}/', '')}.", "quiet")


def _layers(update: UpdateSummary) -> Mapping[str, str]:
    """The layer of each dataset: bronze, silver or gold. A sink is no reader that would make its source silver."""
    defined = [d for d in update.definitions.values() if d.kind != SINK]
    files = {d.name: d.source.file for d in defined if d.source}
    return layers({name: files.get(name) for name in update.all_datasets}, {d.name: d.sources for d in defined})


def _dataset_lines(update: UpdateSummary, short: Callable[[str], str], width: int | None) -> Iterator[Line]:
    """Lines of the datasets that ran and of the gold layer, by layer; of many, the failed ones and those with most rows."""
    layer, datasets = _layers(update), update.all_datasets
    worked = [name for name, d in datasets.items() if d.state not in _QUIET]
    if not worked:
        return
    gold = [name for name, d in datasets.items() if layer[name] == LAYERS[-1] and d.state is not FlowState.QUEUED]
    wanted = {
        name for names in (worked, gold) for name in sorted(names, key=lambda name: _importance_of_dataset(datasets[name]))[:SHOWN_DATASETS]
    }
    shown = [name for name in datasets if name in wanted]
    shown.sort(key=lambda name: LAYERS.index(layer[name]))
    first = 0 if len(set(layer.values())) > 1 else 1  # the column of layers is left out where there is only one
    rows = [(layer[name], short(name), *cells(datasets[name]))[first:] for name in shown]
    header = _HEADER[first:]
    yield Line("")
    for number, line in enumerate(
        aligned(_rows_fitted_to_width(rows, header, width), header=header, right=range(3 - first, 7 - first), indent="  ")
    ):
        yield Line(line, "heading" if number == 0 else _ROW_STYLES.get(datasets[shown[number - 1]].state, ""))
    left = sum(name not in wanted for name in worked)
    if left:
        yield Line(f"  and {counted(left, 'more dataset')}", "quiet")


def _rows_fitted_to_width(rows: list[tuple[str, ...]], header: tuple[str, ...], width: int | None) -> list[tuple[str, ...]]:
    """Return the rows, names cut where a line would be wider than the terminal."""
    if width is None:
        return rows
    at = header.index("dataset")
    others = [max(width_of(title), *(width_of(row[i]) for row in rows)) for i, title in enumerate(header) if i != at]
    room = max(_SHORTEST_NAME, width - 2 - sum(others) - 2 * len(others))
    return [(*row[:at], cut(row[at], room), *row[at + 1 :]) for row in rows]


def _importance_of_dataset(dataset: DatasetSummary) -> tuple[int, int]:
    grave = 0 if dataset.state is FlowState.FAILED else 1 if dataset.state in (FlowState.SKIPPED, FlowState.STOPPED) else 2
    return grave, -dataset.total("rows")


def cells(dataset: DatasetSummary) -> tuple[str, ...]:
    """One dataset as table cells: state, rows, dropped, violations, time."""
    dropped, quarantined, violations = (dataset.total(name) for name in ("dropped", "quarantined", "violations"))
    kept = f" ({quarantined:,} quarantined)" if quarantined else ""
    return (
        dataset.state,
        (f"{dataset.total('rows'):,}" if dataset.rows_known else "-") if dataset.started is not None else "",
        f"{dropped:,}{kept}" if dropped else "",
        f"{violations:,}" if violations else "",
        seconds_text(dataset.seconds) if dataset.seconds is not None else "",
    )


def _broken_rules(update: UpdateSummary, short: Callable[[str], str]) -> Iterator[Line]:
    """Lines of the rules that dropped rows, of those whose violations are kept, and of those that rows of failed batches broke."""
    broken, actions = _worst_first(update.written_counts_by_rule), update.rule_actions
    dropped = [one for one in broken if actions.get((one.dataset, one.name)) == Action.DROP.value]
    yield from _rule_lines("Dropped rows", dropped, short)
    yield from _rule_lines("Violations", [one for one in broken if one not in dropped], short)
    yield from _rule_lines("Violations in failed batches", _worst_first(update.unwritten_counts_by_rule), short)


def _worst_first(rules: Mapping[tuple[str, str], RuleCount]) -> list[RuleCount]:
    return sorted((count for count in rules.values() if count.failed), key=lambda c: (-c.failed, c.dataset, c.name))


def _rule_lines(title: str, broken: Sequence[RuleCount], short: Callable[[str], str]) -> Iterator[Line]:
    if not broken:
        return
    yield Line("")
    yield Line(title, "warning")
    rows = [(short(c.dataset), c.name, f"{c.failed:,}", f"of {counted(c.rows, 'row')}") for c in broken[:SHOWN_RULES]]
    yield from (Line(line) for line in aligned(rows, right=(2,), indent="  "))
    if len(broken) > SHOWN_RULES:
        yield Line(f"  and {counted(len(broken) - SHOWN_RULES, 'more rule')}", "quiet")


def _check_lines(update: UpdateSummary, short: Callable[[str], str]) -> Iterator[Line]:
    """Number of table checks that passed, and a line for each failed one, critical ones first."""
    if not update.checks:
        return
    held, failed, left = ([c for c in update.checks if c.success is kind] for kind in (True, False, None))
    counts = [f"{len(held):,} held", *([f"{len(failed):,} failed"] if failed else []), *([f"{len(left):,} not run"] if left else [])]
    yield Line("")
    critical = sum(check.severity == "critical" for check in failed)
    so = f"; {counted(critical, 'critical one')}: exit code 1" if critical else ""
    yield Line(f"Table checks: {', '.join(counts)}{so}", "bad" if critical else "warning" if failed or left else "good")
    shown = sorted(failed, key=lambda check: check.severity != "critical")
    rows = [(short(c.dataset), c.name, c.severity, f"expected {c.expected}", _check_facts(c)) for c in shown[:SHOWN_RULES]]
    yield from (Line(line) for line in aligned(rows, indent="  "))
    if len(shown) > SHOWN_RULES:
        yield Line(f"  and {counted(len(shown) - SHOWN_RULES, 'more check')}", "quiet")
    if left:
        why = _check_facts(left[0]).removeprefix("not run: ")
        yield Line(f"  not run: {listed([f'{short(c.dataset)}.{c.name}' for c in left], SHOWN_RULES)} ({why})")


def _check_facts(check: TableCheckResult) -> str:
    """The observed value, or why there is none."""
    return "; ".join(text for text in (check.note, check.observed) if text)


def _warning_lines(update: UpdateSummary, short: Callable[[str], str]) -> Iterator[Line]:
    found = list(warning_texts(update, short))
    if not found:
        return
    yield Line("")
    yield Line("Warnings", "warning")
    yield from (Line("  " + text) for text in found[:SHOWN_WARNINGS])
    if len(found) > SHOWN_WARNINGS:
        yield Line(f"  and {counted(len(found) - SHOWN_WARNINGS, 'more warning')}", "quiet")


def warning_texts(update: UpdateSummary, short: Callable[[str], str]) -> Iterator[str]:
    """Yield a sentence for everything that did not fail the update but matters: broken lines, rescued values, late rows, new columns."""
    for name, dataset in update.all_datasets.items():
        yield from (f"{short(name)}: {text}" for text in _unread_texts(dataset))
    for name, dataset in update.all_datasets.items():
        if dataset.total("late"):
            yield f"{short(name)}: left out {counted(dataset.total('late'), 'row')} that came later than the watermark allows"
    for change in update.schema_changes:
        columns = [f"{name} {kind}".strip() for name, kind in change.added or change.widened]
        brought = f", first seen in {_without_scheme(change.file)}" if change.file else ""
        word = "widened type of" if not change.added else "new column" if len(columns) == 1 else "new columns"
        yield f"{short(change.dataset)}: {word} {listed(columns, 6)}{brought}"
    yield from (warning.text for warning in update.warnings if not warning.counted)


def _unread_texts(dataset: DatasetSummary) -> Iterator[str]:
    """What is said of records of sources that did not fit the schema: kept, left out, or read in part."""
    place = next((run.unread_place for run in dataset.runs if run.unread_place), RecordPlace(""))
    line = f", {place.unit} {place.line}" if place.line else ""  # 0: the file as a whole
    first = f" (first: {_without_scheme(place.file)}{line})" if place.file else ""
    left_out, rescued = dataset.total("left_out"), dataset.total("rescued")
    corrupt = dataset.total("corrupt") - left_out
    facts = [counted(corrupt, f"broken {place.unit}")] if corrupt else []
    facts += [counted(rescued, "row with rescued values", "rows with rescued values")] if rescued else []
    if facts:
        yield f"kept {' and '.join(facts)}{first}"
    if left_out:
        what = counted(left_out, f"broken {place.unit} or file", f"broken {place.unit}s or files")
        yield f"left out {what}, as the options of its source say{'' if facts else first}"
    if dataset.total("passed_over"):
        what = counted(dataset.total("passed_over"), "line or document", "lines or documents")
        yield f"read only the first JSON value of {what} that go on after it{first if not (facts or left_out) else ''}"
    if dataset.total("undecodable"):
        reason = next((run.unread_reason for run in dataset.runs if run.unread_reason), "")
        what = counted(dataset.total("undecodable"), "record")
        yield f"{what} with bytes that are not of the encoding{f': {reason}' if reason else first}"


def _without_scheme(path: str) -> str:
    return path.removeprefix("file://").removeprefix("file:")


def _error_lines(update: UpdateSummary, errors: Sequence[LakeletError]) -> Iterator[Line]:
    """Lines of the errors of the result and of the flows that failed, each text once."""
    of_flows = [run.failure.text for run in update.runs if run.failure is not None and run.failure.code]
    unique = list(dict.fromkeys(["\n".join(error.lines()) for error in errors] + of_flows))
    if not unique:
        return
    yield Line("")
    yield Line("Errors" if len(unique) > 1 else "Error", "bad")
    for number, text in enumerate(unique):
        head, *rest = text.split("\n")
        if number:
            yield Line("")
        yield Line("  " + head, "bad")
        yield from (Line("  " + line) for line in rest)


def program() -> str:
    """Return how to start the command: its name where the shell finds it, else as it was typed."""
    typed = Path(sys.argv[0])
    return str(typed) if typed.name == "lakelet" and not shutil.which("lakelet") else "lakelet"


def _next_line(commands: Sequence[str]) -> Iterator[Line]:
    yield Line("Next: " + "  ·  ".join(commands), "quiet")


def _next_commands(
    update: UpdateSummary, state: UpdateState, namespace: Namespace, storage: str | None, sources: Sequence[str], env: str | None
) -> list[str]:
    option = (f" --storage {shlex.quote(storage)}" if storage else "") + (f" --env {env}" if env else "")
    commands = []
    lakelet = program()
    prefix = f"{namespace.catalog}.{namespace.schema}."
    written = [name for name, d in update.all_datasets.items() if d.total("rows") and not d.to_sink]
    if state is not UpdateState.COMPLETED:
        commands.append(f"{lakelet} events --update {update.id[:6]}{option}")
    if state is not UpdateState.COMPLETED and update.unfinished:
        commands.append(" ".join([f"{lakelet} run", *map(shlex.quote, sources), f"--refresh-failed{option}"]))
    table = f" {shlex.quote(written[-1].removeprefix(prefix))}" if written else ""
    commands.append(f"{lakelet} show{table}{option}")
    holding = next((name.removeprefix(prefix) for name, d in update.all_datasets.items() if d.total("quarantined")), None)
    if holding is not None:
        commands.append(f"{lakelet} quarantine show {shlex.quote(holding)}{option}")
    if state is UpdateState.COMPLETED:
        commands.append(f"{lakelet} env promote {env}" if env else f"{lakelet} events{option}")
    return commands


__all__ = ["Line", "cells", "program", "summary", "warning_texts"]
