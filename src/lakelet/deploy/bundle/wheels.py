"""Wheels with the time of their build in the version (`dynamic_version`): Databricks reinstalls a package only when its version changes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import zipfile
from datetime import datetime, timezone
from pathlib import Path

from lakelet.base.errors import LakeletError

_PARTS = (5, 6)
"""Distribution, version, perhaps a build number, and three tags: the parts of a wheel's name."""


def with_version_of_build(wheel: Path, folder: Path) -> Path:
    """Return a copy of the wheel in `folder` whose version ends in `+<time of its last change>`. A copy that exists is kept.

    The version is changed in the name, in the name of the `.dist-info` folder, in METADATA and in RECORD. Raises ARTIFACT_FAILED for a file
    that is not a wheel.
    """
    parts = wheel.name.removesuffix(".whl").split("-")
    if len(parts) not in _PARTS or wheel.suffix != ".whl":
        raise LakeletError("ARTIFACT_FAILED", f"{wheel} does not have the name of a wheel, so its version cannot be changed")
    distribution, version = parts[:2]
    changed = datetime.fromtimestamp(wheel.stat().st_mtime, timezone.utc)
    new = f"{version.partition('+')[0]}+{changed:%Y%m%d%H%M%S}{changed.microsecond // 10_000:02d}"
    target = folder / ("-".join([distribution, new, *parts[2:]]) + ".whl")
    folder.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        unfinished = target.with_suffix(f".{os.getpid()}")
        try:
            _copy(wheel, unfinished, f"{distribution}-{version}.dist-info/", f"{distribution}-{new}.dist-info/", new)
            unfinished.replace(target)
        except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as problem:
            unfinished.unlink(missing_ok=True)
            raise LakeletError(
                "ARTIFACT_FAILED", f"{wheel} is not a wheel, so its version cannot be changed", why=str(problem)
            ) from problem
    return target


def _copy(wheel: Path, target: Path, before: str, after: str, version: str) -> None:
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        metadata = _metadata(old.read(before + "METADATA").decode(), version)
        contents = {
            before + "METADATA": metadata,
            before + "RECORD": _record(old.read(before + "RECORD").decode(), before, after, metadata),
        }
        for entry in old.infolist():
            name = after + entry.filename[len(before) :] if entry.filename.startswith(before) else entry.filename
            copied = zipfile.ZipInfo(name, entry.date_time)
            copied.external_attr, copied.compress_type = entry.external_attr, entry.compress_type
            new.writestr(copied, contents.get(entry.filename) or old.read(entry))


def _metadata(text: str, version: str) -> bytes:
    """The METADATA file with another version. The description below the first empty line is not changed."""
    head, empty, description = text.partition("\n\n")
    lines = [f"Version: {version}" if line.startswith("Version:") else line for line in head.split("\n")]
    return ("\n".join(lines) + empty + description).encode()


def _record(text: str, before: str, after: str, metadata: bytes) -> bytes:
    digest = base64.urlsafe_b64encode(hashlib.sha256(metadata).digest()).rstrip(b"=").decode()
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    for row in csv.reader(io.StringIO(text)):
        if row and row[0].startswith(before):
            row[0] = after + row[0][len(before) :]
        rows.writerow([row[0], f"sha256={digest}", len(metadata)] if row and row[0] == after + "METADATA" else row)
    return written.getvalue().encode()


__all__ = ["with_version_of_build"]
