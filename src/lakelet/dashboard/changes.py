"""Changes of the newest update, as the sentences on top of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakelet.base.text import TextEnum, counted, listed
from lakelet.storage.eventlog.faults import failing
from lakelet.storage.eventlog.states import FlowState
from lakelet.storage.eventlog.summaries import DatasetDefinition, FlowSummary, History, RuleEdit, UpdateSummary


class Tone(TextEnum):
    """How grave a change is."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"
    NEUTRAL = "neutral"


@dataclass(frozen=True)
class UpdateDifference:
    """One difference. `about`: the dataset, empty for the update as a whole; `rule`: of it, if it is about one; `text`: a clause.

    `weight`: of two changes of one tone, the larger one is said first.
    """

    tone: Tone
    about: str
    text: str
    rule: str = ""
    weight: float = 0


_ORDER = (Tone.BAD, Tone.WARNING, Tone.GOOD, Tone.NEUTRAL)


def what_changed(history: History) -> tuple[UpdateDifference, ...]:
    """The differences that the newest update made to its pipeline, the gravest first."""
    if not history.updates:
        return ()
    newest = history.updates[-1]
    before = [u for u in history.updates[:-1] if u.pipeline_id == newest.pipeline_id]
    found = [
        *_state_changes(history, newest, before),
        *_pass_rate_changes(newest, before),
        *_check_changes(newest, before),
        *_schema_changes(newest),
        *_definition_changes(newest, before),
    ]
    return tuple(sorted(found, key=lambda c: (_ORDER.index(c.tone), -c.weight)))


def _state_changes(history: History, newest: UpdateSummary, before: Sequence[UpdateSummary]) -> Iterator[UpdateDifference]:
    last = _last_states(before)
    skipped = [run.dataset for run in newest.runs_by_start if run.status is FlowState.SKIPPED]
    for run in newest.runs_by_start:
        was = last.get((run.dataset, run.flow))
        if run.status is FlowState.FAILED:
            streak = failing(history.updates, (u.datasets[run.dataset] for u in history.updates if run.dataset in u.datasets))
            again = f"failed again ({streak.text})" if streak is not None and streak.updates > 1 else "failed"
            yield UpdateDifference(Tone.BAD, run.dataset, f"{again}{_of_flow(run)}: {_failure_headline(run)}")
        elif run.status.is_done and was in (FlowState.FAILED, FlowState.SKIPPED):
            yield UpdateDifference(
                Tone.GOOD,
                run.dataset,
                f"is up to date again{_of_flow(run)}, after it {'failed' if was is FlowState.FAILED else 'was skipped'}",
            )
        lines = (("kept", run.corrupt - run.left_out, "broken line"), ("left out", run.left_out, "broken line"))
        for did, count, what in (*lines, ("left out", run.late, "late row")):
            if count:
                yield UpdateDifference(Tone.WARNING, run.dataset, f"{did} {counted(count, what)}")
    if skipped:
        names = listed([name.rpartition(".")[2] for name in skipped], 5)
        yield UpdateDifference(Tone.WARNING, "", f"{counted(len(skipped), 'flow')} skipped because of failures: {names}", weight=2)
    if newest.failure is not None:
        yield UpdateDifference(Tone.BAD, "", f"the update failed: {newest.failure.sentence}")


def _last_states(before: Sequence[UpdateSummary]) -> dict[tuple[str, str], FlowState]:
    """By flow: how its latest run ended in which it was not excluded."""
    return {(r.dataset, r.flow): r.status for update in before for r in update.runs if r.status is not FlowState.EXCLUDED}


def _of_flow(run: FlowSummary) -> str:
    return "" if run.flow == run.dataset else f" (flow {run.flow})"


def _failure_headline(run: FlowSummary) -> str:
    return run.failure.sentence_about(run.dataset) if run.failure else "no error was recorded"


