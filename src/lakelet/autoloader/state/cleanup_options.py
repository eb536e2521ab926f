"""The options `cloudFiles.cleanSource*`: what is done with files some time after they were read (AL-25, AL-26)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakelet.autoloader.discovery.files import Files, LocalFiles, files_for
from lakelet.autoloader.discovery.path_patterns import fixed_folder
from lakelet.autoloader.formats.option_tables import Option
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.errors import LakeletError, nearest_names

OFF, MOVE, DELETE = "OFF", "MOVE", "DELETE"
_MODES = (OFF, MOVE, DELETE)
_DAY = 86_400
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": _DAY, "week": 7 * _DAY, "month": 31 * _DAY, "year": 366 * _DAY}
_PART = re.compile(r"\s*(\d+)\s*([a-z]+)\s*(?:,|and\b)?", re.IGNORECASE)
_LEAST_BEFORE_DELETE = 7 * _DAY
_LEAST_FILE_AGE = 14 * _DAY


@dataclass(frozen=True)
class CleanSource:
    """What to do with files `retention` seconds after their batch was committed."""

    mode: str
    retention: int
    destination: str | None = None


def interval_seconds(text: str) -> int:
    """An interval such as `14 days`, `2 weeks`, `1 month` or `1 day 12 hours`; months count 31 days. Raises ValueError."""
    rest = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE).strip()
    found, at = 0, 0
    while at < len(rest):
        match = _PART.match(rest, at)
        unit = match and _UNITS.get(match[2].lower().removesuffix("s"))
        if match is None or unit is None:
            break
        found, at = found + int(match[1]) * unit, match.end()
    if not rest or at < len(rest):
        raise ValueError("must be an interval such as 14 days")
    return found


def _file_age(text: str) -> int:
    age = interval_seconds(text)
    if age < _LEAST_FILE_AGE:
        raise ValueError("must be at least 14 days")
    return age


OPTIONS = (
    Option("maxFileAge", _file_age, notice="no seen file is ever forgotten"),
    Option("cleanSource", str, OFF),
    Option("cleanSource.retentionDuration", interval_seconds, 30 * _DAY),
    Option("cleanSource.moveDestination", str),
)


def clean_source(values: Mapping[str, Any], spec: SourceSpec) -> CleanSource | None:
    """What the options of a source ask for; None when they ask for nothing.

    Args:
        values: the values of all `cloudFiles.*` options by lower-case name.

    Raises:
        LakeletError: CF_INVALID_CLEAN_SOURCE_MODE, CF_CLEAN_SOURCE_ALLOW_OVERWRITES_BOTH_ON or CF_INCONSISTENT_OPTIONS.
    """
    mode = values["cleansource"].strip().upper()
    if mode not in _MODES:
        what = f"cloudFiles.cleanSource {values['cleansource']!r} is unknown; the modes are {', '.join(_MODES)}"
        raise LakeletError("CF_INVALID_CLEAN_SOURCE_MODE", what, where=spec.where, nearest=nearest_names(mode, _MODES))
    if mode == OFF:
        return None
    if values["allowoverwrites"]:
        raise LakeletError(
            "CF_CLEAN_SOURCE_ALLOW_OVERWRITES_BOTH_ON",
            "cloudFiles.cleanSource cannot be combined with cloudFiles.allowOverwrites",
            where=spec.where,
            why="a file could be removed while a newer content of it still waits to be read",
        )
    rule = CleanSource(mode, values["cleansource.retentionduration"], values["cleansource.movedestination"])
    problem = _problem_of_rule(rule, spec.path)
    if problem:
        raise LakeletError("CF_INCONSISTENT_OPTIONS", problem, where=spec.where)
    return rule


def _problem_of_rule(rule: CleanSource, path: str) -> str | None:
    if rule.mode == DELETE:
        short = rule.retention <= _LEAST_BEFORE_DELETE
        return "cloudFiles.cleanSource DELETE needs a cloudFiles.cleanSource.retentionDuration of more than 7 days" if short else None
    if not rule.destination:
        return "cloudFiles.cleanSource MOVE needs cloudFiles.cleanSource.moveDestination"
    files, source = files_for(path)
    there, target = files_for(rule.destination)
    if not same_system(files, there, path, rule.destination):
        return f"cloudFiles.cleanSource.moveDestination {rule.destination} is not in the file system of {path}"
    below = files.real(target).rstrip("/") + "/"
    if below.startswith(files.real(fixed_folder(source)).rstrip("/") + "/"):
        return f"cloudFiles.cleanSource.moveDestination {rule.destination} lies under the source folder {path}"
    return None


def same_system(files: Files, others: Files, path: str, other: str) -> bool:
    """Whether files can be moved between two locations."""
    if isinstance(files, LocalFiles) or isinstance(others, LocalFiles):
        return isinstance(files, LocalFiles) and isinstance(others, LocalFiles)
    return path.split(":")[0].lower() == other.split(":")[0].lower()


def cleanup_notices(given: Mapping[str, str], rule: CleanSource | None) -> list[str]:
    """Return notices about options without effect and about dangerous ones."""
    if rule is None:
        names = ("cleanSource.retentionDuration", "cleanSource.moveDestination")
        return [f"option cloudFiles.{name} has no effect: cleanSource is OFF" for name in names if name.lower() in given]
    verb = "moves" if rule.mode == MOVE else "deletes"
    return [f"cloudFiles.cleanSource {verb} files that were read: no other stream may read this folder"]
