"""The names that `lakelet new` is given."""

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
    """Layer and name of a table that does not exist yet."""

    layer: str
    name: str


def project_name(text: str) -> str:
    """The name of a project as bundle, schema and pipeline carry it: lower case, `_` for `-`. Raises NAME_INVALID."""
    if not _PROJECT.fullmatch(text):
        raise _invalid(
            text, "a project", "letters, digits, _ and -, first a letter", re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_0123456789")
        )
    return text.lower().replace("-", "_")


def table_name(text: str) -> NewName:
    """`silver.refunds` as layer and name. Raises NAME_INVALID."""
    layer, dot, name = text.rpartition(".")
    if not dot:
        todo = f"Put one of {', '.join(LAYERS)} in front: silver.{text}"
        raise LakeletError("NAME_INVALID", f"{text!r} names no layer", todo=todo)
    if layer not in LAYERS:
        what = f"{layer!r} is no layer; layers are {', '.join(LAYERS)}"
        raise LakeletError("NAME_INVALID", what, nearest=nearest_names(layer, LAYERS), todo=f"For example: silver.{name}")
    if not _TABLE.fullmatch(name) or keyword.iskeyword(name):
        proposal = re.sub(r"\W+", "_", name.lower(), flags=re.ASCII).strip("_0123456789")
        raise _invalid(name, "a table", "lower-case letters, digits and _, first a letter, and no keyword of Python", proposal)
    return NewName(layer, name)


def _invalid(name: str, of: str, form: str, proposal: str) -> LakeletError:
    usable = proposal and not keyword.iskeyword(proposal)
    todo = f"For example: {proposal}" if usable else "Choose another name."
    return LakeletError("NAME_INVALID", f"{name!r} cannot be the name of {of}: {form}", todo=todo)
