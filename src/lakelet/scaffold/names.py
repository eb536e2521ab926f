"""Names given to `lakelet new`."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from lakelet.base.errors import LakeletError, nearest_names

LAYERS = ("bronze", "silver", "gold")
_PROJECT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TABLE = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class NewName:
    """Layer and name of a new table."""

    layer: str
    name: str


def project_name(text: str) -> str:
    """Return the name of a project as used for bundle, schema and pipeline: lower case, `_` for `-`. Raises NAME_INVALID."""
    if not _PROJECT.fullmatch(text):
        raise _invalid(
            text, "a project", "letters, digits, _ and -, first a letter", re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_0123456789")
        )
    return text.lower().replace("-", "_")


def table_name(text: str) -> NewName:
    """Return layer and name of a text such as `silver.refunds`. Raises NAME_INVALID."""
    layer, dot, name = text.rpartition(".")
    if not dot:
        todo = f"Put one of {', '.join(LAYERS)} in front: silver.{text}"
        raise LakeletError("NAME_INVALID", f"{text!r} names no layer", todo=todo)
    if layer not in LAYERS:
        what = f"{layer!r} is not a layer; layers are {', '.join(LAYERS)}"
        raise LakeletError("NAME_INVALID", what, nearest=nearest_names(layer, LAYERS), todo=f"For example: silver.{name}")
    if not _TABLE.fullmatch(name) or keyword.iskeyword(name):
        proposal = re.sub(r"\W+", "_", name.lower(), flags=re.ASCII).strip("_0123456789")
        raise _invalid(name, "a table", "lower-case letters, digits and _, first a letter, and not a Python keyword", proposal)
    return NewName(layer, name)


def _invalid(name: str, of: str, form: str, proposal: str) -> LakeletError:
    usable = proposal and not keyword.iskeyword(proposal)
    todo = f"For example: {proposal}" if usable else "Choose another name."
    return LakeletError("NAME_INVALID", f"{name!r} cannot be the name of {of}: {form}", todo=todo)
