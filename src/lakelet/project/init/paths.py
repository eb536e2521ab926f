"""Which texts are paths of Databricks, and how much of them is known. No Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lakelet.config.workspace_paths import in_repository
from lakelet.project.init.findings import CodeLocation, Holes, PathFound

_HOSTED = re.compile(
    r"(/Volumes/|/?dbfs[:/]|/mnt/|/databricks-datasets(/|$)|/FileStore/|/Workspace/|s3[an]?://|abfss?://|wasbs?://|gs://|adl://|hdfs://|file:/)",
    re.IGNORECASE,
)
_PATTERN = re.compile(r"[*?\[{]")


def is_hosted(text: str) -> bool:
    """Whether the text begins like a path of Databricks or of an object store."""
    return bool(_HOSTED.match(text)) and "\n" not in text and len(text) < 1000


def path_found(text: str, holes: Holes, location: CodeLocation, format: str = "", *, read: bool = True) -> PathFound:
    """The path as the report shows it. `read`: the code gives it to a reader; else it only stands there."""
    ends = [len(text)]
    hole = holes.first_in(text)
    ends += [hole] if hole is not None else []
    pattern = _PATTERN.search(text)
    ends += [pattern.start()] if pattern else []
    return PathFound(holes.shown(text), min(ends), location, holes.shown(format), read)


def is_here(path: str, roots: Sequence[Path]) -> bool:
    """Whether a path means something on this machine: relative to the repository, absolute, or a path of the workspace to a file of it."""
    if in_repository(path, roots) is not None:
        return True
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
        return False
    return (roots[0] / path).exists()


def only_heads(paths: Sequence[PathFound]) -> set[str]:
    """Texts that name no place of their own: the beginnings from which the code puts other paths together.

    Such a text stands in the code and is not read, another path begins with it, and it ends amid a name, at a slash, or above a volume.
    """
    bare = {one.path for one in paths} - {one.path for one in paths if one.read}
    longer = {text: [one.path for one in paths if one.path.startswith(text) and one.path != text] for text in bare}
    return {text for text, found in longer.items() if found and (_is_open(text) or not all(one[len(text)] == "/" for one in found))}


def _is_open(text: str) -> bool:
    parts = [part for part in text.split("/") if part]
    return text.endswith("/") or len(parts) < (3 if parts[:1] == ["Volumes"] else 2)


def prefix(found: PathFound) -> str:
    """The part of a path that is worth a mapping: a volume, a mount, a bucket, the folder of anything else; empty if nothing is known."""
    whole = found.fixed == len(found.path)
    known = found.path[: found.fixed]
    if not whole:
        known = known[: known.rfind("/") + 1]  # the last part is not complete
    scheme = re.match(r"(/?dbfs(?=/)|[A-Za-z][A-Za-z0-9+.-]*:/*)", known)
    begin = scheme.end() if scheme else 0
    parts = [part for part in known[begin:].split("/") if part]
    if not parts:
        return known[:begin] if scheme and not whole else ""
    lead = known[:begin] if scheme else "/" if known.startswith("/") else ""
    lead += "/" if scheme and not lead.endswith("/") and not lead.endswith(":") else ""
    depth = _depth(parts, lead)
    named_file = whole and not found.path.endswith("/") and "." in parts[-1]
    kept = parts[:depth]
    if named_file and len(kept) == len(parts) and len(parts) > 1:
        kept = kept[:-1]
    return lead + "/".join(kept)


def _depth(parts: list[str], lead: str) -> int:
    first = parts[0].lower()
    if first == "volumes":
        return 4
    if first in ("mnt", "databricks-datasets", "filestore"):
        return 2
    if "://" in lead and not lead.lower().startswith(("file:", "dbfs:")):
        return 1
    return 2 if lead.lower().startswith(("dbfs", "/dbfs")) else len(parts)
