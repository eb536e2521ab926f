"""The closing report of an update: datasets, broken rules, checks, warnings, errors, next commands. Pure: a tally in, lines out."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.base.text import aligned, counted, cut, listed, seconds_text, shortener, width_of
from lakelet.cli.lines import Line
from lakelet.cli.tally import DatasetTally, Tally
from lakelet.language.model import Action
from lakelet.plan.graph import LAYERS
from lakelet.storage.eventlog.states import WORST_FIRST, FlowState, UpdateState
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
    tally: Tally,
    state: UpdateState,
    errors: Sequence[LakeletError] = (),
    *,
    namespace: Namespace | None = None,
    storage: str | None = None,
    elapsed: float | None = None,
    following: Sequence[str] | None = None,
    width: int | None = None,
    needs_spark: str = "",
) -> list[Line]:
    """The closing report of an update that ended in `state`.

    `errors` are those of the result; errors seen in events are added, each once. For the commands to try next: `namespace` is where
    unqualified names live, `storage` what `--storage` they need. `elapsed` is the time since the process began.
    `following`: the commands to try next, where they are not those of a local storage. `width`: that of the terminal, None to cut no line.
    `needs_spark`: why an update with nothing to do starts Spark, of the result. The outcome comes last, next to the prompt.
    """
    short = shortener(tally.datasets)
    lines = [*_table(tally, short, width), *_broken_rules(tally, short), *_checks(tally, short), *_warnings(tally, short)]
    lines += [*_errors([*errors, *tally.errors]), Line(""), *_head(tally, state, elapsed, needs_spark)]
    lines += _next(following or _commands(tally, state, namespace or Namespace(), storage))
    return lines[1:] if lines[0] == Line("") else lines


def _head(tally: Tally, state: UpdateState, elapsed: float | None, needs_spark: str) -> Iterator[Line]:
    style = {UpdateState.COMPLETED: "good", UpdateState.FAILED: "bad"}.get(state, "warning")
    of = f" of {tally.pipeline}" if tally.pipeline else ""
    whole = f", {seconds_text(elapsed)} with start-up" if elapsed is not None else ""
    yield Line(f"Update {tally.update_id[:6]}{of} {state} in {seconds_text(tally.seconds)}{whole}", style)
    counts = tally.counts()
    order = [*_STATE_ORDER, *(state for state in WORST_FIRST if state not in _STATE_ORDER)]
    facts = [f"{counts[name]:,} {name.lower()}" for name in order if counts[name]]
    if facts:
        dropped = f", {tally.dropped:,} dropped" if tally.dropped else ""
        dropped += f", {tally.quarantined:,} of them quarantined" if tally.quarantined else ""
        yield Line(f"  {counted(len(tally.datasets), 'dataset')}: {', '.join(facts)}; {counted(tally.rows, 'row')} written{dropped}")
    if facts and not tally.rows and not tally.dropped and set(counts) <= {FlowState.IDLE, FlowState.EXCLUDED}:
        yield Line("  Nothing new: no table was touched.")
        if needs_spark:
            yield Line(f"  Spark was started to find that out: {needs_spark.replace(f'{Path.cwd()}/', '')}.", "quiet")


def _table(tally: Tally, short: Callable[[str], str], width: int | None) -> Iterator[Line]:
    """Lines of the datasets that ran and of the gold layer, by layer; of many, the failed ones and those with most rows."""
    layer = tally.layers()
    worked = [d for d in tally.datasets.values() if d.state not in _QUIET]
    if not worked:
        return
    gold = [d for d in tally.datasets.values() if layer[d.name] == LAYERS[-1] and d.state is not FlowState.QUEUED]
    wanted = {d.name for d in [*sorted(worked, key=_importance)[:SHOWN_DATASETS], *sorted(gold, key=_importance)[:SHOWN_DATASETS]]}
    shown = [d for d in tally.datasets.values() if d.name in wanted]
    shown.sort(key=lambda d: LAYERS.index(layer[d.name]))
    first = 0 if len(set(layer.values())) > 1 else 1  # the column of layers is left out where there is only one
    rows = [(layer[d.name], *cells(d, short, d.ended))[first:] for d in shown]
    header = _HEADER[first:]
    yield Line("")
    for number, line in enumerate(aligned(_fitted(rows, header, width), header=header, right=range(3 - first, 7 - first), indent="  ")):
        yield Line(line, "heading" if number == 0 else _ROW_STYLES.get(shown[number - 1].state, ""))
    left = sum(d.name not in wanted for d in worked)
    if left:
        yield Line(f"  and {counted(left, 'more dataset')}", "quiet")


def _fitted(rows: list[tuple[str, ...]], header: tuple[str, ...], width: int | None) -> list[tuple[str, ...]]:
    """Return the rows, names cut where a line would be wider than the terminal."""
    if width is None:
        return rows
    at = header.index("dataset")
    others = [max(width_of(title), *(width_of(row[i]) for row in rows)) for i, title in enumerate(header) if i != at]
    room = max(_SHORTEST_NAME, width - 2 - sum(others) - 2 * len(others))
    return [(*row[:at], cut(row[at], room), *row[at + 1 :]) for row in rows]


def _importance(dataset: DatasetTally) -> tuple[int, int]:
    return (0 if dataset.state is FlowState.FAILED else 1 if dataset.state in (FlowState.SKIPPED, FlowState.STOPPED) else 2, -dataset.rows)


def cells(dataset: DatasetTally, short: Callable[[str], str], now: datetime | None) -> tuple[str, ...]:
    """One dataset as table cells: name, state, rows, dropped, violations, time."""
    seconds = dataset.seconds(now) if now else None
    return (
        short(dataset.name),
        dataset.state,
        (f"{dataset.rows:,}" if dataset.rows_known else "-") if dataset.began else "",
        _dropped(dataset),
        f"{dataset.failed:,}" if dataset.failed else "",
        seconds_text(seconds) if seconds is not None else "",
    )


def _dropped(dataset: DatasetTally) -> str:
    kept = f" ({dataset.quarantined:,} quarantined)" if dataset.quarantined else ""
    return f"{dataset.dropped:,}{kept}" if dataset.dropped else ""


def _broken_rules(tally: Tally, short: Callable[[str], str]) -> Iterator[Line]:
    """Lines of the rules that dropped rows, of those whose violations are kept, and of those that rows of failed batches broke."""
    broken = _worst_first(tally.rules)
    dropped = [one for one in broken if tally.actions.get((one.dataset, one.name)) == Action.DROP.value]
    yield from _rule_lines("Dropped rows", dropped, short)
    yield from _rule_lines("Violations", [one for one in broken if one not in dropped], short)
    yield from _rule_lines("Violations in failed batches", _worst_first(tally.rules_of_failed), short)


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


def _checks(tally: Tally, short: Callable[[str], str]) -> Iterator[Line]:
    """Number of table checks that passed, and a line for each failed one, critical ones first."""
    if not tally.checks:
        return
    held, failed, left = ([c for c in tally.checks if c.success is kind] for kind in (True, False, None))
    counts = [f"{len(held):,} held", *([f"{len(failed):,} failed"] if failed else []), *([f"{len(left):,} not run"] if left else [])]
    yield Line("")
    critical = sum(check.severity == "critical" for check in failed)
    so = f"; {counted(critical, 'critical one')}: exit code 1" if critical else ""
    yield Line(f"Table checks: {', '.join(counts)}{so}", "bad" if critical else "warning" if failed or left else "good")
    shown = sorted(failed, key=lambda check: check.severity != "critical")
    rows = [(short(c.dataset), c.name, c.severity, f"expected {c.expected}", c.facts) for c in shown[:SHOWN_RULES]]
    yield from (Line(line) for line in aligned(rows, indent="  "))
    if len(shown) > SHOWN_RULES:
        yield Line(f"  and {counted(len(shown) - SHOWN_RULES, 'more check')}", "quiet")
    if left:
        yield Line(
            f"  not run: {listed([f'{short(c.dataset)}.{c.name}' for c in left], SHOWN_RULES)} ({left[0].facts.removeprefix('not run: ')})"
        )


def _warnings(tally: Tally, short: Callable[[str], str]) -> Iterator[Line]:
    found = list(warning_texts(tally, short))
    if not found:
        return
    yield Line("")
    yield Line("Warnings", "warning")
    yield from (Line("  " + text) for text in found[:SHOWN_WARNINGS])
    if len(found) > SHOWN_WARNINGS:
        yield Line(f"  and {counted(len(found) - SHOWN_WARNINGS, 'more warning')}", "quiet")


def warning_texts(tally: Tally, short: Callable[[str], str]) -> Iterator[str]:
    """Yield a sentence for everything that did not fail the update but matters: broken lines, rescued values, late rows, new columns."""
    for name, source in tally.sources.items():
        facts = [counted(source.corrupt, f"broken {source.unit}")] if source.corrupt else []
        facts += [counted(source.rescued, "row with rescued values", "rows with rescued values")] if source.rescued else []
        line = f", {source.unit} {source.first_line}" if source.first_line else ""  # 0: the file as a whole
        first = f" (first: {_file(source.first_file)}{line})" if source.first_file else ""
        if facts:
            yield f"{short(name)}: kept {' and '.join(facts)}{first}"
        if source.left_out:
            what = counted(source.left_out, f"broken {source.unit} or file", f"broken {source.unit}s or files")
            yield f"{short(name)}: left out {what}, as the options of its source say{'' if facts else first}"
        if source.passed_over:
            what = counted(source.passed_over, "line or document", "lines or documents")
            unnamed = first if not (facts or source.left_out) else ""
            yield f"{short(name)}: read only the first JSON value of {what} that go on after it{unnamed}"
        if source.undecodable:
            what = counted(source.undecodable, "record")
            yield f"{short(name)}: {what} with bytes that are not of the encoding{f': {source.reason}' if source.reason else first}"
    for name, number in tally.late.items():
        left_out = f"{counted(number, 'row')} that came later than the watermark allows"
        yield f"{short(name)}: left out {left_out}"
    for change in tally.changes:
        brought = f", first seen in {_file(change.first_file)}" if change.first_file else ""
        word = "new column" if len(change.columns) == 1 else "new columns"
        yield f"{short(change.flow)}: {word} {listed(change.columns, 6)}{brought}"
    yield from tally.warnings


def _file(path: str) -> str:
    return path.removeprefix("file://").removeprefix("file:")


def _errors(errors: Sequence[LakeletError]) -> Iterator[Line]:
    unique = {"\n".join(error.lines()): error for error in errors}
    if not unique:
        return
    yield Line("")
    yield Line("Errors" if len(unique) > 1 else "Error", "bad")
    for number, error in enumerate(unique.values()):
        head, *rest = error.lines()
        if number:
            yield Line("")
        yield Line("  " + head, "bad")
        yield from (Line("  " + line) for line in rest)


def program() -> str:
    """Return how to start the command: its name where the shell finds it, else as it was typed."""
    typed = Path(sys.argv[0])
    return str(typed) if typed.name == "lakelet" and not shutil.which("lakelet") else "lakelet"


def _next(commands: Sequence[str]) -> Iterator[Line]:
    yield Line("Next: " + "  ·  ".join(commands), "quiet")


def _commands(tally: Tally, state: UpdateState, namespace: Namespace, storage: str | None) -> list[str]:
    option = f" --storage {shlex.quote(storage)}" if storage else ""
    commands = []
    lakelet = program()
    prefix = f"{namespace.catalog}.{namespace.schema}."
    written = [d for d in tally.datasets.values() if d.rows and d.readable]
    if state is not UpdateState.COMPLETED:
        commands.append(f"{lakelet} events --update {tally.update_id[:6]}{option}")
    table = f" {shlex.quote(written[-1].name.removeprefix(prefix))}" if written else ""
    commands.append(f"{lakelet} show{table}{option}")
    holding = next((d.name.removeprefix(prefix) for d in tally.datasets.values() if d.quarantined), None)
    if holding is not None:
        commands.append(f"{lakelet} quarantine show {shlex.quote(holding)}{option}")
    if state is UpdateState.COMPLETED:
        commands.append(f"{lakelet} events{option}")
    return commands


__all__ = ["Line", "cells", "program", "summary", "warning_texts"]
