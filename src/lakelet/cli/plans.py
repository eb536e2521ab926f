"""A deployment's plan as text: a table, a comment's Markdown, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lakelet.base.redaction import redacted
from lakelet.base.text import aligned, counted, printable
from lakelet.cli.summary import Line

if TYPE_CHECKING:
    from lakelet.deploy.plan import DeploymentPlan, PlanLine

_COLOURS = {
    "create": "good",
    "upload": "good",
    "delete": "bad",
    "remove file": "bad",
    "conflict": "bad",
    "drift": "warning",
    "keep": "quiet",
}
_MANY = 20
_LONGEST = 60
_COMMENT = 60_000  # a comment of a pull request takes 65,536 characters
_HEADER = ("action", "resource", "field", "before", "after")


def as_json(changes: Iterable[PlanLine]) -> str:
    """All changes as an array of objects."""
    rows = [{name: _plain(getattr(change, name)) for name in _HEADER} for change in changes]
    return redacted(json.dumps(rows, indent=2, ensure_ascii=False)) + "\n"


def as_lines(changes: Sequence[PlanLine]) -> list[Line]:
    """The changes as an aligned table. What is made is one line each; of many files the first ones are named."""
    rows = _rows(changes)
    texts = aligned([tuple(printable(cell) for cell in cells) for _, *cells in rows], header=_HEADER)
    styles = ["heading", *(_COLOURS.get(action, "") for action, *_ in rows)]
    return [Line(redacted(text), style) for text, style in zip(texts, styles, strict=True)]


def as_markdown(changes: Sequence[PlanLine], title: str, plan: DeploymentPlan) -> str:
    """The changes as text for a comment of a pull request."""
    parts = [f"### {_cell(title)}", "", f"**{totals(plan)}**", ""]
    rows = _rows(changes)
    if rows:
        parts += [f"| {' | '.join(_HEADER)} |", "|---|---|---|---|---|"]
    size = sum(map(len, parts))
    for number, (_, *cells) in enumerate(rows):
        line = "| " + " | ".join(_cell(cell) for cell in cells) + " |"
        size += len(line) + 1
        if size > _COMMENT:
            parts += ["", f"… and {counted(len(rows) - number, 'more line')}: `lakelet deploy --plan`"]
            break
        parts.append(line)
    return redacted("\n".join(parts)) + "\n"


def totals(plan: DeploymentPlan) -> str:
    """What a plan does, in one line: `1 to create, 2 to change, 3 files to upload`."""
    changed = {change.resource for change in plan.changes if change.action in ("change", "permission", "publish")}
    made = {str(key) for key in plan.creates}
    drift = sum(change.action == "drift" for change in plan.changes)
    counts = [
        (len(made), f"{len(made)} to create"),
        (len(changed - made), f"{len(changed - made)} to change"),
        (len(plan.deletes), f"{len(plan.deletes)} to delete"),
        (len(plan.uploads), f"{counted(len(plan.uploads), 'file')} to upload"),
        (len(plan.removals), f"{counted(len(plan.removals), 'file')} to remove"),
    ]
    text = ", ".join(words for number, words in counts if number)
    if not text:
        text = "Nothing to do" if plan.empty else "An earlier deployment to finish"
    return text + (f"; {counted(drift, 'setting')} changed in the workspace and kept" if drift else "")


def _rows(changes: Sequence[PlanLine]) -> list[tuple[str, str, str, str, str, str]]:
    """Rows of text; the action first, once more as it is shown."""
    rows = []
    created = {change.resource for change in changes if change.action == "create"}
    shown = [one for one in changes if not (one.resource in created and (one.field is not None or one.action == "publish"))]
    for action, group in groupby(shown, key=lambda change: str(change.action)):
        items = list(group)
        few = items if action not in ("upload", "remove file") or len(items) <= _MANY else items[: _MANY - 1]
        rows += [(action, action, one.resource, one.field or "", _short(one.before), _short(one.after)) for one in few]
        if len(few) < len(items):
            rows.append((action, action, f"… and {len(items) - len(few):,} more files", "", "", ""))
    return rows


def _short(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _cell(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value
