"""Which files hold unit tests in YAML. Imports nothing: every pytest run asks for every file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

SUFFIXES = (".yml", ".yaml")
_DEFINITIONS = ("databricks.yml", "databricks.yaml", "spark-pipeline.yml", "spark-pipeline.yaml")


def is_unit_test_file(file: Path) -> bool:
    """Whether the name of a file says that it holds unit tests."""
    return file.suffix in SUFFIXES and (file.stem.endswith(".unit_tests") or is_pipeline_test_file(file))


def is_pipeline_test_file(file: Path) -> bool:
    """Whether the name of a file says that it holds the tests of a whole pipeline."""
    return file.suffix in SUFFIXES and file.stem.endswith("_pipeline_tests")


def is_definition_file(file: Path) -> bool:
    """Whether a file defines pipelines by its name: where pytest is given one, the tests beside their code are meant."""
    return file.name in _DEFINITIONS or (file.suffix in SUFFIXES and file.stem.endswith(".pipeline"))


def unit_test_files(top: Path, skipped: Sequence[str]) -> Iterator[Path]:
    """The files of unit tests below a folder, without folders whose name matches a pattern of `skipped`, and virtual environments."""
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if not _left_out(folder, name, skipped))
        yield from (path for name in sorted(files) if is_unit_test_file(path := Path(folder, name)))


def _left_out(folder: str, name: str, skipped: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in skipped) or os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
