"""What changed code would do to the tables, for the page: reads what `lakelet diff --json` wrote, and makes the document of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.dashboard.tables import cell_text

_NAMES, _NUMBER = [str], (int, None)
_DATASET: Mapping[str, Any] = {
    "name": str,
    "kind": str,
    "state": str,
    "definition": ({"new": bool, "code": _NAMES, "rules": _NAMES, "settings": _NAMES}, None),
    "schema": [{"column": str, "before": (str, None), "after": (str, None)}],
    **dict.fromkeys(("before", "after", "added", "removed", "changed"), _NUMBER),
    "key": _NAMES,
    "key_source": str,
    "columns": [{"name": str, "changed": int, "share": (float, None)}],
    "samples": {
        "added": [{}],
        "removed": [{}],
        "changed": [{"column": str, "key": {}, "before": object, "after": object}],
        "changed_rows": [{"before": {}, "after": {}}],
    },
    "rules": [{"name": str, "action": str, "before": _NUMBER, "after": _NUMBER}],
    "dropped": {"before": _NUMBER, "after": _NUMBER},
    "error": ({"code": str, "text": str}, None),
    "notes": _NAMES,
}
_DIFF: Mapping[str, Any] = {"update": (str, None), "equal": bool, "datasets": [_DATASET]}
"""The form of `PipelineDiff.as_json`. A tuple with None: or null; a list: of any length; an object may have more keys."""


def read_diff(file: Path) -> Mapping[str, Any]:
    """Return the result of `lakelet diff` in a file. Raises USAGE for a file that has none."""
    line = 0
    nearest: Sequence[str] = ()
    try:
        found = json.loads(file.read_text(encoding="utf-8-sig"))
        _check(found, _DIFF, "")
        return dict(found)
    except OSError as problem:
        why = problem.strerror or str(problem)
        nearest = nearest_names(file.name, [other.name for other in file.parent.glob("*.json")])
    except json.JSONDecodeError as problem:
        line = problem.lineno if problem.doc else 0
        why = f"It is not JSON: {problem.msg}." if problem.doc else "It is empty, as after a lakelet diff that stopped with an error."
    except UnicodeDecodeError:
        why = "It is not text in UTF-8."
    except ValueError as problem:
        why = f"It is not what this version of lakelet diff --json writes: {problem}."
    raise LakeletError(
        "USAGE",
        f"--diff {file}: this file is not a result of lakelet diff",
        where=Location(str(file), line),
        why=why,
        nearest=nearest,
        todo="Write it with: lakelet diff --json > change.json",
    )


def _check(value: Any, shape: Any, place: str) -> None:
    """Raise ValueError, with the place, where a JSON value does not have a shape."""
    if isinstance(shape, tuple):
        if value is not None:
            _check(value, shape[0], place)
        return
    kinds: Any = dict if isinstance(shape, Mapping) else list if isinstance(shape, list) else (int, float) if shape is float else shape
    if not isinstance(value, kinds) or (shape is int and isinstance(value, bool)):
        raise ValueError(f"{place or 'the whole'} is {'null' if value is None else type(value).__name__}")
    if isinstance(shape, Mapping):
        for key, inner in shape.items():
            if key not in value:
                raise ValueError(f"{place or 'the object'} has no {key!r}")
            _check(value[key], inner, f"{place}.{key}" if place else key)
    elif isinstance(shape, list):
        for number, one in enumerate(value):
            _check(one, shape[0], f"{place}[{number}]")


def differing(found: Mapping[str, Any]) -> int:
    """How many datasets of a result of `lakelet diff` do not stay equal."""
    return sum(one["state"] != "equal" for one in found["datasets"])


def change_document(found: Mapping[str, Any], numbers: Mapping[str, int], updates: Sequence[str]) -> dict[str, Any]:
    """Return the document of a result of `lakelet diff`, in its order: what differs most comes first.

    Args:
        found: the value of `PipelineDiff.as_json`, or what was read from a file with it.
        numbers: of the datasets on the page.
        updates: ids of the updates on the page, oldest first; the one before the change may be among them.
    """
    update = found["update"]
    return {
        "update": update,
        "n": updates.index(update) if update in updates else None,
        "datasets": [_dataset_document(one, numbers.get(one["name"], one["name"])) for one in found["datasets"]],
    }


def _dataset_document(one: Mapping[str, Any], reference: int | str) -> dict[str, Any]:
    error, samples = one["error"], one["samples"]
    by_column: dict[str, list[Any]] = {}
    for sample in samples["changed"]:
        key = [[name, cell_text(value)] for name, value in sample["key"].items()]
        by_column.setdefault(sample["column"], []).append([key, cell_text(sample["before"]), cell_text(sample["after"])])
    return {
        "d": reference,
        "name": one["name"],
        "kind": one["kind"],
        "state": one["state"],
        "definition": one["definition"] and {part: one["definition"][part] for part in ("new", "code", "rules", "settings")},
        "schema": [[change["column"], change["before"], change["after"]] for change in one["schema"]],
        "rows": _row_counts(one),
        "key": one["key"],
        "key_source": one["key_source"],
        "columns": [[column["name"], column["changed"], column["share"], by_column.get(column["name"], [])] for column in one["columns"]],
        "samples": _sample_rows(samples, [*one["key"], *(column["name"] for column in one["columns"])]),
        "rules": [[rule["name"], rule["action"], rule["before"], rule["after"]] for rule in one["rules"]],
        "dropped": None if one["dropped"]["after"] is None else [one["dropped"]["before"], one["dropped"]["after"]],
        "error": error and {**error, "sentence": error["text"].partition("\n")[0].removeprefix(f"[{error['code']}] ")},
        "notes": one["notes"],
    }


def _row_counts(one: Mapping[str, Any]) -> dict[str, Any] | None:
    """Rows before and after, and how many differ, each with its share; None where they were not compared.

    Shares are those of the rows after (added), before (removed), and on both sides (changed).
    """
    before, after = one["before"], one["after"]
    counts = [one[word] for word in ("added", "removed", "changed")]
    if before is None or after is None or None in counts:
        return None
    added, removed, changed = counts
    wholes = {"added": (added, after), "removed": (removed, before), "changed": (changed, before - removed)}
    return {"before": before, "after": after, **{word: [count, count / max(whole, 1)] for word, (count, whole) in wholes.items()}}


def _sample_rows(samples: Mapping[str, Any], first: Sequence[str]) -> dict[str, Any]:
    """Rows as cells of the same columns, of which `first` come first. The cell of a value that changed is both of its values."""
    pairs = [("changed", pair["before"], pair["after"]) for pair in samples["changed_rows"]]
    pairs += [(what, row, row) for what in ("removed", "added") for row in samples[what]]
    known = dict.fromkeys(name for _, before, after in pairs for name in (*after, *before))
    columns = list(dict.fromkeys([*(name for name in first if name in known), *known]))
    return {"columns": columns, "rows": [[what, list(_cells(before, after, columns))] for what, before, after in pairs]}


def _cells(before: Mapping[str, Any], after: Mapping[str, Any], columns: Sequence[str]) -> Iterator[Any]:
    for name in columns:
        old, new = before.get(name), after.get(name)
        # As texts: 0.0 and -0.0 are two values, and numbers of Python that are equal.
        same = json.dumps(old, sort_keys=True, default=str) == json.dumps(new, sort_keys=True, default=str)
        yield cell_text(new) if same else [cell_text(old), cell_text(new)]


__all__ = ["change_document", "differing", "read_diff"]
