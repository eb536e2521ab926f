"""What changed code would do to tables, as lines for a terminal and as Markdown for a pull request. Pure: a `PipelineDiff` in, text out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from lakelet.base.text import aligned, counted, cut, listed, printable, shortener, width_of
from lakelet.cli.lines import Line

if TYPE_CHECKING:
    from lakelet.inspection.pipeline_diff import DatasetDiff, PipelineDiff
    from lakelet.inspection.table_comparison import TableComparison

WIDTH = 100
_TEXT = WIDTH - 12
_VALUE = 32
_KEY = 40
"""Width of the key of a sample."""
_STYLES = {"failed": "bad", "skipped": "bad", "different": "warning", "new": "heading", "equal": "good"}


def diff_lines(found: PipelineDiff) -> list[Line]:
    """The differences of all datasets, worst first; equal ones have one line each."""
    short = shortener(one.name for one in found.datasets)
    lines = []
    for one in found.datasets:
        state = one.state.upper() if one.state != "equal" else one.state
        head = f"{state:<9}  {short(one.name)}"
        if one.state == "equal" and one.rows is not None:
            head += f"  {counted(one.rows.after, 'row')}" + (f"; {one.change.aspects} changed" if one.change is not None else "")
        lines.append(Line(cut(printable(head), WIDTH), _STYLES[one.state]))
        lines += [Line(cut(printable(text), WIDTH)) for text in _details(one)]
    return lines


def verdict(found: PipelineDiff) -> str:
    """One sentence about all datasets."""
    if not found.datasets:
        return "No definition changed since the last update: nothing to compare."
    states = [one.state for one in found.datasets]
    facts = [f"{states.count(state):,} {state}" for state in _STYLES if state in states]
    return f"{counted(len(states), 'dataset')} compared with the last update: {', '.join(facts)}. Nothing was written."


def _wrapped(names: Sequence[str]) -> Iterator[str]:
    """Names with commas between them, in lines."""
    line = ""
    for number, name in enumerate(names):
        text = name + ("," if number + 1 < len(names) else "")
        if line and len(line) + len(text) + 1 > _TEXT:
            yield line
            line = ""
        line = f"{line} {text}" if line else text
    if line:
        yield line


_NOTHING = "nothing of its own"


def _why(one: DatasetDiff) -> str:
    if one.change is None:
        return _NOTHING if one.state != "equal" else ""
    return one.change.text if not one.change.new else ""


def _labelled(label: str, texts: Iterable[str]) -> Iterator[str]:
    """Lines with a label before the first one."""
    for number, text in enumerate(texts):
        yield f"  {label if not number else '':<8}  {text}"


def _details(one: DatasetDiff) -> Iterator[str]:
    """What differs in one dataset."""
    if one.state == "equal":
        return
    if one.change is None:
        yield from _labelled("changed", [_NOTHING])
    elif not one.change.new:
        for aspect, names in one.change.by_aspect.items():
            yield from _labelled(aspect, _wrapped(names))
    if one.error is not None:
        yield from (f"  {line}" for line in one.error.lines(WIDTH - 2))
        return
    rows = one.rows
    if rows is None:
        yield from _labelled("note", one.notes)
        return
    yield from _labelled("rows", [f"{_rows_text(rows)}{_key_text(one)}"])
    yield from _labelled("schema", _schema_texts(rows))
    yield from _column_lines(rows)
    yield from _row_lines("added", rows.added_rows, rows)
    yield from _row_lines("removed", rows.removed_rows, rows)
    yield from _rule_lines(one)
    for note in one.notes:
        yield from _labelled("note", wrap(note, _TEXT))


def _rows_text(rows: TableComparison) -> str:
    size = f"{rows.before:,}" if rows.before == rows.after else f"{rows.before:,} → {rows.after:,}"
    return f"{size}: {rows.added:,} added, {rows.removed:,} removed, {rows.changed:,} changed"


def _key_text(one: DatasetDiff) -> str:
    assert one.rows is not None
    return f"; by {', '.join(one.rows.key)} ({one.key_source})" if one.rows.key else ""


def _schema_texts(rows: TableComparison) -> Iterator[str]:
    for change in rows.schema:
        if change.before is None:
            yield f"+ {change.column} {change.after}"
        elif change.after is None:
            yield f"- {change.column} {change.before}"
        else:
            yield f"~ {change.column} {change.before} → {change.after}"


def _column_lines(rows: TableComparison) -> Iterator[str]:
    """The changed columns, most first, each with its first sample beside it and the others below."""
    table: list[Sequence[str]] = []
    for column in rows.columns:
        texts = [f"{_record(s.key, _KEY)}: {value_text(s.before)} → {value_text(s.after)}" for s in column.samples] or [""]
        table.append((column.name, f"{column.changed:,}", share_text(column.share), texts[0]))
        table += [("", "", "", text) for text in texts[1:]]
    if table:
        yield from aligned(table, header=("column", "changed", "share", "for example"), right=(1, 2), indent="  ")


def _row_lines(what: str, samples: Sequence[Mapping[str, Any]], rows: TableComparison) -> Iterator[str]:
    ordered = ({**{name: row[name] for name in rows.key if name in row}, **row} for row in samples)
    yield from _labelled(what, (_record(row, _TEXT) for row in ordered))


def _rule_lines(one: DatasetDiff) -> Iterator[str]:
    if one.rules:
        table = [(rule.name, rule.action, _number(rule.before), _number(rule.after)) for rule in one.rules]
        yield from aligned(table, header=("rule", "action", "violations before", "after"), right=(2, 3), indent="  ")
    before, after = one.dropped
    if before != after and after is not None:
        yield from _labelled("dropped", [f"{_number(before)} → {_number(after)} rows"])


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _record(row: Mapping[str, Any], width: int) -> str:
    """As many columns of a row as the width takes."""
    text = ""
    for name, value in row.items():
        more = f"{', ' if text else ''}{name}={value_text(value)}"
        if text and width_of(text + more) > width - 3:
            return f"{text}, …"
        text += more
    return text


def value_text(value: Any) -> str:
    """A value as it is shown beside others."""
    return "NULL" if value is None else cut(str(value), _VALUE)


def share_text(share: float) -> str:
    """A share in percent, never 0 % for something and never 100 % for less than all."""
    percent = share * 100
    return "<1 %" if 0 < percent < 1 else ">99 %" if 99 < percent < 100 else f"{percent:.0f} %"


# ---------------------------------------------------------------------------------------------------------------------- Markdown


def diff_markdown(found: PipelineDiff) -> str:
    """The differences as Markdown: a table of all datasets, then the details of each that differs, folded."""
    if not found.datasets:
        return f"**lakelet diff**: {verdict(found)}"
    short = shortener(one.name for one in found.datasets)
    lines = [f"**lakelet diff**: {verdict(found)}", "", "| dataset | state | rows | added | removed | changed | schema | because |"]
    lines.append("|---|---|---:|---:|---:|---:|---|---|")
    for one in found.datasets:
        rows = one.rows
        counts = ["", "", "", ""] if rows is None else [f"{rows.after:,}", f"{rows.added:,}", f"{rows.removed:,}", f"{rows.changed:,}"]
        schema = "" if rows is None or one.state == "new" else listed([_code(text) for text in _schema_texts(rows)], 4)
        lines.append(f"| {' | '.join([_code(short(one.name)), one.state, *counts, schema, _escaped(_why(one))])} |")
    for one in found.datasets:
        lines += _markdown_details(one, short)
    return "\n".join(lines)


def _markdown_details(one: DatasetDiff, short: Callable[[str], str]) -> Iterator[str]:
    if one.state == "equal":
        return
    yield from ("", f"<details><summary>{_html(short(one.name))}: {one.state}</summary>", "", "```text")
    yield from (printable(text).replace("```", "'''") for text in _details(one))
    yield from ("```", "", "</details>")


def _code(text: str) -> str:
    return f"`{_escaped(text).replace('`', chr(39))}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


__all__ = ["diff_lines", "diff_markdown", "share_text", "value_text", "verdict"]
