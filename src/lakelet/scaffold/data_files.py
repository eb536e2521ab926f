"""Makes a pipeline for a folder of data files: a bronze table per set of CSV or JSON files. Reads only the beginning of files."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from lakelet.scaffold.files import NewFile
from lakelet.scaffold.projects import DEFAULT, files_of, starting_point

_FORMATS = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_BEGINNING = 65_536
_SEPARATORS = ",;\t|"
_SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__", "venv"})
_NUMBERING = re.compile(r"[-_. ]*\d[\d\-_.: TZ]*$")
"""The date or number at the end of a file name."""


@dataclass(frozen=True)
class DataSet:
    """Files of one kind that make one table.

    Attributes:
        name: name of the table.
        folder: the folder of the files, relative to the project's; `.` for the project's own.
        pattern: glob of their names; None for all files of the folder and those below it.
        format: csv or json.
        options: options of the reader.
    """

    name: str
    folder: PurePosixPath
    pattern: str | None
    format: str
    options: tuple[tuple[str, str], ...]
    files: int


def data_sets(folder: Path) -> list[DataSet]:
    """Return the sets of CSV and JSON files in `folder` and below it, by name; hidden folders are left out."""
    groups: dict[tuple[PurePosixPath, str, str], list[Path]] = defaultdict(list)
    for file in sorted(folder.rglob("*")):
        below = file.relative_to(folder)
        hidden = any(part.startswith((".", "_")) or part in _SKIPPED for part in below.parts)
        suffix = _suffix(file)
        if not hidden and suffix is not None and file.is_file() and not _is_configuration(file):
            groups[PurePosixPath(below.parent.as_posix()), suffix.removesuffix(".gz"), _stem(file)].append(file)
    folders = Counter(within for within, _, _ in groups)
    alone = {within for within, count in folders.items() if count == 1 and within != PurePosixPath()}
    found: dict[str, DataSet] = {}
    for (within, suffix, stem), files in groups.items():
        name = _table(within.name if within in alone else stem, found)
        others = [file for key, group in groups.items() if key[0] == within and group is not files for file in group]
        shared = any(within in other.parents for other in folders)
        whole = within in alone and not shared  # a folder is read with all that lies below it
        pattern = None if whole else _pattern("" if within in alone else stem, files, others)
        found[name] = DataSet(name, within, pattern, _FORMATS[suffix], _options(files[0], suffix), len(files))
    return [found[name] for name in sorted(found)]


def pipeline_of(sets: Sequence[DataSet], *, name: str, settings: bool = True) -> list[NewFile]:
    """Return the files of a project called `name` that reads the sets from their folders.

    `settings`: also write pyproject.toml with the parameter `landing`; without it a run must be given the parameter.
    """
    starter = {str(file.path): file for file in files_of(starting_point(DEFAULT), name=name)}
    taken = ["databricks.yml", ".gitignore", *(["pyproject.toml"] if settings else [])]
    shared = [starter[path] for path in taken]
    local = [NewFile(file.path, file.text.replace('"data/landing"', '"."')) for file in shared]
    return [*local, *(NewFile.of(f"pipelines/bronze/{one.name}.py", _source(one)) for one in sets)]


def _source(one: DataSet) -> str:
    inner = "/".join(str(part) for part in (one.folder, one.pattern) if part is not None and part != PurePosixPath())
    path = inner.replace("{", "{{").replace("}", "}}").replace("\\", "\\\\").replace('"', '\\"')
    options = [("cloudFiles.format", one.format), *one.options, ("cloudFiles.inferColumnTypes", "true")]
    options += [("cloudFiles.useStrictGlobber", "true")] if one.pattern else []  # else `*` reaches into the folders below
    lines = [f"        .option({json.dumps(key)}, {json.dumps(value, ensure_ascii=False)})" for key, value in options]
    return "\n".join(
        [
            f'"""Bronze: {one.name}, as it arrived."""',
            "",
            "import dlt",
            "",
            "",
            f'@dlt.table(comment="Every row of the {one.format.upper()} files.", table_properties={{"quality": "bronze"}})',
            f"def {one.name}():",
            "    return (",
            '        spark.readStream.format("cloudFiles")',
            *lines,
            f"        .load(f\"{{spark.conf.get('landing')}}/{path}\")",
            "    )",
            "",
        ]
    )


def _suffix(file: Path) -> str | None:
    """Return the suffix of a data file, `.gz` included; None for any other file."""
    packed = file.suffix == ".gz"
    ending = (file.with_suffix("").suffix if packed else file.suffix).lower()
    return ending + (".gz" if packed else "") if ending in _FORMATS else None


def _stem(file: Path) -> str:
    """Return the name without suffix, date and number, which the files of one feed share."""
    name = file.name.removesuffix(".gz")
    bare = name[: name.rindex(".")]
    return _NUMBERING.sub("", bare) or bare


def _is_configuration(file: Path) -> bool:
    return file.name in ("package.json", "package-lock.json", "tsconfig.json", "composer.json") or file.name.endswith((".schema.json",))


def _table(text: str, taken: Container[str]) -> str:
    """Return an unused table name made from that of files or a folder."""
    base = re.sub(r"\W+", "_", text.lower(), flags=re.ASCII).strip("_") or "rows"
    base = base if base[0].isalpha() else f"t_{base}"
    names = (base, *(f"{base}_{number}" for number in range(2, 1000)))
    return next(name for name in names if name not in taken)


def _pattern(stem: str, files: Sequence[Path], others: Sequence[Path]) -> str:
    """Return a glob that matches the files and later ones with other numbers, but none of `others`.

    Without a stem it matches all names with their suffixes.
    """
    endings = {file.name: file.name[-len(_suffix(file) or "") :] for file in files}
    if not stem:
        return _one_of(sorted({f"*{ending}" for ending in endings.values()}))
    bare = [name for name, ending in endings.items() if name == stem + ending]
    numbered = sorted({f"{stem}*[0-9TZ]{ending}" for ending in endings.values()})
    clash = any(fnmatchcase(other.name, pattern) for other in others for pattern in numbered)
    return _one_of(list(endings) if clash else [*bare, *numbered])


def _one_of(choices: Sequence[str]) -> str:
    """Return a glob that matches what one of the globs matches; never a plain name, because a stream reads no single file."""
    return choices[0] if len(choices) == 1 and "*" in choices[0] else f"{{{','.join(choices)}}}"


def _options(file: Path, suffix: str) -> tuple[tuple[str, str], ...]:
    text = _beginning(file)
    return _csv_options(text) if suffix.startswith((".csv", ".tsv")) else _json_options(text)


def _beginning(file: Path) -> str:
    """Return the first characters of a file, or "" where it cannot be read or unpacked."""
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            return stream.read(_BEGINNING).decode("utf-8", errors="replace").lstrip("\ufeff")
    except (OSError, EOFError, zlib.error):  # the last two: an archive that is cut off or damaged
        return ""


def _csv_options(text: str) -> tuple[tuple[str, str], ...]:
    lines = text.splitlines()[:20]
    separator = max(_SEPARATORS, key=lambda sign: lines[0].count(sign)) if lines else ","
    rows = list(csv.reader(lines[:2], delimiter=separator))
    header = not rows or not any(re.fullmatch(r"-?\d+([.,]\d+)?", cell.strip()) for cell in rows[0])
    return (("header", "true" if header else "false"), *([("sep", separator)] if separator != "," else []))


def _json_options(text: str) -> tuple[tuple[str, str], ...]:
    """Return no options for one object per line, `multiLine` for a document. The first line may be cut off."""
    first, newline, _ = text.lstrip().partition("\n")
    try:
        one_object = isinstance(json.loads(first), dict)
    except ValueError:
        one_object = not newline and first.startswith("{")
    return () if one_object or not first else (("multiLine", "true"),)