def _pass_rate_changes(newest: UpdateSummary, before: Sequence[UpdateSummary]) -> Iterator[UpdateDifference]:
    last = {key: (update.number, counts) for update in before for key, counts in update.counts_by_rule.items()}
    edits = {(e.dataset, e.rule): (update.number, e) for update in (*before, newest) for e in update.rule_edits if e.of_text}
    for (dataset, rule), count in newest.counts_by_rule.items():
        measured, counts = last.get((dataset, rule), (-1, None))
        now, was, failed = count.pass_rate, counts.pass_rate if counts else None, count.failed
        edited, edit = edits.get((dataset, rule), (-1, None))
        if edit is not None and edited > measured >= 0 and now is not None and was is not None:  # another question, so another answer
            text = f"{percent(now)} pass its new text; {percent(was)} passed the old one, {edit.before[0]}"
            yield UpdateDifference(Tone.NEUTRAL, dataset, text, rule)
            continue
        if now is None or (was is not None and abs(now - was) < 0.0005):
            continue
        if was is None and now < 1:
            yield UpdateDifference(Tone.WARNING, dataset, f"{counted(failed, 'row')} broke it, {percent(now)} passed", rule, 1 - now)
        elif was is not None and now < was:
            yield UpdateDifference(
                Tone.WARNING, dataset, f"pass rate fell from {percent(was)} to {percent(now)} ({counted(failed, 'row')})", rule, was - now
            )
        elif was is not None:
            yield UpdateDifference(Tone.GOOD, dataset, f"pass rate rose from {percent(was)} to {percent(now)}", rule, now - was)


def percent(rate: float) -> str:
    """A pass rate as text; only what is complete is 100 %, only nothing is 0 %."""
    if rate in (0, 1):
        return f"{rate:.0%}"
    return f"{min(max(rate * 100, 0.01), 99.99):.2f}%"


def _check_changes(newest: UpdateSummary, before: Sequence[UpdateSummary]) -> Iterator[UpdateDifference]:
    last = {(c.dataset, c.name): c.success for update in before for c in update.checks}
    for check in newest.checks:
        was = last.get((check.dataset, check.name))
        if check.success is False:
            yield UpdateDifference(
                Tone.BAD if check.severity == "critical" else Tone.WARNING, check.dataset, f"check failed: {check.finding}", check.name
            )
        elif check.success and was is False:
            yield UpdateDifference(Tone.GOOD, check.dataset, "check passes again", check.name)


def _schema_changes(newest: UpdateSummary) -> Iterator[UpdateDifference]:
    for change in newest.schema_changes:
        names = [name for name, _ in (*change.added, *change.widened)]
        word = "widened type of" if not change.added else "new column" if len(names) == 1 else "new columns"
        brought = f", brought by {change.file.rpartition('/')[2]}" if change.file else ""
        yield UpdateDifference(Tone.NEUTRAL, change.dataset, f"{word} {listed(names, 6)}{brought}")


def _definition_changes(newest: UpdateSummary, before: Sequence[UpdateSummary]) -> Iterator[UpdateDifference]:
    earlier = next((u.definitions for u in reversed(before) if u.definitions), None)
    if earlier is None or not newest.definitions:
        return
    for name in newest.definitions:
        if name not in earlier:
            yield UpdateDifference(Tone.NEUTRAL, name, "is new")
        else:
            yield from _rule_edits(newest.definitions[name], earlier[name])
    for name in earlier:
        if name not in newest.definitions:
            yield UpdateDifference(Tone.NEUTRAL, name, "is no longer defined")


def _rule_edits(now: DatasetDefinition, before: DatasetDefinition) -> Iterator[UpdateDifference]:
    old, new = ({rule.name: rule for rule in definition.rules} for definition in (before, now))
    for name, rule in new.items():
        if name not in old:
            yield UpdateDifference(Tone.NEUTRAL, now.name, f"new rule, action {rule.action}", name)
        elif (rule.constraint, rule.action) != (old[name].constraint, old[name].action):
            edit = RuleEdit(0, now.name, name, (old[name].constraint, old[name].action), (rule.constraint, rule.action))
            yield UpdateDifference(Tone.NEUTRAL, now.name, f"the rule was changed, {edit.text}", name)
    for name in old:
        if name not in new:
            yield UpdateDifference(Tone.NEUTRAL, now.name, "the rule was removed", name)
